"""Range arithmetic: tables for what people write, properties for what must hold of any set."""

from __future__ import annotations

import ipaddress
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport_server.ranges import (
    Ranges,
    from_key,
    parse_address,
    parse_span,
    reserved_in,
    subnet_of,
    to_key,
    to_text,
)

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda pair: (min(pair), max(pair))), max_size=6)


def as_set(spans: list[tuple[int, int]]) -> set[int]:
    return {number for first, last in spans for number in range(first, last + 1)}


@settings(max_examples=200, deadline=None)
@given(SPANS, SPANS, st.sets(st.integers(0, 61)))
def test_sets(spans: list[tuple[int, int]], gone: list[tuple[int, int]], taken: set[int]) -> None:
    """Union, difference, size, membership and the free ones, against Python's sets."""
    ranges = Ranges.of(4, spans).without(Ranges.of(4, gone))
    model = as_set(spans) - as_set(gone)
    assert as_set(list(ranges.spans)) == model
    assert ranges.size == len(model)
    assert {number for number in range(62) if number in ranges} == model
    assert list(ranges.numbers()) == sorted(model)

    def of(span: tuple[int, int]) -> tuple[int, int]:
        found = taken & set(range(span[0], span[1] + 1))
        return len(found), max(found, default=-1)

    assert ranges.first_free(of) == min(model - taken, default=None)


@given(SPANS)
def test_spans_never_touch(spans: list[tuple[int, int]]) -> None:
    found = Ranges.of(6, spans).spans
    assert all(first <= last for first, last in found)
    assert all(one[1] + 1 < two[0] for one, two in itertools.pairwise(found))


def test_huge_sets_cost_nothing() -> None:
    network = Ranges.of(6, [parse_span("2001:db8::/32")[1]])
    assert network.size == 2**96
    first = int(ipaddress.ip_address("2001:db8::"))
    taken = {first, first + 1, first + 3}
    asked: list[tuple[int, int]] = []

    def of(span: tuple[int, int]) -> tuple[int, int]:
        asked.append(span)
        found = [number for number in taken if span[0] <= number <= span[1]]
        return len(found), max(found, default=-1)

    assert network.first_free(of) == first + 2
    assert len(asked) <= 3


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_keys_sort_as_numbers(one: int, other: int) -> None:
    assert (to_key(4, one) < to_key(4, other)) == (one < other)
    assert from_key(to_key(4, one)) == (4, one)
    assert parse_address(to_text(4, one)) == (4, one)


@pytest.mark.parametrize(("text", "first", "last"), [
    ("192.0.2.7", "192.0.2.7", "192.0.2.7"),
    ("192.0.2.7-192.0.2.9", "192.0.2.7", "192.0.2.9"),
    ("192.0.2.7 - 192.0.2.9", "192.0.2.7", "192.0.2.9"),
    ("192.0.2.0/30", "192.0.2.0", "192.0.2.3"),
    ("192.0.2.2/30", "192.0.2.0", "192.0.2.3"),  # host bits, as netip masks them
    ("2001:DB8::a-2001:db8::f", "2001:db8::a", "2001:db8::f"),
    ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
])
def test_span(text: str, first: str, last: str) -> None:
    version, span = parse_span(text)
    assert (to_text(version, span[0]), to_text(version, span[1])) == (first, last)


@pytest.mark.parametrize(("text", "wanted"), [
    ("", "an address, a range"),
    ("192.0.2", "an address, a range"),
    ("192.0.2.010", "an address, a range"),  # octal to some
    ("192.0.2.9-192.0.2.7", "from the lower to the higher"),
    ("192.0.2.9-2001:db8::1", "one address family"),
    ("1-2-3", "an address, a range"),
    ("192.0.2.0/33", "an address, a range"),
    ("192.0.2.0/255.255.255.x", "an address, a range"),
    ("fe80::1%eth0", "without a zone"),
])
def test_no_span(text: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        parse_span(text)


@pytest.mark.parametrize(("address", "prefix", "reserved"), [
    ("192.0.2.130", 25, ["192.0.2.128", "192.0.2.255"]),
    ("192.0.2.130", 30, ["192.0.2.128", "192.0.2.131"]),
    ("192.0.2.130", 31, []),  # RFC 3021: two machines, nothing else
    ("192.0.2.130", 32, []),
    ("2001:db8::5", 64, ["2001:db8::"]),  # the routers' anycast address; IPv6 has no broadcast
    ("2001:db8::5", 127, []),  # RFC 6164
    ("10.0.0.1", 0, ["0.0.0.0", "255.255.255.255"]),
])
def test_reserved(address: str, prefix: int, reserved: list[str]) -> None:
    version, number = parse_address(address)
    found = reserved_in(version, subnet_of(version, number, prefix))
    assert [to_text(version, first) for first, last in found if first == last] == reserved
