"""Every place in a network state that names an interface."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.references import card_of_vf, rename_reference, rename_zone, rewrite_interface, rewrite_state


def rename(name: str) -> str:
    return {"eth1": "ens9"}.get(name, name)


# Each with eth1 where a reference stands, and with eth1 where none does.
INTERFACES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"controller": "eth1"}, {"controller": "ens9"}),
    ({"controller": ""}, {"controller": ""}),  # nmstate's way to leave a controller
    ({"copy-mac-from": "eth1"}, {"copy-mac-from": "ens9"}),
    ({"link-aggregation": {"mode": "eth1", "port": ["eth1", "eth10"], "options": {"primary": "eth1"}}},
     {"link-aggregation": {"mode": "eth1", "port": ["ens9", "eth10"], "options": {"primary": "ens9"}}}),
    ({"link-aggregation": {"ports": ["eth1"], "ports-config": [{"name": "eth1", "priority": 3}]}},
     {"link-aggregation": {"ports": ["ens9"], "ports-config": [{"name": "ens9", "priority": 3}]}}),
    ({"bond": {"port": ["eth1"], "options": {"active_slave": "eth1"}}},  # the alias of the same section
     {"bond": {"port": ["ens9"], "options": {"active_slave": "ens9"}}}),
    ({"bridge": {"port": [{"name": "eth1", "vlan": {"tag": 1}}], "options": {"group-addr": "eth1"}}},
     {"bridge": {"port": [{"name": "ens9", "vlan": {"tag": 1}}], "options": {"group-addr": "eth1"}}}),
    ({"bridge": {"ports": [{"name": "bond1", "link-aggregation": {"port": [{"name": "eth1"}]}}]}},  # OVS
     {"bridge": {"ports": [{"name": "bond1", "link-aggregation": {"port": [{"name": "ens9"}]}}]}}),
    ({"vrf": {"port": ["eth1"], "route-table-id": 3}}, {"vrf": {"port": ["ens9"], "route-table-id": 3}}),
    *(({section: {"base-iface": "eth1", "id": 1}}, {section: {"base-iface": "ens9", "id": 1}}) for section in (
        "vlan", "vxlan", "mac-vlan", "mac-vtap", "ipvlan", "macsec", "infiniband", "ip-tunnel")),
    ({"hsr": {"port1": "eth1", "port2": "eth2", "interlink": "eth1"}},
     {"hsr": {"port1": "ens9", "port2": "eth2", "interlink": "ens9"}}),
    ({"veth": {"peer": "eth1"}}, {"veth": {"peer": "ens9"}}),
    ({"patch": {"peer": "eth1"}}, {"patch": {"peer": "ens9"}}),
    ({"bridge": {"port": [{"name": "sriov:eth1:2"}]}}, {"bridge": {"port": [{"name": "sriov:ens9:2"}]}}),
    # its own name is not a reference, nor is text
    ({"name": "eth1", "description": "eth1", "profile-name": "eth1", "alt-names": [{"name": "eth1"}]},
     {"name": "eth1", "description": "eth1", "profile-name": "eth1", "alt-names": [{"name": "eth1"}]}),
    # shapes that are none
    ({"link-aggregation": ["eth1"], "bridge": "eth1", "vrf": {"port": "eth1"}, "vlan": {"base-iface": 3}},
     {"link-aggregation": ["eth1"], "bridge": "eth1", "vrf": {"port": "eth1"}, "vlan": {"base-iface": 3}}),
]

STATES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"routes": {"config": [{"next-hop-interface": "eth1"}, {"next-hop-interface": "eth1.1"}],
                 "running": [{"next-hop-interface": "eth1"}]}},
     {"routes": {"config": [{"next-hop-interface": "ens9"}, {"next-hop-interface": "eth1.1"}],
                 "running": [{"next-hop-interface": "eth1"}]}}),
    ({"route-rules": {"config": [{"iif": "eth1", "route-table": 3}]}},
     {"route-rules": {"config": [{"iif": "ens9", "route-table": 3}]}}),
    ({"dns-resolver": {"config": {"server": ["fe80::1%eth1", "fe80::1%eth10", "192.0.2.1"], "search": ["eth1"]}}},
     {"dns-resolver": {"config": {"server": ["fe80::1%ens9", "fe80::1%eth10", "192.0.2.1"], "search": ["eth1"]}}}),
    ({"ovn": {"bridge-mappings": [{"localnet": "eth1", "bridge": "eth1"}]}},
     {"ovn": {"bridge-mappings": [{"localnet": "eth1", "bridge": "ens9"}]}}),
    ({"hostname": {"config": "eth1"}, "interfaces": [{"name": "eth1"}]},
     {"hostname": {"config": "eth1"}, "interfaces": [{"name": "eth1"}]}),
    ({"routes": None, "route-rules": [], "dns-resolver": {"config": {"server": None}}, "ovn": 3},
     {"routes": None, "route-rules": [], "dns-resolver": {"config": {"server": None}}, "ovn": 3}),
]


@pytest.mark.parametrize(("before", "after"), INTERFACES)
def test_references_in_an_interface(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert rewrite_interface(before, rename) == after


@pytest.mark.parametrize(("before", "after"), STATES)
def test_references_elsewhere(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert rewrite_state(before, rename) == after


def test_the_document_itself_is_left_alone() -> None:
    before: dict[str, Any] = {"link-aggregation": {"port": ["eth1"]}}
    rewrite_interface(before, rename)
    assert before == {"link-aggregation": {"port": ["eth1"]}}


@pytest.mark.parametrize(("name", "card"), [
    ("sriov:eth1:0", "eth1"), ("sriov:a:b:12", "a:b"), ("sriov:eth1:x", ""), ("sriov:0", ""), ("eth1", "")])
def test_virtual_functions(name: str, card: str) -> None:
    assert card_of_vf(name) == card


def test_parts_of_names() -> None:
    assert rename_reference("sriov:eth1:0", rename) == "sriov:ens9:0"
    assert rename_zone("fe80::1%eth1", rename) == "fe80::1%ens9"
    assert rename_zone("eth1", rename) == "eth1"  # an address without a zone
