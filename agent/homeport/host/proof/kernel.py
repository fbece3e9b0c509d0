"""The kernel's own view of the network: links, addresses, routes, by rtnetlink(7).

Knows messages and attributes (include/uapi/linux/{netlink,rtnetlink,if_addr,neighbour}.h); refuses to know
what a desired state is. Everything is of the network namespace of the calling thread.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from homeport.core.links import NLMSG_DONE, NLMSG_ERROR, Link, dump_request, parse_links

_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_RTM_NEWNEIGH, _RTM_GETNEIGH = 28, 30
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC = 1, 4, 5, 6, 7
_RTA_MULTIPATH, _RTA_TABLE, _RTA_VIA = 9, 15, 18
_NDA_DST, _NDA_LLADDR = 1, 2
_RTM_F_CLONED = 0x200
_RTN_UNICAST = 1
_TABLE_LOCAL = 255
_TENTATIVE, _DADFAILED, _DEPRECATED, _OPTIMISTIC = 0x40, 0x08, 0x20, 0x04
_NUD_USABLE = 0x02 | 0x40 | 0x80  # reachable (just confirmed), noarp, permanent
_SECONDS = 5.0  # a dump takes well under a millisecond; this is for a kernel in trouble


@dataclass(frozen=True)
class Address:
    """An address on an interface (by index). `usable`: duplicate address detection is over, and passed."""

    index: int
    ip: str
    prefix: int
    flags: int

    @property
    def failed(self) -> bool:
        """Another host holds it."""
        return bool(self.flags & _DADFAILED)

    @property
    def usable(self) -> bool:
        return not self.flags & (_TENTATIVE | _DADFAILED | _OPTIMISTIC)

    @property
    def preferred(self) -> bool:
        return self.usable and not self.flags & _DEPRECATED


@dataclass(frozen=True)
class Route:
    """A unicast route, one for each next hop; `gateway` is "" for what is on the link itself."""

    index: int
    destination: str
    prefix: int
    gateway: str
    metric: int
    table: int
    source: str = ""

    @property
    def default(self) -> bool:
        return self.prefix == 0


@dataclass(frozen=True)
class Network:
    """One look at the kernel."""

    links: tuple[Link, ...]
    addresses: tuple[Address, ...]
    routes: tuple[Route, ...]

    def link(self, name: str) -> Link | None:
        return next((link for link in self.links if link.name == name), None)

    def name(self, index: int) -> str:
        return next((link.name for link in self.links if link.index == index), "")

    def on(self, name: str) -> tuple[Address, ...]:
        link = self.link(name)
        return tuple(address for address in self.addresses if link and address.index == link.index)


def read_network() -> Network:
    """Raises OSError if the kernel does not answer."""
    return Network(tuple(_links()), tuple(_addresses()), tuple(_routes()))


def read_addresses() -> tuple[Address, ...]:
    return tuple(_addresses())


def neighbour(index: int, ip: str) -> str | None:
    """The link-layer address ("" where the link has none) if the kernel knows the neighbour to be there."""
    family = family_of(ip)
    for kind, body in _dump(_RTM_GETNEIGH, struct.pack("=B11x", family)):
        if kind != _RTM_NEWNEIGH or len(body) < 12:
            continue
        number, state = struct.unpack_from("=iH", body, 4)
        found = dict(_attributes(body[12:]))
        if number == index and state & _NUD_USABLE and _text(found.get(_NDA_DST, b"")) == ip:
            return ":".join(f"{byte:02x}" for byte in found.get(_NDA_LLADDR, b""))
    return None


def family_of(ip: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def normal(ip: str) -> str:
    """One spelling for each address. Raises ValueError for what is none."""
    try:
        return socket.inet_ntop(family_of(ip), socket.inet_pton(family_of(ip), ip))
    except OSError as error:
        raise ValueError(f"{ip!r} is not an IP address") from error


def contains(network: str, prefix: int, ip: str) -> bool:
    family = family_of(ip)
    if family_of(network) != family:
        return False
    bits = 128 if family == socket.AF_INET6 else 32
    left, right = (int.from_bytes(socket.inet_pton(family, text), "big") for text in (network, ip))
    return (left ^ right) >> (bits - prefix) == 0


def _links() -> Iterator[Link]:
    with _socket() as file:
        file.send(dump_request())
        done = False
        while not done:
            found, done = parse_links(file.recv(1 << 17))
            yield from found


def _addresses() -> Iterator[Address]:
    for kind, body in _dump(_RTM_GETADDR, struct.pack("=B7x", socket.AF_UNSPEC)):
        if kind != _RTM_NEWADDR or len(body) < 8:
            continue
        prefix, flags, index = struct.unpack_from("=xBBxI", body)
        found = dict(_attributes(body[8:]))
        ip = _text(found.get(_IFA_LOCAL) or found.get(_IFA_ADDRESS, b""))
        if ip:
            yield Address(index, ip, prefix, _number(found.get(_IFA_FLAGS)) or flags)


def _routes() -> Iterator[Route]:
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind, body in _dump(_RTM_GETROUTE, struct.pack("=B11x", family)):
            if kind == _RTM_NEWROUTE and len(body) >= 12:
                yield from _route(family, body)


def _route(family: int, body: bytes) -> Iterator[Route]:
    prefix, table, kind, flags = struct.unpack_from("=xBxxBxxBI", body)
    found = dict(_attributes(body[12:]))
    table = _number(found.get(_RTA_TABLE)) or table
    if kind != _RTN_UNICAST or flags & _RTM_F_CLONED or table == _TABLE_LOCAL:
        return
    destination = _text(found.get(_RTA_DST, b"")) or ("::" if family == socket.AF_INET6 else "0.0.0.0")
    metric, source = _number(found.get(_RTA_PRIORITY)), _text(found.get(_RTA_PREFSRC, b""))
    for index, gateway in _hops(found):
        yield Route(index, destination, prefix, gateway, metric, table, source)


def _hops(found: dict[int, bytes]) -> Iterator[tuple[int, str]]:
    """(interface index, gateway) of each next hop (struct rtnexthop for several)."""
    hops = found.get(_RTA_MULTIPATH)
    if hops is None:
        yield _number(found.get(_RTA_OIF)), _gateway(found)
        return
    while len(hops) >= 8:
        length, index = struct.unpack_from("=HxxI", hops)
        if length < 8:
            return
        yield index, _gateway(dict(_attributes(hops[8:length])))
        hops = hops[(length + 3) & ~3:]


def _gateway(found: dict[int, bytes]) -> str:
    # RTA_VIA (struct rtvia: family, address) is an IPv6 gateway of an IPv4 route (RFC 8950)
    return _text(found.get(_RTA_GATEWAY) or found.get(_RTA_VIA, b"\0\0")[2:])


# -- messages --

def _socket() -> socket.socket:
    file = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    file.settimeout(_SECONDS)
    file.bind((0, 0))
    return file


def _dump(request: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    """(message type, payload) of everything the kernel answers."""
    with _socket() as file:
        file.send(struct.pack("=IHHII", 16 + len(body), request, _DUMP, 1, 0) + body)
        while True:
            data = file.recv(1 << 17)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR or length < 16:
                    raise OSError(f"the kernel does not answer netlink request {request}")
                yield kind, data[16:length]
                data = data[(length + 3) & ~3:]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3:]


def _text(data: bytes) -> str:
    if len(data) == 4:
        return socket.inet_ntop(socket.AF_INET, data)
    return socket.inet_ntop(socket.AF_INET6, data) if len(data) == 16 else ""


def _number(data: bytes | None) -> int:
    return int(struct.unpack("=I", data)[0]) if data and len(data) == 4 else 0
