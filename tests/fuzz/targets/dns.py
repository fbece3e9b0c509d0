"""The answer of a name server, or of whoever was faster than it."""

from __future__ import annotations

import ipaddress

from homeport.host.proof.dns import AAAA, A, NoSuchName, in_hosts, parse_answer, servers_in

WORDS = (b"\xc0\x0c", b"\0\x01\0\x01", b"\0\x1c\0\x01", b"\0\x04\xc0\0\x02\x01", b"\x81\x80")

_QUESTION = b"\x03ntp\x07example\0\0\x01\0\x01"
_ALIAS = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01a\xc0\x10"
_ADDRESS = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07"
SEEDS = (
    b"\x12\x34\x81\x80\0\x01\0\x02\0\0\0\0" + _QUESTION + _ALIAS + _ADDRESS,
    b"\x12\x34\x81\x83\0\x01\0\0\0\0\0\0" + _QUESTION,
    b"127.0.0.1 localhost\n192.0.2.7 ntp.example ntp  # ours\nnameserver 192.0.2.1\n",
)


def check(data: bytes) -> None:
    for kind in (A, AAAA):
        try:
            found = parse_answer(data, kind)
        except (NoSuchName, ValueError):
            continue
        assert all(ipaddress.ip_address(address).version == (4 if kind == A else 6) for address in found)
    text = data.decode("utf-8", "replace")
    assert all(isinstance(word, str) for word in [*in_hosts("ntp.example", text), *servers_in(text)])
