"""SMBIOS of this machine: the table as the kernel found it, or its strings one by one.

Knows where the kernel shows them (Documentation/ABI/testing/sysfs-firmware-dmi-tables and
sysfs-class-dmi). Reads a bounded amount. What the bytes mean is `core/smbios.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

from homeport.core.facts import Smbios
from homeport.core.smbios import LATEST, clean, parse_entry_point, parse_table_with_notes

TABLE = "/sys/firmware/dmi/tables/DMI"
ENTRY_POINT = "/sys/firmware/dmi/tables/smbios_entry_point"
STRINGS = "/sys/class/dmi/id"
MAX_TABLE = 1 << 20  # bytes; large servers have some 64 KiB
MAX_STRING = 4096  # bytes, what sysfs gives at most
# Smbios field -> file below STRINGS.
FILES = {
    "uuid": "product_uuid", "serial": "product_serial", "manufacturer": "sys_vendor",
    "product": "product_name", "version": "product_version", "sku": "product_sku", "family": "product_family",
    "board_serial": "board_serial", "board_manufacturer": "board_vendor", "board_product": "board_name",
    "chassis_serial": "chassis_serial", "chassis_asset_tag": "chassis_asset_tag",
}


def read_smbios(root: Path = Path("/")) -> Smbios:
    """The SMBIOS strings of the machine below `root`; an empty Smbios if it has none. Never raises."""
    return read_smbios_with_notes(root)[0]


def read_smbios_with_notes(root: Path = Path("/")) -> tuple[Smbios, tuple[str, ...]]:
    """The same, and what could not be read or was damaged, for people."""
    notes: list[str] = []
    table = _read(root, TABLE, MAX_TABLE, notes)
    if table:
        version = parse_entry_point(_read(root, ENTRY_POINT, MAX_STRING, notes)) or LATEST
        smbios, faults = parse_table_with_notes(table, version)
        notes += faults
        if smbios.uuid or smbios.serial:
            return _from(smbios, TABLE), tuple(notes)
    texts = {field: clean(_read(root, f"{STRINGS}/{name}", MAX_STRING, notes))
             for field, name in FILES.items()}
    smbios = Smbios(**{**texts, "uuid": texts["uuid"].lower()})
    return (_from(smbios, STRINGS) if any(texts.values()) else smbios), tuple(notes)


def read_table(root: Path = Path("/")) -> bytes:
    """The table itself, b"" if the kernel shows none. Never raises."""
    return _read(root, TABLE, MAX_TABLE, [])


def _from(smbios: Smbios, provenance: str) -> Smbios:
    from dataclasses import replace
    return replace(smbios, provenance=provenance)


def _read(root: Path, path: str, limit: int, notes: list[str]) -> bytes:
    """At most `limit` bytes, b"" if there are none; only what is there but cannot be read is worth a note.

    sysfs says a size of 0 or a page for files of any length, so the end is where read() ends.
    """
    data = b""
    try:
        file = os.open(root / path.lstrip("/"), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            notes.append(f"cannot read {path}: {error.strerror}")
        return b""
    try:
        while len(data) < limit and (chunk := os.read(file, limit - len(data))):
            data += chunk
    except OSError as error:
        notes.append(f"cannot read {path}: {error.strerror}")
    finally:
        os.close(file)
    return data
