"""The check of next hops: can the gateway be a neighbour on that link?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from homeport.core.checks.reading import IPAddress, IPInterface, complain, read_ip, read_network, text
from homeport.core.checks.view import Family, View
from homeport.core.complaint import Complaint

# Point to point: whatever is sent there arrives at the other end.
_UNNUMBERED = ("ip-tunnel", "ipsec", "xfrm", "tun", "loopback")


class _Link:
    """What is on one link, for one family; made once for however many routes through it."""

    def __init__(self, addresses: list[IPInterface], direct: Iterable[IPInterface]) -> None:
        self.own = {address.ip for address in addresses}
        self.networks = [address.network for address in addresses]
        self.broadcasts = {network.broadcast_address for network in self.networks
                           if network.version == 4 and network.prefixlen < 31}
        # NetworkManager makes any gateway a neighbour of an address without a network (/32, /128).
        self.any_is_neighbour = all(network.prefixlen == network.max_prefixlen for network in self.networks)
        self._starts: dict[int, set[int]] = {}
        for network in (*self.networks, *(interface.network for interface in direct)):
            self._starts.setdefault(network.max_prefixlen - network.prefixlen, set()).add(
                int(network.network_address) >> (network.max_prefixlen - network.prefixlen))

    def has(self, gateway: IPAddress) -> bool:
        return self.any_is_neighbour or any(int(gateway) >> bits in starts for bits, starts in self._starts.items())


def gateways(view: View) -> Iterator[Complaint]:
    """A next hop must be a neighbour: in the network of an address of the interface, or made one.

    Made one by a route to it through the same interface without a next hop. NetworkManager makes it one by
    itself, but for an address with a network it would then ask for the gateway on what is probably the wrong
    link.
    """
    direct = _direct_routes(view)
    links: dict[tuple[str, int], _Link] = {}
    for route in view.routes:
        gateway = read_ip(text(route.data.get("next-hop-address")))
        entry = view.kernel.get(text(route.data.get("next-hop-interface")))
        if gateway is None or gateway.is_unspecified or entry is None or not entry.up or entry.type in _UNNUMBERED:
            continue
        family, key = entry.family(gateway.version), (entry.name, gateway.version)
        if key not in links:
            links[key] = _Link([address for _, address in family.addresses], direct.get(key, ()))
        for found, wanted in _faults(gateway, links[key], family, entry.name):
            yield complain((*route.path, "next-hop-address"), found, wanted)


def _faults(gateway: IPAddress, link: _Link, family: Family, name: str) -> Iterator[tuple[str, str]]:
    if gateway in link.own:
        yield f"{gateway}, the address of {name} itself", "the address of the gateway"
    elif gateway.is_multicast or gateway in link.broadcasts:
        yield f"{gateway}, which is no machine's address", "the address of the gateway"
    elif link.own and not family.dynamic and not gateway.is_link_local and not link.has(gateway):
        networks = ", ".join(str(network) for network in link.networks[:3])
        yield (f"{gateway}, in no network of {name} ({networks})",
               f"a gateway in such a network, or a route to {gateway} through {name} without next-hop-address")


def _direct_routes(view: View) -> dict[tuple[str, int], list[IPInterface]]:
    """Networks on the link itself, by interface and version of IP."""
    found: dict[tuple[str, int], list[IPInterface]] = {}
    for route in view.routes:
        gateway = read_ip(text(route.data.get("next-hop-address")))
        network = read_network(route.data.get("destination"))
        entry = view.kernel.get(text(route.data.get("next-hop-interface")))
        if network is not None and entry is not None and (gateway is None or gateway.is_unspecified):
            found.setdefault((entry.name, network.version), []).append(network)
    return found
