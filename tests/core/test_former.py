"""What a former assignment leaves, and what was never ours."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core import former
from homeport.core.compare import differences
from homeport.core.former import removing_rules, without_strangers


def rule(source: str, priority: int, table: int, **more: Any) -> dict[str, Any]:
    return {"family": "ipv4", "ip-from": source, "priority": priority, "route-table": table, **more}


EVERYBODY = {"family": "ipv4", "priority": 30350, "route-table": 254, "suppress-prefix-length": 0}


def with_rules(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"interfaces": [], "route-rules": {"config": list(rules)}}


def test_a_rule_that_is_not_wanted_any_more_is_named() -> None:
    former = with_rules(rule("10.0.1.10/32", 30200, 30200), rule("10.0.1.11/32", 30200, 30200), EVERYBODY)
    desired = with_rules(rule("10.0.1.10/32", 30200, 30200), EVERYBODY)
    assert removing_rules(desired, former)["route-rules"]["config"] == [
        rule("10.0.1.11/32", 30200, 30200, state="absent"), *desired["route-rules"]["config"]]


def test_the_same_rule_in_other_words_is_kept() -> None:
    former = with_rules({"ip-from": "10.0.1.10", "priority": "30200", "route-table": 0})
    desired = with_rules(rule("10.0.1.10/32", 30200, 254))
    assert removing_rules(desired, former) == desired


def test_nothing_before_and_nothing_now() -> None:
    assert removing_rules({"interfaces": []}, {}) == {"interfaces": []}
    assert removing_rules({}, with_rules(EVERYBODY))["route-rules"]["config"] == [{**EVERYBODY, "state": "absent"}]
    gone_already = with_rules({**EVERYBODY, "state": "absent"})
    assert removing_rules({}, gone_already) == {}


def nic(*addresses: str, name: str = "ens3", **more: Any) -> dict[str, Any]:
    listed = [{"ip": address, "prefix-length": 24, **more} for address in addresses]
    return {"name": name, "type": "ethernet", "state": "up",
            "ipv4": {"enabled": True, "dhcp": False, "address": listed}, "ipv6": {"enabled": True, "address": []}}


def route(destination: str, gateway: str = "10.0.1.1", table: int = 254, name: str = "ens3") -> dict[str, Any]:
    return {"destination": destination, "next-hop-interface": name, "next-hop-address": gateway, "table-id": table}


def state(*interfaces: dict[str, Any], routes: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"interfaces": list(interfaces), "routes": {"running": list(routes), "config": list(routes)}}


DESIRED = state(nic("10.0.1.10"), routes=(route("0.0.0.0/0"),))
FORMER = state(nic("10.0.1.10", "10.0.1.11"), routes=(route("0.0.0.0/0"), route("198.51.100.0/24")))


def found(shown: dict[str, Any], former: dict[str, Any] = FORMER) -> list[str]:
    return [str(each) for each in differences(DESIRED, without_strangers(shown, DESIRED, former), thorough=True)]


def test_what_somebody_else_added_is_no_reason_to_apply() -> None:
    """An address of keepalived, a route of a container network; both would be gone after an apply."""
    shown = state(nic("10.0.1.10", "10.0.1.99"), routes=(route("0.0.0.0/0"), route("10.42.0.0/16", "10.0.1.7")))
    assert found(shown) == []
    assert len(found(shown, {})) == 2  # on what was not ours before, our configuration replaces another


def test_what_the_former_assignment_left_is_one() -> None:
    shown = state(nic("10.0.1.10", "10.0.1.11"), routes=(route("0.0.0.0/0"), route("198.51.100.0/24")))
    assert len(found(shown)) == 2


def test_a_changed_gateway_is_still_our_route() -> None:
    shown = state(nic("10.0.1.10"), routes=(route("0.0.0.0/0", "10.0.1.254"),))
    assert len(found(shown)) >= 1


def test_leases_and_other_interfaces_pass_as_they_are() -> None:
    shown = state(nic("10.0.1.10"), nic("10.88.0.1", name="cni0"), routes=(route("10.88.0.0/16", "", name="cni0"),))
    lease = {"ip": "10.0.1.50", "prefix-length": 24, "valid-life-time": "9sec"}
    shown["interfaces"][0]["ipv4"]["address"].append(lease)
    assert without_strangers(shown, DESIRED, FORMER) == shown


def test_a_guest_that_is_plugged_into_our_bridge_is_no_reason_to_apply() -> None:
    """libvirt's tap, a container's veth; a port that the document had before is one."""
    def bridge(*ports: str) -> dict[str, Any]:
        return {"interfaces": [{"name": "br0", "type": "linux-bridge", "state": "up",
                                "bridge": {"port": [{"name": name} for name in ports]}}]}

    def left(*ports: str) -> bool:
        shown = without_strangers(bridge(*ports), bridge("enp1s0"), bridge("enp1s0", "enp2s0"))
        return bool(differences(bridge("enp1s0"), shown, thorough=True))

    assert not left("enp1s0", "vnet0")
    assert left("enp1s0", "enp2s0") and left("vnet0")
    assert differences(bridge("enp1s0"), bridge("enp1s0", "vnet0"), thorough=True)  # of nobody's assignment before


def test_odd_shapes_are_left_alone() -> None:
    shown = {"interfaces": [1, {"name": "ens3", "ipv4": None, "ipv6": {"address": 1}}], "routes": {"config": None}}
    assert without_strangers(shown, DESIRED, FORMER)["interfaces"] == [shown["interfaces"][1]]  # type: ignore[index]


BRIDGE = {"interfaces": [
    {"name": "br0", "type": "linux-bridge", "state": "up", "bridge": {"port": [{"name": "eth0"}, {"name": "eth1"}]}},
    {"name": "eth0", "type": "ethernet", "state": "up"}, {"name": "eth1", "type": "ethernet", "state": "up"}]}


def test_a_bridge_that_is_not_wanted_any_more_goes_and_frees_its_ports() -> None:
    flat = {"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True}}]}
    assert former.removing_interfaces(flat, BRIDGE)["interfaces"] == [
        {"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True}, "controller": ""},
        {"name": "br0", "type": "linux-bridge", "state": "down"}]


def test_a_port_that_changes_its_controller_is_not_freed() -> None:
    bond = {"interfaces": [
        {"name": "bond0", "type": "bond", "state": "up", "link-aggregation": {"port": ["eth0"]}},
        {"name": "eth0", "type": "ethernet", "state": "up"}]}
    result = former.removing_interfaces(bond, BRIDGE)["interfaces"]
    assert result[1] == {"name": "eth0", "type": "ethernet", "state": "up"}
    assert result[2]["name"] == "br0"


@pytest.mark.parametrize("desired", [BRIDGE, {"interfaces": [{"name": "br0", "state": "absent"}]}])
def test_what_the_document_speaks_of_is_its_own_business(desired: dict[str, Any]) -> None:
    assert former.removing_interfaces(desired, BRIDGE) == desired


def test_blackhole_that_is_not_wanted_any_more_is_named() -> None:
    hole = {"destination": "10.10.0.0/16", "route-type": "blackhole"}
    via = {"destination": "0.0.0.0/0", "next-hop-interface": "eth0", "next-hop-address": "192.0.2.1"}
    with_hole = {"routes": {"config": [hole, via]}}
    assert former.removing_blackholes({"routes": {"config": [via]}}, with_hole) == {
        "routes": {"config": [{**hole, "state": "absent"}, via]}}
    assert former.removing_blackholes({}, with_hole) == {"routes": {"config": [{**hole, "state": "absent"}]}}
    assert former.removing_blackholes(with_hole, with_hole) == with_hole


SHOWN = {"interfaces": [{
    "name": "eth0", "type": "ethernet", "mtu": 1500,
    "ipv4": {"enabled": True, "dhcp": True, "address": [
        {"ip": "192.0.2.7", "prefix-length": 24, "valid-life-time": "118sec", "preferred-life-time": "118sec"}]},
    "ipv6": {"enabled": True, "address": [{"ip": "fe80::1", "prefix-length": 64}]}}]}


def test_what_the_document_leaves_out_stays_as_it_is() -> None:
    """A document about the MTU alone must not take the lease away."""
    desired = {"interfaces": [{"name": "eth0", "mtu": 9000, "ipv6": {"enabled": False}}]}
    assert former.keeping_ip(desired, SHOWN, ("eth0",))["interfaces"] == [{
        "name": "eth0", "mtu": 9000, "ipv4": {"enabled": True, "dhcp": True, "address": []},
        "ipv6": {"enabled": False}}]
    assert former.keeping_ip(desired, SHOWN, ()) == desired
    desired["interfaces"][0]["ipv4"] = None  # as good as left out
    assert former.keeping_ip(desired, SHOWN, ("eth0",))["interfaces"][0]["ipv4"] == {
        "enabled": True, "dhcp": True, "address": []}


def test_a_port_keeps_no_address() -> None:
    port = {"name": "eth0", "type": "ethernet", "state": "up"}
    desired = {"interfaces": [port, {"name": "br0", "type": "linux-bridge", "state": "up",
                                     "bridge": {"port": [{"name": "eth0"}]}}]}
    assert former.keeping_ip(desired, SHOWN, ("eth0", "br0"))["interfaces"][0] == port


def test_blackhole_route_brings_the_loopback_with_its_addresses() -> None:
    lo_is = {"name": "lo", "ipv4": {"enabled": True, "address": [{"ip": "127.0.0.1", "prefix-length": 8}]}}
    shown = {"interfaces": [lo_is]}
    desired = {"interfaces": [], "routes": {"config": [{"destination": "10.0.0.0/8", "route-type": "blackhole"}]}}
    (lo,) = former.keeping_ip(desired, shown, ())["interfaces"]
    assert lo == {"name": "lo", "type": "loopback", "state": "up", "ipv4": {
        "enabled": True, "address": [{"ip": "127.0.0.1", "prefix-length": 8}]}}
