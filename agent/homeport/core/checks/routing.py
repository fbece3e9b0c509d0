"""Checks of routes and rules: what they name, what they need, what can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from homeport.core.checks.reading import complain, read_ip, read_network, text
from homeport.core.checks.view import Entry, Part, View
from homeport.core.complaint import Complaint
from homeport.core.schema.kinds import read_number
from homeport.core.showing import show

MAIN_TABLE = 254
_LARGEST = 2**32 - 1
_NETWORK = "a network such as 192.0.2.0/24, or 0.0.0.0/0 or ::/0 for all"


def route_addresses(view: View) -> Iterator[Complaint]:
    """Destinations, next hops and sources that are no addresses, or not of one family."""
    for path, route in view.all_routes:
        destination = read_network(route.get("destination"))
        gone = route.get("state") is not None
        if destination is None and (text(route.get("destination")) or not gone):
            found = show(route["destination"]) if text(route.get("destination")) else "missing"
            yield complain((*path, "destination"), found, _NETWORK)
        for key in ("next-hop-address", "source"):
            value = text(route.get(key))
            ip = read_ip(value)
            if ip is None and isinstance(route.get(key), str):
                yield complain((*path, key), show(value), "an IP address")
            elif ip is not None and destination is not None and ip.version != destination.version:
                yield complain((*path, key), f"{ip} for a route to {destination.network}",
                               f"an IPv{destination.version} address")


def route_values(view: View) -> Iterator[Complaint]:
    """Values that nmstate, NetworkManager or the kernel refuse."""
    for route in view.routes:
        destination = read_network(route.data.get("destination"))
        if destination is not None and destination.version == 4 and destination.network.prefixlen >= 8 \
                and destination.ip.packed[0] == 0 and not route.data.get("route-type"):
            yield complain((*route.path, "destination"), show(route.data["destination"]),
                           "a network outside 0.0.0.0/8; the default route is 0.0.0.0/0")
        metric = read_number(route.data.get("metric"))
        if metric is not None and not -1 <= metric <= _LARGEST:
            yield complain((*route.path, "metric"), f"{metric}", f"a number from -1 to {_LARGEST}")
        for key in ("cwnd", "mtu", "advmss"):
            if read_number(route.data.get(key)) == 0:
                yield complain((*route.path, key), "0", "more than 0, or left out")
        weight = read_number(route.data.get("weight"))
        if weight is not None and not 1 <= weight <= 256:
            yield complain((*route.path, "weight"), f"{weight}", "a number from 1 to 256")
        elif weight is not None and destination is not None and destination.version == 6:
            yield complain((*route.path, "weight"), "a weight on an IPv6 route", "no weight: nmstate knows none here")


def route_interfaces(view: View) -> Iterator[Complaint]:
    """A route lives in the profile of its interface, so that must be ours: declared here, up, family on."""
    for route in view.routes:
        name = text(route.data.get("next-hop-interface"))
        path = (*route.path, "next-hop-interface")
        if route.data.get("route-type"):
            if name not in ("", "lo") or text(route.data.get("next-hop-address")):
                yield complain(path, f"a next hop on a {route.data['route-type']} route", "no next hop")
        elif not name:
            yield complain(path, "missing", "the name of the interface the route goes through")
        elif name not in view.kernel:
            if name != "lo":
                found = "is left alone (state: ignore)" if name in view.ignored else "is not declared"
                yield complain(path, f"{show(name)}, which {found} under interfaces",
                               "an interface of this document: the route is kept in its profile")
        else:
            yield from _interface_of_route(view.kernel[name], route)


def _interface_of_route(entry: Entry, route: Part) -> Iterator[Complaint]:
    path = (*route.path, "next-hop-interface")
    if not entry.up:
        yield complain(path, f"{show(entry.name)}, which is {entry.state}", "an interface that is up")
        return
    destination = read_network(route.data.get("destination"))
    if destination is not None and entry.family(destination.version).enabled is False:
        yield complain(path, f"{show(entry.name)}, whose IPv{destination.version} is off",
                       f"ipv{destination.version}: enabled: true on it, or another interface")


def route_tables(view: View) -> Iterator[Complaint]:
    """VRFs that routes name, and special routes that exclude each other."""
    special: dict[tuple[object, ...], Part] = {}
    for route in view.routes:
        vrf = view.kernel.get(text(route.data.get("vrf-name")))
        table = read_number(route.data.get("table-id"))
        if vrf is not None and (vrf.type != "vrf" or not vrf.up):
            found = f"{show(vrf.name)}, which is {vrf.state if vrf.type == 'vrf' else 'no VRF'}"
            yield complain((*route.path, "vrf-name"), found, "a VRF that is up")
        elif vrf is not None and table is not None:
            own = read_number(vrf.section("vrf")[1].get("route-table-id"))
            if own is not None and own != table:
                yield complain((*route.path, "table-id"), f"{table}, but {vrf.name} has table {own}",
                               "one of the two")
        if route.data.get("route-type") and (destination := read_network(route.data.get("destination"))):
            key = (destination.network, table or MAIN_TABLE, max(read_number(route.data.get("metric")) or 0, 0))
            first = special.setdefault(key, route)
            if first.data["route-type"] != route.data["route-type"]:
                yield complain((*route.path, "route-type"),
                               f"{route.data['route-type']}, but {first.data['route-type']} in "
                               f"routes.config[{first.path[-1]}]", "one type for each destination")


def rule_values(view: View) -> Iterator[Complaint]:
    """What a rule selects by, and whether it can."""
    for rule in view.rules:
        family = text(rule.data.get("family"))
        selectors = [key for key in ("ip-from", "ip-to") if text(rule.data.get(key))]
        if not selectors and not family:
            yield complain(rule.path, "neither ip-from, ip-to nor family", "at least one of them")
        for key in selectors:
            network = read_network(rule.data[key])
            if network is None:
                yield complain((*rule.path, key), show(rule.data[key]), _NETWORK)
            elif family in ("ipv4", "ipv6") and family != f"ipv{network.version}":
                yield complain((*rule.path, key), f"{network.network} with family {family}",
                               f"an {family.replace('ip', 'IP')} network")
        if rule.data.get("fwmask") is not None and rule.data.get("fwmark") is None:
            yield complain((*rule.path, "fwmask"), "a mask without a mark", "fwmark too")
        priority = read_number(rule.data.get("priority"))
        if priority is not None and not -1 <= priority <= _LARGEST:
            yield complain((*rule.path, "priority"), f"{priority}", f"a number from 0 to {_LARGEST}, -1 for any")
        iif = text(rule.data.get("iif"))
        entry = view.kernel.get(iif)
        if iif and iif != "lo" and (entry is None or entry.gone):
            found = "is absent" if entry is not None else "is not declared under interfaces"
            yield complain((*rule.path, "iif"), f"{show(iif)}, which {found}",
                           "an interface of this document: the rule is kept in its profile")


def rule_families(view: View) -> Iterator[Complaint]:
    """A rule is kept by an interface; if that one's family is off, the rule never comes into force.

    Follows nmstate's choice of the interface (nm/route_rule.rs): `iif`, else one with a route of the same
    family and table. Only if every candidate has the family off is the outcome certain.
    """
    through: dict[int, dict[str, Entry]] = {}
    for route in view.routes:
        entry = view.kernel.get(text(route.data.get("next-hop-interface")))
        if entry is not None and entry.up:
            for table in {MAIN_TABLE, read_number(route.data.get("table-id")) or MAIN_TABLE}:
                through.setdefault(table, {})[entry.name] = entry
    # Whether the family is off on all that could keep the rule, and their names; once for each table.
    verdicts: dict[tuple[int, int], str] = {}
    for rule in view.rules:
        version, table = _rule_version(rule), read_number(rule.data.get("route-table")) or MAIN_TABLE
        iif = view.kernel.get(text(rule.data.get("iif")))
        if iif is not None:
            names = _where_off([iif], version)
        else:
            if (table, version) not in verdicts:
                verdicts[table, version] = _where_off(through.get(table, {}).values(), version)
            names = verdicts[table, version]
        if names:
            yield complain(rule.path, f"a rule for IPv{version}, which is off on {names}",
                           f"ipv{version}: enabled: true there")


def _rule_version(rule: Part) -> int:
    selectors = "".join(text(rule.data.get(key)) for key in ("ip-from", "ip-to"))
    return 6 if ":" in selectors or text(rule.data.get("family")) == "ipv6" else 4


def _where_off(entries: Iterable[Entry], version: int) -> str:
    """The names of `entries` if the document has the family off on all of which it speaks, else ""."""
    told = [entry for entry in entries if entry.family(version).enabled is not None]
    off = [entry.name for entry in told if entry.family(version).enabled is False]
    return ", ".join(off[:3]) if len(off) == len(told) else ""
