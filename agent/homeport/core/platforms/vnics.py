"""Virtual NICs of clouds with several addresses: DHCP, the addresses that DHCP doesn't give, the way back.

Knows the one scheme that EC2, Azure, Aliyun and OCI share (spec/sources-and-initramfs.md, 2.4): what comes
from an address of a NIC leaves through that NIC.  First its own networks (table 30200+i), then all that
the main table knows but default routes (rule 30350: pods, VPNs), then its own gateway (table 30400+i).
A rule straight to a default route would send traffic for pods to the gateway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.core.platforms.network import Dhcp, Link, Network, Rule, host
from homeport.core.platforms.reading import IPAddress, IPInterface, first_host

LOCAL, MAIN_WITHOUT_DEFAULT, DEFAULT = 30200, 30350, 30400
MAIN = 254
MOST = 100  # NICs: the tables of one more would be those of another purpose
METRIC = 10
METRIC_STEP = 100  # of DHCP's routes: the first NIC's counts most


@dataclass(frozen=True)
class Vnic:
    """One NIC: its addresses, the primary ones first; families on DHCP; gateways where metadata tell them; networks
    that it is on beside those of its addresses.
    """

    mac: str
    addresses: Sequence[IPInterface] = ()
    dhcp: tuple[int, ...] = (4,)
    gateways: Mapping[int, IPAddress] = field(default_factory=dict)
    mtu: int | None = None
    link: Link | None = None
    networks: Sequence[IPInterface] = ()

    def of_family(self, version: int) -> list[IPInterface]:
        return [address for address in self.addresses if address.version == version]


def by_dhcp(addresses: Sequence[IPInterface]) -> tuple[int, ...]:
    """The families that DHCP is to be asked for, of a NIC with these addresses: a NIC may have no IPv4."""
    return tuple(version for version in (4, 6) if any(each.version == version for each in addresses)) or (4,)


def configure(network: Network, vnics: Sequence[Vnic | None]) -> None:
    """All of them, in their order. One NIC with one address needs nothing but DHCP.

    None stands for one that could not be read: its number, and so its tables, are not another one's.
    """
    vnics = list(_each_once(vnics, network))
    if len(vnics) > MOST:
        network.note(f"only the first {MOST} of {len(vnics)} NICs are configured")
    several = len(vnics) > 1 or any(vnic is not None and len(vnic.of_family(4)) > 1 for vnic in vnics)
    for index, vnic in enumerate(vnics[:MOST]):
        if vnic is None:
            continue
        link = vnic.link or network.card(vnic.mac)
        link.mtu = vnic.mtu or link.mtu
        for version in vnic.dhcp:
            link.dhcp[version] = Dhcp(
                dns=index == 0, metric=METRIC_STEP * (index + 1) if several else None)
        for address in static_addresses(vnic, several):
            link.add(address)
        if several and network.situation.policy_routing:
            route_by_source(network, link, vnic, index)


def _each_once(vnics: Sequence[Vnic | None], network: Network) -> Iterator[Vnic | None]:
    """A NIC that is listed twice is one, with one number and its own tables."""
    seen: set[str] = set()
    for vnic in vnics:
        if vnic is None or vnic.mac not in seen:
            yield vnic
        else:
            network.note(f"the NIC with MAC {vnic.mac} is listed more than once; the first time counts")
        seen |= set() if vnic is None else {vnic.mac}


def static_addresses(vnic: Vnic, several: bool) -> Iterator[IPInterface]:
    """What DHCP doesn't bring. With several, the primary IPv4 address too: it stays if the lease is lost."""
    for version in (4, 6):
        addresses = vnic.of_family(version)
        beside_dhcp = addresses if version == 4 and several else addresses[1:]
        yield from beside_dhcp if version in vnic.dhcp else addresses


def route_by_source(network: Network, link: Link, vnic: Vnic, index: int) -> None:
    """The tables and rules of NIC `index`. An IPv6 router is the one that metadata tell, or that was advertised."""
    for version in (4, 6):
        addresses = vnic.of_family(version)
        if not addresses:
            continue
        gateway = vnic.gateways.get(version)
        if version == 6 and gateway is None:
            gateway = network.situation.routers.get(vnic.mac)
            if gateway is None:
                network.without_router[vnic.mac] = None
                continue
        gateway = gateway or first_host(addresses[0])
        if gateway is None:
            network.note(f"nothing says which router the NIC with MAC {vnic.mac} has for IPv{version}: what comes from "
                         "its addresses leaves by the main table")
            continue
        for each in (*addresses, *vnic.networks):
            if each.version == version and each.network.prefixlen < each.max_prefixlen:
                network.route(link, subnet(each), metric=METRIC, table=LOCAL + index)
        network.default_route(link, gateway, metric=METRIC, table=DEFAULT + index)
        for address in addresses:
            for base in (LOCAL, DEFAULT):
                network.rules.append(Rule(version, base + index, base + index, source=host(address.ip)))
        everybody = Rule(version, MAIN_WITHOUT_DEFAULT, MAIN, main_without_default=True)
        if everybody not in network.rules:
            network.rules.append(everybody)


def subnet(address: IPInterface) -> IPInterface:
    from ipaddress import ip_interface

    return ip_interface(str(address.network))
