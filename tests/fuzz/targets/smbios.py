"""Firmware tables, which are wrong more often than not."""

from __future__ import annotations

from dataclasses import fields

from homeport.core.facts import Facts
from homeport.core.identity import identify
from homeport.core.smbios import parse_entry_point, parse_table_with_notes

WORDS = (b"\x01\x1b", b"\x02\x0f", b"\x03\x15", b"\x7f\x04", b"\0\0", b"Not Specified\0", b"System Serial Number\0",
         b"_SM3_", b"_SM_", b"\xff" * 16)

_SYSTEM = bytes((1, 27, 1, 0, 1, 2, 3, 4)) + bytes(range(16)) + bytes((6, 5, 6)) + b"Maker\0Model\0V1\0S7\0SKU\0Fam\0\0"
_BOARD = bytes((2, 8, 2, 0, 1, 2, 0, 3)) + b"Maker\0Board\0B7\0\0"
_CHASSIS = bytes((3, 9, 3, 0, 1, 1, 0, 2, 3)) + b"Maker\0C7\0Asset\0\0"
_END = bytes((127, 4, 255, 255, 0, 0))
SEEDS = (_SYSTEM + _BOARD + _CHASSIS + _END, _SYSTEM[:20], b"_SM3_\0\x18\x03\x02\0", _SYSTEM.replace(b"S7", b"None"))


def check(data: bytes) -> None:
    parse_entry_point(data)
    for version in ((3, 0), (2, 4)):
        smbios, notes = parse_table_with_notes(data, version)
        texts = [getattr(smbios, field.name) for field in fields(smbios)]
        assert all(text.isprintable() for text in [*texts, *notes]), texts
        assert len(smbios.uuid) in (0, 36)
        identity = identify(Facts(smbios=smbios), order=("smbios-uuid", "smbios-serial", "mac"))
        assert bool(identity.value) == (identity.kind != "none")
        assert all(reason.isprintable() for reason in identity.rejected)
