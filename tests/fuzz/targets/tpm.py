"""Answers of a TPM, its certificate, and the challenge that a server made for it."""

from __future__ import annotations

from contextlib import suppress

from homeport.core.tpm import commands
from homeport.core.tpm.attestation import check_integrity, parse_challenge
from homeport.core.tpm.der import NotDer
from homeport.core.tpm.keys import parse_certificate, parse_public
from homeport.core.tpm.wire import Malformed, OldTpm, Refused, parse_answer

READERS = (commands.read_primary, commands.read_created, commands.read_certified, commands.read_activated,
           commands.read_nv, commands.read_nv_size, lambda answer: commands.read_property(answer, 0x12C))
SEEDS = (b"\x80\x01" + (10).to_bytes(4, "big") + bytes(4), b"\x30\x82\x01\x00", b"\x00\x01\x00\x0b" + bytes(40),
         b"\x00\x23\x00\x0b" + bytes(40), b'{"EC":{"Credential":"AAA=","Secret":"AAA="}}')
WORDS = (b"\x80\x01", b"\x80\x02", b"\x30\x82", b"\x00\x01\x00\x0b", b"\x00\x23\x00\x0b", '{"EC":', '"Credential":"',
         '"Secret":"', b"\x02\x01\x00", b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")


def check(data: bytes) -> None:
    whole = b"\x80\x01" + (10 + len(data)).to_bytes(4, "big") + bytes(4) + data
    for answer in (data, whole):
        for handles in (0, 1):
            for reader in READERS:
                with suppress(Malformed, Refused, OldTpm):
                    reader(parse_answer(answer, handles))
    with suppress(Malformed):
        parse_public(data)
    with suppress(NotDer):
        parse_certificate(data)
    with suppress(Malformed):
        parse_challenge(data)
    with suppress(Malformed):
        check_integrity(bytes(16), bytes(34), data)
