"""SMBIOS tables, sound and hostile."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.facts import Smbios
from homeport.core.smbios import parse_entry_point, parse_table, parse_table_with_notes

UUID = bytes.fromhex("00112233445566778899aabbccddeeff")


def structure(kind: int, body: bytes, *strings: bytes, length: int | None = None) -> bytes:
    head = struct.pack("<BBH", kind, 4 + len(body) if length is None else length, 0)
    return head + body + (b"".join(string + b"\0" for string in strings) or b"\0") + b"\0"


def system(uuid: bytes = UUID, *strings: bytes, numbers: bytes = b"\1\2\3\4\5\6") -> bytes:
    return structure(1, numbers[:4] + uuid + b"\6" + numbers[4:6], *strings)


SYSTEM = system(UUID, b"ACME Inc.", b"Machine", b"1.0", b"SN-0001", b"SKU-7", b"Rocket")
BOARD = structure(2, b"\1\2\3\4", b"Board Makers", b"Board", b"2.0", b"BSN-1")
CHASSIS = structure(3, b"\1\3\2\3\4" + bytes(4), b"Case Makers", b"3.0", b"CSN-1", b"ASSET-1")
END = structure(127, b"")


def test_a_whole_table() -> None:
    smbios, notes = parse_table_with_notes(structure(0, b"\1\2", b"BIOS", b"1") + SYSTEM + BOARD + CHASSIS + END)
    assert notes == ()
    assert smbios == Smbios(
        uuid="33221100-5544-7766-8899-aabbccddeeff", serial="SN-0001", manufacturer="ACME Inc.", product="Machine",
        version="1.0", sku="SKU-7", family="Rocket", board_serial="BSN-1", board_manufacturer="Board Makers",
        board_product="Board", chassis_serial="CSN-1", chassis_asset_tag="ASSET-1")


@pytest.mark.parametrize(("version", "uuid"), [
    ((2, 5), "00112233-4455-6677-8899-aabbccddeeff"),  # before 2.6: as the bytes stand
    ((2, 6), "33221100-5544-7766-8899-aabbccddeeff"),
    ((3, 7), "33221100-5544-7766-8899-aabbccddeeff"),
])
def test_the_byte_order_of_the_uuid(version: tuple[int, int], uuid: str) -> None:
    assert parse_table(SYSTEM, version).uuid == uuid


def test_a_kernel_shows_the_same_uuid() -> None:
    """QEMU with -uuid 4c4c4544-0042-3010-8051-b4c04f564432 puts these bytes in the table."""
    raw = bytes.fromhex("44454c4c 4200 1030 8051 b4c04f564432")
    assert parse_table(system(raw)).uuid == "4c4c4544-0042-3010-8051-b4c04f564432"


@pytest.mark.parametrize(("table", "expected", "note"), [
    (b"", {}, "no system structure"),
    (b"\1", {}, "no system structure"),
    (SYSTEM[:20], {}, "cut short at byte 0"),
    # cut within the strings: what is whole stands, and the last string as far as it goes
    (SYSTEM[:27 + 14], {"manufacturer": "ACME Inc.", "product": "Mach"}, "cut short in the strings"),
    (BOARD + SYSTEM[:20], {"board_serial": "BSN-1"}, "cut short"),
    # a length of 0 would be the same structure for ever
    (structure(1, b"", length=0) + SYSTEM, {}, "damaged at byte 0 (length 0)"),
    (structure(1, b"", length=3) + SYSTEM, {}, "damaged"),
    (BOARD + structure(0, b"", length=255), {"board_serial": "BSN-1"}, "cut short"),
    # a string number that points past the strings
    (system(UUID, b"ACME", numbers=b"\1\xff\0\7\0\0"), {"manufacturer": "ACME", "product": "", "serial": ""},
     "strings that are not there"),
    # SMBIOS 2.0: the structure ends before the UUID
    (structure(1, b"\1\2\3\4", b"A", b"B", b"C", b"SN"), {"serial": "SN", "uuid": ""}, ""),
    # 2.1: there is a UUID, but no SKU and family
    (structure(1, b"\1\2\3\4" + UUID + b"\6", b"A", b"B", b"C", b"SN"), {"serial": "SN", "sku": ""}, ""),
    # the UUID is cut off by the structure's own length
    (structure(1, b"\1\2\3\4" + UUID[:9], b"A", b"B", b"C", b"SN"), {"serial": "SN", "uuid": ""}, ""),
    # no strings at all
    (system(UUID, numbers=bytes(6)), {"serial": "", "uuid": "33221100-5544-7766-8899-aabbccddeeff"}, ""),
    # what comes after the end does not count, nor a second structure of the same type
    (SYSTEM + END + BOARD, {"board_serial": ""}, ""),
    (SYSTEM + system(bytes(16), b"X", b"X", b"X", b"OTHER"), {"serial": "SN-0001"}, ""),
    # junk is handed on as it stands: refusing it is identity.py's
    (system(b"\xff" * 16, b"", b"", b""), {"uuid": "ffffffff-ffff-ffff-ffff-ffffffffffff"}, ""),
    (system(bytes(16)), {"uuid": "00000000-0000-0000-0000-000000000000"}, ""),
    # characters that have no place in a string
    (system(UUID, b" ACME \x1b[31m\r\n", b"\xff\xfe", "Müller".encode(), b"SN\t1 "),
     {"manufacturer": "ACME .[31m", "product": "..", "version": "Müller", "serial": "SN.1"}, ""),
])
def test_odd_tables(table: bytes, expected: dict[str, str], note: str) -> None:
    smbios, notes = parse_table_with_notes(table)
    assert {field: getattr(smbios, field) for field in expected} == expected
    assert note in "; ".join(notes)


@pytest.mark.parametrize(("data", "version"), [
    (b"_SM3_\0\x18\3\4\0", (3, 4)),
    (b"_SM_\0\x1f\2\x08", (2, 8)),
    (b"_SM_\0\x1f\2\x33", (2, 6)),  # 2.51 is a misprint for 2.6, as the kernel knows
    (b"_SM_\0\x1f\2\x1f", (2, 3)),
    (b"", None), (b"_SM3_", None), (b"_SM_\0\x1f", None), (b"_DMI_\0\0\0\0\0", None),
])
def test_entry_points(data: bytes, version: tuple[int, int] | None) -> None:
    assert parse_entry_point(data) == version


@settings(deadline=None)  # finds faults, not busy machines
@given(st.binary(max_size=4096))
def test_no_bytes_raise(data: bytes) -> None:
    parse_table(data)


@settings(deadline=None)
@given(st.integers(0, len(SYSTEM + BOARD) - 1), st.integers(0, 255))
def test_no_damage_raises(position: int, value: int) -> None:
    table = bytearray(SYSTEM + BOARD)
    table[position] = value
    parse_table(bytes(table))


def test_a_large_table_takes_no_time() -> None:
    """A megabyte of the smallest structures: linear, or it would take minutes."""
    started = time.process_time()
    parse_table(structure(200, b"") * (1 << 20 // 6))
    parse_table((b"\xc8\x04\0\0" + b"A" * 60 + b"\0") * 10000)
    assert time.process_time() - started < 5
