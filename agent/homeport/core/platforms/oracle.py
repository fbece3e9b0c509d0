"""Oracle Cloud: virtual machines have a card for each VNIC, bare metal has VLANs on a physical one."""

from __future__ import annotations

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
    is_metal = entries[0]["nicIndex"].value is not None
    cards = {entry["nicIndex"].number(0, 1023): entry["macAddr"].mac() for entry in entries
             if is_metal and not entry["vlanTag"].number(0, 4094)}
    vnics: list[Vnic | None] = []
    network.each(enumerate(entries), partial(_vnic, cards=cards if is_metal else None, vnics=vnics, network=network))
    configure(network, vnics)


def _vnic(place: tuple[int, Node], cards: dict[int, str] | None, vnics: list[Vnic | None], network: Network) -> None:
    """Only the first has DHCP."""
    index, entry = place
    vnics.append(None)
    addresses: list[IPInterface] = []
    gateways: dict[int, IPAddress] = {}
    for version, key, subnet, router in FAMILIES:
        addresses += [_address(node, entry[subnet]) for node in entry[key].words()]
        if entry[router]:
            gateways[version] = entry[router].ip()
    mac = entry["macAddr"].mac()
    link = None if cards is None or not entry["vlanTag"].number() else _on_vlan(index, entry, mac, cards, network)
    vnics[-1] = Vnic(mac, addresses, by_dhcp(addresses) if index == 0 else (), gateways, MTU, link)


def _address(node: Node, subnet: Node) -> IPInterface:
    length = subnet.network().network.prefixlen if subnet else node.ip().max_prefixlen
    return Node(str(node.ip()), node.path).interface(Node(length, subnet.path))


def _on_vlan(index: int, entry: Node, mac: str, cards: dict[int, str], network: Network) -> Link:
    """The VNIC's own MAC on the physical card, and its VLAN on that."""
    card = cards.get(entry["nicIndex"].number())
    if card is None:
        raise entry["nicIndex"].fault("the number of a physical card, which a VNIC without vlanTag has")
    base, tag = network.card(card), entry["vlanTag"].number(1, 4094)
    shape = {"mac-vlan": {"base-iface": base.name, "mode": "vepa", "promiscuous": True}}
    below = network.add(Link(f"macvlan{index}", "mac-vlan", mac=mac, mtu=MTU, parts=[base.name], shape=shape,
                             is_port=True))
    return network.add(Link(f"{below.name}.{tag}", "vlan", mac=mac, mtu=MTU, parts=[below.name],
                            shape={"vlan": {"base-iface": below.name, "id": tag}}))


PLATFORM = Platform(
    name="oraclecloud", title="Oracle Cloud (OCI)", build=build, reconciles=True,
    signs=(Sign("chassis_asset_tag", ("OracleCloud.com",)),),
    ways=(Service("http://169.254.169.254", fixed(Want(NAME)), headers={"Authorization": "Bearer Oracle"}),),
    reads="`/opc/v2/vnics/`",
    configures="the primary VNIC by DHCP, others static; on bare metal VLANs on the physical cards; MTU 9000; "
               "policy routing of both families",
    leaves="secondary private addresses of a VNIC, which are not in the metadata; `vlanTag` of virtual machines",
)
