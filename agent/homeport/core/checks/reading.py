"""Reading the values of a document without trusting their kind: what is not as it should be is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface

from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.schema.kinds import key_text, read_number, show_key

Section = Mapping[str, object]
IPAddress = IPv4Address | IPv6Address
IPInterface = IPv4Interface | IPv6Interface


def strings(tree: object) -> Iterator[tuple[Path, str]]:
    """Every string of the tree with its path, odd keys too; iterative, as depth is the document's choice."""
    open_ones: list[Iterator[tuple[Path, object]]] = [iter([((), tree)])]
    while open_ones:
        found = next(open_ones[-1], None)
        if found is None:
            open_ones.pop()
            continue
        path, value = found
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, (dict, list)):
            open_ones.append(_parts(path, value))


def _parts(path: Path, parent: dict[object, object] | list[object]) -> Iterator[tuple[Path, object]]:
    if isinstance(parent, list):
        for index, item in enumerate(parent):
            yield (*path, index), item
        return
    for key, item in parent.items():
        at = (*path, show_key(key_text(key)))
        if isinstance(key, str) and not key.isprintable():
            yield at, key
        yield at, item


def section(value: object) -> Section:
    return value if isinstance(value, dict) else {}


def mappings(value: object, path: Path) -> Iterator[tuple[Path, Section]]:
    """The mappings in a list, each with its path."""
    for index, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, dict):
            yield (*path, index), item


def text(value: object) -> str:
    """A scalar as nmstate reads it where it wants text; "" for anything else."""
    return value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else ""


def read_ip(value: object) -> IPAddress | None:
    """An address without a scope; None if it is none."""
    if not isinstance(value, str) or "%" in value or len(value) > 64:
        return None
    try:
        return ip_address(value)
    except ValueError:
        return None


def read_interface(ip: object, prefix: object) -> IPInterface | None:
    address, length = read_ip(ip), read_number(prefix)
    if address is None or length is None or not 0 <= length <= address.max_prefixlen:
        return None
    return ip_interface(f"{address}/{length}")


def read_network(value: object) -> IPInterface | None:
    """`10.0.0.0/8` or `10.0.0.1`; host bits may be set, as nmstate clears them. None if it is none."""
    ip, slash, prefix = text(value).partition("/")
    address = read_ip(ip)
    if address is None or (slash and not prefix.isdecimal()):
        return None
    return read_interface(ip, prefix if slash else address.max_prefixlen)


def complain(path: Path, found: str, wanted: str) -> Complaint:
    return Complaint(render_path(path), found, wanted)
