"""Which cards a document means, and every name rewritten."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from homeport.core.facts import Nic
from homeport.core.nics import Resolved, resolve

A, B, C = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:0c"


def card(name: str, own_mac: str, pci: str = "", **more: Any) -> Nic:
    return replace(Nic(name, mac=own_mac, permanent_mac=own_mac, addr_assign_type=0, pci=pci,
                       driver="virtio_net", carrier=True), **more)


def veth(name: str, mac: str, assigned: int = 3) -> Nic:
    return Nic(name, mac=mac, addr_assign_type=assigned, kind="veth", virtual=True, carrier=True)


ETH0 = card("eth0", A, "0000:00:03.0")
ETH1 = card("eth1", B, "0000:00:04.0")
LO = Nic("lo", kind="loopback", virtual=True)
NICS = (LO, ETH0, ETH1)


def by_mac(name: str, mac: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "ethernet", "identifier": "mac-address", "mac-address": mac, **more}


def plain(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "ethernet", **more}


def interfaces(*entries: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {"interfaces": list(entries), **sections}


def names_of(resolved: Resolved) -> list[str]:
    return [entry["name"] for entry in resolved.config["interfaces"]]


def good(config: dict[str, Any], nics: tuple[Nic, ...] = NICS) -> Resolved:
    before = copy.deepcopy(config)
    resolved = resolve(config, nics)
    assert (resolved.complaints, resolved.missing) == ((), ())
    assert config == before
    return resolved


# -- one card -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", [
    {"identifier": "mac-address", "mac-address": B},
    {"identifier": "mac-address", "mac-address": B.upper()},
    {"identifier": "mac-address", "mac-address": B.replace(":", "-")},
    {"identifier": "mac-address", "mac-address": B.replace(":", "")},
    {"identifier": "pci-address", "pci-address": "0000:00:04.0"},
    {"identifier": "pci-address", "pci-address": "00:04.0"},
    {"match": {"mac": B}},
    {"match": {"mac": [C, B]}},
    {"match": {"mac-address": B.upper()}},
    {"match": {"pci": "pci-0000:00:04.0"}},
    {"match": {"path": "0000:00:04.*"}},
    {"match": {"driver": "virtio*", "pci": "00:04.0"}},
    {"match": {"name": "eth1"}},
    {"match": {"driver": "virtio_net"}, "identifier": "mac-address", "mac-address": B},  # both must fit
])
def test_ways_to_tell_a_card(how: dict[str, Any]) -> None:
    resolved = good(interfaces({"name": "wan", "type": "ethernet", "mtu": 1400, **how}))
    # Nothing is left for nmstate to look up.
    assert resolved.config == interfaces({"name": "eth1", "type": "ethernet", "mtu": 1400})
    assert resolved.names == {"wan": "eth1"}
    assert resolved.nics["eth1"].permanent_mac == B


def test_a_mac_address_without_identifier_is_a_wish_not_a_card() -> None:
    config = interfaces(plain("eth1", **{"mac-address": C}))
    assert good(config).config == config
    told_by_pci = {"name": "wan", "identifier": "pci-address", "pci-address": "00:04.0", "mac-address": C}
    assert good(interfaces(told_by_pci)).config == interfaces({"name": "eth1", "mac-address": C})


def test_a_type_need_not_be_given() -> None:
    assert names_of(good(interfaces({"name": "wan", "identifier": "mac-address", "mac-address": A}))) == ["eth0"]


@pytest.mark.parametrize(("nics", "name"), [
    # ports of a bond: their current MAC is the bond's, and so is the bond's own
    ((card("p1", A, mac=A), card("p2", B, mac=A, addr_assign_type=3),
      Nic("bond0", mac=A, kind="bond", virtual=True, addr_assign_type=2)), "p1"),
    # bridge, VLAN and macvlan with the card's MAC are no cards
    ((card("p1", A), *(Nic(kind, mac=A, kind=kind, virtual=True, addr_assign_type=2)
                       for kind in ("bridge", "vlan", "macvlan", "dummy"))), "p1"),
    # no permanent MAC: the current one, if somebody set it
    ((veth("host0", A),), "host0"),
    ((Nic("p1", mac=A, addr_assign_type=None),), "p1"),
    # a card before a veth that has its MAC
    ((veth("veth7", A), card("p1", A)), "p1"),
    # Hyper-V: a VF has its synthetic card's MAC, and is driven by it
    ((card("eth0", A, driver="hv_netvsc"), card("enP1p0s2", A, driver="mlx5_core")), "eth0"),
    ((card("eth0", A), card("enP1p0s2", A, driver="mlx5_core", kind="failover-port")), "eth0"),
    # a docking station shows the built-in card's MAC
    ((card("eno1", A), card("enx0", A, usb=True)), "eno1"),
    ((card("enx0", A, usb=True),), "enx0"),
])
def test_who_has_a_mac(nics: tuple[Nic, ...], name: str) -> None:
    assert names_of(good(interfaces(by_mac("wan", A)), nics)) == [name]
    assert names_of(good(interfaces(by_mac("wan", A)), nics[::-1])) == [name]


@pytest.mark.parametrize(("nics", "why"), [
    ((ETH0,), "no network card has it"),
    ((card("p1", B, mac=A),), f"p1 has that MAC, but its permanent MAC is {B}"),
    ((veth("host0", A, assigned=1),), "host0 has that MAC, but made up"),
    ((Nic("bond0", mac=A, kind="bond", virtual=True),), "bond0 has that MAC, but it is virtual (bond)"),
])
def test_who_has_not(nics: tuple[Nic, ...], why: str) -> None:
    nics = tuple(nic for nic in nics if nic is not ETH0)
    resolved = resolve(interfaces(by_mac("wan", A)), nics)
    complaint, = resolved.complaints
    assert complaint.path == "interfaces[0].mac-address"
    assert "is not on this machine" in complaint.found
    assert why in complaint.found or not nics
    assert resolved.missing == (f"wan (MAC {A})",)


def test_a_complaint_is_the_same_in_any_order_of_cards() -> None:
    nics = (card("p2", C, mac=A), card("p1", B, mac=A))
    config = interfaces(by_mac("wan", A))
    assert resolve(config, nics) == resolve(config, nics[::-1])


def test_two_cards_with_one_mac_are_both_named() -> None:
    twins = (card("eth0", A, "0000:00:03.0"), card("eth1", A, "0000:00:04.0", carrier=False, driver="ixgbe"))
    resolved = resolve(interfaces(by_mac("wan", A)), twins)
    complaint, = resolved.complaints
    for part in ("eth0 (MAC 52:54:00:00:00:0a, PCI 0000:00:03.0, virtio_net, carrier)",
                 "eth1 (MAC 52:54:00:00:00:0a, PCI 0000:00:04.0, ixgbe, no carrier)"):
        assert part in complaint.found
    assert "pci-address" in complaint.wanted
    assert resolved.missing == ()  # waiting would not help
    told = {"name": "wan", "identifier": "mac-address", "mac-address": A, "match": {"driver": "ixgbe"}}
    assert names_of(good(interfaces(told), twins)) == ["eth1"]


@pytest.mark.parametrize(("how", "path", "found"), [
    ({"identifier": "mac-address"}, "mac-address", "nothing"),
    ({"identifier": "mac-address", "mac-address": "52:54"}, "mac-address", "'52:54'"),
    ({"identifier": "mac-address", "mac-address": 5254}, "mac-address", "5254"),
    ({"identifier": "pci-address", "pci-address": "eth0"}, "pci-address", "'eth0'"),
    ({"match": {}}, "match", "an empty mapping"),
    ({"match": "eth0"}, "match", "'eth0'"),
    ({"match": {"drivr": "e1000"}}, "match", "'drivr'"),
    ({"match": {"driver": []}}, "match.driver", "an empty list"),
    ({"match": {"driver": [{}]}}, "match.driver", "an empty mapping"),
])
def test_what_tells_no_card(how: dict[str, Any], path: str, found: str) -> None:
    complaint, = resolve(interfaces({"name": "eth0", **how}), NICS).complaints
    assert (complaint.path, complaint.found) == (f"interfaces[0].{path}", found)
    assert complaint.wanted


def test_what_is_made_is_not_found() -> None:
    complaint, = resolve(interfaces({"name": "b", "type": "bond", "match": {"mac": A}}), NICS).complaints
    assert complaint.path == "interfaces[0].match"
    assert "a bond is made" in complaint.wanted


# -- names ----------------------------------------------------------------------------------------------------

def test_a_document_may_swap_names() -> None:
    config = interfaces(
        by_mac("eth0", B), by_mac("eth1", A),
        {"name": "eth1.10", "type": "vlan", "vlan": {"base-iface": "eth1", "id": 10}},
        {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth0"}, {"name": "eth1.10"}]}},
        routes={"config": [{"destination": "0.0.0.0/0", "next-hop-interface": "eth1"}]},
        **{"dns-resolver": {"config": {"server": ["fe80::1%eth0"]}}})
    assert good(config).config == interfaces(
        plain("eth1"), plain("eth0"),
        {"name": "eth1.10", "type": "vlan", "vlan": {"base-iface": "eth0", "id": 10}},
        {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth1"}, {"name": "eth1.10"}]}},
        routes={"config": [{"destination": "0.0.0.0/0", "next-hop-interface": "eth0"}]},
        **{"dns-resolver": {"config": {"server": ["fe80::1%eth1"]}}})


def test_names_are_never_parts_of_names() -> None:
    nics = (*NICS, card("eth10", C))
    bond = {"name": "eth1bond", "type": "bond", "link-aggregation": {"port": ["eth1", "eth10"]}}
    resolved = good(interfaces(by_mac("eth1", A), plain("eth10"), bond), nics)
    assert resolved.config["interfaces"][2] == {
        "name": "eth1bond", "type": "bond", "link-aggregation": {"port": ["eth0", "eth10"]}}


@pytest.mark.parametrize("alias", [{"profile-name": "uplink"}, {"alt-names": [{"name": "uplink"}]}])
def test_profile_and_alternative_names_are_names_too(alias: dict[str, Any]) -> None:
    route = {"destination": "::/0", "next-hop-interface": "uplink"}
    resolved = good(interfaces(by_mac("wan", A, **alias), routes={"config": [route]}))
    assert resolved.config["routes"]["config"] == [{"destination": "::/0", "next-hop-interface": "eth0"}]
    assert resolved.config["interfaces"] == [plain("eth0", **alias)]


def test_an_alias_never_hides_a_card_nor_another_entry() -> None:
    bridge = {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth1"}, {"name": "lan"}]}}
    nics = (*NICS, card("eth2", C))
    resolved = good(interfaces(plain("eth0", **{"profile-name": "eth1"}), by_mac("lan", C), bridge,
                               plain("eth1", **{"profile-name": "lan"})), nics)
    assert resolved.config["interfaces"][2]["bridge"] == {"port": [{"name": "eth1"}, {"name": "eth2"}]}


def test_a_profile_name_is_not_the_card_of_that_name() -> None:
    bond = {"name": "bond0", "type": "bond", "link-aggregation": {"port": ["eth1"]}}
    assert good(interfaces(plain("eth0", **{"profile-name": "eth1"}), bond)).config["interfaces"][1] == bond


def test_a_card_that_is_mentioned_by_the_kernel_s_name_stays() -> None:
    route = {"next-hop-interface": "eth0", "destination": "::/0"}
    config = interfaces(by_mac("wan", A), routes={"config": [route]})
    assert good(config).config["routes"]["config"] == [route]


@pytest.mark.parametrize("entries", [
    [by_mac("wan", A), by_mac("lan", A)],
    [by_mac("wan", A), plain("eth0")],
    [{"name": "wan", "match": {"pci": "00:03.0"}}, by_mac("eth0", A)],
])
def test_two_entries_that_are_one_card(entries: list[dict[str, Any]]) -> None:
    complaint, = resolve(interfaces(*entries), NICS).complaints
    assert complaint.path == "interfaces[1].name"
    assert "is eth0 (MAC 52:54:00:00:00:0a" in complaint.found
    assert "as interfaces[0] is" in complaint.found


def test_a_card_that_is_not_found_is_nobody_s_double() -> None:
    resolved = resolve(interfaces(by_mac("eth1", C), by_mac("lan", B)), NICS)
    assert [complaint.path for complaint in resolved.complaints] == ["interfaces[0].mac-address"]


def test_an_ovs_bridge_and_its_own_port_may_share_a_name() -> None:
    good(interfaces({"name": "ovs0", "type": "ovs-bridge", "bridge": {"port": [{"name": "ovs0"}, {"name": "eth0"}]}},
                    {"name": "ovs0", "type": "ovs-interface"}))


def test_long_names_are_shortened_alike_everywhere_and_said() -> None:
    vlan = {"name": "enp94s0f0np0.2507", "type": "vlan", "vlan": {"base-iface": "eth0", "id": 2507}}
    bridge = {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "enp94s0f0np0.2507"}]}}
    route = {"destination": "::/0", "next-hop-interface": "enp94s0f0np0.2507"}
    resolved = good(interfaces(plain("eth0"), vlan, bridge, routes={"config": [route]}))
    assert names_of(resolved) == ["eth0", "enp94-0bca.2507", "br0"]
    assert resolved.config["interfaces"][2]["bridge"] == {"port": [{"name": "enp94-0bca.2507"}]}
    assert resolved.config["routes"]["config"][0]["next-hop-interface"] == "enp94-0bca.2507"
    assert resolved.names["enp94s0f0np0.2507"] == "enp94-0bca.2507"
    note, = resolved.notes
    assert "interfaces[1].name" in note and "enp94-0bca.2507" in note


@pytest.mark.parametrize("entry", [
    {"name": "a-very-long-patch-port", "type": "ovs-interface", "patch": {"peer": "b"}},
    {"name": "a-very-long-tunnel-name", "type": "ipsec", "libreswan": {"right": "192.0.2.1"}},
    {"name": "mlx5_ib0_port1.8013", "type": "infiniband", "infiniband": {"base-iface": "ib0", "pkey": "0x8013"}},
    {"name": "sriov:enp94s0f0np0:3", "type": "ethernet"},
])
def test_names_that_are_not_the_kernel_s_may_be_long(entry: dict[str, Any]) -> None:
    nics = (*NICS, Nic("ib0", kind="infiniband"), card("enp94s0f0np0", C))
    assert names_of(good(interfaces(entry), nics)) == [entry["name"]]


def test_a_card_cannot_have_a_long_name() -> None:
    resolved = resolve(interfaces(plain("a-very-long-card-name")), NICS)
    complaint, = resolved.complaints
    assert "at most 15" in complaint.wanted
    assert resolved.missing == ()  # it will never come


def test_both_ends_of_a_veth_are_shortened() -> None:
    pair = {"name": "a-very-long-end-one", "type": "veth", "veth": {"peer": "a-very-long-end-two"}}
    resolved = good(interfaces(pair))
    one, = resolved.config["interfaces"]
    assert one["name"] != one["veth"]["peer"]
    assert len(one["name"]) == len(one["veth"]["peer"]) == 15


def test_a_virtual_function_goes_with_its_card() -> None:
    bridge = {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "sriov:eth0:1"}]}}
    resolved = good(interfaces(by_mac("eth0", B), plain("sriov:eth0:1"), bridge))
    assert names_of(resolved) == ["eth1", "sriov:eth1:1", "br0"]
    assert resolved.config["interfaces"][2]["bridge"] == {"port": [{"name": "sriov:eth1:1"}]}


# -- what is not there ----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("config", "missing"), [
    (interfaces(plain("eth9")), ["eth9"]),
    (interfaces({"name": "eth9"}), ["eth9"]),
    (interfaces(plain("eth9", state="up")), ["eth9"]),
    (interfaces(by_mac("wan", C)), [f"wan (MAC {C})"]),
    (interfaces({"name": "lan", "match": {"driver": "ixgbe"}}), ["lan (driver ixgbe)"]),
    # ports and bases that no entry declares
    (interfaces({"name": "bond0", "type": "bond", "link-aggregation": {"port": ["eth0", "eth9"]}}), ["eth9"]),
    (interfaces({"name": "v", "type": "vlan", "vlan": {"base-iface": "eth9", "id": 1}}), ["eth9"]),
    (interfaces({"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "eth9"}]}}), ["eth9"]),
    (interfaces(routes={"config": [{"destination": "::/0", "next-hop-interface": "eth9"}]}), ["eth9"]),
    # once, however often it is mentioned
    (interfaces(plain("eth9"), {"name": "v", "type": "vlan", "vlan": {"base-iface": "eth9", "id": 1}},
                routes={"config": [{"destination": "::/0", "next-hop-interface": "eth9"}]}), ["eth9"]),
    # not needed, or not a card
    (interfaces(plain("eth9", state="absent")), []),
    (interfaces({"name": "bond0", "type": "bond", "state": "absent", "link-aggregation": {"port": ["eth9"]}}), []),
    (interfaces({"name": "bond0", "type": "bond"}, {"name": "d", "type": "dummy"}, {"name": "lo", "type": "loopback"}),
     []),
    (interfaces({"name": "v0", "type": "veth", "veth": {"peer": "v1"}}), []),
    (interfaces({"name": "v0", "type": "ethernet", "veth": {"peer": "v1"}},
                {"name": "br0", "type": "linux-bridge", "bridge": {"port": [{"name": "v1"}]}}), []),
    (interfaces({"name": "ovs", "type": "ovs-bridge", "bridge": {"port": [{"name": "internal"}]}}), []),
    (interfaces(routes={"config": [{"state": "absent", "next-hop-interface": "eth9"}]}), []),
    (interfaces(plain("eth0"), routes={"config": [{"destination": "::/0", "next-hop-interface": "eth0"}]}), []),
])
def test_what_may_still_appear(config: dict[str, Any], missing: list[str]) -> None:
    resolved = resolve(config, NICS)
    assert list(resolved.missing) == missing
    assert bool(resolved.complaints) is bool(missing)
    for complaint in resolved.complaints:
        assert "eth0 (MAC 52:54:00:00:00:0a, PCI 0000:00:03.0, virtio_net, carrier)" in complaint.wanted
        assert "lo" not in complaint.wanted.split(" (")[0]


@pytest.mark.parametrize("state", ["down", "ignore"])
def test_a_card_that_is_to_be_down_and_is_not_there_is_left_out(state: str) -> None:
    resolved = good(interfaces(by_mac("wan", C, state=state), plain("eth9", state=state), plain("eth0")))
    assert names_of(resolved) == ["eth0"]
    assert len(resolved.notes) == 2
    assert "left out" in resolved.notes[0]


def test_a_late_card_is_found_when_it_comes() -> None:
    config = interfaces(by_mac("wan", C))
    assert resolve(config, NICS).missing
    assert names_of(good(config, (*NICS, card("eth2", C)))) == ["eth2"]


def test_offline_names_are_taken_as_they_stand() -> None:
    config = interfaces(plain("enp1s0"), by_mac("wan", C),
                        {"name": "v", "type": "vlan", "vlan": {"base-iface": "enp1s0", "id": 1}})
    resolved = resolve(config, (), offline=True)
    assert (resolved.complaints, resolved.missing, resolved.config) == ((), (), config)


def test_offline_a_match_becomes_what_nmstate_knows() -> None:
    config = interfaces({"name": "wan", "match": {"mac": C.upper()}}, {"name": "lan", "match": {"pci": "00:03.0"}},
                        {"name": "x", "match": {"driver": "ixgbe"}})
    assert resolve(config, (), offline=True).config == interfaces(
        {"name": "wan", "identifier": "mac-address", "mac-address": C},
        {"name": "lan", "identifier": "pci-address", "pci-address": "0000:00:03.0"}, {"name": "x"})


@pytest.mark.parametrize("key", ["desired", "desiredState"])
def test_policies(key: str) -> None:
    captured = "{{ capture.gw.interfaces.0.name }}"
    desired = interfaces(by_mac("wan", A), plain(captured),
                         {"name": "b", "type": "bond", "link-aggregation": {"port": [captured]}})
    resolved = good({"capture": {"gw": "interfaces.name == 'wan'"}, key: desired})
    assert resolved.config["capture"] == {"gw": "interfaces.name == 'wan'"}
    assert resolved.config[key]["interfaces"][0] == plain("eth0")
    bad = resolve({key: interfaces(plain("eth9"))}, NICS)
    assert bad.complaints[0].path == f"{key}.interfaces[0].name"


# -- properties -----------------------------------------------------------------------------------------------

KERNEL_NAMES = ["eth0", "eth1", "eth2", "eth10", "eth0.1", "br0"]
DOCUMENT_NAMES = [*KERNEL_NAMES, "wan", "lan", "a-very-long-interface-name"]
MACS = [f"52:54:00:00:00:{number:02x}" for number in range(4)]

some_nics = st.lists(
    st.builds(Nic, name=st.sampled_from(KERNEL_NAMES), mac=st.sampled_from(MACS),
              permanent_mac=st.sampled_from([*MACS, ""]), addr_assign_type=st.sampled_from([None, 0, 1, 2, 3]),
              pci=st.sampled_from(["", "0000:00:03.0", "0000:00:04.0"]),
              driver=st.sampled_from(["e1000", "hv_netvsc", ""]), kind=st.sampled_from(["ethernet", "veth", "bridge"]),
              carrier=st.sampled_from([None, True, False]), virtual=st.booleans(), usb=st.booleans()),
    unique_by=lambda nic: nic.name, max_size=5)
a_name = st.sampled_from(DOCUMENT_NAMES)
an_interface = st.fixed_dictionaries(
    {"name": a_name},
    optional={
        "type": st.sampled_from(["ethernet", "veth", "bond", "vlan", "linux-bridge", "ovs-bridge", "vrf", "foonet"]),
        "state": st.sampled_from(["up", "down", "absent", "ignore"]),
        "identifier": st.sampled_from(["name", "mac-address", "pci-address"]),
        "mac-address": st.sampled_from([*MACS, *(mac.upper() for mac in MACS)]),
        "pci-address": st.sampled_from(["0000:00:03.0", "00:04.0"]),
        "match": st.fixed_dictionaries({}, optional={"driver": st.sampled_from(["e1000", "*"]),
                                                     "mac": st.sampled_from(MACS)}),
        "profile-name": a_name, "controller": a_name, "copy-mac-from": a_name,
        "link-aggregation": st.fixed_dictionaries({"port": st.lists(a_name, max_size=3)}),
        "bridge": st.fixed_dictionaries({"port": st.lists(st.fixed_dictionaries({"name": a_name}), max_size=3)}),
        "vlan": st.fixed_dictionaries({"base-iface": a_name, "id": st.just(1)}),
        "veth": st.fixed_dictionaries({"peer": a_name}),
    })
a_config = st.fixed_dictionaries(
    {"interfaces": st.lists(an_interface, max_size=5)},
    optional={"routes": st.fixed_dictionaries({"config": st.lists(st.fixed_dictionaries(
        {"next-hop-interface": a_name}), max_size=3)})})
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | a_name,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from([
            "interfaces", "name", "type", "state", "identifier", "mac-address", "match", "driver", "bridge", "port",
            "vlan", "base-iface", "routes", "config", "next-hop-interface", "desired", "veth", "alt-names",
            "dns-resolver", "server"]), inner, max_size=4), max_leaves=20)
SECTIONS = ["interfaces", "routes", "desired", "dns-resolver", "ovn"]


@settings(deadline=None)  # finds faults, not busy machines
@given(a_config, some_nics)
# A card that isn't here and need not be is left out, and makes no peer: not even one of its own name.
@example(interfaces({"name": "eth0", "type": "ethernet", "state": "down", "match": {"mac": MACS[0]},
                     "veth": {"peer": "eth0"}, "vlan": {"base-iface": "eth0", "id": 1},
                     "controller": "eth0", "copy-mac-from": "eth0"},
                    routes={"config": [{"next-hop-interface": "eth0"}]}), [])
def test_resolving_is_idempotent(config: dict[str, Any], nics: list[Nic]) -> None:
    once = resolve(config, nics)
    if not once.complaints:
        again = resolve(once.config, nics)
        assert (again.config, again.complaints, again.missing, again.notes) == (once.config, (), (), ())


@settings(deadline=None)
@given(a_config, some_nics, st.randoms(use_true_random=False))
def test_the_order_of_cards_does_not_matter(config: dict[str, Any], nics: list[Nic], random: Any) -> None:
    shuffled = list(nics)
    random.shuffle(shuffled)
    assert resolve(config, nics) == resolve(config, shuffled)


@settings(deadline=None)
@given(a_config, some_nics, st.randoms(use_true_random=False))
def test_the_order_of_interfaces_does_not_matter(config: dict[str, Any], nics: list[Nic], random: Any) -> None:
    """Where every name is used once; two entries of one name are refused elsewhere."""
    config["interfaces"] = list({entry["name"]: entry for entry in config["interfaces"]}.values())
    for entry in config["interfaces"]:
        entry.pop("profile-name", None)
    shuffled = list(config["interfaces"])
    random.shuffle(shuffled)
    one, other = resolve(config, nics), resolve({**config, "interfaces": shuffled}, nics)
    assert dict(one.names) == dict(other.names)
    assert sorted(one.missing) == sorted(other.missing)
    assert len(one.complaints) == len(other.complaints)
    assert sorted(map(repr, one.config["interfaces"])) == sorted(map(repr, other.config["interfaces"]))


@settings(deadline=None)
@given(a_config, some_nics)
def test_what_leaves_is_in_kernel_names(config: dict[str, Any], nics: list[Nic]) -> None:
    resolved = resolve(config, nics)
    if resolved.complaints:
        return
    for entry in resolved.config["interfaces"]:
        assert "match" not in entry
        assert len(entry["name"]) <= 15
    # Each reference is the kernel's name of what the document meant.
    for before, after in zip(config.get("routes", {}).get("config", []),
                             resolved.config.get("routes", {}).get("config", []), strict=True):
        name = before["next-hop-interface"]
        assert after["next-hop-interface"] == resolved.names.get(name, name)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(SECTIONS), anything), some_nics)
def test_no_tree_raises(config: dict[str, Any], nics: list[Nic]) -> None:
    resolve(config, nics)
    resolve(config, nics, offline=True)


def test_a_huge_document_takes_no_time() -> None:
    entries = [by_mac(f"n{number}", f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}") for number in range(5000)]
    ports = [entry["name"] for entry in entries]
    nics = tuple(card(f"eth{number}", f"02:00:00:00:00:{number:02x}") for number in range(64))
    started = time.process_time()
    resolve(interfaces(*entries, {"name": "b", "type": "bond", "link-aggregation": {"port": ports}}), nics)
    assert time.process_time() - started < 5
