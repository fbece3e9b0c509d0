"""Akamai, formerly Linode: DHCP and SLAAC on the first NIC, further addresses beside them."""

from __future__ import annotations

from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Files, Node, described
from homeport.core.platforms.shape import Platform, Service, Sign, Token, fixed

NAME = "v1/network"


def build(files: Files, network: Network) -> None:
    data = described(files, NAME, "ipv4", "ipv6")
    link = network.primary()
    link.dhcp = {4: Dhcp(), 6: Dhcp()}
    v4, v6 = data["ipv4"], data["ipv6"]
    more = [*v4["public"].items()[1:], *v4["private"].items(), *v4["shared"].items(),
            *v6["ranges"].items(), *v6["shared_ranges"].items()]
    network.each(more, lambda address: _add(address, link))


def _add(address: Node, link: Link) -> None:
    link.add(address.interface(default=32 if "." in address.text() else 128))


PLATFORM = Platform(
    name="akamai", title="Akamai (Linode)", build=build,
    signs=(Sign("manufacturer", ("Linode", "Akamai")),),
    ways=(Service("http://169.254.169.254", fixed(NAME), headers={"Accept": "application/json"},
                  token=Token("v1/token", {"Metadata-Token-Expiry-Seconds": "300"}, "Metadata-Token")),),
    reads="`/v1/network`",
    configures="the first NIC by DHCP and SLAAC; further public, private and shared addresses, IPv6 ranges",
    leaves="VLAN and VPC interfaces, whose MACs it does not tell",
)
