"""Oracle Cloud: virtual machines have a card for each VNIC, bare metal has VLANs on a physical one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from homeport.core.platforms.network import Link, Network
from homeport.core.platforms.reading import Files, IPAddress, IPInterface, Node, tree
from homeport.core.platforms.shape import Platform, Service, Sign, Want, fixed
from homeport.core.platforms.vnics import Vnic, by_dhcp, configure

NAME = "opc/v2/vnics/"
MTU = 9000  # "Network interface MTU", docs.oracle.com: what every VNIC can
# Keys of one family: address or addresses, its subnet, the router.
FAMILIES = ((4, "privateIp", "subnetCidrBlock", "virtualRouterIp"),
            (6, "ipv6Addresses", "ipv6SubnetCidrBlock", "ipv6VirtualRouterIp"))


def build(files: Files, network: Network) -> None:
    entries = tree(files, NAME).some()
    # Only bare metal tells which physical card; `vlanTag` virtual machines have too, and it means nothing there.
    is_metal = any(isinstance(entry.value, dict) and entry["nicIndex"] for entry in entries)
    found: dict[int, _Read] = {}
    network.each(enumerate(entries), partial(_read, is_metal=is_metal, found=found))
    # A card that could not be read is none to build on: named, it would lose what it has.
    cards = {read.card: read.vnic.mac for read in reversed(found.values()) if not read.tag}
    vnics: list[Vnic | None] = [None] * len(entries)
    network.each(found.items(), partial(_place, cards=cards, vnics=vnics, network=network))
    configure(network, vnics)


@dataclass(frozen=True)
class _Read:
    """A VNIC as it was read; on bare metal with the number of its physical card, and its VLAN there (0: none)."""

    vnic: Vnic
    entry: Node
    card: int = 0
    tag: int = 0


def _read(place: tuple[int, Node], is_metal: bool, found: dict[int, _Read]) -> None:
    """Only the first has DHCP."""
    index, entry = place
    addresses: list[IPInterface] = []
    gateways: dict[int, IPAddress] = {}
    for version, key, subnet, router in FAMILIES:
        addresses += [_address(node, entry[subnet]) for node in entry[key].words()]
        if entry[router]:
            gateways[version] = entry[router].ip()
    mac = entry["macAddr"].mac()
    vnic = Vnic(mac, addresses, by_dhcp(addresses) if index == 0 else (), gateways, MTU)
    where = (entry["nicIndex"].number(0, 1023), entry["vlanTag"].number(0, 4094)) if is_metal else (0, 0)
    found[index] = _Read(vnic, entry, *where)


def _place(item: tuple[int, _Read], cards: dict[int, str], vnics: list[Vnic | None], network: Network) -> None:
    index, read = item
    vnics[index] = replace(read.vnic, link=_on_vlan(index, read, cards, network)) if read.tag else read.vnic


def _address(node: Node, subnet: Node) -> IPInterface:
    length = subnet.network().network.prefixlen if subnet else node.ip().max_prefixlen
    return Node(str(node.ip()), node.path).interface(Node(length, subnet.path))


def _on_vlan(index: int, read: _Read, cards: dict[int, str], network: Network) -> Link:
    """The VNIC's own MAC on the physical card, and its VLAN on that."""
    if read.card not in cards:
        raise read.entry["nicIndex"].fault("the number of a physical card, which a VNIC without vlanTag has")
    base, mac = network.card(cards[read.card]), read.vnic.mac
    shape = {"mac-vlan": {"base-iface": base.name, "mode": "vepa", "promiscuous": True}}
    below = network.add(Link(f"macvlan{index}", "mac-vlan", mac=mac, mtu=MTU, parts=[base.name], shape=shape,
                             is_port=True))
    return network.add(Link(f"{below.name}.{read.tag}", "vlan", mac=mac, mtu=MTU, parts=[below.name],
                            shape={"vlan": {"base-iface": below.name, "id": read.tag}}))


PLATFORM = Platform(
    name="oraclecloud", title="Oracle Cloud (OCI)", build=build, reconciles=True,
    signs=(Sign("chassis_asset_tag", ("OracleCloud.com",)),),
    ways=(Service("http://169.254.169.254", fixed(Want(NAME)), headers={"Authorization": "Bearer Oracle"}),),
    reads="`/opc/v2/vnics/`",
    configures="the primary VNIC by DHCP, others static; on bare metal VLANs on the physical cards; MTU 9000; "
               "policy routing of both families",
    leaves="secondary private addresses of a VNIC, which are not in the metadata; `vlanTag` of virtual machines",
)
