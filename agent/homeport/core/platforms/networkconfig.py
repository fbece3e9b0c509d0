"""cloud-init's network configuration, version 1; and which of the two versions it is.

Read from NoCloud drives, Proxmox and Hetzner (https://cloudinit.readthedocs.io, "Networking config Version 1").
Version 2 is netplan's (`netplan.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from homeport.core.platforms import netplan, options
from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Node

_DHCP = {"dhcp": 4, "dhcp4": 4, "dhcp6": 6, "ipv6_slaac": 6, "ipv6_dhcpv6-stateless": 6, "ipv6_dhcpv6-stateful": 6}
_STATIC = ("static", "static4", "static6")
_TOP = ("version", "config")
_LINK = {"type", "name", "mac_address", "mtu", "subnets", "accept-ra"}
_SUBNET = {"type", "address", "netmask", "prefix", "gateway", "ipv4", "ipv6", "routes", "dns_nameservers", "dns_search",
           "mtu", "metric"}
_ROUTE = {"destination", "network", "netmask", "prefix", "gateway", "metric"}
_KNOWN = {
    "physical": _LINK, "bond": _LINK | {"bond_interfaces", "params"}, "bridge": _LINK | {"bridge_interfaces", "params"},
    "vlan": _LINK | {"vlan_link", "vlan_id"}, "nameserver": {"type", "address", "search", "interface"},
    "route": _ROUTE | {"type"}, "loopback": {"type", "name"}}
# What stands on others comes after them, whatever the order in the file.
_MADE = ("bond", "bridge", "vlan")
_PARTS = ("bond_interfaces", "bridge_interfaces", "vlan_link")
_TYPES = ("physical", *_MADE, "nameserver", "route")


def read(data: Node, network: Network) -> None:
    """The configuration in `data`, also below a `network` key of its own; an empty file is as good as none."""
    if data.value is None:
        return
    if data["network"]:
        network.note_others(data, ("network",))
        data = data["network"]
    if all(data[key].value is None for key in ("version", "config", "ethernets")):
        raise data.fault("a network configuration: a mapping with 'version' or 'config' or 'ethernets'")
    if data["version"].value in (2, "2") or (not data["config"] and data["ethernets"]):
        netplan.read(data, network)
        return
    if data["version"] and data["version"].value not in (1, "1"):
        raise data["version"].fault("1 or 2")
    if data["config"].value == "disabled":
        return
    if data["config"].value is None:
        raise data["config"].fault("a list of what there is, which may be empty, or 'disabled'")
    network.note_others(data, _TOP)
    entries: list[Node] = []
    network.each(data["config"].items(), partial(_sort, entries=entries, network=network))
    made = _in_order([entry for kind in _MADE for entry in entries if entry["type"].value == kind])
    for group in (_of_kind("physical", entries), made, _of_kind("nameserver", entries), _of_kind("route", entries)):
        network.each(group, lambda entry: _READERS[entry["type"].value](entry, network=network))


def _of_kind(kind: str, entries: list[Node]) -> list[Node]:
    return [entry for entry in entries if entry["type"].value == kind]


def _in_order(entries: list[Node]) -> list[Node]:
    """Each after those that it is made of; where they go in a circle, each says by itself what it lacks."""
    from graphlib import CycleError, TopologicalSorter

    parts = {str(entry["name"].value): _part_names(entry) for entry in entries}
    try:
        rank = {name: place for place, name in enumerate(TopologicalSorter(parts).static_order())}
    except CycleError:
        return entries
    return sorted(entries, key=lambda entry: rank[str(entry["name"].value)])


def _part_names(entry: Node) -> list[str]:
    """What it is made of, as far as that can be read: whoever makes it says what is wrong with it."""
    values = [entry[key].value for key in _PARTS]
    return [name for value in values for name in (value if isinstance(value, list) else [value])
            if isinstance(name, str)]


def _sort(entry: Node, entries: list[Node], network: Network) -> None:
    """Take an entry whose type is known; of the loopback interface, which every machine has, nothing else is read."""
    kind = entry["type"].text()
    if kind not in _KNOWN:
        raise entry["type"].fault(f"one of {', '.join(_TYPES)}")
    entries.append(entry)
    is_plain = kind == "loopback" and all(subnet["type"].value == "loopback" and len(subnet.entries()) == 1
                                          for subnet in entry["subnets"].items())
    network.note_others(entry, _KNOWN[kind] | ({"subnets"} if is_plain else set()))


def _physical(entry: Node, network: Network) -> None:
    name = entry["name"].text("")
    if entry["mac_address"]:
        link = network.card(entry["mac_address"].mac(), name, entry["mtu"].mtu())
    else:
        link = network.add(Link(entry["name"].text(), mtu=entry["mtu"].mtu()))
    _subnets(entry, link, network)


def _bond(entry: Node, network: Network) -> None:
    ports = _parts(entry["bond_interfaces"], network, are_ports=True)
    shape = {"link-aggregation": options.bond(entry["params"].entries(), ports, network)}
    _made(entry, "bond", ports, shape, network)


def _bridge(entry: Node, network: Network) -> None:
    ports = _parts(entry["bridge_interfaces"], network, are_ports=True)
    shape = {"bridge": options.bridge(entry["params"].entries(), ports, network)}
    _made(entry, "linux-bridge", ports, shape, network)


def _vlan(entry: Node, network: Network) -> None:
    base = entry["vlan_link"]
    if base.text() not in network.links:
        raise base.fault("the name of an interface that is described")
    shape = {"vlan": {"base-iface": base.text(), "id": entry["vlan_id"].number(0, 4094)}}
    _made(entry, "vlan", [base.text()], shape, network)


def _made(entry: Node, kind: str, parts: list[str], shape: dict[str, Any], network: Network) -> None:
    mac = entry["mac_address"].mac() if entry["mac_address"] else ""
    link = network.add(Link(entry["name"].text(), kind, mac=mac, mtu=entry["mtu"].mtu(), parts=parts, shape=shape))
    _subnets(entry, link, network)


def _parts(names: Node, network: Network, *, are_ports: bool) -> list[str]:
    for node in names.items():
        if node.text() not in network.links:
            raise node.fault("the name of an interface that is described")
        network.links[node.text()].is_port = are_ports
    return [node.text() for node in names.items()]


def _nameserver(entry: Node, network: Network) -> None:
    name = entry["interface"].text("")
    if name and name not in network.links:
        network.note(f"{entry['interface'].path}: no interface '{name}' is described; its servers are for all")
        name = ""
    for node in entry["address"].words():
        network.serve([node.ip()], link=name or (node.zone() if node.zone() in network.links else ""))
    network.serve((), [node.text() for node in entry["search"].words()])


def _subnets(entry: Node, link: Link, network: Network) -> None:
    if entry["accept-ra"] and not entry["accept-ra"].flag():
        network.note(f"{entry['accept-ra'].path}: router advertisements count where IPv6 is automatic")
    network.each(entry["subnets"].items(), partial(_subnet, link=link, network=network))


def _subnet(subnet: Node, link: Link, network: Network) -> None:
    network.note_others(subnet, _SUBNET if subnet["control"].value != "auto" else {*_SUBNET, "control"})
    kind, version = subnet["type"].text(), 4
    metric = subnet["metric"].number() if subnet["metric"] else None
    if kind in _DHCP:
        # Hetzner says `type: dhcp` with the family beside it.
        version = 6 if kind == "dhcp" and subnet["ipv6"].flag() and not subnet["ipv4"].flag() else _DHCP[kind]
        link.dhcp[version] = Dhcp(metric=metric)
    elif kind in _STATIC:
        address = subnet["address"].interface(_mask(subnet), _usual_length(subnet["address"]))
        link.add(address)
        version = address.version
    elif kind != "manual":
        raise subnet["type"].fault(f"one of {', '.join((*_DHCP, *_STATIC, 'manual'))}")
    if subnet["gateway"]:
        network.default_route(link, subnet["gateway"].ip(), metric=metric)
    network.network_mtu(link, subnet["mtu"], version)
    network.each(subnet["routes"].items(), partial(_route, link=link, network=network))
    network.serve([node.ip() for node in subnet["dns_nameservers"].words()],
                  [node.text() for node in subnet["dns_search"].words()], link.name)


def _route(route: Node, link: Link, network: Network) -> None:
    network.note_others(route, _ROUTE | {"type"})
    destination = route["destination"] or route["network"]
    metric = route["metric"].number() if route["metric"] else None
    network.route(link, destination.network(_mask(route), _usual_length(destination)), route["gateway"].ip(),
                  metric=metric)


def _mask(entry: Node) -> Node:
    """The length of a network beside it, one way or the other."""
    return entry["prefix"] or entry["netmask"]


def _usual_length(address: Node) -> int:
    """What cloud-init takes for a prefix where none is said (cloudinit/net/network_state.py, _normalize_net_keys);
    it makes no default route of 0.0.0.0, which can be nothing else.
    """
    ip = address.text().partition("/")[0].strip()
    return 0 if ip in ("0.0.0.0", "::") else 64 if ":" in ip else 24


def _lone_route(entry: Node, network: Network) -> None:
    """A route of no interface: it goes where its gateway is a neighbour."""
    gateway = entry["gateway"].ip()
    link = next((link for link in network.links.values() if any(
        gateway in address.network for address in link.addresses)), None)
    if link is None:
        raise entry["gateway"].fault("a gateway in the network of one of the interfaces")
    _route(entry, link, network)


_READERS = {"physical": _physical, "bond": _bond, "bridge": _bridge, "vlan": _vlan, "nameserver": _nameserver,
            "route": _lone_route}
