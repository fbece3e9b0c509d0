"""The firmware of a machine: SMBIOS tables, so that each machine can be told from the others.

Layout: DMTF DSP0134 3.6: 5.2.2 (64-bit entry point), 7.2 (type 1), 7.3 (type 2), 7.4 (type 3), 7.45 (type 127).
"""

from __future__ import annotations

import struct
import uuid as uuids
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Firmware:
    """What SMBIOS says; `uuid` as people write it.  Without it the machine has no SMBIOS."""

    uuid: str = ""
    serial: str = ""
    manufacturer: str = "Test bench"
    product: str = "Container"
    chassis_asset_tag: str = ""

    def write(self, folder: Path) -> None:
        """The two files that the kernel shows in /sys/firmware/dmi/tables."""
        table = self.table()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "DMI").write_bytes(table)
        (folder / "smbios_entry_point").write_bytes(_entry_point(len(table)))

    def table(self) -> bytes:
        strings = [self.manufacturer, self.product, "1", self.serial]
        # From SMBIOS 2.6 on the first three fields of the UUID are little-endian.
        raw = uuids.UUID(self.uuid).bytes_le if self.uuid else b"\xff" * 16
        serial = 4 if self.serial else 0
        system = struct.pack("<BBBB16sBBB", 1, 2, 3, serial, raw, 6, 0, 0)
        board = struct.pack("<BBBB", 1, 2, 3, 0)
        # Type 3, 7.4: an asset tag is what some clouds are known by.
        chassis = struct.pack("<BBBBB", 1, 1, 0, 0, 2 if self.chassis_asset_tag else 0) + bytes(12)
        return (
            _structure(1, 0x0100, system, strings) + _structure(2, 0x0200, board, strings[:3])
            + _structure(3, 0x0300, chassis, [self.manufacturer, self.chassis_asset_tag])
            + _structure(127, 0x7F00, b"", [])
        )  # fmt: skip


def _structure(kind: int, handle: int, body: bytes, strings: list[str]) -> bytes:
    text = b"".join(s.encode() + b"\0" for s in strings if s) or b"\0"
    return struct.pack("<BBH", kind, 4 + len(body), handle) + body + text + b"\0"


def _entry_point(size: int) -> bytes:
    head = struct.pack("<5sBBBBBBBIQ", b"_SM3_", 0, 24, 3, 6, 0, 1, 0, size, 0)
    return head[:5] + bytes([-sum(head) & 0xFF]) + head[6:]


def firmware_of(machine: str, **other: str) -> Firmware:
    """The same in every boot of this machine, and another one in every other machine; with `other` fields."""
    name = uuids.uuid5(uuids.NAMESPACE_DNS, f"{machine}.bench.test")
    return replace(Firmware(str(name), f"BENCH-{name.hex[:8].upper()}"), **other)
