"""The SMBIOS table: bytes that firmware wrote, to the strings that name a machine.

Knows the structures of types 1 (system), 2 (base board) and 3 (chassis), and the byte order of the UUID
(DMTF DSP0134: 6.1 structures, 6.1.3 strings, 7.2 system, 7.3 base board, 7.4 chassis).  Trusts nothing: a
table may be cut short, lie about lengths or point at strings that are not there; what is sound is kept, and
a note says what is not.  Refuses to know which of the strings are junk: that is `identity.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from homeport.core.facts import Smbios

SYSTEM, BASE_BOARD, CHASSIS, END_OF_TABLE = 1, 2, 3, 127
HEADER = 4  # bytes: type, length, handle
LATEST = (3, 0)
# Some firmware means another version than it says (drivers/firmware/dmi_scan.c, dmi_present()).
MISPRINTED = {(2, 31): (2, 3), (2, 33): (2, 3), (2, 51): (2, 6)}


@dataclass(frozen=True)
class Structure:
    """One structure of the table: `body` is the formatted area, header included."""

    kind: int
    body: bytes
    strings: tuple[str, ...]

    def text(self, offset: int) -> str:
        """The string whose number stands at `offset`; "" if there is none, or the structure is too short."""
        number = self.body[offset] if offset < len(self.body) else 0
        return self.strings[number - 1] if 0 < number <= len(self.strings) else ""

    def dangling(self, *offsets: int) -> bool:
        """Whether one of the string numbers at `offsets` points at no string."""
        return any(offset < len(self.body) and self.body[offset] > len(self.strings) for offset in offsets)


def parse_table(data: bytes, version: tuple[int, int] = LATEST) -> Smbios:
    """The strings of /sys/firmware/dmi/tables/DMI; `version` is the entry point's. Never raises."""
    return parse_table_with_notes(data, version)[0]


def parse_table_with_notes(data: bytes, version: tuple[int, int] = LATEST) -> tuple[Smbios, tuple[str, ...]]:
    """The same, and what was wrong with the table, for people."""
    notes: list[str] = []
    first: dict[int, Structure] = {}
    for structure in _structures(data, notes):
        first.setdefault(structure.kind, structure)
    empty = Structure(0, b"", ())
    system, board, chassis = (first.get(kind, empty) for kind in (SYSTEM, BASE_BOARD, CHASSIS))
    if system is empty:
        notes.append("the SMBIOS table has no system structure (type 1)")
    if system.dangling(*range(4, 8), 25, 26) or board.dangling(4, 5, 7) or chassis.dangling(7, 8):
        notes.append("the SMBIOS table points at strings that are not there")
    return Smbios(
        uuid=_uuid(system.body[8:24], version),
        manufacturer=system.text(4), product=system.text(5), version=system.text(6), serial=system.text(7),
        sku=system.text(25), family=system.text(26),
        board_manufacturer=board.text(4), board_product=board.text(5), board_serial=board.text(7),
        chassis_serial=chassis.text(7), chassis_asset_tag=chassis.text(8),
    ), tuple(notes)


def read_structures(data: bytes) -> tuple[Structure, ...]:
    """All structures of a table that are sound, in its order. Never raises."""
    return tuple(_structures(data, []))


def parse_entry_point(data: bytes) -> tuple[int, int] | None:
    """The SMBIOS version that an entry point states (DSP0134, 5.2); None if it is not one."""
    if data.startswith(b"_SM3_") and len(data) >= 9:
        return data[7], data[8]
    if data.startswith(b"_SM_") and len(data) >= 8:
        return MISPRINTED.get((data[6], data[7]), (data[6], data[7]))
    return None


def clean(raw: bytes) -> str:
    """A firmware string as text: what is not printable UTF-8 becomes dots, blanks at the ends go."""
    text = raw.decode("utf-8", "replace").replace("\ufffd", ".").strip()
    return "".join(character if character.isprintable() else "." for character in text).strip()


def _structures(data: bytes, notes: list[str]) -> Iterator[Structure]:
    at = 0
    while at + HEADER <= len(data):
        kind, length = data[at], data[at + 1]
        if length < HEADER:
            # Nothing says where the next one begins: a length of 0 would have us read this one for ever.
            notes.append(f"the SMBIOS table is damaged at byte {at} (length {length}); the rest is not used")
            return
        if at + length > len(data):
            notes.append(f"the SMBIOS table is cut short at byte {at}")
            return
        strings, end = _strings(data, at + length)
        if end > len(data):
            notes.append(f"the SMBIOS table is cut short in the strings at byte {at + length}")
        yield Structure(kind, data[at:at + length], strings)
        if kind == END_OF_TABLE:
            return
        at = end


def _strings(data: bytes, at: int) -> tuple[tuple[str, ...], int]:
    """The strings after a formatted area, and where they end; past the data if the terminator is missing."""
    if data[at:at + 1] == b"\0":
        return (), at + 2
    end = data.find(b"\0\0", at)
    block = data[at:] if end < 0 else data[at:end]
    return tuple(clean(string) for string in block.split(b"\0")), len(data) + 1 if end < 0 else end + 2


def _uuid(raw: bytes, version: tuple[int, int]) -> str:
    if len(raw) < 16:
        return ""
    if version >= (2, 6):  # from there on the first three fields are little-endian (7.2.1)
        raw = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
