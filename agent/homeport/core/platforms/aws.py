"""Amazon EC2: instance metadata service version 2, walked like a tree.

A NIC without IPv4 answers 404 to the IPv4 keys: that is an answer, not a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from ipaddress import ip_interface
from itertools import count

from homeport.core.facts import Smbios
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, Node, cards, line, lines, macs
from homeport.core.platforms.shape import Platform, Service, Sign, Token, Want
from homeport.core.platforms.vnics import Vnic, by_dhcp, configure

MACS = "2021-01-03/meta-data/network/interfaces/macs/"
KEYS = ("device-number", "network-card", "local-ipv4s", "subnet-ipv4-cidr-block", "ipv6s",
        "subnet-ipv6-cidr-blocks")
Place = tuple[int, int]  # network card, device number
UNKNOWN: Place = (-1, -1)


def wants(files: Files) -> Iterator[Want]:
    yield Want(MACS)
    for mac in macs(files, MACS):
        yield from (Want(f"{MACS}{mac}/{key}", optional=True) for key in KEYS)


def build(files: Files, network: Network) -> None:
    """In the order of network card and device number: that of the list changes from boot to boot."""
    found: list[tuple[Place, Vnic | None]] = []
    network.each(cards(files, MACS), partial(_vnic, files=files, found=found))
    configure(network, in_order(found))


def in_order(found: Sequence[tuple[Place, Vnic | None]]) -> list[Vnic | None]:
    """By their places; those that did not tell it are where a place is left: the others' numbers don't change."""
    known = {place for place, _ in found if place is not UNKNOWN}
    free = ((0, number) for number in count() if (0, number) not in known)
    placed = [(next(free) if place is UNKNOWN else place, vnic) for place, vnic in found]
    return [vnic for _, vnic in sorted(placed, key=lambda entry: entry[0])]


def _vnic(mac: Node, files: Files, found: list[tuple[Place, Vnic | None]]) -> None:
    folder = f"{MACS}{mac.value}/"
    found.append((UNKNOWN, None))
    place = _number(line(files, f"{folder}network-card")), _number(line(files, f"{folder}device-number"))
    found[-1] = place, None
    subnet = line(files, f"{folder}subnet-ipv4-cidr-block")
    addresses = [node.interface(_prefix(subnet)) for node in lines(files, f"{folder}local-ipv4s")]
    v6 = [ip_interface(str(node.ip())) for node in lines(files, f"{folder}ipv6s")]
    addresses += v6
    networks = [node.network() for node in lines(files, f"{folder}subnet-ipv6-cidr-blocks")]
    found[-1] = place, Vnic(mac.mac(), addresses, by_dhcp(addresses), networks=networks)


def _prefix(subnet: Node) -> Node:
    return Node(subnet.network().network.prefixlen if subnet else None, subnet.path)


def _number(node: Node) -> int:
    return node.number() if node else 0


def is_ec2(smbios: Smbios) -> bool:
    """The documented sign, a UUID that begins with ec2 in either byte order, is 1 in 2048 of all machines: only
    with a serial number that begins so too is it taken for one.
    """
    uuid, serial = smbios.uuid.lower(), smbios.serial.lower()
    swapped = "".join(reversed([uuid[at:at + 2] for at in range(0, 8, 2)]))
    return serial.startswith("ec2") and (uuid.startswith("ec2") or swapped.startswith("ec2"))


PLATFORM = Platform(
    name="aws", title="Amazon EC2", build=build, reconciles=True,
    signs=(Sign("manufacturer", ("Amazon EC2",)),), recognise=is_ec2,
    also_known_by="a UUID and a serial number that begin with `ec2`",
    ways=(Service("http://169.254.169.254", wants, by_piece=True, token=Token(
        "latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "180"}, "X-aws-ec2-metadata-token")),),
    reads="IMDSv2, `/2021-01-03/meta-data/network/interfaces/macs/`: place, addresses, subnets",
    configures="every NIC by DHCP, IPv6 where it has some; secondary addresses and policy routing of both families",
    leaves="IMDSv1; delegated prefixes",
)
