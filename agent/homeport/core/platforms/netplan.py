"""netplan's format, which is cloud-init's network configuration version 2: NoCloud drives and VMware's guestinfo.

Knows the keys that a machine's first network needs (https://netplan.readthedocs.io, "YAML configuration");
every other key is noted as left out, never refused.  `set-name` is not followed: a card that is renamed
after udev is a known source of trouble.
"""

from __future__ import annotations

from functools import partial

from homeport.core.platforms import options
from homeport.core.platforms.network import Dhcp, Link, Network, Rule, anywhere, host
from homeport.core.platforms.reading import IPAddress, IPInterface, Node

_KINDS = {"ethernets": "ethernet", "bonds": "bond", "bridges": "linux-bridge", "vlans": "vlan",
          "dummy-devices": "dummy"}
_DONE = {
    "match", "set-name", "addresses", "dhcp4", "dhcp6", "dhcp4-overrides", "dhcp6-overrides", "gateway4", "gateway6",
    "routes", "routing-policy", "nameservers", "mtu", "macaddress", "accept-ra", "link-local", "interfaces",
    "parameters", "id", "link"}
# What changes nothing here: we wait for what counts, and a card's DHCP identity is always its MAC.
_WITHOUT_EFFECT = {"optional", "critical", "dhcp-identifier", "renderer", "wakeonlan", "optional-addresses"}
_MATCH = {"macaddress", "name", "driver"}
_NAMESERVERS = {"addresses", "search"}
_ROUTE = {"to", "via", "type", "metric", "table", "on-link"}
_RULE = {"from", "to", "priority", "table", "mark"}
_OVERRIDES = {"use-dns", "use-routes", "route-metric"}
_MAIN = 254

Described = dict[str, tuple[Link, Node]]  # by the id that the document gives


def read(data: Node, network: Network) -> None:
    """Every interface of the configuration, then what they have."""
    network.note_others(data, {*_KINDS, "version", "renderer"})
    found: Described = {}
    for key, kind in _KINDS.items():
        network.each(data[key].entries(), partial(_describe, kind=kind, found=found, network=network))
    network.each(found.values(), lambda entry: _shape(*entry, found, network))
    network.each(found.values(), lambda entry: _addresses(*entry, network))


def _describe(entry: tuple[str, Node], kind: str, found: Described, network: Network) -> None:
    name, node = entry
    found[name] = _link(name, node, kind, network), node


def _link(name: str, entry: Node, kind: str, network: Network) -> Link:
    """The interface, so far without what it stands on."""
    network.note_others(entry, _DONE | _WITHOUT_EFFECT)
    network.note_others(entry["match"], _MATCH)
    network.note_others(entry["nameservers"], _NAMESERVERS)
    mtu = entry["mtu"].mtu()
    if kind != "ethernet":
        mac = entry["macaddress"].mac() if entry["macaddress"] else ""
        return network.add(Link(name, kind, mac=mac, mtu=mtu))
    if entry["macaddress"]:
        network.note(f"{entry['macaddress'].path}: another MAC for a card is left out")
    match = entry["match"]
    if match["macaddress"]:
        return network.card(match["macaddress"].mac(), name, mtu)
    criteria = {key: match[key].text() for key in ("name", "driver") if match[key]}
    return network.add(Link(name, match=criteria, mtu=mtu))


def _shape(link: Link, entry: Node, found: Described, network: Network) -> None:
    """What a bond, bridge or VLAN is made of."""
    if link.kind == "vlan":
        base = _name(entry["link"], found)
        link.parts, link.shape = [base], {"vlan": {"base-iface": base, "id": entry["id"].number(0, 4094)}}
    elif link.kind in ("bond", "linux-bridge"):
        link.parts = [_name(node, found) for node in entry["interfaces"].items()]
        for part in link.parts:
            network.links[part].is_port = True
        given = entry["parameters"].entries()
        if link.kind == "bond":
            link.shape = {"link-aggregation": options.bond(given, link.parts, network)}
        else:
            link.shape = {"bridge": options.bridge(given, link.parts, network)}


def _name(node: Node, found: Described) -> str:
    if node.text() not in found:
        raise node.fault("the name of an interface that is described")
    return found[node.text()][0].name


def _addresses(link: Link, entry: Node, network: Network) -> None:
    for version in (4, 6):
        if entry[f"dhcp{version}"].flag():
            link.dhcp[version] = _dhcp(entry[f"dhcp{version}-overrides"], network)
    if entry["accept-ra"].flag():
        link.dhcp.setdefault(6, Dhcp())
    elif entry["accept-ra"].value is not None and 6 in link.dhcp:
        network.note(f"{entry['accept-ra'].path}: router advertisements count where IPv6 is automatic")
    if any(node.value == "ipv4" for node in entry["link-local"].words()):
        network.note(f"{entry['link-local'].path}: no link-local address of IPv4; left out")
    if entry["link-local"].value == [] and not entry["dhcp6"].flag():
        link.no_ipv6 = not any(":" in str(node.value) for node in entry["addresses"].items())
    for node in entry["addresses"].items():
        # An address may have options of its own: `- 192.0.2.1/24: {label: x}`.
        for key, beside in node.entries() if isinstance(node.value, dict) else ():
            link.add(Node(key, node.path).interface())
            network.note_others(beside, ())
        if not isinstance(node.value, dict):
            link.add(node.interface())
    network.each(entry["routes"].items(), partial(_route, link=link, network=network))
    for key in ("gateway4", "gateway6"):
        if entry[key]:
            _gateway(entry[key], link, network)
    network.each(entry["routing-policy"].items(), partial(_rule, network=network))
    servers = entry["nameservers"]
    network.serve([node.ip() for node in servers["addresses"].items()],
                  [node.text() for node in servers["search"].words()], link.name)


def _gateway(node: Node, link: Link, network: Network) -> None:
    """The older way to say a default route, which stands beside routes that lead elsewhere."""
    gateway = node.ip()
    if any(route.link == link.name and route.destination == anywhere(gateway.version) and route.table in (None, _MAIN)
           for route in network.routes):
        network.note(f"{node.path} is left out: one of the routes is the default route")
    else:
        network.default_route(link, gateway)


def _dhcp(overrides: Node, network: Network) -> Dhcp:
    network.note_others(overrides, _OVERRIDES)
    return Dhcp(dns=overrides["use-dns"].flag() if overrides["use-dns"].value is not None else None,
                routes=overrides["use-routes"].flag(default=True),
                metric=overrides["route-metric"].number() if overrides["route-metric"] else None)


def _route(route: Node, link: Link, network: Network) -> None:
    network.note_others(route, _ROUTE)
    gateway = route["via"].ip() if route["via"] else None
    if route["type"] and route["type"].value != "unicast":
        raise route["type"].fault("a unicast route; others are not read here")
    destination = _destination(route["to"], gateway)
    metric, table = (route[key].number() if route[key] else None for key in ("metric", "table"))
    if gateway is not None and route["on-link"].flag():
        network.route(link, host(gateway), metric=metric, table=table)
    network.route(link, destination, gateway, metric=metric, table=table)


def _destination(to: Node, gateway: IPAddress | None) -> IPInterface:
    if to.value == "default":
        if gateway is None:
            raise to.fault("a default route with its gateway, in `via`")
        return anywhere(gateway.version)
    return to.network()


def _rule(rule: Node, network: Network) -> None:
    network.note_others(rule, _RULE)
    source, target = (rule[key].network() if rule[key] else None for key in ("from", "to"))
    version = next((each.version for each in (source, target) if each is not None), 4)
    network.rules.append(Rule(
        version, rule["priority"].number(), rule["table"].number() if rule["table"] else _MAIN, source, target,
        rule["mark"].number() if rule["mark"] else None))
