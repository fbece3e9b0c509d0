"""The SMBIOS message: the machine's tables under dmidecode's names (spec/elemental.md, 5.1).

Operators write `${System Information/UUID}` into the names of machines, so the names are dmidecode's, and a
machine without a table still says the strings that the kernel has. Knows the fields of DSP0134 that name or
describe a machine, not all that dmidecode prints. Of a title that comes twice the last counts, as in Elemental.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from homeport.core.facts import Smbios
from homeport.core.smbios import Structure

NOTHING = "Not Specified"  # dmidecode's word for a string that is not there
LONGEST = 256  # characters of one string
MOST_STRINGS = 64  # OEM strings

Titles = dict[str, dict[str, str]]
Tree = dict[str, Any]

# Title, then the byte of each string's number in the structure (DSP0134, 7.1 to 7.5).
STRINGS: dict[int, tuple[str, tuple[tuple[str, int], ...]]] = {
    0: ("BIOS Information", (("Vendor", 4), ("Version", 5), ("Release Date", 8))),
    1: ("System Information", (("Manufacturer", 4), ("Product Name", 5), ("Version", 6), ("Serial Number", 7),
                               ("SKU Number", 25), ("Family", 26))),
    2: ("Base Board Information", (("Manufacturer", 4), ("Product Name", 5), ("Version", 6), ("Serial Number", 7),
                                   ("Asset Tag", 8), ("Location In Chassis", 10))),
    3: ("Chassis Information", (("Manufacturer", 4), ("Version", 6), ("Serial Number", 7), ("Asset Tag", 8))),
    4: ("Processor Information", (("Socket Designation", 4), ("Manufacturer", 7), ("Version", 16),
                                  ("Serial Number", 32), ("Asset Tag", 33), ("Part Number", 34))),
}
OEM_STRINGS = 11
WAKE_UP = ("Reserved", "Other", "Unknown", "APM Timer", "Modem Ring", "LAN Remote", "Power Switch", "PCI PME#",
           "AC Power Restored")
CHASSIS = (
    "Other", "Unknown", "Desktop", "Low Profile Desktop", "Pizza Box", "Mini Tower", "Tower", "Portable", "Laptop",
    "Notebook", "Hand Held", "Docking Station", "All In One", "Sub Notebook", "Space-saving", "Lunch Box",
    "Main Server Chassis", "Expansion Chassis", "Sub Chassis", "Bus Expansion Chassis", "Peripheral Chassis",
    "RAID Chassis", "Rack Mount Chassis", "Sealed-case PC", "Multi-system", "CompactPCI", "AdvancedTCA", "Blade",
    "Blade Enclosing", "Tablet", "Convertible", "Detachable", "IoT Gateway", "Embedded PC", "Mini PC", "Stick PC")


def smbios_message(structures: Sequence[Structure], smbios: Smbios) -> Tree:
    """What is told; `smbios` gives what no structure says."""
    found: Titles = {}
    for structure in structures:
        if structure.kind in STRINGS:
            title, fields = STRINGS[structure.kind]
            found[title] = {name: _text(structure, at) for name, at in fields if at < len(structure.body)}
            found[title].update(_numbers(structure))
        elif structure.kind == OEM_STRINGS:
            found["OEM Strings"] = {f"String {number}": text[:LONGEST] for number, text
                                    in enumerate(structure.strings[:MOST_STRINGS], 1)}
    for title, known in _of_the_kernel(smbios).items():
        section = found.setdefault(title, {})
        for name, value in known.items():
            if section.get(name, NOTHING) == NOTHING:
                section[name] = value[:LONGEST]
    return dict(found)


def _numbers(structure: Structure) -> dict[str, str]:
    """What dmidecode makes words of: kinds, counts, releases."""
    kinds: dict[int, Callable[[bytes], dict[str, str]]] = {
        0: _bios, 1: _system, 3: _chassis, 4: _processor}
    return kinds[structure.kind](structure.body) if structure.kind in kinds else {}


def _bios(body: bytes) -> dict[str, str]:
    """7.1.2: system BIOS release at 0x14, 0xFF if there is none."""
    if len(body) < 0x16 or 0xFF in body[0x14:0x16]:
        return {}
    return {"BIOS Revision": f"{body[0x14]}.{body[0x15]}"}


def _system(body: bytes) -> dict[str, str]:
    """7.2.2"""
    return {"Wake-up Type": WAKE_UP[body[24]]} if len(body) > 24 and body[24] < len(WAKE_UP) else {}


def _chassis(body: bytes) -> dict[str, str]:
    """7.4.1; bit 7 is the lock."""
    if len(body) < 6:
        return {}
    kind = body[5] & 0x7F
    return {"Type": CHASSIS[kind - 1] if 0 < kind <= len(CHASSIS) else "<OUT OF SPEC>",
            "Lock": "Present" if body[5] & 0x80 else "Not Present"}


def _processor(body: bytes) -> dict[str, str]:
    """7.5: cores at 0x23, threads at 0x25; 0 is unknown, 0xFF says that a wider field has it."""
    counts = {"Core Count": 0x23, "Core Enabled": 0x24, "Thread Count": 0x25}
    return {name: str(body[at]) for name, at in counts.items() if at < len(body) and body[at] not in (0, 0xFF)}


def _text(structure: Structure, at: int) -> str:
    return structure.text(at)[:LONGEST] or NOTHING


def _of_the_kernel(smbios: Smbios) -> Titles:
    titles: Titles = {
        "System Information": {
            "Manufacturer": smbios.manufacturer, "Product Name": smbios.product, "Version": smbios.version,
            "Serial Number": smbios.serial, "UUID": smbios.uuid, "SKU Number": smbios.sku, "Family": smbios.family},
        "Base Board Information": {
            "Manufacturer": smbios.board_manufacturer, "Product Name": smbios.board_product,
            "Serial Number": smbios.board_serial},
        "Chassis Information": {
            "Serial Number": smbios.chassis_serial, "Asset Tag": smbios.chassis_asset_tag},
    }
    sparse = {title: {name: value for name, value in known.items() if value} for title, known in titles.items()}
    return {title: known for title, known in sparse.items() if known}
