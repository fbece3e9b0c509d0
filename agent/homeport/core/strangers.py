"""What others added to interfaces of ours: addresses of keepalived, routes of a container network, guests' ports.

NetworkManager takes away whatever is not in a profile when it applies a change to it, so a change is handed
over with what must stay.  That is never kept on disk, and never compared: who added it takes it away again.
A stranger's is what neither the assignment nor the one before has, that doesn't expire (DHCP, router
advertisements) and reaches beyond its own link.  On an interface whose profile is somebody else's nothing is
a stranger's: there our configuration takes the place of another.
Rules are not here: NetworkManager never touches those of others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.core.compare.interfaces import port_names
from homeport.core.compare.values import plain_ip, plain_network
from homeport.core.former import State, addresses_of, entries_of, interfaces_of, route_key
from homeport.core.keyfile import Keyfile
from homeport.core.schema.kinds import read_bool

LINK_LOCAL = ("169.254.", "fe8", "fe9", "fea", "feb")
FAMILIES = ("ipv4", "ipv6")
# What a route may have to be handed on as it is; one with more in it is left to who made it.
_OF_A_ROUTE = ("destination", "next-hop-interface", "next-hop-address", "metric", "table-id")
_SHOWN_ONLY = ("source", "protocol", "state", "route-type")


@dataclass(frozen=True)
class Added:
    """What others have on one interface, in nmstate's words; addresses by family, the ports of a bridge by name."""

    addresses: Mapping[str, tuple[State, ...]] = field(default_factory=dict)
    routes: tuple[State, ...] = ()
    ports: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.routes or self.ports) or any(self.addresses.values())

    def of_ipv6(self) -> Added:
        """The part that NetworkManager takes away even where it is asked to leave what is not its own."""
        return Added({"ipv6": self.addresses.get("ipv6", ())},
                     tuple(route for route in self.routes if ":" in str(route["destination"])))


def find(shown: State, desired: State, former: State, names: Collection[str]) -> dict[str, Added]:
    """Interface -> what others added, of those `names` whose profile is ours."""
    gateways = {plain_ip(route.get("next-hop-address")) for state in (desired, former, shown)
                for route in entries_of(state, "routes")}
    known = {route_key(route) for state in (desired, former) for route in entries_of(state, "routes")}
    ours: dict[str, set[str]] = {}
    for entry in (*interfaces_of(desired), *interfaces_of(former)):
        ours.setdefault(str(entry.get("name")), set()).update(
            plain_ip(item.get("ip")) for family in FAMILIES for item in addresses_of(entry, family))
    # Neither a port of ours nor an interface that an assignment speaks of for itself.
    spoken_of = {*ours, *(port for state in (desired, former) for entry in interfaces_of(state)
                          for port in port_names(entry))}
    theirs = {str(entry.get("name")): entry for entry in interfaces_of(shown)}
    routes: dict[str, list[State]] = {}
    for route in entries_of(shown, "routes"):
        if _is_plain(route) and route_key(route) not in known and not _is_managers(route, gateways):
            routes.setdefault(str(route.get("next-hop-interface")), []).append(
                {key: route[key] for key in _OF_A_ROUTE if key in route})
    found = {}
    for name in names:
        entry = theirs.get(name, {})
        listed = {family: tuple(_addresses(entry, family, ours.get(name, ()))) for family in FAMILIES}
        ports = tuple(port for port in port_names(entry) if port not in spoken_of) if "bridge" in entry else ()
        addresses = {family: each for family, each in listed.items() if each}
        if added := Added(addresses, tuple(routes.get(name, ())), ports):
            found[name] = added
    return found


def _addresses(entry: State, family: str, ours: Collection[str]) -> Iterator[State]:
    for item in addresses_of(entry, family):
        ip = plain_ip(item.get("ip"))
        expires = item.get("valid-life-time") or item.get("valid-left")
        if ip and ip not in ours and not expires and not ip.startswith(LINK_LOCAL):
            yield {"ip": item["ip"], "prefix-length": item["prefix-length"]}


def _is_plain(route: State) -> bool:
    return bool(route.get("destination")) and set(route) <= {*_OF_A_ROUTE, *_SHOWN_ONLY} and not (
        route.get("route-type") or route.get("source"))


def _is_managers(route: State, gateways: Collection[str]) -> bool:
    """NetworkManager adds a device route to a gateway that is on no network of the interface."""
    ip, _, length = plain_network(route["destination"]).rpartition("/")
    return ip in gateways and length in ("32", "128") and not _gateway(route.get("next-hop-address"))


def handed_along(desired: State, strangers: Mapping[str, Added]) -> State:
    """`desired` with what others added, for NetworkManager to leave it where it is."""
    if not strangers:
        return desired
    listed = [_with(entry, strangers.get(str(entry.get("name")), Added())) for entry in interfaces_of(desired)]
    takers = {str(entry.get("name")) for entry in listed if any(_takes(entry, family) for family in FAMILIES)}
    routes = [route for name, added in strangers.items() if name in takers for route in added.routes]
    section = desired.get("routes") or {}
    result: dict[str, Any] = {**desired, "interfaces": listed}
    if routes:
        result["routes"] = {**section, "config": [*(section.get("config") or ()), *routes]}
    return result


def _with(entry: State, added: Added) -> State:
    result = dict(entry)
    for family, more in added.addresses.items():
        if _takes(entry, family):
            section = entry[family]
            result[family] = {**section, "address": [*(section.get("address") or ()), *more]}
    bridge = entry.get("bridge")
    # A bridge whose ports are not said keeps those that it has.
    if added.ports and isinstance(bridge, Mapping) and isinstance(bridge.get("port"), list):
        result["bridge"] = {**bridge, "port": [*bridge["port"], *({"name": name} for name in added.ports)]}
    return result


def without_ports(shown: State, strangers: Mapping[str, Added]) -> State:
    """`shown` without the ports of others: a list of ports is the whole of them, other lists may have more in them."""
    if not any(added.ports for added in strangers.values()):
        return shown
    return {**shown, "interfaces": [_without_ports(entry, strangers.get(str(entry.get("name")), Added()))
                                    for entry in interfaces_of(shown)]}


def _without_ports(entry: State, added: Added) -> State:
    bridge = entry.get("bridge")
    if not added.ports or not isinstance(bridge, Mapping):
        return entry
    return {**entry, "bridge": {**bridge, "port": [port for port in bridge.get("port") or ()
                                                   if port.get("name") not in added.ports]}}


def _takes(entry: State, family: str) -> bool:
    """Whether the assignment has this family on the interface, and doesn't insist on its own addresses."""
    section = entry.get(family)
    return entry.get("state", "up") == "up" and isinstance(section, Mapping) \
        and read_bool(section.get("enabled")) is True and read_bool(section.get("allow-extra-address")) is not False


def without(profile: Keyfile, added: Added) -> Keyfile:
    """The profile, as it is kept, without what others added to its interface."""
    routes = {(plain_network(route["destination"]), _gateway(route.get("next-hop-address"))) for route in added.routes}
    for family in FAMILIES:
        ips = {plain_ip(item["ip"]) for item in added.addresses.get(family, ())}
        gone = []
        for key, raw in profile.items(family):
            words = raw.split(",")
            if key.startswith("address") and key[7:].isdigit() and plain_ip(words[0].partition("/")[0]) in ips:
                gone.append(key)
            elif key.startswith("route") and key[5:].isdigit() and _route(words) in routes:
                gone += [key, f"{key}_options"]
        profile = profile.remove(family, *gone) if gone else profile
    return profile


def _route(words: list[str]) -> tuple[str, str]:
    """`destination[,gateway[,metric]]` of a keyfile as the strangers' routes are told apart."""
    return plain_network(words[0]), _gateway(words[1] if len(words) > 1 else "")


def _gateway(value: object) -> str:
    """"" for a route to the link itself, which `show` writes as 0.0.0.0 or ::."""
    text = plain_ip(value or "")
    return "" if text in ("0.0.0.0", "::") else text
