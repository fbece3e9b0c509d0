"""cloud-init's two formats as they are written in the field: every way to say the same thing is understood."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core import platforms
from homeport.core.document import check_document
from homeport.core.facts import Nic
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError

FIRST, SECOND, THIRD = (f"00:00:5e:00:53:0{number}" for number in (1, 2, 3))
HERE = (Nic("ens3", mac=FIRST, permanent_mac=FIRST), Nic("ens4", mac=SECOND, permanent_mac=SECOND))
TO_ONE_NETWORK = {"to": "198.51.100.0/24", "via": "192.0.2.254"}


def make(config: dict[str, Any]) -> platforms.Made:
    platform = platforms.find("nocloud")
    assert platform is not None
    made = platforms.make(platform, {"network-config": render_yaml(config).encode()}, platforms.Situation(HERE))
    assert check_document(render_yaml(made.tree).encode()).complaints == ()
    return made


def version_1(*entries: dict[str, Any]) -> platforms.Made:
    cards = [{"type": "physical", "name": f"eth{number}", "mac_address": mac}
             for number, mac in enumerate((FIRST, SECOND))]
    return make({"version": 1, "config": [*entries, *cards]})


def static(**subnet: Any) -> platforms.Made:
    entry = {"type": "physical", "name": "nic", "mac_address": FIRST, "subnets": [{"type": "static", **subnet}]}
    return make({"version": 1, "config": [entry]})


def version_2(**keys: Any) -> platforms.Made:
    return make({"version": 2, "ethernets": {"nic": {"match": {"macaddress": FIRST}, **keys}}})


def routes(made: platforms.Made) -> dict[str, str]:
    return {route["destination"]: route["next-hop-address"]
            for route in made.tree["config"].get("routes", {}).get("config", ())}


def interface(made: platforms.Made, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(entry for entry in made.tree["config"]["interfaces"] if entry["name"] == name)
    return entry


def test_a_gateway_stands_beside_routes_that_lead_elsewhere() -> None:
    """netplan, "gateway4": a machine must not lose its default route to one static route."""
    made = version_2(addresses=["192.0.2.7/24", "2001:db8::7/64"], gateway4="192.0.2.1", gateway6="2001:db8::1",
                     routes=[TO_ONE_NETWORK])
    assert routes(made) == {
        "198.51.100.0/24": "192.0.2.254", "0.0.0.0/0": "192.0.2.1", "::/0": "2001:db8::1"}
    assert made.notes == ()


@pytest.mark.parametrize(("to", "table", "gateway"), [
    ("default", None, "192.0.2.254"), ("0.0.0.0/0", None, "192.0.2.254"), ("0.0.0.0/0", 254, "192.0.2.254"),
    ("0.0.0.0/0", 77, "192.0.2.1"),
])
def test_a_gateway_beside_a_default_route(to: str, table: int | None, gateway: str) -> None:
    """One of the same family in the same table counts before it."""
    route = {"to": to, "via": "192.0.2.254"} | ({} if table is None else {"table": table})
    made = version_2(addresses=["192.0.2.7/24", "2001:db8::7/64"], gateway4="192.0.2.1", gateway6="2001:db8::1",
                     routes=[route])
    main = {route["destination"]: route["next-hop-address"] for route in made.tree["config"]["routes"]["config"]
            if route.get("table-id", 254) == 254}
    assert main == {"0.0.0.0/0": gateway, "::/0": "2001:db8::1"}
    assert any("gateway4 is left out" in note for note in made.notes) is (gateway == "192.0.2.254")


@pytest.mark.parametrize("third_is_primary", [True, False])
def test_a_primary_port_that_is_not_here(third_is_primary: bool) -> None:
    """A card that failed must not take the whole bond with it."""
    cards = {name: {"match": {"macaddress": mac}} for name, mac in (("left", FIRST), ("right", THIRD))}
    primary = "right" if third_is_primary else "left"
    made = make({"version": 2, "ethernets": cards, "bonds": {"bond0": {
        "interfaces": ["left", "right"], "addresses": ["192.0.2.7/24"],
        "parameters": {"mode": "active-backup", "primary": primary}}}})
    bond = interface(made, "bond0")["link-aggregation"]
    assert bond["port"] == ["left"]
    assert bond["options"] == ({} if third_is_primary else {"primary": "left"})
    assert ("bond0: its primary port, right, is not here; left out" in made.notes) is third_is_primary


@pytest.mark.parametrize(("parameters", "stp"), [
    ({"bridge_stp": "off", "bridge_fd": 0, "bridge_hello": 0, "bridge_maxage": 0}, {"enabled": False}),
    ({"bridge_stp": False, "bridge_bridgeprio": 100}, {"enabled": False}),
    ({"bridge_stp": True, "bridge_fd": 4, "bridge_maxage": 12},
     {"enabled": True, "forward-delay": 4, "max-age": 12}),
    ({"bridge_stp": True, "bridge_fd": 0, "bridge_hello": 2}, {"enabled": True, "hello-time": 2}),
])
def test_spanning_tree_and_its_times(parameters: dict[str, Any], stp: dict[str, Any]) -> None:
    """A delay of 0 is usual where it is off, and the kernel takes none where it is on."""
    made = version_1({"type": "bridge", "name": "br0", "bridge_interfaces": ["eth0"], "params": parameters})
    assert interface(made, "br0")["bridge"]["options"]["stp"] == stp
    too_small = any("bridge_fd: 0 is not from 2 to 30" in note for note in made.notes)
    assert too_small is (stp["enabled"] and parameters["bridge_fd"] == 0)


def test_what_is_made_of_something_made_whatever_the_order() -> None:
    made = version_1(
        {"type": "bridge", "name": "br0", "bridge_interfaces": ["bond0.7"]},
        {"type": "vlan", "name": "bond0.7", "vlan_link": "bond0", "vlan_id": 7},
        {"type": "bond", "name": "bond0", "bond_interfaces": ["eth0", "eth1"]})
    assert interface(made, "br0")["bridge"]["port"] == [{"name": "bond0.7"}]
    assert interface(made, "bond0.7")["vlan"] == {"base-iface": "bond0", "id": 7}
    assert made.notes == ()


def test_a_circle_is_told() -> None:
    with pytest.raises(DocumentError) as caught:
        version_1(
            {"type": "vlan", "name": "a", "vlan_link": "b", "vlan_id": 7},
            {"type": "vlan", "name": "b", "vlan_link": "a", "vlan_id": 8},
            {"type": "vlan", "name": "itself", "vlan_link": "itself", "vlan_id": 9},
            {"type": "vlan", "name": "sound", "vlan_link": "eth0", "vlan_id": 9})
    assert [complaint.path for complaint in caught.value.complaints] == [
        f"network-config: config[{number}].vlan_link" for number in range(3)]


@pytest.mark.parametrize(("subnet", "length"), [
    ({"address": "192.0.2.7/25"}, 25), ({"address": "192.0.2.7", "netmask": "255.255.255.128"}, 25),
    ({"address": "192.0.2.7", "prefix": 25}, 25), ({"address": "192.0.2.7"}, 24), ({"address": "2001:db8::7"}, 64),
    ({"address": "2001:db8::7", "prefix": 56}, 56),
])
def test_the_prefix_of_an_address(subnet: dict[str, Any], length: int) -> None:
    """cloudinit/net/network_state.py, _normalize_net_keys: of the address, beside it, or the usual one."""
    family = "ipv6" if ":" in subnet["address"] else "ipv4"
    assert interface(static(**subnet), "nic")[family]["address"] == [
        {"ip": subnet["address"].partition("/")[0], "prefix-length": length}]


@pytest.mark.parametrize(("route", "destination"), [
    ({"destination": "198.51.100.0/25"}, "198.51.100.0/25"),
    ({"network": "198.51.100.0", "netmask": "255.255.255.128"}, "198.51.100.0/25"),
    ({"network": "198.51.100.0", "prefix": 25}, "198.51.100.0/25"),
    ({"network": "198.51.100.0", "prefix": 25, "netmask": "255.255.255.0"}, "198.51.100.0/25"),
    ({"network": "198.51.100.0"}, "198.51.100.0/24"),
    ({"network": "0.0.0.0", "netmask": "0.0.0.0"}, "0.0.0.0/0"),
    ({"network": "0.0.0.0", "prefix": 0}, "0.0.0.0/0"),
    ({"network": "0.0.0.0"}, "0.0.0.0/0"),
])
def test_the_prefix_of_a_route(route: dict[str, Any], destination: str) -> None:
    made = static(address="192.0.2.7/24", routes=[{**route, "gateway": "192.0.2.254"}])
    assert routes(made) == {destination: "192.0.2.254"}


def test_servers_in_one_text() -> None:
    """As /etc/network/interfaces has them, which cloud-init takes apart, too."""
    made = static(address="192.0.2.7/24", dns_nameservers="192.0.2.53 192.0.2.54", dns_search="a.test b.test")
    assert made.tree["config"]["dns-resolver"]["config"] == {
        "server": ["192.0.2.53", "192.0.2.54"], "search": ["a.test", "b.test"]}
