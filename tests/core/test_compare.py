"""Is it in force? Documents with what `nmstatectl show` printed after each was applied.

The pairs in tests/data/nmstate/show are from nmstate 2.2.62 and NetworkManager 1.52.1, on veth interfaces; `leased`
had a DHCP server and a router, `down` had profiles of an earlier document to take away.
"""
# ruff: noqa: E501  (tables: their rows read better whole)

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.compare import differences
from homeport.core.compare.values import plain_network, same_value
from homeport.core.yamlsafe import read_yaml

SHOWN = Path(__file__).resolve().parents[1] / "data" / "nmstate" / "show"
PAIRS = sorted(file.stem for file in SHOWN.glob("*.yaml"))


def read(text: str) -> Any:
    return read_yaml(text).value


def pair(name: str) -> tuple[Any, Any]:
    return read((SHOWN / f"{name}.yaml").read_text()), json.loads((SHOWN / f"{name}.json").read_text())


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_what_was_applied_is_in_force(name: str, thorough: bool) -> None:
    assert list(map(str, differences(*pair(name), thorough=thorough))) == []


@pytest.mark.parametrize("name", PAIRS)
def test_no_other_document_is(name: str) -> None:
    desired, _ = pair(name)
    assert all(differences(desired, pair(other)[1]) for other in PAIRS if other != name)


def change(tree: Any, path: str, value: object) -> Any:
    """A copy of `tree` with `value` at `path` (keys and indexes with slashes between)."""
    tree = copy.deepcopy(tree)
    *above, last = path.split("/")
    place = tree
    for key in above:
        place = place[int(key) if isinstance(place, list) else key]
    if isinstance(place, list) and last == "+":
        place.append(value)
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return tree


@pytest.mark.parametrize(("name", "path", "value", "complaint", "words"), [
    ("static", "interfaces/0/ipv4/address/+", {"ip": "192.0.2.12", "prefix-length": 24},
     "interfaces[0].ipv4.address[2]", "not on the interface"),
    ("static", "interfaces/0/ipv4/address/0/prefix-length", 25, "interfaces[0].ipv4.address[0]", "192.0.2.10/24"),
    ("static", "interfaces/0/ipv6/address/0/ip", "2001:db8::b", "interfaces[0].ipv6.address[0]", "not on"),
    ("static", "interfaces/0/ipv6/enabled", False, "interfaces[0].ipv6.enabled", "true; false"),
    ("static", "interfaces/1/ipv4", {"enabled": True, "dhcp": True}, "interfaces[1].ipv4.enabled", "false; true"),
    ("static", "interfaces/0/ipv4/dhcp", "yes", "interfaces[0].ipv4.dhcp", "false; true"),
    ("static", "interfaces/0/mtu", 1500, "interfaces[0].mtu", "1400; 1500"),
    ("static", "interfaces/1/mac-address", "02:aa:bb:cc:dd:ef", "interfaces[1].mac-address", "02:AA:BB:CC:DD:EE"),
    ("static", "interfaces/1/lldp/enabled", False, "interfaces[1].lldp.enabled", "true; false"),
    ("static", "interfaces/0/type", "linux-bridge", "interfaces[0].type", "'veth'; 'linux-bridge'"),
    ("static", "interfaces/0/state", "ignored", "interfaces[0].name", ""),
    ("static", "interfaces/+", {"name": "eth9", "type": "ethernet"}, "interfaces[2]", "no interface eth9"),
    ("static", "interfaces/0/ethtool", {"feature": {"tx-checksum-sctp": False}},
     "interfaces[0].ethtool.feature.tx-checksum-sctp", "true; false"),
    ("static", "routes/config/0/metric", 151, "routes.config[0]", "metric 150"),
    # nmstate's own verification leaves the metric out, and the next hop of a route is shown as the nearest.
    ("static", "routes/config/0/next-hop-address", "192.0.2.3", "routes.config[0]", "via 192.0.2.1"),
    ("static", "routes/config/1/next-hop-interface", "eth2", "routes.config[1]", "no such route"),
    ("static", "routes/config/2/table-id", 101, "routes.config[2]", "no such route"),
    ("static", "routes/config/3/route-type", "prohibit", "routes.config[3]", "no such route"),
    ("static", "routes/config/+", {"state": "absent", "table-id": 100}, None, ""),
    ("static", "routes/config/2", {"state": "absent", "table-id": 100}, "routes.config[2]", "no such route"),
    ("static", "route-rules/config/0/priority", 1001, "route-rules.config[0]", "no such rule"),
    ("static", "route-rules/config/1/fwmark", 0x21, "route-rules.config[1]", "no such rule"),
    ("static", "route-rules/config/0", {"state": "absent", "route-table": 100}, "route-rules.config[0]", "is there"),
    ("static", "dns-resolver/config/server", ["2001:db8::53", "192.0.2.53"], "dns-resolver.config.server",
     "192.0.2.53, 2001:db8::53; 2001:db8::53, 192.0.2.53"),
    ("static", "dns-resolver/config/search", ["example.net"], "dns-resolver.config.search", "example.org"),
    ("static", "dns-resolver/config/options", ["rotate"], "dns-resolver.config.options", "none; rotate"),
    ("static", "hostname/config", "node2", "hostname.config", "node1"),
    ("bridge", "interfaces/0/bridge/options/stp/priority", 8192, "interfaces[0].bridge.options.stp.priority", "4096"),
    ("bridge", "interfaces/0/bridge/options/multicast-router", "auto", "interfaces[0].bridge.options.multicast-router",
     "'enabled'; 'auto'"),
    ("bridge", "interfaces/0/bridge/options/group-forward-mask", 16,
     "interfaces[0].bridge.options.group-forward-mask", "8; 16"),
    ("bridge", "interfaces/0/bridge/ports/0/stp-path-cost", 51, "interfaces[0].bridge.ports[0].stp-path-cost", "50"),
    ("bridge", "interfaces/0/bridge/ports", [{"name": "eth1"}], "interfaces[0].bridge.ports", "eth2 too"),
    ("bridge", "interfaces/0/bridge/ports/+", {"name": "va"}, "interfaces[0].bridge.ports[2]", "missing"),
    ("bridge", "interfaces/0/copy-mac-from", "eth2", "interfaces[0].copy-mac-from", ""),
    ("bridge", "interfaces/1/vxlan/id", 43, "interfaces[1].vxlan.id", "42; 43"),
    ("bridge", "interfaces/1/vxlan/base-iface", "eth1", "interfaces[1].vxlan.base-iface", "'br0'; 'eth1'"),
    ("bridge", "interfaces/1/vxlan/remote", "192.0.2.78", "interfaces[1].vxlan.remote", "192.0.2.77"),
    ("bridge", "interfaces/2/mac-vlan/mode", "vepa", "interfaces[2].mac-vlan.mode", "'bridge'; 'vepa'"),
    ("bridge", "interfaces/3/veth/peer", "vc", "interfaces[3].veth.peer", "'vb'; 'vc'"),
    ("bridge", "interfaces/4/state", "absent", "interfaces[4].state", None),
    ("bridge", "interfaces/2/state", "absent", "interfaces[2].state", "'up'; 'absent'"),
    ("bridge", "interfaces/3/controller", "br0", "interfaces[3].controller", "''; 'br0'"),
    ("dhcp", "interfaces/0/ipv4/auto-route-metric", 201, "interfaces[0].ipv4.auto-route-metric", "200; 201"),
    ("dhcp", "interfaces/0/ipv6/token", "::6", "interfaces[0].ipv6.token", "'::5'; '::6'"),
    ("dhcp", "interfaces/0/ipv6/addr-gen-mode", "stable-privacy", "interfaces[0].ipv6.addr-gen-mode", "eui64"),
    ("dhcp", "interfaces/0/ipv4/dhcp", False, "interfaces[0].ipv4.dhcp", "true; false"),
    ("leased", "dns-resolver/config/server", ["192.0.2.98"], "dns-resolver.config.server", "192.0.2.99, 192.0.2.53"),
    ("leased", "interfaces/0/ipv4/address/0/ip", "203.0.113.8", "interfaces[0].ipv4.address[0]", "not on"),
])
def test_what_is_not(name: str, path: str, value: object, complaint: str | None, words: str | None) -> None:
    desired, current = pair(name)
    found = differences(change(desired, path, value), current)
    if complaint is None or words is None or value == "ignored":
        # A state that says "leave it", an absent route that another desired one matches, hardware that stays.
        assert [c for c in found if c.path == complaint] == []
    else:
        assert [c.path for c in found] == [complaint]
        assert words in str(found[0])


@pytest.mark.parametrize(("name", "path", "value"), [
    # The same in other spellings, or left out: what is not said is not compared.
    ("static", "interfaces/0/ipv6/address/0/ip", "2001:0db8:0000::000a"),
    ("static", "interfaces/0/mtu", 1400),
    ("static", "interfaces/0/mtu", 0),
    ("static", "interfaces/0/state", "up"),
    ("static", "interfaces/0/type", "veth"),
    ("static", "interfaces/0/ipv4", {"enabled": "yes"}),
    ("static", "interfaces/0/profile-name", "something"),
    ("static", "interfaces/0/driver", "query-only"),
    ("static", "interfaces/1/mac-address", "02:AA:BB:cc:dd:ee"),
    ("static", "interfaces/1/controller", ""),
    ("static", "interfaces/0/ipv4/address/+", {"ip": "192.0.2.99", "prefix-length": 24, "valid-life-time": "5sec"}),
    ("static", "interfaces/0/ipv6/address/+", {"ip": "fe80::5", "prefix-length": 64}),
    ("static", "interfaces/0/ipv4/address/+", {"ip": "192.0.2.99", "prefix-length": 24, "protocol": 0x12}),
    ("static", "interfaces/0/802.1x", {"password": "never shown"}),
    ("static", "routes/config/0/table-id", 0),
    ("static", "routes/config/0/table-id", "0xfe"),
    ("static", "routes/config/0/metric", -1),
    ("static", "routes/config/1/metric", 1024),
    ("static", "routes/config/2/state", "ignore"),
    ("static", "routes/config/2/destination", "198.51.100.0/24"),
    ("static", "routes/config/0/quickack", False),
    ("static", "route-rules/config/0/priority", -1),
    ("static", "route-rules/config/0/ip-from", "192.0.2.10/32"),
    ("static", "route-rules/config/0/ip-to", ""),
    ("static", "route-rules/config/1/route-table", 0),
    ("static", "dns-resolver/config", {"search": ["example.org"]}),
    ("static", "dns-resolver", {"running": {"server": ["203.0.113.1"]}}),
    ("bridge", "interfaces/0/bridge/options/multicast-router", "Enabled".lower()),
    ("bridge", "interfaces/0/bridge/options/multicast-snooping", "off"),
    ("bridge", "interfaces/0/bridge/options/gc-timer", 5),
    ("bridge", "interfaces/0/bridge/allow-extra-ports", True),
    ("leased", "interfaces/0/ipv4/allow-extra-address", False),
    ("dhcp", "interfaces/0/ipv4/auto-route-table-id", "77"),
])
def test_what_still_is(name: str, path: str, value: object) -> None:
    desired, current = pair(name)
    assert list(map(str, differences(change(desired, path, value), current))) == []


@pytest.mark.parametrize(("name", "path", "value", "complaint", "words"), [
    ("static", "interfaces/0/ipv4/address", [{"ip": "192.0.2.10", "prefix-length": 24}],
     "interfaces[0].ipv4.address", "192.0.2.11/24 too"),
    ("static", "routes/config", [{"destination": "0.0.0.0/0", "next-hop-interface": "eth1"}],
     "routes.config", "too"),
    ("static", "interfaces/1/state", "down", "interfaces[1].state", "'up'; 'down'"),
])
def test_leftovers_are_the_planners_business(
        name: str, path: str, value: object, complaint: str, words: str) -> None:
    desired, current = pair(name)
    assert differences(change(desired, path, value), current) == []
    found = differences(change(desired, path, value), current, thorough=True)
    assert {c.path for c in found} == {complaint}
    assert words in str(found[0])


def test_an_address_that_may_be_extra_is_no_leftover() -> None:
    desired, current = pair("static")
    fewer = change(desired, "interfaces/0/ipv4/address", [{"ip": "192.0.2.10", "prefix-length": 24}])
    assert differences(change(fewer, "interfaces/0/ipv4/allow-extra-address", True), current, thorough=True) == []
    assert len(differences(change(fewer, "interfaces/0/ipv4/allow-extra-address", False), current)) == 1


BOND = """
interfaces:
- name: bond0
  type: bond
  state: up
  mac-address: 52:54:00:00:00:0A
  link-aggregation: {mode: active-backup, options: {miimon: 100, primary: eth1, fail_over_mac: active,
    arp_validate: none, all_slaves_active: dropped, arp_ip_target: ''}, port: [eth1, eth2],
    ports-config: [{name: eth1, priority: 5, queue-id: 0}, {name: eth2, priority: 0, queue-id: 0}]}
- {name: vlan5, type: vlan, state: up, vlan: {base-iface: bond0, id: 5, protocol: 802.1q, reorder-headers: true,
   registration-protocol: none, ingress-qos-map: [{from: 1, to: 2}]}}
- {name: vrf0, type: vrf, state: up, vrf: {port: [vlan5], route-table-id: 100}}
- {name: eth1, type: ethernet, state: up, mac-address: 52:54:00:00:00:0A, permanent-mac-address: 52:54:00:00:00:01,
   ethernet: {auto-negotiation: true, speed: 1000, duplex: full}}
- {name: eth2, type: ethernet, state: up, mac-address: 52:54:00:00:00:0A, permanent-mac-address: 52:54:00:00:00:02}
- {name: br0, type: ovs-bridge, state: up, bridge: {options: {stp: {enabled: false}}, port: [{name: br0}, {name: eth3,
   vlan: {mode: trunk, trunk-tags: [{id: 5}, {id-range: {min: 10, max: 12}}]}}]}}
- {name: br0, type: ovs-interface, state: up}
- {name: m0, type: macsec, state: up, macsec: {base-iface: eth2, encrypt: true, port: 0, validation: strict,
   send-sci: true, mka-cak: <_password_hid_by_nmstate>}}
routes:
  config:
  - {destination: 10.0.0.0/8, next-hop-interface: vlan5, next-hop-address: 192.0.2.1, table-id: 100}
ovs-db: {external_ids: {a: '5'}, other_config: {}}
"""


# As `show` prints them, from nmstate's sources: the kernel of the pairs has no bonding, VLAN, VRF or Open vSwitch.
@pytest.mark.parametrize(("desired", "complaint"), [
    ("{name: bond0, type: bond, bond: {mode: 1, options: {fail_over_mac: 1, miimon: '100'}, ports: [eth2, eth1]}}", ""),
    ("{name: bond0, type: bond, link-aggregation: {mode: 2, port: [eth1, eth2]}}", "interfaces[0].link-aggregation.mode"),
    ("{name: bond0, type: bond, link-aggregation: {port: [eth1]}}", "interfaces[0].link-aggregation.port"),
    ("{name: bond0, type: bond, link-aggregation: {ports-config: [{name: eth1, priority: '5'}]}}", ""),
    ("{name: bond0, type: bond, link-aggregation: {ports-config: [{name: eth2, priority: 1}]}}",
     "interfaces[0].link-aggregation.ports-config[0].priority"),
    # With fail_over_mac active the bond has its port's MAC, whatever was asked for.
    ("{name: bond0, type: bond, mac-address: 52:54:00:00:00:0b, link-aggregation: {options: {fail_over_mac: active}}}", ""),
    ("{name: bond0, type: bond, mac-address: 52:54:00:00:00:0b}", "interfaces[0].mac-address"),
    # The kernel rounds options; that is no reason to roll back.
    ("{name: bond0, type: bond, link-aggregation: {options: {miimon: 101}}}", ""),
    ("{name: vlan5, type: vlan, vlan: {base-iface: bond0, id: 0x5, ingress-qos-map: [{from: 1, to: 2}]}}", ""),
    ("{name: vlan5, type: vlan, vlan: {base-iface: bond1, id: 5}}", "interfaces[0].vlan.base-iface"),
    ("{name: vlan5, type: vlan, vlan: {base-iface: bond0, id: 6}}", "interfaces[0].vlan.id"),
    ("{name: vlan5, type: vlan, vlan: {base-iface: bond0, id: 5, protocol: 802.1ad}}", "interfaces[0].vlan.protocol"),
    ("{name: vlan5, type: vlan, state: down}", "interfaces[0].state"),
    ("{name: vrf0, type: vrf, mac-address: 52:54:00:00:00:0c, vrf: {ports: [vlan5], route-table-id: '100'}}", ""),
    ("{name: vrf0, type: vrf, vrf: {port: [], route-table-id: 100}}", "interfaces[0].vrf.port"),
    ("{name: vlan5, type: vlan, controller: vrf0}", ""),
    # By MAC: the permanent one, not what the bond gave it.
    ("{name: wan, type: ethernet, identifier: mac-address, mac-address: 52-54-00-00-00-01}", ""),
    ("{name: wan, type: ethernet, identifier: mac-address, mac-address: 52:54:00:00:00:09}", "interfaces[0]"),
    ("{name: bond0, type: bond, copy-mac-from: eth2, link-aggregation: {}}", "interfaces[0].copy-mac-from"),
    # Negotiated speeds are not promised.
    ("{name: eth1, type: ethernet, ethernet: {auto-negotiation: true, speed: 100, duplex: half}}", ""),
    ("{name: eth1, type: ethernet, ethernet: {auto-negotiation: 'no', speed: 1000}}",
     "interfaces[0].ethernet.auto-negotiation"),
    ("{name: br0, type: ovs-bridge, bridge: {port: [{name: eth3, vlan: {mode: trunk, trunk-tags: [{id-range: "
     "{min: '10', max: 12}}, {id: '5'}]}}, {name: br0}]}}", ""),
    ("{name: br0, type: ovs-bridge, bridge: {port: [{name: br0}, {name: eth3, vlan: {mode: trunk, trunk-tags: "
     "[{id: 6}]}}]}}", "interfaces[0].bridge.port[1].vlan.trunk-tags"),
    ("{name: br0, type: ovs-interface, state: up}", ""),
    ("{name: m0, type: macsec, macsec: {base-iface: eth2, encrypt: true, mka-cak: 50b71a8ef0bd5751ea76de6d6c98c03a}}", ""),
    ("{name: m0, type: macsec, macsec: {base-iface: eth2, validation: check}}", "interfaces[0].macsec.validation"),
])
def test_other_types(desired: str, complaint: str) -> None:
    found = differences(read(f"interfaces: [{desired}]"), read(BOND))
    assert sorted({c.path for c in found})[:1] == [complaint][:bool(complaint)], list(map(str, found))


def test_a_route_in_a_vrf_has_its_table() -> None:
    desired = "routes: {config: [{destination: 10.0.0.0/8, next-hop-interface: vlan5, next-hop-address: 192.0.2.1, vrf-name: %s}]}"
    assert differences(read(desired % "vrf0"), read(BOND)) == []
    assert [c.path for c in differences(read(desired % "vrf9"), read(BOND))] == ["routes.config[0]"]


def test_the_database_of_open_vswitch() -> None:
    assert differences(read("ovs-db: {external_ids: {a: 5}}"), read(BOND)) == []
    assert [c.path for c in differences(read("ovs-db: {external_ids: {a: 6}}"), read(BOND))] == ["ovs-db.external_ids.a"]


def test_servers_of_the_profile_count_while_the_link_is_down() -> None:
    """Without a carrier nothing resolves names yet; what the profiles hold is then what will."""
    desired = read("dns-resolver: {config: {server: [192.0.2.53]}}")
    assert differences(desired, read("dns-resolver: {running: {server: []}, config: {server: [192.0.2.53]}}")) == []
    assert differences(desired, read("dns-resolver: {running: {server: []}, config: {}}")) != []
    # Another server in NetworkManager's global configuration overrides all profiles, and shows in both.
    other = read("dns-resolver: {running: {server: [192.0.2.1]}, config: {server: [192.0.2.1]}}")
    assert differences(desired, other) != []


def test_clearing_dns() -> None:
    desired = read("dns-resolver: {config: {}}")
    assert differences(desired, read("dns-resolver: {running: {server: []}, config: {}}")) == []
    assert [c.path for c in differences(desired, read(
        "dns-resolver: {running: &all {server: [192.0.2.1], search: [a.example]}, config: *all}"))] == [
            "dns-resolver.config.server", "dns-resolver.config.search"]
    # Those of a DHCP lease are not ours to clear.
    assert differences(desired, read(
        "{dns-resolver: {running: {server: [192.0.2.1]}, config: {}}, interfaces: [{name: e, ipv4: {dhcp: true}}]}")) == []


@pytest.mark.parametrize(("key", "one", "other", "same"), [
    ("mtu", "1500", 1500, True),
    ("mtu", "0x10", 16, True),
    ("enabled", "yes", True, True),
    ("enabled", 0, False, True),
    ("enabled", "maybe", False, False),
    ("mode", "lacp", "802.3ad", True),
    ("multicast-querier-interval", 25500, 25501, True),
    ("mac-ageing-time", 300, 301, False),
    ("mode", 1, "active-backup", True),
    ("xmit_hash_policy", "1", "layer3+4", True),
    ("local", "2001:DB8::0001", "2001:db8::1", True),
    ("mac-address", "52-54-00-12-34-56", "52:54:00:12:34:56", True),
    ("base-iface", "eth0", "Eth0", False),
    ("primary", "1", "eth1", False),
])
def test_spellings(key: str, one: object, other: object, same: bool) -> None:
    assert same_value(key, one, other) is same
    assert same_value(key, other, one) is same


def test_networks() -> None:
    assert [plain_network(text) for text in ("10.1.2.3/8", "10.1.2.3", "2001:DB8::1/32", "", "odd")] == [
        "10.0.0.0/8", "10.1.2.3/32", "2001:db8::/32", "", "odd"]


def test_many_routes_cost_little() -> None:
    networks = [f"10.{i >> 8}.{i & 255}.0/24" for i in range(2000)]
    state = {
        "routes": {"config": [{"destination": n, "next-hop-interface": "e", "metric": 5} for n in networks]},
        "route-rules": {"config": [{"ip-from": n, "route-table": 5, "priority": 5} for n in networks]},
    }
    begin = time.process_time()
    assert differences(state, state, thorough=True) == []
    assert time.process_time() - begin < 5  # 0.5 s on a quiet machine; quadratic would be minutes


scalars = st.none() | st.booleans() | st.integers() | st.sampled_from(["up", "eth0", "192.0.2.1", "absent", "bond"])
keys = st.sampled_from([
    "interfaces", "routes", "route-rules", "dns-resolver", "config", "running", "server", "name", "type", "state",
    "ipv4", "address", "ip", "prefix-length", "enabled", "port", "bridge", "vlan", "vrf", "link-aggregation",
    "destination", "next-hop-interface", "hostname", "options", "trunk-tags", "id-range", "mtu", "mac-address"])
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=30)
states = st.dictionaries(keys, trees, max_size=5)


def test_mutants_are_survived(mutants: Callable[[int, int], Iterator[tuple[str, dict[str, Any]]]]) -> None:
    shown = pair("bridge")[1]
    for _, mutant in mutants(7, 1000):
        differences(mutant, shown, thorough=True)
        differences(shown, mutant)


@given(states, states)
def test_it_never_raises(desired: dict[str, Any], current: dict[str, Any]) -> None:
    for complaint in differences(desired, current, thorough=True):
        assert complaint.wanted or complaint.found
