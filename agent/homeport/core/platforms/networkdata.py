"""OpenStack's network_data.json: links, networks on them, services (spec/sources-and-initramfs.md, 5.3).

Also what KubeVirt, IBM Cloud classic, Power VS and CloudStack put on their drives.
"""

from __future__ import annotations

from functools import partial

from homeport.core.platforms import options
from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Files, IPAddress, Node, described
from homeport.core.platforms.shape import Drive, Want, fixed

NAME = "openstack/latest/network_data.json"
WANTS = fixed(NAME)
LABELS = ("config-2", "CONFIG-2")
DRIVE = Drive(LABELS, WANTS)
SERVED = fixed(Want(NAME))

_TOP = {"links", "networks", "services"}
# `id` of a network, `network_id` and `vif_id` are OpenStack's own names for things.
_LINK = {"id", "name", "type", "mtu", "ethernet_mac_address", "vif_id"}
_VLAN = _LINK | {"vlan_link", "vlan_id", "vlan_mac_address"}
_NETWORK = {"id", "network_id", "link", "type", "ip_address", "netmask", "gateway", "routes", "dns_nameservers",
            "dns_search", "services", "mtu", "metric"}
_ROUTE = {"network", "netmask", "gateway", "metric", "services"}

# Type of a network -> version, and whether its addresses are given.
STATIC = {"ipv4": 4, "ipv6": 6}
DYNAMIC = {"ipv4_dhcp": 4, "ipv6_dhcp": 6, "ipv6_slaac": 6, "ipv6_dhcpv6-stateless": 6, "ipv6_dhcpv6-stateful": 6}


def build(files: Files, network: Network) -> None:
    read(described(files, NAME, "links", "networks"), network)


def read(data: Node, network: Network) -> None:
    """Everything in it. A network on a link that isn't described is a fault."""
    network.note_others(data, _TOP)
    links: dict[str, Link] = {}
    # What stands on others comes after them, whatever the order in the file.
    for kind, read_one in (("", _card), ("bond", _bond), ("vlan", _vlan)):
        network.each([link for link in data["links"].items() if _made_as(link) == kind],
                     partial(read_one, links=links, network=network))
    network.each(data["networks"].items(), partial(_network, links=links, network=network))
    network.serve(_servers(data["services"], network))


def _made_as(link: Node) -> str:
    """How the link is made; "" for a card, which has one of many types, and for what is no link at all."""
    kind = link["type"].value if isinstance(link.value, dict) else ""
    return kind if kind in ("bond", "vlan") else ""


def _card(link: Node, links: dict[str, Link], network: Network) -> None:
    network.note_others(link, _LINK)
    mac = link["ethernet_mac_address"].mac()
    links[link["id"].text()] = network.card(mac, _name(link), link["mtu"].mtu())


def _bond(link: Node, links: dict[str, Link], network: Network) -> None:
    ports = [_find(node, links) for node in link["bond_links"].items()]
    given = [(key, node) for key, node in link.entries() if key.startswith("bond_")]
    network.note_others(link, _LINK | {key for key, _ in given})
    made = network.add(Link(
        _name(link) or f"bond{sum(each.kind == 'bond' for each in links.values())}", "bond",
        mac=_mac(link["ethernet_mac_address"]), mtu=link["mtu"].mtu(), parts=[port.name for port in ports],
        shape={"link-aggregation": options.bond(given, [port.name for port in ports], network)}))
    for port in ports:
        port.is_port = True
    links[link["id"].text()] = made


def _vlan(link: Node, links: dict[str, Link], network: Network) -> None:
    network.note_others(link, _VLAN)
    base, number = _find(link["vlan_link"], links), link["vlan_id"].number(0, 4094)
    links[link["id"].text()] = network.add(Link(
        _name(link) or f"{base.name}.{number}", "vlan", mac=_mac(link["vlan_mac_address"]), mtu=link["mtu"].mtu(),
        parts=[base.name], shape={"vlan": {"base-iface": base.name, "id": number}}))


def _network(item: Node, links: dict[str, Link], network: Network) -> None:
    network.note_others(item, _NETWORK)
    link, kind = _find(item["link"], links), item["type"].text()
    metric = item["metric"].number() if item["metric"] else None
    if kind in STATIC:
        address = item["ip_address"].interface(item["netmask"])
        link.add(address)
        if item["gateway"]:
            network.default_route(link, item["gateway"].ip(), metric=metric)
    elif kind in DYNAMIC:
        link.dhcp[DYNAMIC[kind]] = Dhcp(metric=metric)
    else:
        raise item["type"].fault(f"one of {', '.join((*STATIC, *DYNAMIC))}")
    network.each(item["routes"].items(), partial(_route, link=link, network=network))
    network.network_mtu(link, item["mtu"], {**STATIC, **DYNAMIC}[kind])
    network.serve([node.ip() for node in item["dns_nameservers"].words()],
                  [node.text() for node in item["dns_search"].words()], link.name)
    network.serve(_servers(item["services"], network), link=link.name)


def _route(route: Node, link: Link, network: Network) -> None:
    network.note_others(route, _ROUTE)
    metric = route["metric"].number() if route["metric"] else None
    network.route(link, route["network"].network(route["netmask"]), route["gateway"].ip(), metric=metric)
    network.serve(_servers(route["services"], network), link=link.name)


def _servers(services: Node, network: Network) -> list[IPAddress]:
    found: list[IPAddress] = []
    for service in services.items():
        if service["type"].value == "dns":
            found.append(service["address"].ip())
        else:
            network.note(f"{service.path}: only a service of type dns is of use here; left out")
    return found


def _find(node: Node, links: dict[str, Link]) -> Link:
    found = links.get(node.text())
    if found is None:
        raise node.fault("the id of a link that is described in links")
    return found


def _name(link: Node) -> str:
    return link["name"].text("")


def _mac(node: Node) -> str:
    return node.mac() if node else ""
