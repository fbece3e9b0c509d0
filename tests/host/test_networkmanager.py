"""host/networkmanager.py against real NetworkManagers, in namespaces of their own (vm-tests/bed.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bed import Bed, beds, missing
from homeport.errors import NotAllowed
from homeport.host import nmstatectl, profiles
from homeport.host.activation import take_back
from homeport.host.networkmanager import BusError, Device, Manager, NotReady
from homeport.host.nm.bus import CALL_SECONDS, _error
from homeport.host.proof import ProofFailed, prove_addresses
from namespaces import PATIENCE, NetworkNamespace, wait_until

TREES = beds()
ETC = "/etc/NetworkManager/system-connections"
RUN = "/run/NetworkManager/system-connections"
ADMIN_UUID = "11111111-2222-4333-8444-555555555555"
ADMIN = f"""[connection]
id=admin-lan
uuid={ADMIN_UUID}
type=ethernet
interface-name=enp1s0
[ipv4]
method=manual
address1=192.168.122.99/24,192.168.122.1
dns=192.168.122.98;
[ipv6]
method=disabled
"""
SEED: dict[str, Any] = {
    "dns-resolver": {"config": {"server": ["192.168.122.1"]}},
    "interfaces": [{
        "name": "enp1s0", "profile-name": "homeport-enp1s0", "type": "ethernet", "state": "up",
        "ipv4": {"enabled": True, "dhcp": False, "address": [{"ip": "192.168.122.150", "prefix-length": 24}]},
        "ipv6": {"enabled": False}}],
    "routes": {"config": [{
        "destination": "0.0.0.0/0", "metric": 150, "next-hop-address": "192.168.122.1",
        "next-hop-interface": "enp1s0", "table-id": 254}]},
}  # fmt: skip


WITH_TABLE = f"""[connection]
id=with-table
uuid={ADMIN_UUID}
type=ethernet
interface-name=enp1s0
[ipv4]
method=manual
address1=192.168.122.99/24
route1=203.0.113.0/24,192.168.122.1,10
route1_options=table=30400
[ipv6]
method=disabled
"""


@pytest.fixture(params=sorted(TREES) or ["host"])
def bed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    tree = TREES.get(request.param, Path("/"))
    if missing(tree):
        pytest.skip(missing(tree))
    with Bed(tmp_path, tree) as bed:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", bed.bus)
        monkeypatch.setenv("NMSTATECTL", bed.nmstatectl)
        yield bed


@pytest.fixture
def manager(bed: Bed) -> Iterator[Manager]:
    bed.start_manager()
    with Manager() as manager:
        manager.wait_ready(time.monotonic() + PATIENCE)
        yield manager


def up(manager: Manager, profile: str, nic: str = "enp1s0") -> Device:
    def ready() -> Device | None:
        device = manager.device(nic)
        return device if device and device.activated and device.profile_id == profile else None

    # Less than a checkpoint has: what it rolls back by itself does not count.
    device = wait_until(ready, timeout=45, what=f"{nic} on {profile}")
    assert device
    return device


def apply(override: bool = False, address: str = "192.168.122.150") -> None:
    text = {"ip": address, "prefix-length": 24}
    interface = {**SEED["interfaces"][0], "ipv4": {"enabled": True, "dhcp": False, "address": [text]}}
    nmstatectl.apply({**SEED, "interfaces": [interface]}, checkpoint_seconds=60, override=override)


def test_no_bus_is_not_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    with Manager() as manager, pytest.raises(NotReady, match="none: No such file") as caught:
        manager.version()
    assert "dbus.socket" in caught.value.hint


@pytest.mark.parametrize(("name", "kind"), [
    ("org.freedesktop.DBus.Error.UnknownMethod", NotReady),  # the name is owned, the object not exported yet
    ("org.freedesktop.DBus.Error.ServiceUnknown", NotReady),
    ("org.freedesktop.NetworkManager.PermissionDenied", NotAllowed),
    ("org.freedesktop.NetworkManager.Settings.InvalidConnection", BusError),
])
def test_error_names_have_a_meaning(name: str, kind: type[Exception]) -> None:
    assert type(_error("AddConnection", name, "because")) is kind


def test_wait_ready_waits_for_the_object(bed: Bed) -> None:
    with Manager() as manager:
        started = time.monotonic()
        with pytest.raises(NotReady):
            manager.wait_ready(started + 0.3)
        assert 0.2 < time.monotonic() - started < 30  # it gives up, and does not wait for ever
        bed.start_manager()
        assert manager.wait_ready(time.monotonic() + PATIENCE).startswith("1.")
        bed.stop_manager()
        with pytest.raises(NotReady):
            manager.version()
        bed.start_manager()  # the same connection serves the next NetworkManager
        assert manager.wait_ready(time.monotonic() + PATIENCE).startswith("1.")


def test_a_frozen_manager_costs_the_limit_and_no_more(bed: Bed, manager: Manager) -> None:
    assert bed._manager
    os.kill(bed._manager.pid, 19)
    started = time.monotonic()
    with Manager(timeout=0.3) as impatient, pytest.raises(NotReady, match=r"no answer in 0\.3 s"):
        impatient.version()
    assert time.monotonic() - started < CALL_SECONDS  # the limit where none is given
    os.kill(bed._manager.pid, 18)
    assert manager.version()


def test_devices_and_profiles(bed: Bed, manager: Manager) -> None:
    bed.serve_dhcp()
    device = up(manager, "homeport-bootstrap")
    assert device.addresses[0].startswith("192.168.122.5")
    assert device.mac and device.type == 20  # NM_DEVICE_TYPE_VETH
    profile = manager.profile(device.profile)
    assert profile and not profile.unsaved
    assert profile.filename == "/usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection"
    assert (profile.id, profile.type, profile.interface_name) == ("homeport-bootstrap", "802-3-ethernet", "")
    active = next(item for item in manager.active_profiles() if item.uuid == profile.uuid)
    assert active.interfaces == ("enp1s0",) and not active.external
    assert manager.profile_settings(profile.uuid)["ipv4"]["method"] == ("s", "auto")


def test_rollback_brings_dhcp_back_and_global_dns_is_ours_to_restore(bed: Bed, manager: Manager) -> None:
    bed.serve_dhcp()
    up(manager, "homeport-bootstrap")
    before = manager.global_dns()
    apply()
    assert manager.global_dns() != before  # nmstate writes it, on disk, in spite of --memory-only
    assert len(manager.checkpoints()) == 1
    assert nmstatectl.rollback()
    up(manager, "homeport-bootstrap")
    manager.set_global_dns(before)  # NetworkManager 1.52 has done it by itself, 1.42 has not
    assert manager.global_dns() == {} == before
    assert "global-dns" not in (bed.root / "var/lib/NetworkManager/NetworkManager-intern.conf").read_text()
    assert "nameserver 192.168.122.53" in (bed.root / "etc/resolv.conf").read_text()
    assert not [profile for profile in manager.profiles() if profile.id == "homeport-enp1s0"]


def test_the_timer_can_be_moved(manager: Manager) -> None:
    apply()
    manager.adjust_timeout(manager.checkpoints()[0], 1)
    wait_until(lambda: not manager.checkpoints(), timeout=30, what="the timer")  # of 60 s, before it was moved
    with pytest.raises(nmstatectl.NoCheckpoint):
        nmstatectl.commit()


def test_a_checkpoint_can_be_rolled_back_and_destroyed_by_path(manager: Manager) -> None:
    apply()
    results = manager.rollback_checkpoint(manager.checkpoints()[0])
    assert 0 in results.values()
    apply()
    manager.destroy_checkpoint(manager.checkpoints()[0])
    assert manager.checkpoints() == ()
    up(manager, "homeport-enp1s0")


def test_our_file_takes_over_from_the_copy_in_run_without_an_event(bed: Bed, manager: Manager) -> None:
    """How `persist` works: load ours, then let the copy go; not the other way round."""
    apply()
    up(manager, "homeport-enp1s0")
    nmstatectl.commit()
    manager.set_global_dns({})
    profile = manager.profile(up(manager, "homeport-enp1s0").profile)
    assert profile and profile.filename.startswith(RUN) and profile.unsaved
    text = (bed.root / profile.filename[1:]).read_text()
    ours = bed.write_profile("homeport-enp1s0", text.replace("dhcp-timeout=2147483647", "dhcp-timeout=45"))
    watch = bed.watch()
    assert watch.events() == []
    assert manager.load([ours]) == (True, ())
    (bed.root / profile.filename[1:]).unlink()
    assert manager.load([profile.filename]) == (True, ())
    assert watch.events() == []
    after = manager.profile(profile.uuid)
    assert after and after.filename == f"{ETC}/homeport-enp1s0.nmconnection" and not after.unsaved
    assert up(manager, "homeport-enp1s0").profile == profile.uuid
    bed.stop_manager()
    bed.start_manager()
    manager.wait_ready(time.monotonic() + PATIENCE)
    up(manager, "homeport-enp1s0")
    assert not [event for event in watch.events() if "gone" in event]


def test_a_bad_file_is_refused_and_harms_nothing(bed: Bed, manager: Manager) -> None:
    bad = bed.write_profile("homeport-bad", ADMIN.replace("192.168.122.99/24", "300.1.1.1/24"))
    assert manager.load([bad]) == (False, (bad,))
    (bed.root / bad[1:]).write_text(ADMIN)
    (bed.root / bad[1:]).chmod(0o644)  # NetworkManager reads none that others may read
    assert manager.load([bad]) == (False, (bad,))
    assert manager.profile(ADMIN_UUID) is None


def test_a_strangers_profile_survives_override_and_rollback(bed: Bed, manager: Manager) -> None:
    path = bed.write_profile("admin", ADMIN)
    manager.load([path])
    manager.activate(ADMIN_UUID, "enp1s0")
    up(manager, "admin-lan")
    apply(override=True)
    device = up(manager, "homeport-enp1s0")
    assert device.profile != ADMIN_UUID
    assert "metric 150" in bed.run("ip", "route", "show", "default")  # not the 100 of his own route
    nmstatectl.rollback()
    up(manager, "admin-lan")
    assert (bed.root / path[1:]).read_text() == ADMIN
    admin = manager.profile(ADMIN_UUID)
    assert admin and admin.filename == path and not admin.unsaved


def test_a_route_that_changes_in_its_metric_alone_is_changed(bed: Bed, manager: Manager) -> None:
    apply()
    nmstatectl.commit()
    up(manager, "homeport-enp1s0")
    routes = {"config": [{**SEED["routes"]["config"][0], "metric": 160}]}
    nmstatectl.apply({**SEED, "routes": routes})
    take_back(manager, ["enp1s0"])
    wait_until(lambda: "metric 160" in bed.run("ip", "route", "show", "default"), what="metric 160")
    up(manager, "homeport-enp1s0")
    assert "metric 150" not in bed.run("ip", "route", "show", "default")
    nmstatectl.commit()
    watch = bed.watch()
    nmstatectl.apply({**SEED, "routes": routes})  # the same again
    assert watch.events() == []


def test_what_came_between_is_pushed_aside(bed: Bed, manager: Manager) -> None:
    """What NetworkManager 1.42 does by itself now and then, when a route goes from a profile."""
    apply()
    up(manager, "homeport-enp1s0")
    take_back(manager, ["enp1s0"])  # nothing to do
    bootstrap = profiles.bootstrap(manager)
    assert bootstrap
    manager.activate(bootstrap.uuid, "enp1s0")
    take_back(manager, ["enp1s0"])
    ours = manager.device("enp1s0")
    assert ours and ours.profile_id == "homeport-enp1s0"
    up(manager, "homeport-enp1s0")
    assert "metric 150" in bed.run("ip", "route", "show", "default")


@pytest.mark.usefixtures("manager")
def test_an_address_that_is_taken_is_found_whatever_networkmanager_does(bed: Bed) -> None:
    """1.42 puts it on the interface all the same, 1.52 does not, and neither says who has it."""
    bed.peer.ip("addr", "add", "192.168.122.150/24", "dev", "peer-enp1s0")
    here = NetworkNamespace.of_process(bed.pid)
    apply()
    started = time.monotonic()
    with pytest.raises(ProofFailed, match=r"address 192\.168\.122\.150 through enp1s0: another host holds it, ..:"):
        here.call(lambda: prove_addresses(SEED, deadline=started + 120))
    assert time.monotonic() - started < 60  # not at the deadline
    nmstatectl.rollback()
    bed.peer.ip("addr", "flush", "dev", "peer-enp1s0")
    apply()
    assert here.call(lambda: prove_addresses(SEED, deadline=time.monotonic() + PATIENCE))[0].ok


@pytest.mark.usefixtures("manager")
def test_a_policy_is_resolved_on_this_machine() -> None:
    state = nmstatectl.resolve_policy({
        "capture": {"nic": 'interfaces.name == "enp1s0"'},
        "desired": {"interfaces": [{"name": "{{ capture.nic.interfaces.0.name }}", "type": "ethernet"}]}})
    assert [row["name"] for row in state["interfaces"]] == ["enp1s0"]


def test_a_restart_inside_the_window_loses_the_checkpoint(bed: Bed, manager: Manager) -> None:
    bed.serve_dhcp()
    up(manager, "homeport-bootstrap")
    apply()
    unproven = up(manager, "homeport-enp1s0").profile
    bed.stop_manager()
    bed.start_manager()
    manager.wait_ready(time.monotonic() + PATIENCE)
    up(manager, "homeport-enp1s0")  # still there, with nothing that would take it back
    with pytest.raises(nmstatectl.NoCheckpoint):
        nmstatectl.commit()
    manager.delete(unproven)
    manager.set_global_dns({})
    up(manager, "homeport-bootstrap")


def test_save_deactivate_and_the_reloads(bed: Bed, manager: Manager) -> None:
    apply()
    uuid = up(manager, "homeport-enp1s0").profile
    nmstatectl.commit()
    manager.save(uuid)
    saved = manager.profile(uuid)
    assert saved and saved.filename.startswith(ETC)
    manager.reload()
    manager.reload_dns()
    manager.reload_config()
    (active,) = (item for item in manager.active_profiles() if item.uuid == uuid)
    manager.deactivate(active.path)
    wait_until(lambda: manager.device("enp1s0").profile_id == "homeport-bootstrap",  # type: ignore[union-attr]
               what="the next profile to take over")
    with pytest.raises(BusError, match=r"(?i)no connection|not found"):
        manager.delete("00000000-0000-4000-8000-000000000000")


@pytest.mark.parametrize(("state", "reason", "words"), [
    (100, 0, "activated"),
    (100, 42, "activated"),  # the reason of an active device is how it got there
    (30, 40, "disconnected: no cable, or the other end is down"),
    (120, 67, "failed: an address is already in use by another host"),
    (120, 999, "failed: reason 999"),
    (77, 0, "state 77"),  # of a NetworkManager to come
])
def test_a_device_says_why_it_is_not_up(state: int, reason: int, words: str) -> None:
    assert Device("/", "enp1s0", state=state, reason=reason).why == words


def test_what_is_applied_may_be_given_back(bed: Bed, manager: Manager) -> None:
    """NetworkManager tells routes twice, once without their tables."""
    manager.load([bed.write_profile("with-table", WITH_TABLE)])
    manager.activate(ADMIN_UUID, "enp1s0")
    device = up(manager, "with-table")
    settings, _ = manager.applied(device.path)
    more = {"address": ("s", "192.168.122.98"), "prefix": ("u", 24)}
    settings["ipv4"]["address-data"] = ("aa{sv}", [*settings["ipv4"]["address-data"][1], more])
    manager.reapply(device.path, settings, 0)
    wait_until(lambda: "192.168.122.98" in bed.run("ip", "address"), what="the second address")
    assert "203.0.113.0/24" in bed.run("ip", "route", "show", "table", "30400")
    assert "203.0.113.0/24" not in bed.run("ip", "route")
