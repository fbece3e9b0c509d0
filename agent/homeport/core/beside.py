"""An assignment beside the profile that a card has, instead of in its place: what runs and is not kept.

On clouds an image or an administrator brings the profile, and metadata add to it what DHCP doesn't give:
addresses, tables, rules.  Knows which part of a desired state that is, and NetworkManager's settings of the
profile with it; everything else in them stays as it is: DNS, static addresses, methods, 802.1X.
Refuses to know how NetworkManager is told (`host/reapply.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_interface, ip_network
from typing import Any

from homeport.core.compare.sections import difference
from homeport.core.compare.values import plain_ip, plain_network
from homeport.core.complaint import Complaint
from homeport.core.references import find_parts
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.strangers import Added

State = Mapping[str, Any]
# A profile as NetworkManager tells it: section -> key -> (D-Bus signature, value).
Settings = dict[str, dict[str, tuple[str, Any]]]
Entries = list[dict[str, tuple[str, Any]]]

FAMILIES = (("ipv4", 2, 32), ("ipv6", 10, 128))  # section, AF_*, length of an address
# With these in the profile's [user] section a card is left alone. The first is nm-cloud-setup's.
SKIP = ("org.freedesktop.nm-cloud-setup.skip", "io.homeport.skip")
CARDS = ("ethernet", "veth", "unknown")
MAIN_TABLE = 254
# Methods under which NetworkManager takes static addresses; with the others somebody has decided on none.
TAKES_ADDRESSES = ("auto", "dhcp", "manual")
AUTOMATIC = ("auto", "dhcp")
LEGACY = ("addresses", "routes", "address-labels")  # the same once more, in a form without attributes


@dataclass(frozen=True)
class Card:
    """A card's profile. `ours` is the bootstrap, which is for what the metadata say to overrule.

    `metrics` are those that its automatic routes have now, by family: `nmstatectl show` tells them of the wrong
    card where two have one profile. `held` are the addresses that NetworkManager runs it with: one that is only in the
    kernel, as after a restart of NetworkManager's, it would not take away again.
    """

    settings: Settings
    ours: bool = False
    metrics: Mapping[str, int] = field(default_factory=dict)
    held: frozenset[str] | None = None

    @property
    def skip(self) -> bool:
        data = self.settings.get("user", {}).get("data", ("a{ss}", {}))[1]
        return any(read_bool(data.get(key)) is True for key in SKIP)

    @property
    def is_port(self) -> bool:
        connection = self.settings.get("connection", {})
        return any(connection.get(key, ("s", ""))[1] for key in ("controller", "master"))

    def method(self, family: str) -> str:
        return str(self.settings.get(family, {}).get("method", ("s", "disabled"))[1])

    def takes(self, family: str) -> bool:
        return self.method(family) in TAKES_ADDRESSES


def fits(config: State) -> bool:
    """Whether the state is about cards only: what must be made first needs profiles of its own."""
    interfaces = config.get("interfaces")
    return isinstance(interfaces, list) and bool(interfaces) and all(
        isinstance(entry, Mapping) and entry.get("type") in CARDS and entry.get("state", "up") == "up"
        for entry in interfaces) and not config.get("dns-resolver") and not config.get("hostname")


def reduced(config: State, cards: Mapping[str, Card]) -> tuple[dict[str, Any], list[str]]:
    """What of a desired state is added to the profiles, and in words what is left out of it.

    `cards` are those that have a profile, by kernel name.
    """
    notes: list[str] = []
    interfaces = []
    for entry in config.get("interfaces", ()):
        name = str(entry["name"])
        if reason := _why_not(cards.get(name)):
            notes.append(f"{name} is left as it is: {reason}")
            continue
        interfaces.append(_entry(entry, cards[name]))
    return _of(interfaces, config), notes


def without(config: State, names: Collection[str]) -> dict[str, Any]:
    """A state of whole profiles without these cards, what leads through them and its rules."""
    return {**config, "routes": {"config": []}, "route-rules": {"config": []},
            **_of([entry for entry in config.get("interfaces", ()) if entry["name"] not in names], config)}


def with_mtu_of(config: State, mtus: Mapping[str, int]) -> dict[str, Any]:
    """The state with no larger MTU on what stands on cards outside of it than those have: the kernel refuses it."""
    limits, interfaces = dict(mtus), []
    for entry in config.get("interfaces", ()):
        below = [limits[part.name] for part in find_parts(entry) if part.name in limits]
        if below:
            limits[entry["name"]] = min(below)
        wanted = read_number(entry.get("mtu"))
        fits_in = not below or wanted is None or wanted <= min(below)
        interfaces.append(entry if fits_in else {**entry, "mtu": min(below)})
    return {**config, "interfaces": interfaces}


def _of(interfaces: Sequence[State], config: State) -> dict[str, Any]:
    """These interfaces with the routes through their families, and the rules that lead to the tables of those."""
    families = {(entry["name"], family) for entry in interfaces for family, _, _ in FAMILIES if family in entry}
    routes = [route for route in _config(config, "routes")
              if (route.get("next-hop-interface"), _family(route, "destination")) in families]
    tables = {(_family(route, "destination"), read_number(route.get("table-id"))) for route in routes}
    with_rules = {family for family, table in tables if table not in (None, MAIN_TABLE)}
    rules = [rule for rule in _config(config, "route-rules") if _family(rule, "ip-from") in with_rules and (
        is_for_all(rule) or (_family(rule, "ip-from"), read_number(rule.get("route-table"))) in tables)]
    state: dict[str, Any] = {"interfaces": list(interfaces)}
    state |= {"routes": {"config": routes}} if routes else {}
    return state | ({"route-rules": {"config": rules}} if rules else {})


def _why_not(card: Card | None) -> str:
    if card is None:
        return "no profile of NetworkManager's is in force on it"
    if card.skip:
        return "its profile says so"
    return "it is a port of another interface" if card.is_port else ""


def _entry(entry: State, card: Card) -> dict[str, Any]:
    """What is asked of one card: to have these addresses, by whatever method it got the others."""
    found: dict[str, Any] = {"name": entry["name"], "type": entry["type"], "state": "up"}
    if entry.get("mtu") and not card.settings.get("802-3-ethernet", {}).get("mtu", ("u", 0))[1]:
        found["mtu"] = entry["mtu"]
    for family, _, _ in FAMILIES:
        section = entry.get(family) or {}
        if not (section.get("address") or section.get("dhcp")) or not card.takes(family):
            continue
        found[family] = {"enabled": True, "address": list(section.get("address") or ())}
        if card.ours and section.get("dhcp") is False:
            found[family]["dhcp"] = False
        if section.get("auto-route-metric") is not None and _metric(card, family) in (-1, None):
            found[family]["auto-route-metric"] = section["auto-route-metric"]
    return found


def _metric(card: Card, family: str) -> int | None:
    """The metric that somebody wants for this card's routes; the bootstrap's own doesn't count."""
    found = card.settings.get(family, {}).get("route-metric", ("x", -1))[1]
    return None if card.ours else int(found)


def other_metrics(part: State, card: Card) -> list[Complaint]:
    """Where the automatic routes of the part's card have another metric than they are to have."""
    return [difference(("interfaces", 0, family, "auto-route-metric"), card.metrics.get(family), wanted)
            for entry in part["interfaces"] for family, _, _ in FAMILIES
            if (wanted := entry.get(family, {}).get("auto-route-metric")) not in (None, card.metrics.get(family))]


def not_held(part: State, card: Card) -> list[Complaint]:
    """Addresses of the part that NetworkManager doesn't know of, wherever they are."""
    return [] if card.held is None else [
        Complaint(f"interfaces[0].{family}.address", "not NetworkManager's", plain_ip(item["ip"]))
        for entry in part["interfaces"] for family, _, _ in FAMILIES
        for item in entry.get(family, {}).get("address", ()) if plain_ip(item["ip"]) not in card.held]


def nothing(name: str, card: Card) -> dict[str, Any]:
    """A card that nothing is added to any more."""
    return {"name": name, "type": "ethernet", "state": "up",
            **{family: {"enabled": True, "address": []} for family, _, _ in FAMILIES if card.takes(family)}}


def is_for_all(rule: State) -> bool:
    """Whether it is the rule that every card with tables has, whoever's address it is about."""
    return rule.get("suppress-prefix-length") is not None


def without_rules_for_all(state: State, families: Collection[object]) -> dict[str, Any]:
    """The state without the rules for all of these families: another card still has them."""
    rules = [rule for rule in _config(state, "route-rules")
             if not (is_for_all(rule) and rule.get("family") in families)]
    return {**state, "route-rules": {"config": rules}}


def part(state: State, name: str) -> dict[str, Any]:
    """The part of a reduced state that is in the profile of one card."""
    return _of([entry for entry in state.get("interfaces", ()) if entry["name"] == name], state)


def leased(state: State, card: Card) -> frozenset[str]:
    """The addresses of a `part` that the network brings to the card: it has rules for them, and nothing more."""
    section = {family: state["interfaces"][0].get(family, {}) for family, _, _ in FAMILIES}
    static = {plain_ip(item["ip"]) for each in section.values() for item in each.get("address", ())}
    ruled = {(family, str(ip_interface(rule["ip-from"]).ip)) for family, _, _ in FAMILIES
             for rule in _of_family(_config(state, "route-rules"), family, "ip-from")
             if rule.get("ip-from") and rule.get("state") != "absent"}
    return frozenset(ip for family, ip in ruled if card.method(family) in AUTOMATIC and ip not in static
                     and section[family].get("dhcp") is not False)


def merged(card: Card, state: State, strangers: Added) -> Settings:
    """The settings of the card's profile with a `part` added, and with what of strangers must be handed along."""
    (entry,) = state["interfaces"]
    found: Settings = {name: dict(section) for name, section in card.settings.items()}
    if entry.get("mtu"):
        found.setdefault("802-3-ethernet", {})["mtu"] = ("u", int(entry["mtu"]))
    for family, number, length in FAMILIES:
        section = found.get(family)
        if section is None or not card.takes(family):
            continue
        wanted = entry.get(family, {})
        if wanted.get("dhcp") is False:
            section["method"] = ("s", "manual")
        if wanted.get("auto-route-metric") is not None:
            section["route-metric"] = ("x", int(wanted["auto-route-metric"]))
        addresses = [*wanted.get("address", ()), *strangers.addresses.get(family, ())]
        routes = [*_config(state, "routes"), *strangers.routes]
        _add(section, "address-data", map(_address, addresses), ("address", "prefix"))
        _add(section, "route-data", (_route(route) for route in _of_family(routes, family, "destination")),
             ("dest", "prefix", "table", "next-hop"))
        _add(section, "routing-rules", (_rule(rule, number, length) for rule in _of_family(
            _config(state, "route-rules"), family, "ip-from") if rule.get("state") != "absent"), ("priority", "from"))
        for key in LEGACY:
            section.pop(key, None)
    return found


TIES = ("from", "to", "iifname", "oifname")


def with_shared_rules(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    """Those of the settings that change, each with every rule of the others that is tied to no address or interface."""
    changed: dict[str, Settings] = {}
    for family, _, _ in FAMILIES:
        sections = {key: each[family] for key, each in settings.items()
                    if each.get(family, {}).get("method", ("s", ""))[1] in TAKES_ADDRESSES}
        loose = [rule for section in sections.values() for rule in section.get("routing-rules", ("aa{sv}", []))[1]
                 if not any(key in rule for key in TIES)]
        for key, section in sections.items():
            more = dict(section)
            _add(more, "routing-rules", iter(loose), ("priority", "table", *TIES))
            if more != section:
                changed[key] = {**changed.get(key, settings[key]), family: more}
    return changed


def _add(section: dict[str, tuple[str, Any]], key: str, entries: Iterator[dict[str, tuple[str, Any]]],
         same: tuple[str, ...]) -> None:
    """The entries after those of the profile, each once."""
    kept: Entries = list(section.get(key, ("aa{sv}", []))[1])
    known = {_identity(entry, same) for entry in kept}
    for entry in entries:
        if (what := _identity(entry, same)) not in known:
            known.add(what)
            kept.append(entry)
    if kept:
        section[key] = ("aa{sv}", kept)


def _identity(entry: Mapping[str, tuple[str, Any]], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(entry.get(key, ("", None))[1] for key in keys)


def _address(address: State) -> dict[str, tuple[str, Any]]:
    return {"address": ("s", plain_ip(address["ip"])), "prefix": ("u", int(address["prefix-length"]))}


def _route(route: State) -> dict[str, tuple[str, Any]]:
    network = ip_network(route["destination"], strict=False)
    found: dict[str, tuple[str, Any]] = {
        "dest": ("s", str(network.network_address)), "prefix": ("u", network.prefixlen)}
    gateway = plain_ip(route.get("next-hop-address") or "")
    if gateway not in ("", "0.0.0.0", "::"):
        found["next-hop"] = ("s", gateway)
    for key, name in (("metric", "metric"), ("table-id", "table")):
        if (number := read_number(route.get(key))) is not None and number > 0:
            found[name] = ("u", number)
    return found


def _rule(rule: State, family: int, length: int) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {
        "family": ("i", family), "priority": ("u", int(rule["priority"])),
        "table": ("u", read_number(rule.get("route-table")) or MAIN_TABLE)}
    if rule.get("ip-from"):
        source = ip_interface(rule["ip-from"])
        found |= {"from": ("s", str(source.ip)), "from-len": ("y", source.network.prefixlen)}
    if is_for_all(rule):
        found["suppress-prefixlength"] = ("i", int(rule["suppress-prefix-length"]))
    return found


def _of_family(entries: Sequence[State], family: str, key: str) -> Iterator[State]:
    return (entry for entry in entries if _family(entry, key) == family)


def _family(entry: State, key: str) -> str:
    if entry.get("family"):
        return str(entry["family"])
    return "ipv6" if ":" in plain_network(entry.get(key) or "") else "ipv4"


def _config(state: State, section: str) -> list[State]:
    config = (state.get(section) or {}).get("config")
    return [entry for entry in config if isinstance(entry, Mapping)] if isinstance(config, list) else []
