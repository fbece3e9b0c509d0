"""NetworkManager on a bad day: late, dead, restarted or killed while we apply, in use by another program."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from mischief import (
    CAME_BETWEEN,
    NM,
    NM_OBJECT,
    another_comes_between,
    before_homeport,
    checkpoints,
    drop_in,
    go_on,
    hold_apply,
    mask,
    no_refresh,
    wait_until_held,
)
from seed import NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document, wait_for_seed
from world import World

# Somebody's checkpoint of all devices, which would roll back after ten minutes; the program is gone at once.
# NetworkManager's name is there before its object is.
LEAVE_A_CHECKPOINT = f"""\
until busctl call {NM} {NM_OBJECT} {NM} CheckpointCreate aouu 0 600 0; do sleep 0.1; done
"""


def test_late(world: World, machine: Machine) -> None:
    """It counts as started, but answers only seconds later: waited for, and then all is as ever."""
    late = "/bin/sh -c 'sleep 4; exec /usr/sbin/NetworkManager --no-daemon'"
    drop_in(machine, "NetworkManager.service", f"[Service]\nType=exec\nExecStart=\nExecStart={late}\n")
    boot = machine.boot(credentials={"homeport.assignment": seed_document()})
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


ALIKE = pytest.mark.long("its sister fails with it, mostly")


@pytest.mark.parametrize("how", ["hanging", pytest.param("crashing", marks=ALIKE), pytest.param("masked", marks=ALIKE)])
def test_dead_for_a_boot(seeded: Seeded, falling: None, how: str) -> None:
    """No NetworkManager: said, within its limit, and the boot goes on; a boot later all is as assigned."""
    machine = seeded.machine
    machine.power_off()
    unit = "/etc/systemd/system/NetworkManager.service"
    if how == "masked":
        mask(machine, "NetworkManager.service")
    else:
        program = "/bin/false" if how == "crashing" else "/bin/sleep infinity"
        drop_in(machine, "NetworkManager.service", f"[Service]\nType=exec\nExecStart=\nExecStart={program}\n")
    drop_in(machine, "NetworkManager-wait-online.service", "[Service]\nExecStart=\nExecStart=/bin/true\n")

    boot = machine.boot(f"homeport.config={seeded.url}", "homeport.nm-wait=4s", "homeport.deadline=2s")
    assert boot.status["finished"] - boot.status["started"] < 30  # which is how long it would be without the limit
    assert boot.status["exit"] == 69
    assert any("last-known-good: NetworkManager" in fall for fall in boot.status["fallen"])
    machine.says("homeport:", "NetworkManager")

    machine.power_off()
    machine.on_disk(unit).unlink(missing_ok=True)
    drop_in(machine, "NetworkManager.service", "")
    seeded.server.stop()
    seeded.machine.world.dhcp.stop()
    assert_seed(machine, machine.boot(f"homeport.config={seeded.url}"))


@pytest.mark.parametrize(
    ("how", "when"),
    [("kill -s KILL", "profile"), ("restart", "profile"), pytest.param("kill -s KILL", "checkpoint", marks=ALIKE)])
def test_gone_during_apply(
    world: World, server: ConfigServer, machine: Machine, falling: None, how: str, when: str
) -> None:
    """It is killed, or restarted, in the middle: not half of it stays, and a minute later all is well."""
    world.dhcp.start()
    hold_apply(machine, at=when)
    no_refresh(machine)
    machine.start(f"homeport.config={server.put(SEED, seed_document())}", "homeport.proof-timeout=4s")
    wait_until_held(machine)
    machine.run(["systemctl", *how.split(), "NetworkManager.service"])
    go_on(machine)
    boot = machine.wait_online(90)
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 75
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    assert not machine.exists("/var/lib/homeport/inflight.json")
    assert checkpoints(machine) == 0
    assert set(machine.sh("ls /run/NetworkManager/system-connections").stdout.split()) <= {"lo.nmconnection"}
    machine.run(["homeport", "refresh", "--proof-timeout", "30s"])
    assert_seed(machine, machine.look())


def test_killed_during_refresh(world: World, seeded: Seeded, falling: None) -> None:
    """The same on a machine that has an assignment: it keeps the one it has."""
    machine = seeded.machine
    machine.power_off()
    hold_apply(machine)
    seeded.assign(seed_document("192.168.122.151"))
    machine.boot(f"homeport.config={seeded.url}")  # and the refresh that follows each boot
    wait_until_held(machine)
    machine.run(["systemctl", "kill", "-s", "KILL", "NetworkManager.service"])
    go_on(machine)
    machine.wait("test $(systemctl show -P ExecMainStatus homeport-refresh.service) = 75")
    assert_seed(machine, wait_for_seed(machine))
    assert "192.168.122.151" not in machine.read("/var/lib/homeport/assigned.yaml")


def test_another_profile_comes_between(world: World, server: ConfigServer, machine: Machine) -> None:
    """nmstate has activated ours, NetworkManager the bootstrap after it: ours is activated once more."""
    world.dhcp.start()
    another_comes_between(machine, "homeport-bootstrap", NIC)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert machine.exists(CAME_BETWEEN)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


def test_stale_checkpoint(
    world: World, server: ConfigServer, machine: Machine, allow: Callable[..., None]
) -> None:
    """A program left its checkpoint: nmstate would refuse for ten minutes, or it would undo what we did."""
    world.dhcp.start()
    before_homeport(machine, LEAVE_A_CHECKPOINT)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert checkpoints(machine) == 0
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    allow("left pending by another program")
