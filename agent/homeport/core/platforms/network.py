"""A network as platforms describe it, gathered piece by piece: cards, what is made of them, routes, servers.

Knows what all descriptions have in common: cards are told by their MAC, several pieces of metadata may speak
of one card, and a card that the machine doesn't have stops nothing else.  Refuses to know any platform's
format, and how nmstate writes all this (`rendering.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from homeport.core.complaint import Complaint
from homeport.core.facts import Nic
from homeport.core.nicmatch import can_be_card, own_mac
from homeport.core.platforms.reading import Fault, IPAddress, IPInterface, Node
from homeport.core.showing import printable

LONGEST_NOTE = 300  # characters
Item = TypeVar("Item")


@dataclass(frozen=True)
class Situation:
    """What a platform's description is read for: the machine's `nics` (none: not known), the settings,
    the DNS `servers` that it has now, and the IPv6 `routers` that were advertised on cards, by MAC.
    """

    nics: tuple[Nic, ...] = ()
    policy_routing: bool = True
    servers: tuple[IPAddress, ...] = ()
    routers: Mapping[str, IPAddress] = field(default_factory=dict)

    @property
    def macs(self) -> list[str]:
        """The MACs of the machine's cards, in the order in which the kernel found them."""
        cards = sorted((nic for nic in self.nics if can_be_card(nic)), key=lambda nic: (nic.virtual, nic.index))
        return [own_mac(nic) for nic in cards if own_mac(nic)]


@dataclass
class Dhcp:
    """DHCP, for IPv6 with router advertisements. `dns` None: only if no servers are given."""

    dns: bool | None = None
    routes: bool = True
    metric: int | None = None


@dataclass
class Link:
    """One interface. `card` is the MAC of a card, "" for what is made or what only has a name.

    `match` finds a card where no MAC is given; `shape` holds nmstate's keys of this kind of interface;
    `parts` names the links it is made of, and `is_port` says that another one has its addresses.
    """

    name: str
    kind: str = "ethernet"
    card: str = ""
    match: dict[str, str] = field(default_factory=dict)
    mac: str = ""
    mtu: int | None = None
    addresses: dict[IPInterface, None] = field(default_factory=dict)  # in order, each once
    dhcp: dict[int, Dhcp] = field(default_factory=dict)
    shape: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    is_port: bool = False
    no_ipv6: bool = False

    def add(self, address: IPInterface) -> None:
        self.addresses.setdefault(address)


@dataclass(frozen=True)
class Route:
    """`gateway` None: the destination is on the link itself."""

    link: str
    destination: IPInterface
    gateway: IPAddress | None = None
    metric: int | None = None
    table: int | None = None


@dataclass(frozen=True)
class Rule:
    """A policy rule. `source` and `target` None: any; `main_without_default` skips default routes."""

    version: int
    priority: int
    table: int
    source: IPInterface | None = None
    target: IPInterface | None = None
    mark: int | None = None
    main_without_default: bool = False


class Network:
    """What was gathered; `faults` are pieces that could not be read, `notes` what was left out on purpose."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.links: dict[str, Link] = {}
        self._cards: dict[str, Link] = {}
        self._macs = frozenset(situation.macs)
        self.routes: dict[Route, None] = {}  # in order, each once
        self.rules: list[Rule] = []
        self.servers: dict[IPAddress, dict[str, None]] = {}  # in order; with the links that they are for, "" for all
        self.search: dict[str, None] = {}
        self.hostname = ""
        self.faults: list[Complaint] = []
        self.notes: dict[str, None] = {}
        self.absent: dict[str, None] = {}  # MACs
        self.without_router: dict[str, None] = {}  # MACs of cards whose IPv6 router nobody has told yet

    def each(self, items: Iterable[Item], do: Callable[[Item], object]) -> None:
        """`do` for each of `items`; one that is faulty does not stop the others."""
        for item in items:
            try:
                do(item)
            except Fault as fault:
                self.faults.append(fault.complaint)

    def card(self, mac: str, name: str = "", mtu: int | None = None) -> Link:
        """The card with this (normalised) MAC; each has one Link, however often it is spoken of."""
        link = self._cards.get(mac)
        if link is None:
            link = self._cards[mac] = self.add(Link(self._free(name or f"nic{len(self.links)}"), card=mac))
            if self.situation.nics and mac not in self._macs:
                self.absent[mac] = None
        link.mtu = mtu or link.mtu
        return link

    def primary(self, but: Container[str] = ()) -> Link:
        """The card that the machine was given first, none of `but`; for metadata that don't tell its MAC.

        Raises Fault if no card is known.
        """
        mac = next((mac for mac in self.situation.macs if mac not in but), "")
        if not mac:
            raise Fault("", "metadata without a MAC address", "a machine with a network card of its own")
        return self.card(mac)

    def add(self, link: Link) -> Link:
        """A link with a name of its own; raises Fault if there is one of that name."""
        if link.name in self.links:
            raise Fault("", f"a second interface '{link.name}'", "each name once")
        self.links[link.name] = link
        return link

    def route(self, link: Link, destination: IPInterface, gateway: IPAddress | None = None, *,
              metric: int | None = None, table: int | None = None) -> None:
        self.routes.setdefault(Route(link.name, destination, gateway, metric, table))

    def default_route(self, link: Link, gateway: IPAddress, *, metric: int | None = None,
                      table: int | None = None) -> None:
        self.route(link, anywhere(gateway.version), gateway, metric=metric, table=table)

    def serve(self, servers: Iterable[IPAddress], search: Iterable[str] = (), link: str = "") -> None:
        """DNS servers and search domains, each once, in order; those of a `link` go with it."""
        for server in servers:
            self.servers.setdefault(server, {})[link] = None
        self.search |= dict.fromkeys(search)

    def note(self, text: str) -> None:
        """A line for the journal. What stands in it of the metadata, keys say, makes no line or colour of its own."""
        self.notes.setdefault(printable(text, LONGEST_NOTE))

    def note_others(self, mapping: Node, known: Container[str]) -> None:
        """Say what of `mapping` is not followed. Raises Fault for what is no mapping."""
        for key, node in mapping.entries():
            if key not in known:
                self.note(f"{node.path} is not known here, and left out")

    def network_mtu(self, link: Link, given: Node, version: int) -> None:
        """The MTU of a network on `link`: IPv4's before the link's own, as cloud-init does; IPv6's for want of one."""
        mtu = given.mtu()
        if mtu is None:
            return
        if version == 4 or link.mtu is None:
            link.mtu = mtu
        elif mtu != link.mtu:
            self.note(f"{given.path}: {link.name} has an MTU of {link.mtu}, for both families; {mtu} is left out")

    def without_absent(self) -> dict[str, Link]:
        """The links that this machine can have: with a card that is here, or made of at least one of those."""
        left = {name: link for name, link in self.links.items() if link.card not in self.absent}
        while gone := [name for name, link in left.items() if link.parts and not any(
                part in left for part in link.parts)]:
            for name in gone:
                del left[name]
        return left

    def _free(self, name: str) -> str:
        if name not in self.links:
            return name
        return next(each for number in count(2) if (each := f"{name}-{number}") not in self.links)


def anywhere(version: int) -> IPInterface:
    """The destination of a default route."""
    from ipaddress import IPv4Interface, IPv6Interface

    return IPv4Interface("0.0.0.0/0") if version == 4 else IPv6Interface("::/0")


def host(ip: IPAddress) -> IPInterface:
    """One address as a network."""
    from ipaddress import ip_interface

    return ip_interface(f"{ip}/{ip.max_prefixlen}")

