"""rtnetlink's answers, sound and damaged."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.links import Link, dump_request, parse_links

MAC = bytes.fromhex("525400123456")
IFF_UP = 1


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(*attributes: bytes, index: int = 2, flags: int = IFF_UP, hardware: int = 1, kind: int = 16) -> bytes:
    body = struct.pack("=BxHiII", 0, hardware, index, flags, 0) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


NAME = attribute(3, b"eth0\0")
DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


@pytest.mark.parametrize(("data", "link"), [
    (message(NAME, attribute(1, MAC), attribute(54, bytes.fromhex("525400ffffff")), attribute(33, b"\1")),
     Link(2, "eth0", 1, "52:54:00:12:34:56", "52:54:00:ff:ff:ff", "", True)),
    (message(NAME, attribute(33, b"\0")), Link(2, "eth0", 1, carrier=False)),
    # a link that is down has no carrier to speak of, whatever the kernel says
    (message(NAME, attribute(33, b"\1"), flags=0), Link(2, "eth0", 1)),
    (message(NAME, attribute(18, attribute(1, b"veth\0") + attribute(2, b"\0" * 8))), Link(2, "eth0", 1, kind="veth")),
    (message(NAME, attribute(18 | 0x8000, attribute(1, b"bond\0"))), Link(2, "eth0", 1, kind="bond")),  # nested flag
    (message(NAME, attribute(10, struct.pack("=I", 7))), Link(2, "eth0", 1, master=7)),
    (message(NAME, attribute(1, bytes(6)), hardware=772), Link(2, "eth0", 772)),  # lo: no MAC but zeros
    (message(NAME, attribute(1, bytes(range(20))), hardware=32), Link(
        2, "eth0", 32, ":".join(f"{number:02x}" for number in range(20)))),
])
def test_links(data: bytes, link: Link) -> None:
    assert parse_links(data + DONE) == ([link], True)


def test_a_dump_comes_in_pieces() -> None:
    one = message(NAME)
    assert parse_links(one + one) == ([Link(2, "eth0", 1)] * 2, False)
    assert parse_links(DONE) == ([], True)


@pytest.mark.parametrize("data", [
    message(),  # no name
    message(NAME)[:20],
    message(NAME, kind=17),  # RTM_DELLINK
    struct.pack("=IHHII", 0, 16, 0, 0, 0) * 3,  # a length of 0
    message(NAME[:2]),
    message(struct.pack("=HH", 0, 3) + b"eth0"),  # an attribute of length 0
])
def test_what_is_no_link(data: bytes) -> None:
    assert parse_links(data)[0] == []


def test_an_error_is_an_error() -> None:
    with pytest.raises(PermissionError):
        parse_links(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1))


@settings(deadline=None)  # finds faults, not busy machines
@given(st.binary(max_size=512))
def test_no_bytes_hang_or_raise_anything_else(data: bytes) -> None:
    with suppress(OSError):
        parse_links(data)


@settings(deadline=None)
@given(st.integers(0, 90), st.integers(0, 255))
def test_no_damage_raises(position: int, value: int) -> None:
    data = bytearray(message(NAME, attribute(1, MAC), attribute(18, attribute(1, b"veth\0")), attribute(33, b"\1")))
    data[position % len(data)] = value
    with suppress(OSError):
        parse_links(bytes(data))


def test_the_request_says_its_length() -> None:
    assert struct.unpack_from("=I", dump_request())[0] == len(dump_request()) == 40
