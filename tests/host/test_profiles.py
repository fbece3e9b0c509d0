"""Whose profile is whose, and which of them make up a configuration of ours. Values in, no NetworkManager."""

from __future__ import annotations

from typing import Any, cast

import pytest

from homeport.host import profiles
from homeport.host.networkmanager import Device, Manager, Profile
from homeport.host.nm.values import ProfileFlags
from homeport.host.store import Manifest, OwnedFile

RUN = profiles.RUN_FOLDER
ETC = "/etc/NetworkManager/system-connections/"


def profile(name: str, interface: str = "", folder: str = RUN, flags: int = 0) -> Profile:
    return Profile(f"/{name}", name, name, "802-3-ethernet", interface, f"{folder}{name}.nmconnection", flags)


def device(interface: str, active: str = "", *addresses: str) -> Device:
    return Device(f"/{interface}", interface, profile=active, profile_id=active, addresses=addresses)


class Shown:
    """A manager that only shows devices."""

    def __init__(self, *devices: Device) -> None:
        self.shown = list(devices)

    def devices(self) -> list[Device]:
        return self.shown


OURS = Manifest(keyfiles=(OwnedFile("etc/x", uuid="ours"),))
WANTED: dict[str, Any] = {"interfaces": [{"name": "eth0"}, {"name": "eth1", "state": "down"}]}


@pytest.mark.parametrize(("active", "other", "foreign", "override"), [
    ("ours", "ours", (), False),
    (profiles.BOOTSTRAP, profiles.BOOTSTRAP, ("eth0", "eth2"), True),  # ours must not begin as its copy
    (profiles.BOOTSTRAP, "ours", ("eth0",), False),  # nor may what is in force already be replaced
    ("", "ours", ("eth0",), False),
    ("admin", "ours", ("eth0",), True),
])
def test_whose(active: str, other: str, foreign: tuple[str, ...], override: bool) -> None:
    shown = Shown(device("eth0", active), device("eth1", "admin"), device("eth2", other))
    found = profiles.whose(cast(Manager, shown), OURS, {"interfaces": [*WANTED["interfaces"], {"name": "eth2"}]})
    assert (found.foreign, found.override) == (foreign, override)


def test_whose_interface_is_not_there_yet() -> None:
    assert profiles.whose(cast(Manager, Shown()), OURS, WANTED) == profiles.Ownership(("eth0",), True)


def chosen(*all_profiles: Profile, before: set[str] | None, devices: tuple[Device, ...] = (),
           wanted: tuple[str, ...] = ("eth0",), **more: Any) -> list[str]:
    return [one.uuid for one in profiles.persisted_set(all_profiles, devices, wanted, before=before, **more)]


def test_kept_is_what_is_active_on_the_wanted_interfaces() -> None:
    found = chosen(profile("a", "eth0"), profile("admin", "eth0", ETC), profile("b", "eth1"),
                   before={"b"}, devices=(device("eth0", "a"), device("eth1", "b")))
    assert found == ["a"]


def test_kept_is_the_profile_of_an_interface_that_is_down() -> None:
    assert chosen(profile("a", "eth0"), before=set(), devices=(device("eth0"),)) == ["a"]
    assert chosen(profile("a", "eth0", ETC), before=None, devices=(device("eth0"),), ours={"a"}) == ["a"]
    assert chosen(profile("admin", "eth0", ETC), before=None, devices=(device("eth0"),)) == []


def test_kept_is_what_came_with_the_apply_and_has_no_device() -> None:
    """An Open vSwitch port; but nothing that was in memory before, or that came without an apply."""
    port, theirs = profile("br0-port", "port0"), profile("theirs", "tap0")
    assert chosen(port, theirs, before={"theirs"}) == ["br0-port"]
    assert chosen(port, theirs, before=None) == []


def test_a_port_of_open_vswitch_stays_although_nothing_was_applied() -> None:
    port = Profile("/p", "p", "p", "ovs-port", "port0", f"{ETC}p.nmconnection", 0)
    assert chosen(port, before=None, ours={"p"}) == ["p"]


def test_an_interface_that_the_assignment_has_no_more_is_not_kept() -> None:
    """nmstate put a copy into memory to take it down; that does not make it new."""
    assert chosen(profile("br0", "br0"), before=set(), ours={"br0"}) == []


@pytest.mark.parametrize(("flags", "loopback", "kept"), [
    (0, True, ["lo"]),  # for a blackhole route nmstate edits the loopback's profile in its place
    (0, False, []),  # it is needed no more
    (ProfileFlags.EXTERNAL, True, []),  # NetworkManager only mirrors it
])
def test_profile_of_the_loopback(flags: int, loopback: bool, kept: list[str]) -> None:
    found = chosen(profile("lo", "lo", flags=flags), before={"lo"}, devices=(device("lo", "lo"),), loopback=loopback)
    assert found == kept


def test_names_of_profiles_that_share_an_interface_name() -> None:
    found = profiles.by_name([profile("br0-br", "br0"), profile("br0-if", "br0"), profile("x", "eth0"), profile("y")])
    assert sorted(found) == ["br0-br", "br0-if", "eth0", "y"]


def test_name_of_a_profile_for_a_card_by_its_mac() -> None:
    """It names no interface; were it called by its id, it would get a longer one at every boot."""
    by_mac = profile("homeport-enp1s0")
    assert list(profiles.by_name([by_mac], {by_mac.uuid: "enp1s0"})) == ["enp1s0"]
    assert list(profiles.by_name([by_mac])) == ["homeport-enp1s0"]
    two = [by_mac, profile("x", "enp1s0")]
    assert sorted(profiles.by_name(two, {by_mac.uuid: "enp1s0"})) == ["homeport-enp1s0", "x"]


@pytest.mark.parametrize(("address", "usable"), [
    ("192.0.2.1/24", True), ("2001:db8::1/64", True), ("169.254.3.4/16", False), ("fe80::1/64", False), ("", False),
])
def test_usable(address: str, usable: bool) -> None:
    assert profiles.usable(device("eth0", "x", *filter(None, [address]))) is usable
