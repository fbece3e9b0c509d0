"""What a desired state (nmstate's document, for this machine) says that a proof must know. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.host.proof.kernel import normal

_DEFAULTS = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True)
class Static:
    """A static address and the interface that must carry it."""

    interface: str
    ip: str
    prefix: int


@dataclass(frozen=True)
class Gateway:
    interface: str
    ip: str


@dataclass(frozen=True)
class Wanted:
    """`interfaces` that the state brings up; `dynamic` those that get addresses from the network only."""

    interfaces: tuple[str, ...]
    static: tuple[Static, ...]
    dynamic: tuple[str, ...]
    gateways: tuple[Gateway, ...]
    servers: tuple[str, ...]
    search: tuple[str, ...]


def read_wanted(desired: Mapping[str, Any]) -> Wanted:
    rows = [row for row in _list(desired.get("interfaces")) if row.get("state", "up") == "up"]
    static = tuple(address for row in rows for address in _static(row))
    fixed = {address.interface for address in static}
    dns = _map(_map(desired.get("dns-resolver")).get("config"))
    return Wanted(
        interfaces=tuple(str(row["name"]) for row in rows),
        static=static,
        dynamic=tuple(str(row["name"]) for row in rows if row["name"] not in fixed and _is_dynamic(row)),
        gateways=tuple(_gateways(desired)),
        servers=tuple(str(server) for server in _list(dns.get("server"))),
        search=tuple(str(domain) for domain in _list(dns.get("search"))),
    )


def _static(row: Mapping[str, Any]) -> list[Static]:
    found = []
    for section in (_map(row.get("ipv4")), _map(row.get("ipv6"))):
        if section.get("enabled", True) is False:
            continue
        for address in _list(section.get("address")):
            # one with a lifetime came from DHCP in a saved `show`; nmstate ignores it too (ip.rs, is_auto)
            if address.get("valid-life-time", "forever") == "forever":
                found.append(Static(str(row["name"]), normal(str(address["ip"])),
                                    int(address["prefix-length"])))
    return found


def _is_dynamic(row: Mapping[str, Any]) -> bool:
    return any(section.get("enabled", True) is not False and (section.get("dhcp") or section.get("autoconf"))
               for section in (_map(row.get("ipv4")), _map(row.get("ipv6"))))


def _gateways(desired: Mapping[str, Any]) -> list[Gateway]:
    found: list[Gateway] = []
    for route in _list(_map(desired.get("routes")).get("config")):
        via = str(route.get("next-hop-address") or "")
        if (route.get("state") in (None, "") and route.get("destination") in _DEFAULTS
                and via not in ("", "0.0.0.0", "::")):
            found.append(Gateway(str(route.get("next-hop-interface", "")), normal(via)))
    return list(dict.fromkeys(found))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
