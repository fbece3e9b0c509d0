"""What the former assignment leaves behind, and what on our interfaces was never ours.

nmstate only adds rules, so those that are not wanted any more have to be named.  And an address or route
that neither assignment has belongs to somebody else (keepalived, a container network): it is no reason to
apply anything, for applying is what would take it away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeport.core.checks.view import View
from homeport.core.compare.interfaces import port_names
from homeport.core.compare.values import plain_ip, plain_network
from homeport.core.nics import MADE
from homeport.core.schema.kinds import read_number

State = Mapping[str, Any]
MAIN_TABLE = 254
_OF_A_RULE = ("family", "ip-from", "ip-to", "priority", "route-table", "fwmark", "fwmask", "iif", "action",
              "suppress-prefix-length")


def together(*states: State) -> dict[str, Any]:
    """All that several of our states had, as one, for telling what was never ours: a power cut may leave the document
    of one and the profiles of the other.
    """
    return {"interfaces": [entry for state in states for entry in interfaces_of(state)],
            **{section: {"config": [entry for state in states for entry in entries_of(state, section)]}
               for section in ("routes", "route-rules")}}


def removing(desired: State, former: State) -> dict[str, Any]:
    """`desired`, and what nmstate must be told to take away of the former desired state."""
    return removing_interfaces(removing_blackholes(removing_rules(desired, former), former), former)


def removing_rules(desired: State, former: State) -> dict[str, Any]:
    """`desired`, with those rules of the former desired state to be absent that are not in it."""
    rules = list(entries_of(desired, "route-rules"))
    kept = {_rule(rule) for rule in rules}
    gone = [{**{key: rule[key] for key in _OF_A_RULE if rule.get(key) is not None}, "state": "absent"}
            for rule in entries_of(former, "route-rules") if rule.get("state") is None and _rule(rule) not in kept]
    if not gone:
        return dict(desired)
    return {**desired, "route-rules": {**(desired.get("route-rules") or {}), "config": [*gone, *rules]}}


def removing_blackholes(desired: State, former: State) -> dict[str, Any]:
    """`desired`, with those routes without an interface of the former desired state to be absent that are not in it.

    The other routes go with their interface (`host/nmstatectl.py` replaces those of each).
    """
    routes = list(entries_of(desired, "routes"))
    kept = {(route_key(route), route.get("route-type")) for route in routes}
    gone = [{"state": "absent", "destination": route.get("destination"), "route-type": route.get("route-type"),
             **({"table-id": route["table-id"]} if "table-id" in route else {})}
            for route in entries_of(former, "routes") if route.get("route-type") and route.get("state") is None
            and not route.get("next-hop-interface") and (route_key(route), route.get("route-type")) not in kept]
    if not gone:
        return dict(desired)
    return {**desired, "routes": {**(desired.get("routes") or {}), "config": [*gone, *routes]}}


def removing_interfaces(desired: State, former: State) -> dict[str, Any]:
    """`desired`, without what the former desired state made and it no longer has.

    Interfaces that were made go down, which for them is to go; their ports are freed of them, or nmstate
    would refuse a port that is to have an address of its own. Cards stay: they go back to DHCP with their
    profile.
    """
    wanted = names(desired)
    made = {entry.name: entry for entry in View(former).entries
            if entry.up and entry.type in MADE and entry.type != "loopback" and entry.name not in wanted}
    if not made:
        return dict(desired)
    freed = {port.name for entry in made.values() for port in entry.ports}
    entries = [{**entry, "controller": ""} if entry.get("name") in freed and "controller" not in entry
               and not _is_port(str(entry.get("name")), desired) else entry for entry in interfaces_of(desired)]
    gone = [{"name": name, "type": entry.type, "state": "down"} for name, entry in made.items()]
    return {**desired, "interfaces": [*entries, *gone]}


def names(state: State) -> set[str]:
    return {str(entry.get("name")) for entry in interfaces_of(state)}


def _is_port(name: str, state: State) -> bool:
    return any(port.name == name for entry in View(state).entries for port in entry.ports)


def keeping_ip(desired: State, shown: State, interfaces: Collection[str]) -> dict[str, Any]:
    """`desired`, with the IP settings in force for each of `interfaces` that it has nothing to say of.

    As nmstate promises for what a document leaves out; it forgets it where it makes a new profile instead of
    editing the active one. Ports keep nothing: they have no addresses. A route without an interface brings the
    loopback into it, which must keep its own.
    """
    current = {str(entry.get("name")): entry for entry in interfaces_of(shown)}
    of_none = any(not route.get("next-hop-interface") for route in entries_of(desired, "routes"))
    if of_none and "lo" not in names(desired):
        lo = {"name": "lo", "type": "loopback", "state": "up", **_ip_settings(current.get("lo", {}))}
        desired = {**desired, "interfaces": [*interfaces_of(desired), lo]}
    entries = [{**_ip_settings(current.get(name, {})), **_said(entry)}
               if (name := str(entry.get("name"))) in interfaces and not _is_port(name, desired) else entry
               for entry in interfaces_of(desired)]
    return {**desired, "interfaces": entries} if entries else dict(desired)


def _said(entry: State) -> dict[str, Any]:
    """What an entry says; `ipv4: null` is nothing, as for nmstate."""
    return {key: value for key, value in entry.items() if value is not None}


# How an interface gets its addresses; metrics and tables are those of the profile that it had.
_METHOD = ("enabled", "dhcp", "autoconf", "auto-dns", "auto-gateway", "auto-routes")


def _ip_settings(shown: State) -> dict[str, Any]:
    """The `ipv4` and `ipv6` of an interface without what came by DHCP or advertisement."""
    found = {}
    for family in ("ipv4", "ipv6"):
        section = shown.get(family)
        if isinstance(section, Mapping):
            static = [{key: item[key] for key in ("ip", "prefix-length") if key in item}
                      for item in addresses_of(shown, family)
                      if not (item.get("valid-life-time") or item.get("valid-left"))
                      and not str(item.get("ip")).startswith("fe80:")]
            kept = {key: section[key] for key in _METHOD if key in section}
            found[family] = {**kept, "address": static} if kept.get("enabled") else kept
    return found


def without_strangers(shown: State, desired: State, former: State) -> dict[str, Any]:
    """What `nmstatectl show` shows, without what somebody else added to interfaces that were ours before.

    On an interface that was not, everything counts: there our configuration takes the place of another.
    """
    ours = {str(entry.get("name")): entry for entry in interfaces_of(former)}
    wanted = {str(entry.get("name")): entry for entry in interfaces_of(desired)}
    interfaces = [_interface(entry, ours[name], wanted.get(name, {}))
                  if (name := str(entry.get("name"))) in ours else entry for entry in interfaces_of(shown)]
    result: dict[str, Any] = {**shown, "interfaces": interfaces}
    routes = shown.get("routes")
    if isinstance(routes, Mapping):
        known = {route_key(route) for state in (desired, former) for route in entries_of(state, "routes")}
        result["routes"] = {key: [route for route in value if str(route.get("next-hop-interface")) not in ours
                                  or route_key(route) in known] if isinstance(value, list) else value
                            for key, value in routes.items()}
    return result


def _interface(shown: State, former: State, desired: State) -> State:
    entry = dict(shown)
    for family in ("ipv4", "ipv6"):
        section = shown.get(family)
        if isinstance(section, Mapping) and isinstance(section.get("address"), list):
            ours = {plain_ip(item.get("ip")) for state in (former, desired) for item in addresses_of(state, family)}
            # What expires came by DHCP or advertisement, and is judged elsewhere.
            kept = [item for item in section["address"]
                    if plain_ip(item.get("ip")) in ours or item.get("valid-life-time") or item.get("valid-left")]
            entry[family] = {**section, "address": kept}
    bridge = shown.get("bridge")
    if isinstance(bridge, Mapping) and isinstance(bridge.get("port"), list):
        # A guest's or a container's end of a cable, which its manager put there and takes away again.
        ours = {*port_names(former), *port_names(desired)}
        entry["bridge"] = {**bridge, "port": [port for port in bridge["port"] if port.get("name") in ours]}
    return entry


def addresses_of(state: State, family: str) -> Iterator[State]:
    section = state.get(family)
    addresses = section.get("address") if isinstance(section, Mapping) else None
    yield from (item for item in addresses or () if isinstance(item, Mapping))


def interfaces_of(state: State) -> list[State]:
    interfaces = state.get("interfaces")
    return [entry for entry in interfaces if isinstance(entry, Mapping)] if isinstance(interfaces, list) else []


def entries_of(state: State, section: str) -> Iterator[State]:
    found = state.get(section)
    config = found.get("config") if isinstance(found, Mapping) else None
    yield from (entry for entry in config if isinstance(entry, Mapping)) if isinstance(config, list) else ()


def route_key(route: State) -> tuple[str, str, int]:
    """What makes it the same route but for its gateway and metric, which a document may have changed."""
    return (plain_network(route.get("destination") or ""), str(route.get("next-hop-interface")),
            read_number(route.get("table-id")) or MAIN_TABLE)


def _rule(rule: State) -> tuple[str, ...]:
    """One value for one rule, whatever is left at its default."""
    ends = [plain_network(rule.get(key) or "") for key in ("ip-from", "ip-to")]
    family = str(rule.get("family") or ("ipv6" if ":" in "".join(ends) else "ipv4"))
    numbers = [str(read_number(rule.get(key))) for key in ("priority", "fwmark", "fwmask", "suppress-prefix-length")]
    return (family, *ends, *numbers, str(read_number(rule.get("route-table")) or MAIN_TABLE),
            str(rule.get("iif") or ""), str(rule.get("action") or ""))
