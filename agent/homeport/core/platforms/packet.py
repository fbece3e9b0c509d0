"""Packet, later Equinix Metal: bare metal on a bond of all its cards."""

from __future__ import annotations

import re
from functools import partial

from homeport.core.platforms.network import Link, Network
from homeport.core.platforms.options import bond_mode
from homeport.core.platforms.reading import Files, IPInterface, Node, described, tree
from homeport.core.platforms.shape import CheckIn, Message, Platform, Service, fixed

NAME = "metadata"
SERVICE = Service("https://metadata.packet.net", fixed(NAME))
LACP = "802.3ad"
OPTIONS = {"miimon": 100, "updelay": 200, "downdelay": 200, "xmit_hash_policy": "layer3+4"}
PRIVATE = "10.0.0.0/8"
LONGEST_URL = 2048
_WEB = re.compile(r"https?://[!-~]+\Z", re.IGNORECASE)


def build(files: Files, network: Network) -> None:
    """All addresses are on the first bond; without any bond they are on the first card."""
    data = described(files, NAME, "network")["network"]
    entries = data["interfaces"].some()
    names = dict.fromkeys(entry["bond"].text("") for entry in entries if entry["bond"])
    bonds = [_bond(name, [entry for entry in entries if entry["bond"].value == name], data["bonding"]["mode"], network)
             for name in names]
    link = bonds[0] if bonds else _card(entries[0], network)
    network.each(data["addresses"].items(), partial(_address, link=link, network=network))
    # The metadata name no servers: those that DHCP gave in the bootstrap stage go on.
    network.serve(network.situation.servers)


def _bond(name: str, entries: list[Node], mode: Node, network: Network) -> Link:
    cards = [_card(entry, network) for entry in entries]
    for card in cards:
        card.is_port = True
    options = {**OPTIONS, "lacp_rate": "fast"} if bond_mode(mode) == LACP else OPTIONS
    ports = [card.name for card in cards]
    # The switch expects the MAC of the first card, whichever port comes up first.
    return network.add(Link(name, "bond", mac=cards[0].card, parts=ports, shape={
        "link-aggregation": {"mode": bond_mode(mode), "options": options, "port": ports}}))


def _card(entry: Node, network: Network) -> Link:
    return network.card(entry["mac"].mac(), entry["name"].text(""))


def _address(entry: Node, link: Link, network: Network) -> None:
    address = entry["address"].interface(entry["netmask"])
    link.add(address)
    if entry["gateway"]:
        gateway = entry["gateway"].ip()
        if address.version == 4 and not entry["public"].flag():
            network.route(link, _private(), gateway)
        else:
            network.default_route(link, gateway)


def _private() -> IPInterface:
    from ipaddress import IPv4Interface

    return IPv4Interface(PRIVATE)


def phone_home(files: Files) -> Message | None:
    """Where to is for the metadata to say: the platform has that service under names of their own, by http too.

    They came over https, and there is nothing in the message. Raises Fault for what is no address.
    """
    url = tree(files, NAME)["phone_home_url"]
    if url and not (_WEB.match(url.text()) and len(url.text()) <= LONGEST_URL):
        raise url.fault(f"an http or https address of at most {LONGEST_URL} characters")
    return Message("POST", url.text()) if url else None


PLATFORM = Platform(
    name="packet", title="Packet, Equinix Metal", build=build,
    ways=(SERVICE,), check_in=CheckIn((SERVICE,), phone_home, once=True),
    reads="`/metadata`",
    configures="the bond with its addresses, default gateways, `10.0.0.0/8` by the private one; DNS as by DHCP before",
    leaves="cards without a bond; BGP",
)
