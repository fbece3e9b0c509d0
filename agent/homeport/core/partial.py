"""A document that says nothing of some cards, made whole by what the one before said of them.

Clouds describe a machine card by card, and the part of one may be unreadable now, or not be put in force.  Such a card
has what it had; a document without it would make strangers' of its addresses, which nobody ever takes away again.
Knows documents as platforms make them: a card is told by its MAC, and its name is only the document's own.  Refuses to
know which cards these are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from homeport.core import references
from homeport.core.beside import FAMILIES, MAIN_TABLE, is_for_all
from homeport.core.compare.values import plain_ip, plain_network
from homeport.core.former import addresses_of, entries_of, interfaces_of
from homeport.core.schema.kinds import read_number

State = Mapping[str, Any]
Identity = tuple[str, str]
Table = tuple[str, int | None]  # family, number


@dataclass(frozen=True)
class Kept:
    """What of a former document counts: entries, and the names of the new document for all that they may name."""

    entries: tuple[State, ...]
    names: Mapping[str, str]


def completed(config: State, former: State, macs: Collection[str], *, moved: bool = True) -> dict[str, Any]:
    """`config`, and what `former` has on those of the cards with these MACs of which it says nothing.

    With `moved` an address or a table that `config` has on another card is no longer of such a one.
    """
    kept = keep(config, former, macs)
    instead = {_identity(entry) for entry in kept.entries}
    own = [entry for entry in interfaces_of(config) if _identity(entry) not in instead]
    addresses = set(_addresses(own)) if moved else set()
    tables = set(_tables(entries_of(config, "routes"))) if moved else set()
    names = {str(entry.get("name")) for entry in kept.entries}
    routes = [{**route, "next-hop-interface": kept.names[str(route.get("next-hop-interface"))]}
              for route in entries_of(former, "routes")
              if route.get("next-hop-interface") in names and _table(route, "destination", "table-id") not in tables]
    found = {**config, "interfaces": [*own, *(_renamed(entry, kept.names, addresses) for entry in kept.entries)]}
    for section, more in (("routes", routes), ("route-rules", _rules(former, set(_tables(routes)), addresses))):
        given = list(entries_of(config, section))
        if both := [*given, *(entry for entry in more if entry not in given)]:
            found[section] = {"config": both}
    return found


def keep(config: State, former: State, macs: Collection[str]) -> Kept:
    """The cards with these MACs, and what is made on cards, of which `config` says nothing."""
    new = {_identity(entry): entry for entry in interfaces_of(config)}
    used = {str(entry.get("name")) for entry in new.values()}
    names: dict[str, str] = {}
    kept = []
    for entry in interfaces_of(former):
        name, same = str(entry.get("name")), new.get(_identity(entry))
        if same is not None:
            names[name] = str(same["name"])
            if _is_card(entry) and _is_bare(same) and mac(entry) in macs:
                kept.append(entry)  # there only because something stands on it
        elif _is_card(entry):
            if mac(entry) in macs:
                names[name] = _free(name, used)
                kept.append(entry)
        elif name not in used and (parts := list(references.find_parts(entry))) and all(
                part.name in names for part in parts):
            names[name] = name
            kept.append(entry)
        used.add(names.get(name, ""))
    return Kept(tuple(kept), names)


def _free(name: str, used: Collection[str]) -> str:
    return name if name not in used else next(each for number in count() if (each := f"nic{number}") not in used)


def mac(entry: State) -> str:
    """The MAC by which a card is told; "" of what is made."""
    return str(entry["mac-address"]).lower() if _is_card(entry) else ""


def _is_card(entry: State) -> bool:
    return entry.get("identifier") == "mac-address" and isinstance(entry.get("mac-address"), str)


def _identity(entry: State) -> Identity:
    kind = "" if _is_card(entry) else str(entry.get("type"))
    return kind, str(entry.get("mac-address") or entry.get("name")).lower()


def _is_bare(entry: State) -> bool:
    """Whether nothing is configured on it."""
    return not any(section.get("dhcp") or section.get("address")
                   for family, _, _ in FAMILIES if isinstance(section := entry.get(family), Mapping))


def _renamed(entry: State, names: Mapping[str, str], addresses: Collection[str]) -> dict[str, Any]:
    """The entry under its new name, without these addresses."""
    found = {**references.rewrite_interface(dict(entry), lambda name: names.get(name, name)),
             "name": names[str(entry["name"])]}
    for family, _, _ in FAMILIES:
        if isinstance(entry.get(family), Mapping) and "address" in entry[family]:
            found[family] = {**entry[family], "address": [
                item for item in addresses_of(entry, family) if plain_ip(item.get("ip")) not in addresses]}
    return found


def _addresses(entries: Iterable[State]) -> Iterator[str]:
    return (plain_ip(item.get("ip")) for entry in entries for family, _, _ in FAMILIES
            for item in addresses_of(entry, family))


def _rules(former: State, tables: Collection[Table], addresses: Collection[str]) -> Iterator[State]:
    """The rules that lead to these tables, but for those from these addresses; and those for all."""
    families = {family for family, _ in tables}
    for rule in entries_of(former, "route-rules"):
        family, _ = table = _table(rule, "ip-from", "route-table")
        source = plain_network(rule.get("ip-from") or "").partition("/")[0]
        if (is_for_all(rule) and family in families) or (table in tables and source not in addresses):
            yield rule


def _tables(routes: Iterable[State]) -> Iterator[Table]:
    """The tables of their own that routes are in."""
    return (table for route in routes if (table := _table(route, "destination", "table-id"))[1] not in (
        None, 0, MAIN_TABLE))


def _table(entry: State, address: str, number: str) -> Table:
    family = entry.get("family") or ("ipv6" if ":" in plain_network(entry.get(address) or "") else "ipv4")
    return str(family), read_number(entry.get(number))
