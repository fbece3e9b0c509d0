"""Arithmetic of address ranges: which addresses a pool has, and which of them is the next free one.

Pure. Addresses are numbers here, all of one family; 2^64 of them cost no more than two.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Span = tuple[int, int]  # first and last, both included
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_BITS = {4: 32, 6: 128}


@dataclass(frozen=True)
class Ranges:
    """A set of addresses of one family: disjoint spans, ascending, never touching each other."""

    version: int
    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, version: int, spans: Iterable[Span]) -> Ranges:
        """The set of all addresses in `spans`, in whatever order and overlap they come."""
        merged: list[Span] = []
        for first, last in sorted(spans):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(last, merged[-1][1])
            else:
                merged.append((first, last))
        return cls(version, tuple(merged))

    def without(self, other: Ranges) -> Ranges:
        """These addresses but for those of `other`."""
        left: list[Span] = []
        for first, last in self.spans:
            for gone_first, gone_last in other.spans:
                if gone_last < first or gone_first > last:
                    continue
                if gone_first > first:
                    left.append((first, gone_first - 1))
                first = gone_last + 1
            if first <= last:
                left.append((first, last))
        return Ranges(self.version, tuple(left))

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.spans)

    @property
    def size(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)

    def numbers(self) -> Iterator[int]:
        """All of them, lowest first; only for sets that are known to be small."""
        for first, last in self.spans:
            yield from range(first, last + 1)

    def first_free(self, taken: Callable[[Span], tuple[int, int]]) -> int | None:
        """The lowest address that is not taken, None if all are.

        `taken` tells for a span how many of its addresses are taken, and which is the highest of them (anything if
        none is). It is asked once for each span that is full or has no gaps, else some log2(taken) times.
        """
        for first, last in self.spans:
            count, highest = taken((first, last))
            if count == last - first + 1:
                continue
            low, high = first, first + count  # among so many there is a gap
            if not count or highest == high - 1:
                return high
            while low < high:
                middle = (low + high) // 2
                if taken((low, middle))[0] == middle - low + 1:
                    low = middle + 1
                else:
                    high = middle
            return low
        return None


def parse_span(text: str) -> tuple[int, Span]:
    """Family and span of `192.0.2.7`, `192.0.2.7-192.0.2.9` or `192.0.2.0/24` (all of it, hosts bits or not).

    Raises ValueError with what would be right.
    """
    try:
        if "-" in text:
            low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-"))
        elif "/" in text:
            network = ipaddress.ip_network(text.strip(), strict=False)
            low, high = network[0], network[-1]
        else:
            low = high = ipaddress.ip_address(text.strip())
    except ValueError:
        raise ValueError("an address, a range such as 192.0.2.10-192.0.2.20, or a CIDR") from None
    if "%" in text:
        raise ValueError("an address without a zone")
    if low.version != high.version:
        raise ValueError("a range within one address family")
    if int(low) > int(high):
        raise ValueError("a range from the lower to the higher address")
    return low.version, (int(low), int(high))


def subnet_of(version: int, number: int, prefix: int) -> Span:
    """The first and the last address of the subnet that `number` is in."""
    hosts = (1 << (_BITS[version] - prefix)) - 1
    return number & ~hosts, number | hosts


def reserved_in(version: int, subnet: Span) -> list[Span]:
    """What no machine of a subnet may have: network and broadcast; with IPv6 the routers' anycast address.

    A /31 or a /127 joins two machines and has neither (RFC 3021, RFC 6164), a /32 or /128 is a machine.
    """
    first, last = subnet
    if last - first < 2:
        return []
    return [(first, first), (last, last)] if version == 4 else [(first, first)]


def to_key(version: int, number: int) -> str:
    """An address as text that sorts as its number does: what the database orders by."""
    return f"{version}:{number:0{_BITS[version] // 4}x}"


def from_key(key: str) -> tuple[int, int]:
    """Family and number of a `to_key`."""
    version, _, digits = key.partition(":")
    return int(version), int(digits, 16)


def to_text(version: int, number: int) -> str:
    """An address as people write it."""
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


def parse_address(text: str) -> tuple[int, int]:
    """Family and number of one address. Raises ValueError with what would be right."""
    if "%" in text:
        raise ValueError("an address without a zone")
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        raise ValueError("an IPv4 or IPv6 address") from None
    return address.version, int(address)
