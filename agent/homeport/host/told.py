"""What this machine tells a registration server of itself, gathered from everywhere.

Knows which of our own records say what became of the last assignment. What the messages look like is
`core/elemental`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from homeport.core.elemental.dmi import smbios_message
from homeport.core.elemental.systemdata import system_data_message
from homeport.core.smbios import read_structures
from homeport.host.facts import read_hostname
from homeport.host.hardware import read_hardware
from homeport.host.nics import read_nics
from homeport.host.smbios import read_smbios, read_table
from homeport.host.store import Store


def read_smbios_message(root: Path) -> dict[str, Any]:
    """The SMBIOS tables under dmidecode's names."""
    return smbios_message(read_structures(read_table(root)), read_smbios(root))


def read_system_data(root: Path) -> dict[str, Any]:
    """CPUs, memory, disks, NICs."""
    nics = read_nics(root)
    return system_data_message(read_hardware(root, nics, read_hostname(root)), read_smbios(root), nics)


def read_outcome(root: Path) -> dict[str, str]:
    """What this machine keeps, and how its last run of this boot ended; no secrets, as the status has none."""
    store = Store(root)
    manifest, status = store.read_manifest(), store.read_status() or {}
    return {
        "revision": manifest.revision if manifest.complete else "",
        **{name: _text(status.get(name)) for name in ("rung", "result", "reason", "mode", "version")},
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
