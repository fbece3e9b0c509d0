"""Network links in the kernel's answer to RTM_GETLINK: bytes to values.

Knows rtnetlink(7) as far as naming a network card needs it (include/uapi/linux/netlink.h, rtnetlink.h and
if_link.h). Refuses to know sockets and sysfs: `host/nics.py` has both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

NLMSG_ERROR, NLMSG_DONE = 2, 3
RTM_NEWLINK, RTM_GETLINK = 16, 18
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO = 1, 3, 10, 18
IFLA_EXT_MASK, IFLA_CARRIER, IFLA_PERM_ADDRESS = 29, 33, 54
IFLA_INFO_KIND = 1
RTEXT_FILTER_SKIP_STATS = 8
IFF_UP = 0x1
NLA_TYPE_MASK = 0x3FFF  # the two bits above are flags (nested, byte order)


@dataclass(frozen=True)
class Link:
    """One link: MACs lower case with colons, "" if there is none; `hardware` is ARPHRD_* (if_arp.h).

    `kind` is the rtnetlink kind of a software device ("veth", "bond", ...), "" for a card. `carrier` is
    None while the link is administratively down: the kernel's answer means nothing then.
    """

    index: int
    name: str
    hardware: int
    mac: str = ""
    permanent_mac: str = ""
    kind: str = ""
    carrier: bool | None = None
    master: int = 0


def dump_request(sequence: int = 1) -> bytes:
    """The message that asks for all links, without their statistics."""
    everything = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
    body = everything + struct.pack("=HHI", 8, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS)
    flags = NLM_F_REQUEST | NLM_F_DUMP
    return struct.pack("=IHHII", 16 + len(body), RTM_GETLINK, flags, sequence, 0) + body


def parse_links(data: bytes) -> tuple[list[Link], bool]:
    """The links in one piece of the answer, and whether it was the last. Raises OSError for an error message.

    What is damaged is left out.
    """
    links: list[Link] = []
    while len(data) >= 16:
        length, kind = struct.unpack_from("=IH", data)
        if kind == NLMSG_DONE:
            return links, True
        if kind == NLMSG_ERROR:
            code = struct.unpack_from("=i", data.ljust(20, b"\0"), 16)[0]
            raise OSError(-code, "the kernel does not list its links")
        if length < 16:
            break
        if kind == RTM_NEWLINK and length >= 32:
            link = _link(data[16:length])
            links += [link] if link else []
        data = data[_aligned(length):]
    return links, False


def _link(body: bytes) -> Link | None:
    if len(body) < 16:
        return None
    hardware, index, flags = struct.unpack_from("=2xHiI", body)
    found = dict(_attributes(body[16:]))
    name = found.get(IFLA_IFNAME, b"").rstrip(b"\0").decode("utf-8", "surrogateescape")
    if not name:
        return None
    carrier = found.get(IFLA_CARRIER)
    return Link(
        index=index, name=name, hardware=hardware,
        mac=_mac(found.get(IFLA_ADDRESS, b"")), permanent_mac=_mac(found.get(IFLA_PERM_ADDRESS, b"")),
        kind=dict(_attributes(found.get(IFLA_LINKINFO, b""))).get(IFLA_INFO_KIND, b"").rstrip(b"\0").decode(
            "ascii", "replace"),
        carrier=carrier[0] != 0 if carrier and flags & IFF_UP else None,
        master=struct.unpack_from("=I", found.get(IFLA_MASTER, b"").ljust(4, b"\0"))[0])


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if not 4 <= length <= len(data):
            return
        yield kind & NLA_TYPE_MASK, data[4:length]
        data = data[_aligned(length):]


def _mac(raw: bytes) -> str:
    return raw.hex(":") if any(raw) else ""


def _aligned(length: int) -> int:
    return (length + 3) & ~3
