"""Which way a packet must go to prove the new configuration, and sockets that can go no other.

A target is reached through an interface of the desired state wherever the routing table has such a way at
all: another NIC's route of the same length (a DHCP lease with a better metric, say) must not lend its
traffic. Only a longer prefix, or the only route, through an interface that the document does not touch is
taken: that interface stays as it is, so it is part of what is proven.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from dataclasses import dataclass

from homeport.host.proof.kernel import Address, Network, Route, contains, family_of

_MAIN = 254


@dataclass(frozen=True)
class Way:
    """Through `interface` from `source`; both "" for this machine itself."""

    interface: str
    source: str
    index: int = 0


def find_way(ip: str, network: Network, mine: Collection[str], preferred: Collection[str] = ()) -> Way | None:
    """The way to `ip`, None if there is none.

    `mine` are the interfaces of the desired state, `preferred` its static addresses.
    """
    bare, _, scope = ip.partition("%")
    if bare.startswith("127.") or bare == "::1" or any(address.ip == bare for address in network.addresses):
        return Way("", "")
    if bare.lower().startswith("fe80:"):
        link = network.link(scope) or next((link for link in map(network.link, mine) if link), None)
        return Way(link.name, _source(network, link.name, bare, preferred), link.index) if link else None
    fitting = [route for route in network.routes if contains(route.destination, route.prefix, bare)]
    if not fitting:
        return None
    best = min(fitting, key=lambda route: (-route.prefix, network.name(route.index) not in mine,
                                           route.table != _MAIN, route.metric))
    name = network.name(best.index)
    return Way(name, best.source or _source(network, name, best.gateway or bare, preferred), best.index)


def default_routes(network: Network, names: Collection[str]) -> list[Route]:
    return [route for route in network.routes
            if route.default and route.gateway and network.name(route.index) in names]


def _source(network: Network, name: str, towards: str, preferred: Collection[str]) -> str:
    """The address to speak from: on the next hop's own subnet, of the desired state, not link-local."""
    family = family_of(towards)
    usable = [address for address in network.on(name)
              if address.preferred and family_of(address.ip) == family]
    if not usable:
        return ""
    return min(usable, key=lambda address: (not contains(address.ip, address.prefix, towards),
                                            address.ip not in preferred, _is_link_local(address))).ip


def _is_link_local(address: Address) -> bool:
    return address.ip.startswith(("fe80:", "169.254."))


def bind(file: socket.socket, way: Way) -> None:
    """Tie a socket to the way: to the interface, and to the address there."""
    if not way.interface:
        return
    file.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, way.interface.encode() + b"\0")
    if not way.source:
        return
    if file.family == socket.AF_INET6:
        file.bind((way.source, 0, 0, way.index if way.source.startswith("fe80:") else 0))
    else:
        file.bind((way.source, 0))


def endpoint(ip: str, port: int, way: Way) -> tuple[str, int] | tuple[str, int, int, int]:
    bare = ip.partition("%")[0]
    if family_of(bare) == socket.AF_INET6:
        return bare, port, 0, way.index if bare.lower().startswith("fe80:") else 0
    return bare, port
