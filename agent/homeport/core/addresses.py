"""`ipAddresses`: the addresses that a pool gave this machine, by the names its template uses.

Read in every shape seen: name to address; name to `{address, prefix, gateway}`; the older list of
`{name, ipPoolRef}`; and references to a pool that have no address yet (spec/elemental.md, 4.1 and
4.2). A name without an address is left out here: its placeholders stay open, and that means
pending.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.showing import GUESSES, meant, safe_path, show

_OURS = ("address", "prefix", "gateway")
# What a reference to a pool holds; it says where an address will come from, not which one it is.
_REFERENCE = frozenset({"apiGroup", "kind", "name", "ipPoolRef", "namespace"})
_SPELLINGS = {"ip": "address", "ipAddress": "address", "prefix-length": "prefix",
              "prefixLength": "prefix"}  # fmt: skip

_ADDRESS = "an IPv4 or IPv6 address, such as 192.0.2.10 or 2001:db8::10"


@dataclass(frozen=True)
class Address:
    """An address in the usual spelling (`ipaddress`), with prefix length and gateway where
    known."""

    ip: str
    prefix: int | None = None
    gateway: str | None = None


def read_addresses(tree: Any, path: Path) -> tuple[dict[str, Address], list[Complaint]]:
    """The addresses in `tree`, the value of `ipAddresses`; complaints carry paths below `path`."""
    if tree is None:
        return {}, []
    if isinstance(tree, dict):
        entries = [(name, value, (*path, name)) for name, value in tree.items()]
        return _read_entries(entries, Complaints())
    if isinstance(tree, list):
        return _read_list(tree, path)
    return {}, [Complaint(safe_path(path), show(tree), "a mapping of names to addresses")]


def _read_list(items: list[Any], path: Path) -> tuple[dict[str, Address], list[Complaint]]:
    entries: list[tuple[str, Any, Path]] = []
    complaints = Complaints()
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        name = item.get("name") if isinstance(item, dict) else None
        where = (*path, index)
        if not isinstance(name, str) or not name:
            complaints.append(Complaint(safe_path(where), show(item),
                                        "an entry with its 'name' and 'address'"))
        elif name in seen:
            complaints.append(Complaint(safe_path((*where, "name")),
                                        f"{show(name)} once more, as in entry {seen[name]}",
                                        "each name once"))
        else:
            seen[name] = index
            entries.append((name, item, where))
    return _read_entries(entries, complaints)


def _read_entries(entries: list[tuple[str, Any, Path]],
                  complaints: Complaints) -> tuple[dict[str, Address], list[Complaint]]:
    addresses: dict[str, Address] = {}
    for name, value, where in entries:
        if complaints.full:
            break
        address = _read_one(value, where, complaints)
        if address is not None:
            addresses[name] = address
    return addresses, complaints


def _read_one(value: Any, where: Path, complaints: list[Complaint]) -> Address | None:
    if value is None or value == "":
        return None
    if not isinstance(value, dict):
        return _read_ip(value, where, complaints)
    fields: dict[str, tuple[Any, Path]] = {}
    for key, part in value.items():
        known = _SPELLINGS.get(key, key)
        if known in _OURS:
            fields[known] = part, (*where, key)
        elif key not in _REFERENCE:
            complaints.append(Complaint(safe_path((*where, key)), f"unknown key {show(key)}",
                                        meant(key, _OURS, len(complaints) < GUESSES)))
    if "address" not in fields or fields["address"][0] in (None, ""):
        return None
    address = _read_ip(*fields["address"], complaints)
    if address is None:
        return None
    prefix = _read_prefix(address, *fields.get("prefix", (None, where)), complaints)
    gateway = _read_gateway(address, *fields.get("gateway", (None, where)), complaints)
    return Address(address.ip, address.prefix if prefix is None else prefix, gateway)


def _read_ip(value: Any, where: Path, complaints: list[Complaint]) -> Address | None:
    """An address, with its prefix if it is written as in `192.0.2.10/24`."""
    text = value.strip() if isinstance(value, str) else None
    if text is None or "%" in text:
        complaints.append(Complaint(safe_path(where), f"{show(value)} is no address", _ADDRESS))
        return None
    try:
        if "/" in text:
            interface = ipaddress.ip_interface(text)
            if not text.partition("/")[2].isdigit():
                raise ValueError
            ip, prefix = interface.ip, interface.network.prefixlen
        else:
            ip, prefix = ipaddress.ip_address(text), None
    except ValueError:
        complaints.append(Complaint(safe_path(where), f"{show(value)} is no address", _ADDRESS))
        return None
    if ip.is_unspecified or ip.is_multicast:
        kind = "the unspecified address" if ip.is_unspecified else "a multicast address"
        complaints.append(Complaint(safe_path(where), f"{show(value)} is {kind}",
                                    "an address that a machine can have"))
        return None
    return Address(str(ip), prefix)


def _read_prefix(address: Address, value: Any, where: Path,
                 complaints: list[Complaint]) -> int | None:
    if value is None or value == "":
        return None
    longest = 128 if ":" in address.ip else 32
    text = str(value).strip() if type(value) in (int, str) else ""
    prefix = int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else -1
    if not 0 <= prefix <= longest:
        complaints.append(Complaint(safe_path(where), f"{show(value)} is no prefix length of "
                                    f"{address.ip}", f"a number from 0 to {longest}"))
        return None
    if address.prefix not in (None, prefix):
        complaints.append(Complaint(safe_path(where), f"{prefix}, but the address says "
                                    f"/{address.prefix}", "the prefix once, or the same twice"))
    return prefix


def _read_gateway(address: Address, value: Any, where: Path,
                  complaints: list[Complaint]) -> str | None:
    if value is None or value == "":
        return None
    text = value.strip() if isinstance(value, str) else ""
    try:
        gateway = ipaddress.ip_address(text)
    except ValueError:
        complaints.append(Complaint(safe_path(where), f"{show(value)} is no address", _ADDRESS))
        return None
    if gateway.version != ipaddress.ip_address(address.ip).version:
        complaints.append(Complaint(safe_path(where), f"{show(value)}, but the address is "
                                    f"{address.ip}", "a gateway of the address's own family"))
        return None
    # A gateway outside the subnet is unusual but legal (on-link by a route), so it is no fault.
    return str(gateway)
