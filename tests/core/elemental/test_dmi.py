"""SMBIOS under dmidecode's names."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from firmware import Firmware
from homeport.core.elemental.dmi import smbios_message
from homeport.core.elemental.messages import render_json
from homeport.core.facts import Smbios
from homeport.core.smbios import parse_table, read_structures

CASE = json.loads((Path(__file__).parents[2] / "data/elemental/tpm/08-C-SMBIOS").read_bytes())
UUID = "4c4c4544-0042-3010-8051-000000000001"


def told(table: bytes) -> dict[str, dict[str, str]]:
    return smbios_message(read_structures(table), parse_table(table))


def structure(kind: int, body: bytes, *strings: str) -> bytes:
    text = b"".join(string.encode() + b"\0" for string in strings) or b"\0"
    return struct.pack("<BBH", kind, 4 + len(body), kind) + body + text + b"\0"


def test_the_system_is_told_as_dmidecode_tells_it() -> None:
    system = told(Firmware(UUID, "SN-0001").table())["System Information"]
    assert set(system) == set(CASE["System Information"])
    assert (system["UUID"], system["Serial Number"], system["SKU Number"], system["Wake-up Type"]) == (
        UUID, "SN-0001", "Not Specified", "Power Switch")


def test_against_dmidecode(tmp_path: Path) -> None:
    """Every field of ours is dmidecode's, word for word."""
    table = Firmware(UUID, "SN-0001").table()
    entry = bytearray(struct.pack("<4sBBBBHB5s5sBHIHB", b"_SM_", 0, 31, 3, 0, 256, 0, bytes(5), b"_DMI_", 0,
                                  len(table), 32, 3, 0x30))
    entry[21] = -sum(entry[16:31]) & 0xFF
    entry[4] = -sum(entry) & 0xFF
    (tmp_path / "dump").write_bytes(bytes(entry).ljust(32, b"\0") + table)
    printed = subprocess.run(["dmidecode", "--from-dump", str(tmp_path / "dump")], capture_output=True, text=True,
                             check=True).stdout
    for title, fields in told(table).items():
        _, found, section = printed.partition(f"\n{title}\n")
        assert found, f"{title} in\n{printed}"
        lines = section.partition("\n\n")[0].splitlines()
        for name, value in fields.items():
            assert f"\t{name}: {value}" in lines


def test_bios_chassis_processor_and_strings_of_the_maker() -> None:
    table = (
        structure(0, struct.pack("<BBHBB8sHBBBB", 1, 2, 0xE000, 3, 0, bytes(8), 0, 4, 7, 255, 255), "ACME", "1.2",
                  "01/02/2026")
        + structure(3, bytes([1, 0x97, 0, 2, 3]), "ACME", "C-1", "tag")
        + structure(4, bytes([1, 3, 0, 2]) + bytes(8) + bytes([3]) + bytes(18) + bytes([8, 8, 16]) + bytes(4),
                    "CPU0", "Intel", "Xeon")
        + structure(11, b"\x02", "one", "two") + structure(127, b""))
    found = told(table)
    assert found["BIOS Information"] == {
        "Vendor": "ACME", "Version": "1.2", "Release Date": "01/02/2026", "BIOS Revision": "4.7"}
    assert found["Chassis Information"] == {
        "Manufacturer": "ACME", "Version": "Not Specified", "Serial Number": "C-1", "Asset Tag": "tag",
        "Type": "Rack Mount Chassis", "Lock": "Present"}
    assert found["Processor Information"]["Socket Designation"] == "CPU0"
    assert found["Processor Information"]["Version"] == "Xeon"
    assert found["OEM Strings"] == {"String 1": "one", "String 2": "two"}


def test_of_a_title_that_comes_twice_the_last_counts() -> None:
    table = structure(4, bytes([1, 0, 0, 0]), "CPU0") + structure(4, bytes([1, 0, 0, 0]), "CPU1")
    assert told(table)["Processor Information"]["Socket Designation"] == "CPU1"


def test_without_a_table_the_kernel_s_strings_are_told() -> None:
    found = smbios_message((), Smbios(uuid=UUID, serial="SN-1", board_product="Board", chassis_asset_tag="tag"))
    assert found == {
        "System Information": {"UUID": UUID, "Serial Number": "SN-1"},
        "Base Board Information": {"Product Name": "Board"}, "Chassis Information": {"Asset Tag": "tag"}}
    assert smbios_message((), Smbios()) == {}


@pytest.mark.parametrize("table", [
    b"", b"\0" * 4096, b"\xff" * 4096,
    structure(1, b"\x09\x09"),  # points at strings that are not there, and is too short
    structure(3, b""), structure(0, b""), structure(4, b"\x01"),
    structure(11, b"\xff", *["x" * 5000] * 300),
    b"".join(structure(kind, bytes(range(200))) for kind in range(12)),
])
def test_hostile_tables(table: bytes) -> None:
    message = told(table)
    assert len(render_json(message)) < 40_000
    assert all(isinstance(value, str) for fields in message.values() for value in fields.values())
