"""A gathered network as nmstate's document, and that as the bytes of an assignment.

Knows what nmstate makes of what it is told (spec/sources-and-initramfs.md, 3.1): both families are always
written, DNS is tied to an interface, a gateway outside of every network gets a host route first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.core.platforms.network import Dhcp, Link, Network, Route, Rule, host
from homeport.core.platforms.reading import IPAddress, IPInterface

MAIN = 254


@dataclass(frozen=True)
class Made:
    """What came of metadata: a document's tree; what was left out, for people; cards that are not here.

    `partial`: something of it could not be read. `without_router`: cards, by MAC, for which there would be more if an
    IPv6 router had been advertised.
    """

    tree: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    partial: bool = False
    without_router: tuple[str, ...] = ()


def render(network: Network) -> Made:
    """The assignment; `configurator: none` if the platform says nothing of networks beyond DHCP."""
    links = network.without_absent()
    notes = (*network.notes, *(f"{fault}; left out" for fault in network.faults),
             *(f"no card has MAC {mac}; what is for it is left out" for mac in network.absent),
             *(f"{link.name}: its primary port, {gone}, is not here; left out"
               for link in links.values() if (gone := absent_primary(link, links))),
             *(f"name server {server}: {name} has no IPv6 but its link-local address; left out"
               for server, there in network.servers.items() for name in there
               if name in links and not can_ask(server, links[name])))
    if not links:
        return Made({"configurator": "none"}, notes, tuple(network.absent), bool(network.faults))
    dns = resolver(network, links)
    config: dict[str, Any] = {"interfaces": [interface(link, "server" in dns, links) for link in links.values()]}
    routes = with_neighbours([route for route in network.routes if route.link in links], links)
    if routes:
        config["routes"] = {"config": [route_entry(route) for route in routes]}
    tables = {route.table for route in routes}
    rules = [rule for rule in network.rules if rule.table in {*tables, MAIN}]
    # What all rules have in common is of no use to a family that has none, and may be off.
    families = {rule.version for rule in rules if not rule.main_without_default}
    rules = [rule for rule in rules if rule.version in families]
    if rules:
        config["route-rules"] = {"config": [rule_entry(rule) for rule in sorted(rules, key=priority)]}
    if dns:
        config["dns-resolver"] = {"config": dns}
    if network.hostname:
        config["hostname"] = {"config": network.hostname}
    return Made({"configurator": "nmstate", "config": config}, notes, tuple(network.absent), bool(network.faults),
                tuple(network.without_router.keys() - network.absent.keys()))


def interface(link: Link, has_servers: bool, links: Mapping[str, Link]) -> dict[str, Any]:
    """One interface; what `has_servers` of its own needs none of DHCP's."""
    entry: dict[str, Any] = {"name": link.name, "type": link.kind, "state": "up"}
    if link.card:
        entry |= {"identifier": "mac-address", "mac-address": link.card.upper()}
    elif link.mac:
        entry["mac-address"] = link.mac.upper()
    if link.match:
        entry["match"] = link.match
    if link.mtu:
        entry["mtu"] = link.mtu
    if link.dhcp:
        # One family is enough to be up: where one of them has no server, the other one still works.
        entry["wait-ip"] = "any"
    entry |= without_ports(link, links)
    return entry | {"ipv4": family(link, 4, has_servers), "ipv6": family(link, 6, has_servers)}


def without_ports(link: Link, links: Mapping[str, Link]) -> dict[str, Any]:
    """The shape of a bond or bridge, without ports that are not on this machine."""
    found = {key: dict(value) for key, value in link.shape.items()}
    for key in ("link-aggregation", "bridge"):
        if "port" in found.get(key, {}):
            found[key]["port"] = [port for port in found[key]["port"]
                                  if (port["name"] if isinstance(port, dict) else port) in links]
    if absent_primary(link, links):
        bond = found["link-aggregation"]
        bond["options"] = {key: value for key, value in bond["options"].items() if key != "primary"}
    return found


def absent_primary(link: Link, links: Mapping[str, Link]) -> str:
    """The port that a bond is to prefer, if it is not among those that are here: nmstate refuses such a bond."""
    primary = str(link.shape.get("link-aggregation", {}).get("options", {}).get("primary", ""))
    return primary if primary not in links or primary not in link.parts else ""


def family(link: Link, version: int, has_servers: bool) -> dict[str, Any]:
    """The section of one family. A link without IPv6 still has its link-local address: others rely on it."""
    addresses = [{"ip": str(address.ip), "prefix-length": address.network.prefixlen}
                 for address in link.addresses if address.version == version]
    dhcp = link.dhcp.get(version)
    if link.is_port or (version == 6 and link.no_ipv6) or not (addresses or dhcp or version == 6):
        return {"enabled": False}
    entry: dict[str, Any] = {"enabled": True, "dhcp": dhcp is not None}
    if version == 6:
        entry["autoconf"] = dhcp is not None
    if dhcp is not None:
        entry |= automatic(dhcp, has_servers)
    if addresses:
        entry["address"] = addresses
    return entry


def automatic(dhcp: Dhcp, has_servers: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"auto-dns": not has_servers if dhcp.dns is None else dhcp.dns,
                             "auto-gateway": dhcp.routes, "auto-routes": dhcp.routes}
    return entry if dhcp.metric is None else entry | {"auto-route-metric": dhcp.metric}


def with_neighbours(routes: Iterable[Route], links: Mapping[str, Link]) -> list[Route]:
    """The routes, each with a host route to its gateway before it if that is in no network of its link."""
    done: dict[Route, None] = {}
    reached = {name: Reach(link.addresses) for name, link in links.items()}
    for route in routes:
        gateway, link = route.gateway, links[route.link]
        if gateway is None:
            reached[link.name].add(route.destination)
        elif not (gateway.is_link_local or gateway.version in link.dhcp or reached[link.name].has(gateway)):
            done.setdefault(Route(link.name, host(gateway), metric=route.metric, table=route.table))
            reached[link.name].add(host(gateway))
        done.setdefault(route)
    return list(done)


class Reach:
    """The networks on one link. By their lengths: there may be thousands of them, and of routes."""

    def __init__(self, networks: Iterable[IPInterface]) -> None:
        self.starts: dict[tuple[int, int], set[int]] = {}
        for network in networks:
            self.add(network)

    def add(self, network: IPInterface) -> None:
        bits = network.max_prefixlen - network.network.prefixlen
        self.starts.setdefault((network.version, bits), set()).add(int(network) >> bits)

    def has(self, ip: IPAddress) -> bool:
        return any(int(ip) >> bits in starts for (version, bits), starts in self.starts.items()
                   if version == ip.version)


def route_entry(route: Route) -> dict[str, Any]:
    entry: dict[str, Any] = {"destination": str(route.destination.network), "next-hop-interface": route.link}
    if route.gateway is not None:
        entry["next-hop-address"] = str(route.gateway)
    optional = {"metric": route.metric, "table-id": route.table}
    return entry | {key: value for key, value in optional.items() if value is not None}


def priority(rule: Rule) -> tuple[int, int]:
    return rule.version, rule.priority


def rule_entry(rule: Rule) -> dict[str, Any]:
    entry: dict[str, Any] = {"family": f"ipv{rule.version}", "priority": rule.priority, "route-table": rule.table}
    if rule.source is not None:
        entry["ip-from"] = str(rule.source.network)
    if rule.target is not None:
        entry["ip-to"] = str(rule.target.network)
    if rule.mark is not None:
        entry["fwmark"] = rule.mark
    return entry | ({"suppress-prefix-length": 0} if rule.main_without_default else {})


def resolver(network: Network, links: Mapping[str, Link]) -> dict[str, Any]:
    """Servers by family, in the order of each one's first: a profile keeps no other order."""
    known = {server: where[0] for server, there in network.servers.items() if (where := [
        link for link in there if not link or (link in links and can_ask(server, links[link]))])}
    order = list(dict.fromkeys(server.version for server in known))
    servers = [with_zone(server, link) for version in order for server, link in known.items()
               if server.version == version]
    dns: dict[str, Any] = {"server": servers} if servers else {}
    return dns | ({"search": list(network.search)} if network.search else {})


def can_ask(server: IPAddress, link: Link) -> bool:
    """Whether nmstate takes the server there: a link with no more of IPv6 than its own address has it off, it says."""
    return not (server.version == 6 and server.is_link_local) or 6 in link.dhcp or any(
        address.version == 6 for address in link.addresses)


def with_zone(server: IPAddress, link: str) -> str:
    return f"{server}%{link}" if server.is_link_local and server.version == 6 and link else str(server)
