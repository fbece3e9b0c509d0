"""Routes, rules and DNS of the desired state against `show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.compare.sections import listing
from homeport.core.compare.values import plain_ip, plain_network, same_value
from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.showing import show

Route = Mapping[str, object]
MAIN_TABLE = 254
_ROUTE_NUMBERS = ("cwnd", "initcwnd", "initrwnd", "mtu", "advmss")


def route_differences(
        desired: object, current: object, vrf_tables: Mapping[str, int], *, thorough: bool,
) -> Iterator[Complaint]:
    """Routes that are missing, and absent ones that are there.

    `vrf_tables`: the table of each VRF, for routes that name one. `thorough`: static routes through
    the interfaces of desired routes that nobody desires are differences too.
    """
    have = _Routes([route for route in _entries(current) if route.get("state") != "ignore"])
    wanted = _Routes([route for route in _entries(desired) if route.get("state") is None])
    for index, route in enumerate(_entries(desired)):
        path = ("routes", "config", index)
        if route.get("state") is None:
            if not any(_is_route(route, found, vrf_tables) for found in have.to(route)):
                near = [found for found in have.to(route) if _is_route(
                    {**route, "metric": None, "next-hop-address": None}, found, vrf_tables)]
                yield Complaint(render_path(path), _describe(near[0]) if near else "no such route",
                                _describe(route))
        elif route.get("state") == "absent":
            for found in have.to(route):
                if _is_route(route, found, vrf_tables) \
                        and not any(_is_route(r, found, vrf_tables) for r in wanted.to(found)):
                    yield Complaint(render_path(path), _describe(found), "no such route")
    if thorough:
        yield from _leftovers(wanted, have, vrf_tables)


class _Routes:
    """Routes, found by their destination: comparing each with each would take the square of their number."""

    def __init__(self, routes: list[Route]) -> None:
        self.all = routes
        self._by_destination: dict[str, list[Route]] = {}
        for route in routes:
            self._by_destination.setdefault(_destination(route), []).append(route)

    def to(self, route: Route) -> list[Route]:
        """Those with the destination of `route`; all if it has none."""
        return self._by_destination.get(_destination(route), []) if _destination(route) else self.all


def _destination(route: Route) -> str:
    return plain_network(route.get("destination") or "")


def _leftovers(wanted: _Routes, have: _Routes, vrf_tables: Mapping[str, int]) -> Iterator[Complaint]:
    through = {str(route["next-hop-interface"]) for route in wanted.all if route.get("next-hop-interface")}
    gateways = {plain_ip(route.get("next-hop-address")) for route in wanted.all}
    for found in have.all:
        destination = _destination(found)
        # NetworkManager adds a device route to a gateway that is on no network of the interface.
        by_manager = destination.rpartition("/")[0] in gateways and not _gateway(found)
        if str(found.get("next-hop-interface")) in through and not by_manager \
                and not any(_is_route(route, found, vrf_tables) for route in wanted.to(found)):
            yield Complaint("routes.config", f"{_describe(found)} too", "only the routes listed")


def _is_route(wanted: Route, found: Route, vrf_tables: Mapping[str, int]) -> bool:
    """Whether `found` is what `wanted` says; what it does not say may be anything."""
    vrf = wanted.get("vrf-name")
    table = vrf_tables.get(str(vrf), 0) if vrf else read_number(wanted.get("table-id"))
    special = wanted.get("route-type")
    interface = None if special else wanted.get("next-hop-interface")
    metric = read_number(wanted.get("metric"))
    return (
        _destination(wanted) in ("", _destination(found))
        and (interface is None or str(interface) == str(found.get("next-hop-interface")))
        and ("next-hop-address" not in wanted or wanted["next-hop-address"] is None
             or _gateway(wanted) == _gateway(found))
        and (table is None or (table or MAIN_TABLE) == _table(found))
        and (metric is None or metric < 0 or _metric(wanted) == _metric(found))
        and (special is None or special == found.get("route-type"))
        and (not wanted.get("source") or plain_ip(wanted["source"]) == plain_ip(found.get("source")))
        # The kernel keeps a weight only while there are several next hops.
        and (None in (wanted.get("weight"), found.get("weight"))
             or same_value("weight", wanted["weight"], found["weight"]))
        and all(wanted.get(key) is None or same_value(key, wanted[key], found.get(key))
                for key in _ROUTE_NUMBERS)
        and all(wanted.get(key) is None or read_bool(wanted[key]) == bool(found.get(key))
                for key in ("quickack", "lock-mtu"))
    )


def _gateway(route: Route) -> str:
    """The next hop, "" for a route to the link itself (which `show` writes as 0.0.0.0 or ::)."""
    text = plain_ip(route.get("next-hop-address") or "")
    return "" if text in ("0.0.0.0", "::") else text


def _table(route: Route) -> int:
    return read_number(route.get("table-id")) or MAIN_TABLE


def _metric(route: Route) -> int:
    """The kernel's metric: 0 means 1024 for IPv6 (IP6_RT_PRIO_USER), and `show` then omits none."""
    metric = read_number(route.get("metric"))
    if metric is not None and metric > 0:
        return metric
    return 1024 if ":" in str(route.get("destination", "")) else 0


def _describe(route: Route) -> str:
    words = [str(route.get("destination", "any"))]
    if _gateway(route):
        words.append(f"via {_gateway(route)}")
    words += [f"{word} {route[key]}" for key, word in (
        ("next-hop-interface", "through"), ("metric", "metric"), ("table-id", "table"),
        ("route-type", "type"), ("vrf-name", "VRF"), ("source", "source")) if key in route]
    return " ".join(words)


def rule_differences(desired: object, current: object) -> Iterator[Complaint]:
    """Rules that are missing, and absent ones that are there."""
    have = _entries(current)
    by_source: dict[str, list[Route]] = {}
    for found in have:
        by_source.setdefault(plain_network(found.get("ip-from") or ""), []).append(found)
    wanted = [rule for rule in _entries(desired) if rule.get("state") != "absent"]
    for index, rule in enumerate(_entries(desired)):
        path = ("route-rules", "config", index)
        source = rule.get("ip-from")
        candidates = have if source is None else by_source.get(plain_network(source), [])
        matching = [found for found in candidates if _is_rule(rule, found)]
        if rule.get("state") == "absent":
            left = [found for found in matching if not any(_is_rule(r, found) for r in wanted)]
            if left:
                yield Complaint(render_path(path), "the rule is there", "no such rule")
        elif not matching:
            yield Complaint(render_path(path), "no such rule", show_rule(rule))


def show_rule(rule: Route) -> str:
    return " ".join(f"{key} {value}" for key, value in rule.items())


def _is_rule(wanted: Route, found: Route) -> bool:
    absent = wanted.get("state") == "absent"
    priority = read_number(wanted.get("priority"))
    table = read_number(wanted.get("route-table"))
    if table is None and not absent and wanted.get("action") is None:
        table = MAIN_TABLE
    return (
        all(key not in wanted or wanted[key] is None
            or plain_network(wanted[key]) == plain_network(found.get(key) or "")
            for key in ("ip-from", "ip-to"))
        and (wanted.get("family") is None or wanted["family"] == _family(found))
        and (priority is None or priority < 0
             or priority == (read_number(found.get("priority")) or 0))
        and (table is None or (table or MAIN_TABLE) == (
            read_number(found.get("route-table")) or MAIN_TABLE))
        and all(wanted.get(key) is None
                or (read_number(wanted[key]) or 0) == (read_number(found.get(key)) or 0)
                for key in ("fwmark", "fwmask"))
        and all(wanted.get(key) is None or str(wanted[key]) == str(found.get(key))
                for key in ("iif", "action"))
        and _suppress(wanted) in (None, _suppress(found))
    )


def _suppress(rule: Route) -> int | None:
    return read_number(rule.get("suppress-prefix-length", rule.get("suppress_prefixlength")))


def _family(rule: Route) -> str:
    if rule.get("family") is not None:
        return str(rule["family"])
    return "ipv6" if ":" in f"{rule.get('ip-from', '')}{rule.get('ip-to', '')}" else "ipv4"


def dns_differences(desired: object, current: object, *, dynamic: bool) -> Iterator[Complaint]:
    """Servers and search domains, in their order.

    In force is what resolves names (`running`) or, on a link that is still without a carrier, what
    the profiles hold (`config`). `dynamic`: an interface may add servers by DHCP or advertisement.
    """
    if not isinstance(desired, Mapping) or not isinstance(desired.get("config"), Mapping):
        return
    wanted = desired["config"]
    # An empty `config` clears everything; a partial one keeps what it does not mention.
    purge = all(wanted.get(key) is None for key in ("server", "search", "options"))
    shown = current if isinstance(current, Mapping) else {}
    for key in ("server", "search", "options"):
        if wanted.get(key) is None and not purge:
            continue
        names = _texts(wanted.get(key), key)
        sides = [_texts(_get(shown.get(side), key), key) for side in ("running", "config")]
        if not any(_in_force(names, side, key, dynamic) for side in sides):
            path: Path = ("dns-resolver", "config", key)
            yield Complaint(render_path(path), listing(sides[0]), listing(names))


def _in_force(wanted: list[str], found: list[str], key: str, dynamic: bool) -> bool:
    if key == "options":
        return sorted(wanted) == sorted(found)
    if dynamic:
        return [item for item in found if item in wanted] == wanted
    return found == wanted


def _get(section: object, key: str) -> object:
    return section.get(key) if isinstance(section, Mapping) else None


def _texts(value: object, key: str) -> list[str]:
    items = value if isinstance(value, list) else []
    return [plain_ip(item) if key == "server" else str(item) for item in items]


def hostname_differences(desired: object, current: object) -> Iterator[Complaint]:
    if not isinstance(desired, Mapping):
        return
    for key in ("running", "config"):
        found = _get(current, key)
        if desired.get(key) is not None and str(desired[key]) != str(found or ""):
            yield Complaint(f"hostname.{key}", show(found), show(desired[key]))


def _entries(section: object) -> list[Route]:
    """The entries of a `config` list (its place in the list is its path, so odd ones stay as {})."""
    entries = _get(section, "config")
    return [entry if isinstance(entry, Mapping) else {} for entry in entries] \
        if isinstance(entries, list) else []
