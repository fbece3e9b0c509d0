"""InClusterIPPool and GlobalInClusterIPPool: the addresses that machines are given one of.

As Cluster API's in-cluster IPAM provider reads them (its api/v1alpha2 and v1alpha1, webhooks and poolutil):
addresses, ranges and CIDRs of one subnet, less the excluded ones, the gateway, and what a subnet reserves.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from homeport.core.complaint import Complaint, Path
from homeport_server.manifests.documents import Document
from homeport_server.manifests.fields import Fields
from homeport_server.ranges import Ranges, Span, parse_address, parse_span, reserved_in, subnet_of, to_text

GROUP = "ipam.cluster.x-k8s.io"
NAMESPACED, GLOBAL = "InClusterIPPool", "GlobalInClusterIPPool"
KINDS = (NAMESPACED, GLOBAL)
_KEYS = ("addresses", "prefix", "gateway", "excludedAddresses", "allocateReservedIPAddresses",
         "addressReuseGracePeriodSeconds")
_OLD_KEYS = ("subnet", "start", "end")  # v1alpha1
_LONGEST_GRACE = 2**31 - 1  # seconds; the field is an int32


@dataclass(frozen=True)
class Pool:
    """A pool: `ranges` are the addresses that machines may have, nothing else is ever given out.

    `grace` is how many seconds a released address rests before another machine can have it.
    """

    key: str  # Kind/namespace/name, Kind/name for a global one
    ranges: Ranges
    prefix: int
    gateway: str | None = None
    grace: int = 0

    @property
    def subnet(self) -> Span:
        return subnet_of(self.ranges.version, self.ranges.spans[0][0], self.prefix)

    def on_link(self, ip: str) -> bool:
        """Whether an address is of the pool's subnet, so that prefix and gateway are its own, too."""
        version, number = parse_address(ip)
        return version == self.ranges.version and self.subnet[0] <= number <= self.subnet[1]

    def __str__(self) -> str:
        return self.key


def pool_key(kind: str, namespace: str, name: str) -> str:
    """What a reference from `namespace` to a pool means."""
    return f"{kind}/{name}" if kind == GLOBAL else f"{kind}/{namespace}/{name}"


def read_pool(document: Document, complain: Callable[[Complaint], None]) -> Pool | None:
    """The pool that a manifest describes; None if it cannot be used, and then there were complaints."""
    spec = Fields(document.tree.get("spec"), ("spec",), complain)
    if not spec.tree:
        spec.fault((), document.tree.get("spec"), "addresses and their prefix")
        return None
    spec.only(_KEYS + (_OLD_KEYS if "subnet" in spec or "start" in spec else ()))
    reading = _Reading(spec)
    addresses = reading.spans("addresses") or reading.old_spans()
    if not addresses:
        if not reading.faulty and not spec.tree.get("addresses"):
            spec.fault(("addresses",), spec.tree.get("addresses"), "at least one address, range or CIDR")
        return None
    excluded = reading.spans("excludedAddresses")
    prefix = reading.prefix()
    gateway = reading.gateway()
    grace = spec.number("addressReuseGracePeriodSeconds", 0, _LONGEST_GRACE) or 0
    with_reserved = spec.flag("allocateReservedIPAddresses")
    if prefix is None:
        return None
    subnet = subnet_of(reading.version, min(addresses)[0], prefix)
    reading.within(subnet, prefix)
    taken_out = excluded + [(number, number) for number in gateway]
    if not with_reserved:
        taken_out += reserved_in(reading.version, subnet)
    ranges = Ranges.of(reading.version, addresses).without(Ranges.of(reading.version, taken_out))
    if not ranges.size and not reading.faulty:
        spec.say(("addresses",), "no address is left when gateway, network, broadcast and excluded ones are out",
                 "more addresses")
    if reading.faulty:
        return None
    return Pool(pool_key(document.kind, document.namespace, document.name), ranges, prefix,
                to_text(reading.version, gateway[0]) if gateway else None, grace)


class _Reading:
    """One `spec` on its way to numbers. Its family is that of its first address."""

    def __init__(self, spec: Fields) -> None:
        self.spec = spec
        self.version = 0
        self.faulty = False
        self.old_prefix: int | None = None
        self.places: list[tuple[Path, Span]] = []

    def fault(self, where: Path, found: object, wanted: str) -> None:
        self.faulty = True
        self.spec.fault(where, found, wanted)

    def spans(self, key: str) -> list[Span]:
        found: list[Span] = []
        for index, text in enumerate(self.spec.items(key, "a list of addresses, ranges and CIDRs")):
            where = (key, index)
            try:
                version, span = parse_span(text if isinstance(text, str) else "")
            except ValueError as error:
                self.fault(where, text, str(error))
                continue
            if not self.one_family(where, text, version):
                continue
            found.append(span)
            if key == "addresses":
                self.places.append((where, span))
        return found

    def old_spans(self) -> list[Span]:
        """v1alpha1: `subnet`, or `start` and `end`, in place of `addresses`."""
        subnet = self.spec.text("subnet", "a CIDR")
        first, last = self.spec.text("start", "an address"), self.spec.text("end", "an address")
        if not (subnet or (first and last)):
            return []
        try:
            if subnet:
                network = ipaddress.ip_network(subnet, strict=False)
                self.old_prefix = network.prefixlen
                hosts = network[1 if network.num_addresses > 2 else 0], network[-1]
                first, last = first or str(hosts[0]), last or str(hosts[1])
            version, span = parse_span(f"{first}-{last}")
        except ValueError as error:
            self.fault(("subnet",) if subnet else ("start",), subnet or first, str(error))
            return []
        self.version = version
        return [span]

    def one_family(self, where: Path, text: object, version: int) -> bool:
        self.version = self.version or version
        if version != self.version:
            self.fault(where, text, f"IPv{self.version}, as the first of the addresses; a pool has one family")
        return version == self.version

    def prefix(self) -> int | None:
        if "prefix" not in self.spec and self.old_prefix is not None:
            return self.old_prefix
        prefix = self.spec.number("prefix", 0, 32 if self.version == 4 else 128, required=True)
        self.faulty |= prefix is None
        return prefix

    def gateway(self) -> list[int]:
        text = self.spec.text("gateway", "an address")
        if not text:
            return []
        try:
            version, number = parse_address(text)
        except ValueError as error:
            self.fault(("gateway",), text, str(error))
            return []
        return [number] if self.one_family(("gateway",), text, version) else []

    def within(self, subnet: Span, prefix: int) -> None:
        """All addresses are of one subnet: the prefix belongs to each of them."""
        for where, (first, last) in self.places:
            if first < subnet[0] or last > subnet[1]:
                self.faulty = True
                self.spec.say(
                    where, f"{to_text(self.version, first)} to {to_text(self.version, last)} is not all in "
                    f"{to_text(self.version, subnet[0])}/{prefix}",
                    "addresses of one subnet, that of the lowest address and 'prefix'")
