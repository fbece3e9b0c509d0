"""Who asks, as far as it is known: how a machine identified itself, and what it says of itself.

Pure. An identity by TPM was proven (attestation.py); a plain one is a name that the machine gave, and so is
everything in `Facts`: good for telling machines apart, never for letting one in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from homeport.core.junk import mac_fault, serial_fault, uuid_fault
from homeport.core.mac import normalise_mac

Kind = Literal["tpm", "plain"]
LONGEST_ID = 256
# What elemental-register sends when it may not read the UUID: every such machine would be the same one.
_UNREADABLE = ("unknown", "unspecified", "none")
MOST_MACS = 64


@dataclass(frozen=True)
class Caller:
    """An identity: `digest` is the tpmHash or machineHash of a MachineInventory (spec/elemental.md, 2.2 and 2.3)."""

    kind: Kind
    digest: str
    value: str = ""  # the plain identity itself

    def __str__(self) -> str:
        return f"tpm {self.digest[:16]}" if self.kind == "tpm" else f"plain {self.value}"


def plain_caller(value: str) -> Caller:
    """The machine that calls itself `value`."""
    return Caller("plain", hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest(), value)


def plain_fault(value: str) -> str:
    """Why a plain identity cannot name one machine, in words, or ""."""
    if not value or value.strip().lower() in _UNREADABLE:
        return f"'{value}' is what a machine sends that cannot read its own identity"
    if len(value) > LONGEST_ID or not value.isprintable():
        return "it is too long, or not printable"
    mac = as_mac(value)
    if mac:
        return mac_fault(mac)
    return uuid_fault(value) if looks_like_uuid(value) else ""


@dataclass(frozen=True)
class Facts:
    """What tells one board from another; junk is left out. MACs are normalised."""

    uuid: str = ""
    serial: str = ""
    macs: frozenset[str] = field(default_factory=frozenset)

    def same_board(self, other: Facts) -> bool:
        """Whether serial number and a network card are the same."""
        return bool(self.serial) and self.serial == other.serial and bool(self.macs & other.macs)

    def other_board(self, other: Facts) -> bool:
        """Whether both are known and neither serial number nor any network card is the same."""
        return bool(self.serial and other.serial and self.macs and other.macs
                    and self.serial != other.serial and not self.macs & other.macs)

    def over(self, older: Facts) -> Facts:
        """These facts, and what `older` knew where they are silent."""
        return Facts(self.uuid or older.uuid, self.serial or older.serial, self.macs or older.macs)


def read_facts(data: Mapping[str, Any]) -> Facts:
    """The facts in SMBIOS and system data, as elemental-register sends them (spec/elemental.md, 5.1 and 5.2)."""
    return clean_facts(
        _text(data, "System Information", "UUID") or _text(data, "Product", "UUID"),
        _text(data, "System Information", "Serial Number") or _text(data, "Product", "SerialNumber"),
        _macs(data))


def facts_of_id(value: str) -> Facts:
    """What an identity says by its form: a UUID, a MAC, else a serial number."""
    if as_mac(value):
        return clean_facts(macs=(value,))
    return clean_facts(uuid=value) if looks_like_uuid(value) else clean_facts(serial=value)


def clean_facts(uuid: str = "", serial: str = "", macs: Iterable[str] = ()) -> Facts:
    """Facts without what firmware says when it says nothing."""
    uuid = uuid.strip().lower()
    normal = (as_mac(mac) for mac in macs)
    return Facts(
        "" if uuid_fault(uuid) else uuid,
        "" if serial_fault(serial) or len(serial) > LONGEST_ID or not serial.isprintable() else serial.strip(),
        frozenset(sorted(mac for mac in normal if mac and not mac_fault(mac))[:MOST_MACS]))


def as_mac(value: str) -> str:
    """A MAC as the kernel writes it, "" if `value` is none."""
    try:
        return normalise_mac(value)
    except ValueError:
        return ""


def looks_like_uuid(value: str) -> bool:
    return len(value) == 36 and [len(part) for part in value.split("-")] == [8, 4, 4, 4, 12]


def _macs(data: Mapping[str, Any]) -> Iterator[str]:
    network = data.get("Network")
    cards = network.get("NICs") if isinstance(network, dict) else None
    for card in cards.values() if isinstance(cards, dict) else ():
        if isinstance(card, dict) and card.get("IsVirtual") != "true" and isinstance(card.get("MacAddress"), str):
            yield card["MacAddress"]


def _text(data: Mapping[str, Any], section: str, key: str) -> str:
    part = data.get(section)
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, str) else ""
