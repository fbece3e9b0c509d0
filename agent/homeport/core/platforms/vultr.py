"""Vultr: the first NIC by DHCP with further addresses beside it, the others static."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Files, Node, described
from homeport.core.platforms.shape import Platform, Service, Sign, fixed

NAME = "v1.json"


def build(files: Files, network: Network) -> None:
    entries = described(files, NAME, "interfaces")["interfaces"].some()
    network.each(entries[:1], partial(_public, network=network))
    network.each(entries[1:], partial(_private, network=network))


def _public(entry: Node, network: Network) -> None:
    link = network.card(entry["mac"].mac(), mtu=entry["mtu"].mtu())
    link.dhcp = {4: Dhcp(), 6: Dhcp()}
    _additional(entry, link)


def _private(entry: Node, network: Network) -> None:
    """No gateway: what is not in the private network goes the public way."""
    link = network.card(entry["mac"].mac(), mtu=entry["mtu"].mtu())
    if entry["ipv4"]["address"]:
        link.add(entry["ipv4"]["address"].interface(entry["ipv4"]["netmask"]))
    if entry["ipv6"]["address"]:
        link.add(entry["ipv6"]["address"].interface(entry["ipv6"]["prefix"]))
    _additional(entry, link)
    network.each(entry["ipv4"]["routes"].items(), lambda route: network.route(
        link, route["network"].network(route["netmask"]), route["gateway"].ip() if route["gateway"] else None))


def _additional(entry: Node, link: Link) -> None:
    for more in entry["ipv4"]["additional"].items():
        link.add(more["address"].interface(more["netmask"]))
    for more in entry["ipv6"]["additional"].items():
        link.add((more["address"] or more["network"]).interface(more["prefix"]))


PLATFORM = Platform(
    name="vultr", title="Vultr", build=build, signs=(Sign("manufacturer", ("Vultr",)),),
    ways=(Service("http://169.254.169.254", fixed(NAME)),),
    reads="`/v1.json`",
    configures="the first NIC by DHCP and SLAAC with its additional addresses; the others static, with MTU",
    leaves="BGP, reserved IPs that are not in the metadata",
)
