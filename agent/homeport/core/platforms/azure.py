"""Microsoft Azure: the instance metadata service tells all NICs in one answer."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, IPInterface, Node, tree
from homeport.core.platforms.shape import Platform, Service, Sign, Want, fixed
from homeport.core.platforms.vnics import Vnic, by_dhcp, configure

NAME = "metadata/instance/network"
WANTS = fixed(Want(NAME, query="api-version=2021-02-01&format=json"))


def build(files: Files, network: Network) -> None:
    vnics: list[Vnic] = []
    network.each(tree(files, NAME)["interface"].items(), partial(_vnic, vnics=vnics))
    configure(network, vnics)


def _vnic(entry: Node, vnics: list[Vnic]) -> None:
    """With accelerated networking a virtual function has the same MAC; which is meant is the resolver's to know."""
    addresses = _addresses(entry["ipv4"], 32) + _addresses(entry["ipv6"], 128)
    vnics.append(Vnic(entry["macAddress"].mac(), addresses, by_dhcp(addresses)))


def _addresses(family: Node, default: int) -> list[IPInterface]:
    prefix = next((subnet["prefix"] for subnet in family["subnet"].items()), None)
    return [address["privateIpAddress"].interface(prefix, default) for address in family["ipAddress"].items()]


PLATFORM = Platform(
    name="azure", title="Microsoft Azure", build=build, reconciles=True,
    signs=(Sign("chassis_asset_tag", ("7783-7084-3265-9085-8269-3286-77",)),),
    ways=(Service("http://169.254.169.254", WANTS, headers={"Metadata": "true"}),),
    reads="`/metadata/instance/network`, version 2021-02-01",
    configures="every NIC by DHCP, IPv6 where it has some; secondary addresses of both families; policy routing (IPv4)",
    leaves="virtual functions of accelerated networking; IPv6 policy routing",
)
