"""Where the SMBIOS strings come from."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from homeport.core.facts import Smbios
from homeport.host.smbios import MAX_TABLE, read_smbios, read_smbios_with_notes

RAW = bytes.fromhex("00112233445566778899aabbccddeeff")
TABLE = struct.pack("<BBH", 1, 27, 0) + b"\1\2\0\3" + RAW + b"\6\0\0" + b"ACME\0Machine\0SN-1\0\0"


def put(root: Path, path: str, data: bytes) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def put_table(root: Path, version: tuple[int, int] = (3, 2), table: bytes = TABLE) -> None:
    put(root, "/sys/firmware/dmi/tables/DMI", table)
    put(root, "/sys/firmware/dmi/tables/smbios_entry_point", b"_SM3_\0\x18" + bytes(version) + bytes(15))


def put_strings(root: Path, **strings: str) -> None:
    for name, text in strings.items():
        put(root, f"/sys/class/dmi/id/{name}", text.encode() + b"\n")


def test_the_table(tmp_path: Path) -> None:
    put_table(tmp_path)
    put_strings(tmp_path, product_serial="OTHER")
    assert read_smbios(tmp_path) == Smbios(
        uuid="33221100-5544-7766-8899-aabbccddeeff", serial="SN-1", manufacturer="ACME", product="Machine",
        provenance="/sys/firmware/dmi/tables/DMI")


def test_the_entry_point_says_the_byte_order(tmp_path: Path) -> None:
    put_table(tmp_path, (2, 4))
    assert read_smbios(tmp_path).uuid == "00112233-4455-6677-8899-aabbccddeeff"


def test_without_an_entry_point_it_is_today_s(tmp_path: Path) -> None:
    put(tmp_path, "/sys/firmware/dmi/tables/DMI", TABLE)
    assert read_smbios(tmp_path).uuid == "33221100-5544-7766-8899-aabbccddeeff"


@pytest.mark.parametrize("table", [b"", TABLE[:10], b"\0" * 100])
def test_the_second_way(tmp_path: Path, table: bytes) -> None:
    put_table(tmp_path, table=table)
    put_strings(tmp_path, product_uuid="4C4C4544-0042-3010-8051-B4C04F564432", product_serial="SN-2  ", sys_vendor="A")
    assert read_smbios(tmp_path) == Smbios(
        uuid="4c4c4544-0042-3010-8051-b4c04f564432", serial="SN-2", manufacturer="A", provenance="/sys/class/dmi/id")


def test_a_machine_without_smbios(tmp_path: Path) -> None:
    assert read_smbios_with_notes(tmp_path) == (Smbios(), ())


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A directory in place of a file fails like an unreadable one, for root as well."""
    (tmp_path / "sys/firmware/dmi/tables/DMI").mkdir(parents=True)
    put_strings(tmp_path, product_serial="SN-2")
    smbios, notes = read_smbios_with_notes(tmp_path)
    assert smbios.serial == "SN-2"
    assert notes == ("cannot read /sys/firmware/dmi/tables/DMI: Is a directory",)


def test_no_more_is_read_than_a_table_may_have(tmp_path: Path) -> None:
    put_table(tmp_path, table=TABLE)
    path = tmp_path / "sys/firmware/dmi/tables/DMI"
    os.truncate(path, 1 << 40)  # sparse
    assert read_smbios(tmp_path).serial == "SN-1"
    assert MAX_TABLE <= 1 << 20
