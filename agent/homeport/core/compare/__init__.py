"""Is the desired state in force? Ours, instead of nmstate's own verification.

Compares a desired state with what `nmstatectl show` prints: only what the desired state says, and
knowing the defaults and spellings of both sides. nmstate's verification does the same but costs a
second of retries (and ignores metrics); and its DNS check looks at NetworkManager's global
configuration, which we clear. Knows nothing of how either side was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.compare.interfaces import Current, interface_differences
from homeport.core.compare.routing import (
    dns_differences,
    hostname_differences,
    route_differences,
    rule_differences,
)
from homeport.core.compare.sections import section_differences
from homeport.core.complaint import Complaint
from homeport.core.schema.kinds import read_bool, read_number

__all__ = ["differences"]


def differences(
        desired: Mapping[str, object], current: Mapping[str, object], *, thorough: bool = False,
) -> list[Complaint]:
    """What of `desired` is not in force in `current`; empty means in force.

    Paths are those of the desired state, `found` is what is in force. `thorough` asks the planner's
    question, "would applying change anything": then leftovers count too (static addresses and routes
    that nobody desires any more, hardware that should be down and is up), and bond options, which the
    kernel may round and which are therefore no reason to call a configuration not in force.
    """
    return list(_differences(desired, current, thorough))


def _differences(
        desired: Mapping[str, object], current: Mapping[str, object], thorough: bool,
) -> Iterator[Complaint]:
    shown = Current(current.get("interfaces"))
    entries = desired.get("interfaces")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, Mapping):
            yield from interface_differences(
                entry, shown, ("interfaces", index), thorough=thorough)
    yield from route_differences(
        desired.get("routes"), current.get("routes"), _vrf_tables(desired, current),
        thorough=thorough)
    yield from rule_differences(desired.get("route-rules"), current.get("route-rules"))
    yield from dns_differences(
        desired.get("dns-resolver"), current.get("dns-resolver"), dynamic=_adds_servers(shown))
    yield from hostname_differences(desired.get("hostname"), current.get("hostname"))
    for key in ("ovs-db", "ovn"):
        if desired.get(key):
            yield from section_differences(desired[key], current.get(key) or {}, (key,))


def _vrf_tables(*states: Mapping[str, object]) -> dict[str, int]:
    tables: dict[str, int] = {}
    for state in reversed(states):
        entries = state.get("interfaces")
        for entry in entries if isinstance(entries, list) else []:
            vrf = entry.get("vrf") if isinstance(entry, Mapping) else None
            table = read_number(vrf.get("route-table-id")) if isinstance(vrf, Mapping) else None
            if table:
                tables[str(entry.get("name"))] = table
    return tables


def _adds_servers(shown: Current) -> bool:
    for entry in shown.entries:
        for family in ("ipv4", "ipv6"):
            section = entry.get(family)
            if isinstance(section, Mapping) and read_bool(section.get("auto-dns")) is not False \
                    and (read_bool(section.get("dhcp")) or read_bool(section.get("autoconf"))):
                return True
    return False
