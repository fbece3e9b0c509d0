"""What others added to interfaces of ours: found, handed along, not kept."""

from __future__ import annotations

from typing import Any

from homeport.core.keyfile import Keyfile
from homeport.core.strangers import Added, find, handed_along, without, without_ports

# Keys with hyphens.
LEASED: dict[str, Any] = {"valid-life-time": "99sec"}
FLAGS: dict[str, Any] = {"mptcp-flags": ["subflow"]}
NO_OTHERS: dict[str, Any] = {"allow-extra-address": False}


def nic(*addresses: dict[str, Any], family: str = "ipv4", name: str = "ens3", **more: Any) -> dict[str, Any]:
    section = {"enabled": True, "address": list(addresses), **more}
    return {"name": name, "type": "ethernet", "state": "up", family: section}


def at(ip: str, length: int = 24, **more: Any) -> dict[str, Any]:
    return {"ip": ip, "prefix-length": length, **more}


def state(*interfaces: dict[str, Any], routes: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"interfaces": list(interfaces), "routes": {"config": list(routes)}}


def route(destination: str, via: str = "", **more: Any) -> dict[str, Any]:
    return {"destination": destination, "next-hop-interface": "ens3", "next-hop-address": via, **more}


DESIRED = state(nic(at("10.0.1.10")), routes=(route("0.0.0.0/0", "10.9.9.1"),))
FORMER = state(nic(at("10.0.1.10"), at("10.0.1.11")))


def test_a_strangers_address_is_neither_ours_nor_the_former_assignments_nor_one_that_expires() -> None:
    shown = state(nic(
        at("10.0.1.10"),                                  # ours
        at("10.0.1.11"),                                  # was ours: it goes
        at("10.0.1.12", **LEASED),  # whoever gave it renews it
        at("169.254.3.3", 16),                            # no further than its own link
        at("10.0.1.99", 32, **FLAGS)))
    assert find(shown, DESIRED, FORMER, ["ens3"]) == {"ens3": Added({"ipv4": (at("10.0.1.99", 32),)})}


def test_the_same_address_in_another_spelling_is_ours() -> None:
    desired = state(nic(at("2001:DB8::0010", 64), family="ipv6"))
    shown = state(nic(at("2001:db8::10", 64), at("fe80::1", 64), at("2001:db8::99", 128), family="ipv6"))
    assert find(shown, desired, {}, ["ens3"]) == {"ens3": Added({"ipv6": (at("2001:db8::99", 128),)})}


def test_routes_that_somebody_else_made() -> None:
    shown = state(nic(at("10.0.1.10")), routes=(
        route("0.0.0.0/0", "10.9.9.1", metric=100),                 # ours, whatever its metric
        route("10.9.9.1/32"),                                       # NetworkManager's own, to our gateway
        route("10.42.0.0/16", "0.0.0.0", metric=5, **{"table-id": 254}),
        route("10.43.0.0/16", source="10.0.1.10"),                  # more in it than can be handed on
        {**route("10.44.0.0/16"), "next-hop-interface": "ens4"}))   # not on an interface of ours
    (added,) = find(shown, DESIRED, FORMER, ["ens3"]).values()
    assert added.routes == (route("10.42.0.0/16", "0.0.0.0", metric=5, **{"table-id": 254}),)


def test_nothing_is_a_strangers_on_an_interface_that_was_not_ours() -> None:
    assert find(state(nic(at("10.0.1.99"))), DESIRED, {}, []) == {}


def test_handed_along_behind_what_is_desired() -> None:
    more = {"ens3": Added({"ipv4": (at("10.0.1.99", 32),)}, (route("10.42.0.0/16"),))}
    applied = handed_along(DESIRED, more)
    assert applied["interfaces"][0]["ipv4"]["address"] == [at("10.0.1.10"), at("10.0.1.99", 32)]
    assert applied["routes"]["config"] == [*DESIRED["routes"]["config"], route("10.42.0.0/16")]
    assert DESIRED["interfaces"][0]["ipv4"]["address"] == [at("10.0.1.10")]
    assert handed_along(DESIRED, {}) is DESIRED


def test_not_where_the_assignment_wants_its_own_addresses_only_or_none() -> None:
    more = {"ens3": Added({"ipv4": (at("10.0.1.99", 32),), "ipv6": (at("2001:db8::99", 128),)})}
    strict = state(nic(at("10.0.1.10"), **NO_OTHERS))
    assert handed_along(strict, more)["interfaces"] == strict["interfaces"]
    off = state({"name": "ens3", "type": "ethernet", "state": "up", "ipv4": {"enabled": False}})
    assert handed_along(off, {"ens3": Added({}, (route("10.42.0.0/16"),))})["routes"]["config"] == []


def test_not_kept() -> None:
    profile = Keyfile.parse("""[connection]
id=ens3

[ipv4]
address1=10.0.1.10/24
address2=10.0.1.99/32
method=manual
route1=10.42.0.0/16,0.0.0.0,5
route1_options=table=254
route2=10.42.0.0/16,10.0.1.1

[ipv6]
address1=2001:db8::99/128
address2=2001:db8::9/128
method=manual
""")
    kept = without(profile, Added(
        {"ipv4": (at("10.0.1.99", 32),), "ipv6": (at("2001:db8::99", 128),)}, (route("10.42.0.0/16", "0.0.0.0"),)))
    assert [key for key, _ in kept.items("ipv4")] == ["address1", "method", "route2"]
    assert kept.items("ipv6") == (("address2", "2001:db8::9/128"), ("method", "manual"))


def bridge(*ports: str, **more: Any) -> dict[str, Any]:
    return {"name": "br0", "type": "linux-bridge", "state": "up", **more,
            "bridge": {"port": [{"name": name} for name in ports]}}


def test_a_guests_port_stays_on_the_bridge() -> None:
    """libvirt's or a container's; a port that an assignment speaks of, here or elsewhere, goes where that says."""
    shown, desired, former = (state(bridge(*ports)) for ports in (
        ("ens3", "ens4", "ens5", "vnet0"), ("ens3",), ("ens3", "ens4")))
    desired["interfaces"].append(nic(at("10.0.1.10"), name="ens5"))
    found = find(shown, desired, former, ["br0"])
    assert found == {"br0": Added(ports=("vnet0",))}
    assert handed_along(desired, found)["interfaces"][0] == bridge("ens3", "vnet0")
    assert without_ports(state(bridge("ens3", "vnet0")), found)["interfaces"] == [bridge("ens3")]


def test_a_bridge_whose_ports_are_not_said_keeps_them_anyway() -> None:
    desired = state({"name": "br0", "type": "linux-bridge", "state": "up", "bridge": {"options": {}}})
    assert handed_along(desired, {"br0": Added(ports=("vnet0",))})["interfaces"] == desired["interfaces"]
