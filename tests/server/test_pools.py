"""Pools: which addresses a manifest means, and what is said of a wrong one."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.complaint import Complaint
from homeport_server.manifests.documents import Document
from homeport_server.manifests.pools import Pool, read_pool
from homeport_server.ranges import to_text


def read(spec: Any, kind: str = "InClusterIPPool") -> tuple[Pool | None, list[Complaint]]:
    complaints: list[Complaint] = []
    document = Document("f", kind, "ipam.cluster.x-k8s.io", "p", "ns", {"spec": spec})
    return read_pool(document, complaints.append), complaints


def good(**spec: Any) -> Pool:
    pool, complaints = read(spec)
    assert not complaints
    assert pool is not None
    return pool


def addresses(pool: Pool) -> list[str]:
    return [to_text(pool.ranges.version, number) for number in pool.ranges.numbers()]


@pytest.mark.parametrize(("spec", "found"), [
    ({"addresses": ["192.0.2.10-192.0.2.12"], "prefix": 24}, ["192.0.2.10", "192.0.2.11", "192.0.2.12"]),
    # a whole subnet, less network, broadcast and gateway
    ({"addresses": ["192.0.2.0/29"], "prefix": 29, "gateway": "192.0.2.1"}, [f"192.0.2.{n}" for n in range(2, 7)]),
    # the subnet's network address, though the range is inside a larger prefix
    ({"addresses": ["192.0.2.0-192.0.2.2"], "prefix": 24}, ["192.0.2.1", "192.0.2.2"]),
    # .0 in the middle of a /23 is an address like another
    ({"addresses": ["192.0.2.255-192.0.3.1"], "prefix": 23}, ["192.0.2.255", "192.0.3.0", "192.0.3.1"]),
    ({"addresses": ["192.0.2.4/30", "192.0.2.9"], "prefix": 24,
      "excludedAddresses": ["192.0.2.5", "192.0.2.7-192.0.2.8"]},
     ["192.0.2.4", "192.0.2.6", "192.0.2.9"]),
    ({"addresses": ["192.0.2.0/30"], "prefix": 30, "allocateReservedIPAddresses": True},
     ["192.0.2.0", "192.0.2.1", "192.0.2.2", "192.0.2.3"]),
    # but never the gateway
    ({"addresses": ["192.0.2.0/31"], "prefix": 31, "allocateReservedIPAddresses": True, "gateway": "192.0.2.0"},
     ["192.0.2.1"]),
    ({"addresses": ["2001:db8::-2001:db8::3"], "prefix": 64, "gateway": "2001:db8::1"}, ["2001:db8::2", "2001:db8::3"]),
    # v1alpha1
    ({"subnet": "192.0.2.0/29", "gateway": "192.0.2.1"}, [f"192.0.2.{n}" for n in range(2, 7)]),
    ({"subnet": "192.0.2.0/24", "start": "192.0.2.8", "end": "192.0.2.9"}, ["192.0.2.8", "192.0.2.9"]),
    ({"start": "192.0.2.8", "end": "192.0.2.9", "prefix": 24}, ["192.0.2.8", "192.0.2.9"]),
])
def test_addresses(spec: dict[str, Any], found: list[str]) -> None:
    assert addresses(good(**spec)) == found


@pytest.mark.parametrize(("spec", "path", "words"), [
    (None, "spec", "addresses and their prefix"),
    ({"prefix": 24}, "spec.addresses", "at least one"),
    ({"addresses": [], "prefix": 24}, "spec.addresses", "at least one"),
    ({"addresses": "192.0.2.1", "prefix": 24}, "spec.addresses", "a list"),
    ({"addresses": ["192.0.2.300"], "prefix": 24}, "spec.addresses[0]", "an address, a range"),
    ({"addresses": [192], "prefix": 24}, "spec.addresses[0]", "an address, a range"),
    ({"addresses": ["192.0.2.9-192.0.2.1"], "prefix": 24}, "spec.addresses[0]", "lower to the higher"),
    ({"addresses": ["192.0.2.1", "2001:db8::1"], "prefix": 24}, "spec.addresses[1]", "one family"),
    ({"addresses": ["192.0.2.1", "198.51.100.1"], "prefix": 24}, "spec.addresses[1]", "one subnet"),
    ({"addresses": ["192.0.2.1"]}, "spec.prefix", "0 to 32"),
    ({"addresses": ["192.0.2.1"], "prefix": "24"}, "spec.prefix", "0 to 32"),
    ({"addresses": ["192.0.2.1"], "prefix": True}, "spec.prefix", "0 to 32"),  # a bool is an int to Python
    ({"addresses": ["192.0.2.1"], "prefix": 64}, "spec.prefix", "0 to 32"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "gateway": "nowhere"}, "spec.gateway", "IPv4 or IPv6"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "gateway": "2001:db8::1"}, "spec.gateway", "IPv4"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "excludedAddresses": ["2001:db8::1"]},
     "spec.excludedAddresses[0]", "IPv4"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "gateway": "192.0.2.1"}, "spec.addresses", "more addresses"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "excludedAddress": []},
     "spec.excludedAddress", "excludedAddresses"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "allocateReservedIPAddresses": "yes"},
     "spec.allocateReservedIPAddresses", "true or false"),
    ({"addresses": ["192.0.2.1"], "prefix": 24, "addressReuseGracePeriodSeconds": -1},
     "spec.addressReuseGracePeriodSeconds", "0 to"),
    ({"subnet": "192.0.2.0/40"}, "spec.subnet", ""),
])
def test_complaints(spec: Any, path: str, words: str) -> None:
    _pool, complaints = read(spec)
    assert [complaint.path for complaint in complaints] == [path]
    assert words in str(complaints[0])


def test_all_complaints_at_once() -> None:
    _pool, complaints = read({"addresses": ["x", "192.0.2.1", "y"], "prefix": 99, "gateway": "z", "nonsense": 1})
    assert [complaint.path for complaint in complaints] == [
        "spec.nonsense", "spec.addresses[0]", "spec.addresses[2]", "spec.prefix", "spec.gateway"]


def test_a_global_pool_has_no_namespace() -> None:
    pool, _complaints = read({"addresses": ["192.0.2.1"], "prefix": 24}, "GlobalInClusterIPPool")
    assert pool is not None
    assert pool.key == "GlobalInClusterIPPool/p"
    assert good(addresses=["192.0.2.1"], prefix=24).key == "InClusterIPPool/ns/p"


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_never_what_must_not_be(data: st.DataObject) -> None:
    """Whatever the ranges: all of the subnet, none of network, broadcast, gateway, excluded."""
    prefix = data.draw(st.integers(20, 30))
    network = ipaddress.ip_network(f"10.1.0.0/{prefix}")
    number = st.integers(0, min(network.num_addresses, 300) - 1).map(lambda offset: network[offset])
    spans = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    gateway, excluded = data.draw(number), data.draw(st.lists(number, max_size=5))
    pool, complaints = read({
        "addresses": data.draw(st.lists(spans, min_size=1, max_size=4)), "prefix": prefix, "gateway": str(gateway),
        "excludedAddresses": [str(address) for address in excluded]})
    if pool is None:
        assert [complaint.path for complaint in complaints] == ["spec.addresses"]
        return
    found = {ipaddress.ip_address(text) for text in addresses(pool)}
    assert found <= set(network.hosts())
    assert not found & {gateway, *excluded, network.network_address, network.broadcast_address}
