"""`ipAddresses` in each of its shapes."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.addresses import Address, read_addresses


def read(tree: Any) -> tuple[dict[str, Address], list[str]]:
    addresses, complaints = read_addresses(tree, ("ipAddresses",))
    return addresses, [str(complaint) for complaint in complaints]


@pytest.mark.parametrize(("tree", "addresses"), [
    (None, {}), ({}, {}), ([], {}),
    ({"a": "192.0.2.1"}, {"a": Address("192.0.2.1")}),
    ({"a": " 192.0.2.1 "}, {"a": Address("192.0.2.1")}),
    ({"a": "192.0.2.1/24"}, {"a": Address("192.0.2.1", 24)}),
    ({"a": "2001:DB8:0:0::10/64"}, {"a": Address("2001:db8::10", 64)}),
    ({"a": {"address": "192.0.2.1", "prefix": 24, "gateway": "192.0.2.254"}},
     {"a": Address("192.0.2.1", 24, "192.0.2.254")}),
    ({"a": {"address": "192.0.2.1/24", "prefix": "24"}}, {"a": Address("192.0.2.1", 24)}),
    ({"a": {"ip": "192.0.2.1", "prefix-length": 32, "gateway": "10.0.0.1"}},  # on-link gateways are legal
     {"a": Address("192.0.2.1", 32, "10.0.0.1")}),
    ({"a": {"address": "fd00::1", "prefix": 0, "gateway": "fe80::1"}}, {"a": Address("fd00::1", 0, "fe80::1")}),
    # Not there yet: the name is known, the address will come.
    ({"a": None, "b": "", "c": {"address": ""}}, {}),
    ({"a": {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "pool"}}, {}),
    # An older release's lists.
    ([{"name": "a", "address": "192.0.2.1"}, {"name": "b", "ipPoolRef": {"name": "pool"}}],
     {"a": Address("192.0.2.1")}),
    ([{"name": "a", "ipAddress": "192.0.2.1", "prefix": 24}], {"a": Address("192.0.2.1", 24)}),
])
def test_read(tree: Any, addresses: dict[str, Address]) -> None:
    assert read(tree) == (addresses, [])


@pytest.mark.parametrize(("tree", "complaints"), [
    ("192.0.2.1", ["ipAddresses: '192.0.2.1'; a mapping of names to addresses"]),
    ({"a": "10.0.0.300"}, ["ipAddresses.a: '10.0.0.300' is no address; an IPv4 or IPv6 address"]),
    ({"a": "010.0.0.1"}, ["ipAddresses.a: '010.0.0.1' is no address"]),  # octal to some, decimal to others
    ({"a": "192.0.2.1/33"}, ["ipAddresses.a: '192.0.2.1/33' is no address"]),
    ({"a": "192.0.2.1/255.255.255.0"}, ["ipAddresses.a: '192.0.2.1/255.255.255.0' is no address"]),
    ({"a": "fe80::1%eth0"}, ["ipAddresses.a: 'fe80::1%eth0' is no address"]),
    ({"a": 3232235776}, ["ipAddresses.a: 3232235776 is no address"]),  # ipaddress would take it
    ({"a": True}, ["ipAddresses.a: true is no address"]),
    ({"a": ["192.0.2.1"]}, ["ipAddresses.a: a list of 1 is no address"]),
    ({"a": "0.0.0.0"}, ["ipAddresses.a: '0.0.0.0' is the unspecified address"]),
    ({"a": "ff02::1"}, ["ipAddresses.a: 'ff02::1' is a multicast address"]),
    ({"a": {"address": "192.0.2.1", "prefix": 33}}, ["ipAddresses.a.prefix: 33 is no prefix length of 192.0.2.1"]),
    ({"a": {"address": "192.0.2.1", "prefix": "x"}}, ["ipAddresses.a.prefix: 'x' is no prefix length"]),
    ({"a": {"address": "192.0.2.1", "prefix": True}}, ["ipAddresses.a.prefix: true is no prefix length"]),
    ({"a": {"address": "192.0.2.1/24", "prefix": 25}}, ["ipAddresses.a.prefix: 25, but the address says /24"]),
    ({"a": {"address": "192.0.2.1", "gateway": "fd00::1"}},
     ["ipAddresses.a.gateway: 'fd00::1', but the address is 192.0.2.1"]),
    ({"a": {"address": "192.0.2.1", "gateway": "up"}}, ["ipAddresses.a.gateway: 'up' is no address"]),
    ({"a": {"adress": "192.0.2.1"}}, ["ipAddresses.a.adress: unknown key 'adress'; did you mean 'address'?"]),
    (["192.0.2.1", {"address": "192.0.2.1"}],
     ["ipAddresses[0]: '192.0.2.1'; an entry with its 'name'", "ipAddresses[1]: a mapping with key address; an"]),
    ([{"name": "a", "address": "192.0.2.1"}, {"name": "a", "address": "192.0.2.2"}],
     ["ipAddresses[1].name: 'a' once more, as in entry 0; each name once"]),
    ([{"name": "a", "address": "x"}], ["ipAddresses[0].address: 'x' is no address"]),
])
def test_complaints(tree: Any, complaints: list[str]) -> None:
    found = read(tree)[1]
    assert len(found) == len(complaints)
    for one, start in zip(found, complaints, strict=True):
        assert one.startswith(start)
