"""Scaleway: public addresses of the first NIC, by DHCP, by advertisement or by hand, as each says."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Files, Node, described
from homeport.core.platforms.shape import CheckIn, Message, Platform, Service, Sign, Want, fixed

NAME = "conf"
WANTS = fixed(Want(NAME, query="format=json"))
SERVICES = ("http://169.254.42.42", "http://[fd00:42::42]")
BOOTED = Message("PATCH", "state", b'{"state_detail": "booted"}', {"Content-Type": "application/json"})


def build(files: Files, network: Network) -> None:
    data = described(files, NAME, "public_ips", "public_ip", "private_nics", "ipv6")
    addresses = data["public_ips"].items()
    # Its MAC is not told; those of private networks are.
    private = [entry["mac_address"].mac() for entry in data["private_nics"].items() if entry["mac_address"]]
    link = network.primary(but=private)
    link.dhcp[4] = Dhcp()
    if data["ipv6"]["address"]:  # before there were several
        _static(data["ipv6"], link, network)
    first: list[Node] = []
    network.each(addresses, partial(_address, first=first, link=link, network=network))


def _address(entry: Node, first: list[Node], link: Link, network: Network) -> None:
    """Without a mode: the first IPv4 address is the one that DHCP gives, all others are set by hand."""
    is_first = ":" not in entry["address"].text() and not first
    first += [entry] if is_first else []
    mode = entry["provisioning_mode"].text("dhcp" if is_first else "manual")
    if mode == "slaac":
        link.dhcp[6] = Dhcp()
    elif mode == "manual":
        _static(entry, link, network)
    elif mode != "dhcp":
        raise entry["provisioning_mode"].fault("one of dhcp, slaac, manual")


def _static(entry: Node, link: Link, network: Network) -> None:
    address = entry["address"].interface(entry["netmask"], default=128 if ":" in entry["address"].text() else 32)
    link.add(address)
    if address.version == 6 and entry["gateway"]:
        network.default_route(link, entry["gateway"].ip())


PLATFORM = Platform(
    name="scaleway", title="Scaleway", build=build, signs=(Sign("manufacturer", ("Scaleway",)),),
    ways=tuple(Service(base, WANTS) for base in SERVICES),
    check_in=CheckIn(tuple(Service(base, fixed()) for base in SERVICES), lambda files: BOOTED),
    reads="`/conf?format=json`, by IPv4 or IPv6",
    configures="the first NIC by DHCP; flexible IPv4 and IPv6 addresses as their mode says, the IPv6 gateway",
    leaves="private networks, which have DHCP of their own",
)
