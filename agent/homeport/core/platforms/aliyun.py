"""Alibaba Cloud ECS: a tree as at EC2, with gateways, and prefixes that must not be taken from the VPC."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, IPAddress, IPInterface, Node, cards, line, macs
from homeport.core.platforms.shape import Platform, Service, Sign, Want
from homeport.core.platforms.vnics import Vnic, by_dhcp, configure

TOP = "2016-01-01/meta-data/"
MACS = f"{TOP}network/interfaces/macs/"
KEYS = ("primary-ip-address", "private-ipv4s", "netmask", "gateway", "ipv6s", "ipv6-gateway",
        "vswitch-ipv6-cidr-block")


def wants(files: Files) -> Iterator[Want]:
    yield Want(MACS)
    yield Want(f"{TOP}mac", optional=True)
    for mac in macs(files, MACS):
        yield from (Want(f"{MACS}{mac}/{key}", optional=True) for key in KEYS)


def build(files: Files, network: Network) -> None:
    """The primary NIC is the instance's own MAC, whatever the order of the list."""
    found: list[tuple[str, Vnic | None]] = []
    network.each(cards(files, MACS), partial(_vnic, files=files, found=found))
    own = line(files, f"{TOP}mac")
    primary = own.mac() if own else ""
    configure(network, [vnic for _, vnic in sorted(found, key=lambda entry: entry[0] != primary)])


def _vnic(mac: Node, files: Files, found: list[tuple[str, Vnic | None]]) -> None:
    def read(key: str) -> Node:
        return line(files, f"{MACS}{mac.value}/{key}")

    found.append((mac.mac(), None))
    v4, v6 = _listed(read("private-ipv4s")), _listed(read("ipv6s"))
    primary, block = read("primary-ip-address"), read("vswitch-ipv6-cidr-block")
    if primary:
        v4 = [primary, *(node for node in v4 if node.value != primary.value)]
    length = Node(block.network().network.prefixlen if block else None, block.path)
    addresses: list[IPInterface] = [node.interface(read("netmask")) for node in v4]
    addresses += [node.interface(length, 128) for node in v6]
    gateways: dict[int, IPAddress] = {
        version: read(key).ip() for version, key in ((4, "gateway"), (6, "ipv6-gateway")) if read(key)}
    found[-1] = mac.mac(), Vnic(mac.mac(), addresses, by_dhcp(addresses), gateways)


def _listed(node: Node) -> list[Node]:
    """`["172.16.0.10","172.16.0.11"]`, and as some versions write it, without quotes."""
    words = node.text("").strip("[] \n").replace('"', "").split(",")
    return [Node(word.strip(), node.path) for word in words if word.strip()]


PLATFORM = Platform(
    name="aliyun", title="Alibaba Cloud ECS", build=build, reconciles=True,
    signs=(Sign("product", ("Alibaba Cloud ECS",)),),
    ways=(Service("http://100.100.100.200", wants, by_piece=True),),
    reads="`/2016-01-01/meta-data/network/interfaces/macs/`: addresses, netmask, gateways",
    configures="every NIC by DHCP, IPv6 where it has some; secondary addresses; policy routing of both families",
    leaves="the VPC's own block",
)
