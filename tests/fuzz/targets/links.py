"""The kernel's list of links: trusted, but a truncated read is not a crash."""

from __future__ import annotations

import struct

from homeport.core.links import NLMSG_DONE, NLMSG_ERROR, RTM_NEWLINK, parse_links

WORDS = (b"\x10\0", b"\x03\0", b"\x08\0\x03\0eth0", b"\x0a\0\x01\0\x52\x54\0\x12\x34\x56", b"\x12\0", b"\x36\0",
         b"\x02\0", b"\x03\0\0\0")

_ETH0 = (b"\x08\0\x03\0eth0" + b"\x0a\0\x01\0\x52\x54\0\x12\x34\x56\0\0" + b"\x0a\0\x36\0\x52\x54\0\x12\x34\x56\0\0"
         b"\x05\0\x21\0\x01\0\0\0" b"\x08\0\x0a\0\x07\0\0\0" b"\x0c\0\x12\x80\x08\0\x01\0veth")
SEEDS = (struct.pack("=IHHIIBxHiII", 32 + len(_ETH0), RTM_NEWLINK, 2, 1, 0, 0, 1, 2, 1, 0) + _ETH0
         + struct.pack("=IHHIIi", 20, NLMSG_DONE, 2, 1, 0, 0),
         struct.pack("=IHHIIi", 20, NLMSG_ERROR, 0, 1, 0, -13))


def check(data: bytes) -> None:
    try:
        links, _done = parse_links(data)
    except OSError as error:
        assert error.errno is not None
        return
    for link in links:
        assert link.name and "\0" not in link.name[-1]
        assert link.mac == link.mac.lower() and link.permanent_mac == link.permanent_mac.lower()
