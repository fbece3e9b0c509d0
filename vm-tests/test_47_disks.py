"""A disk that takes nothing: the network is in force all the same, it is said, and nothing half is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from mischief import full_var_lib, mask, no_refresh, read_only_etc
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, Seeded, assert_seed, default_routes, seed_document
from world import World

pytestmark = pytest.mark.usefixtures("falling")

MISCHIEF: dict[str, tuple[Callable[[Machine], None], ...]] = {
    "/etc read-only": (read_only_etc,),
    "/var full": (full_var_lib,),
    "both": (read_only_etc, full_var_lib),
}


def assert_in_force(boot: Outcome, address: str = ADDRESS) -> None:
    assert boot.addresses(NIC) == [address]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    assert boot.resolv == ["192.168.122.1"]


@pytest.mark.parametrize("what", MISCHIEF)
def test_new_machine(
    world: World, server: ConfigServer, machine: Machine, allow: Callable[..., None], what: str
) -> None:
    """In force and proven; exit 73, and the reason names the place."""
    allow("cannot be kept", "Cannot write")
    world.dhcp.start()
    for make in MISCHIEF[what]:
        make(machine)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert_in_force(boot)
    assert boot.status["rung"] == "assigned"
    assert boot.status["exit"] == 73
    assert boot.status["persisted"] is False
    # On the console too, where it is most needed.
    why = "Read-only file system" if what == "/etc read-only" else "No space left on device"
    assert why in boot.status["reason"]
    machine.says(f"homeport: assigned configuration in force: cannot be kept: {why}")
    assert "homeport.service" in boot.failed_units
    assert [name for name in boot.keyfiles if name.startswith("homeport-")] == []
    assert machine.sh("ls -A /var/lib/homeport").stdout.split() in ([], ["assigned.yaml", "manifest.json"])


def test_full_disk_under_an_assignment(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], allow: Callable[..., None]
) -> None:
    """Not a byte left anywhere: as assigned, alone; a change is in force for this boot, and lost whole with it."""
    world.dhcp.start()
    allow("cannot be kept", "Cannot write")
    seeded = Seeded(make_machine(lossy=True), server, server.put(SEED, seed_document()))
    machine = seeded.machine
    no_refresh(machine)
    # It cannot start without room in /var/tmp, and NetworkManager waits 25 s for it.
    mask(machine, "systemd-hostnamed.service")
    fill_disk(machine)
    server.stop()
    world.dhcp.stop()
    boot = seeded.reboot()
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0

    server.start()
    seeded.assign(seed_document("192.168.122.151"))
    done = machine.run(["homeport", "refresh"], check=False)
    assert done.status == 73, done
    assert_in_force(machine.look(), "192.168.122.151/24")
    machine.power_cut()
    server.stop()
    boot = machine.boot(f"homeport.config={seeded.url}", "homeport.deadline=2s")
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0

    server.start()
    machine.sh("rm /root/full*")
    machine.run(["homeport", "refresh"])
    assert_seed(machine, machine.look(), "192.168.122.151/24")


def fill_disk(machine: Machine) -> None:
    """To the last byte, also what is kept for root."""
    # ext4 keeps a little for itself, which only small writes get.
    machine.sh("cat /dev/zero >/root/full || :; "
               "i=0; while echo x >/root/full-$i; do i=$((i + 1)); done; sync", check=False)
    assert machine.sh("echo x >/var/lib/homeport/x", check=False).status != 0
