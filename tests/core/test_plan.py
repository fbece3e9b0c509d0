"""What a plan says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.assignment import Assignment
from homeport.core.complaint import Complaint
from homeport.core.plan import Plan, refuse_to_move
from homeport.errors import RootOnNetwork

ASSIGNMENT = Assignment("nmstate", {}, {}, "1")


def plan(desired: dict[str, Any] | None = None, **more: Any) -> Plan:
    return Plan(ASSIGNMENT, desired or {}, **more)


def test_in_force_needs_profiles_of_ours() -> None:
    """Settings that happen to be as desired, by the bootstrap's lease, are not kept by anybody."""
    assert plan().in_force
    assert not plan(foreign=("enp1s0",)).in_force
    assert not plan(changes=(Complaint("a", "b", "c"),)).in_force


def test_interfaces_are_those_that_shall_exist() -> None:
    desired = {"interfaces": [{"name": "a"}, {"name": "b", "state": "absent"}, {"name": "c", "state": "down"},
                              {"name": "d", "state": "ignore"}]}
    assert plan(desired).interfaces == ("a", "c")
    assert plan(desired).up == ("a",)


@pytest.mark.parametrize(("dns", "wanted"), [
    ({"config": {"server": ["192.0.2.1"]}}, True),
    ({"config": {"search": ["example.com"], "server": []}}, True),
    ({"config": {"server": [], "search": []}}, False),
    ({"config": {}}, False),
    ({}, False),
    (None, False),
])
def test_has_dns(dns: object, wanted: bool) -> None:
    assert plan({"dns-resolver": dns}).has_dns is wanted


def test_lines() -> None:
    assert plan(persisted=True).lines() == ["nothing to apply: the desired state is in force"]
    assert plan().lines()[0].endswith("but its keyfiles must be written")
    assert plan(changes=(Complaint("mtu", "1500", "9000"),), foreign=("enp1s0",)).lines() == [
        "change mtu: 1500; 9000", "new profile for enp1s0"]


@pytest.mark.parametrize(("desired", "needed"), [
    ({}, False),
    ({"routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-interface": "a"}]}}, False),
    ({"routes": {"config": [{"destination": "10.0.0.0/8", "route-type": "blackhole"}]}}, True),
    ({"routes": {"config": [{"destination": "10.0.0.0/8", "route-type": "blackhole", "state": "absent"}]}}, False),
    ({"route-rules": {"config": [{"priority": 30350, "route-table": 254}]}}, True),
])
def test_needs_loopback(desired: dict[str, Any], needed: bool) -> None:
    assert plan(desired).needs_loopback is needed


def test_configured_hostname_is_not_looked_for_before_it_is_on_disk() -> None:
    both = plan({"hostname": {"running": "a", "config": "a"}, "interfaces": []})
    assert both.hostname == "a"
    assert both.in_memory == {"hostname": {"running": "a"}, "interfaces": []}
    assert plan({"hostname": {"config": ""}}).in_memory == {}
    assert plan({"hostname": {"config": ""}}).hostname == ""
    assert plan({}).hostname is None


CHANGE = (Complaint("interfaces[0]", "this", "that"),)


@pytest.mark.parametrize(("desired", "more", "refused"), [
    ({"interfaces": [{"name": "enp1s0"}]}, {"changes": CHANGE}, True),
    ({"interfaces": [{"name": "enp1s0"}]}, {"foreign": ("enp1s0",)}, True),
    ({"interfaces": [{"name": "enp1s0", "state": "absent"}]}, {"changes": CHANGE}, True),
    ({"interfaces": [{"name": "enp2s0"}]}, {"changes": CHANGE, "retired": frozenset({"enp1s0"})}, True),
    ({"routes": {"config": [{"next-hop-interface": "enp1s0"}]}}, {"changes": CHANGE}, True),
    # In force already: nothing would move.
    ({"interfaces": [{"name": "enp1s0"}]}, {}, False),
    ({"interfaces": [{"name": "enp2s0"}], "routes": {"config": [{"next-hop-interface": "enp2s0"}]}},
     {"changes": CHANGE, "foreign": ("enp2s0",)}, False),
])
def test_what_the_root_stands_on_is_not_moved(desired: dict[str, Any], more: dict[str, Any], refused: bool) -> None:
    if not refused:
        refuse_to_move(plan(desired, **more), {"enp1s0", "bond0"})
        return
    with pytest.raises(RootOnNetwork, match="the root file system stands on enp1s0") as caught:
        refuse_to_move(plan(desired, **more), {"enp1s0", "bond0"})
    assert caught.value.status == 0
