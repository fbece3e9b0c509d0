"""homeport killed, and the machine without power, in each step of the initramfs: what then boots is a network.

The container tests stop at every point (test_48_killed.py); here it is the steps, with a kernel whose unwritten pages
are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import killer
from configserver import ConfigServer
from namespaces import wait_until
from seed import SEED, assert_seed, seed_document
from test_80_vm import NETWORK
from vm.machine import Vm
from world import World

pytestmark = [pytest.mark.vm_full("two boots a step"), pytest.mark.usefixtures("falling")]

MakeVm = Callable[..., Vm]
VERBS = {"prepare": "prepare", "initrd": "boot --stage initrd", "handover": "handover"}
# Each step, and a point in it (killer.py): from the first file in the initramfs to the last one in the real root.
STEPS = {
    "prepare": ("prepare", "rename to /run/NetworkManager/initrd/neednet"),
    "fetch": ("initrd", "begin fetch"),
    "apply": ("initrd", "during nmstatectl apply"),
    "prove": ("initrd", "begin prove"),
    "persist": ("initrd", "rename to /var/lib/homeport/assigned.yaml"),
    "handover": ("handover", "rename to /sysroot/var/lib/homeport/assigned.yaml"),
}
step = pytest.mark.parametrize(("unit", "point"), STEPS.values(), ids=STEPS)


@pytest.fixture
def stopped_at(world: World, server: ConfigServer, make_vm: MakeVm) -> Callable[[str, str, str], Vm]:
    """stopped_at("kill" or "hold", unit, point): a machine that has been switched on, and will stop there."""

    def start(how: str, unit: str, point: str) -> Vm:
        world.dhcp.start()
        machine = make_vm()
        verb = VERBS[unit].split()[0]
        machine.write_in_initrd("/usr/local/lib/killer", Path(killer.__file__).read_text(), 0o755)
        program = f"/usr/bin/python3 -I -S /usr/local/lib/killer {VERBS[unit]}"
        machine.write_in_initrd(f"/etc/systemd/system/homeport-{unit}.service.d/killer.conf",
                                f"[Service]\nExecStart=\nExecStart={program}\n")
        machine.write_in_initrd(killer.ORDER, f"{verb}\t{how}\t{point}\n")
        machine.start(f"homeport.config={server.put(SEED, seed_document())}", *NETWORK)
        return machine

    return start


@step
def test_killed(
    stopped_at: Callable[[str, str, str], Vm], allow: Callable[..., None], unit: str, point: str
) -> None:
    """The same boot goes on, and the real root's homeport brings it to the end."""
    allow("code=killed")
    machine = stopped_at("kill", unit, point)
    boot = machine.wait_online()
    assert machine.exists(killer.HELD), f"{point} was not reached"
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


@step
def test_power_cut(stopped_at: Callable[[str, str, str], Vm], unit: str, point: str) -> None:
    """Off at this moment; and on again, with nothing in the way."""
    machine = stopped_at("hold", unit, point)
    machine.wait_for_agent("initrd")
    wait_until(lambda: machine.sh(f"test -e {killer.HELD}", check=False).status == 0, timeout=300, every=1,
               what=f"{unit} to come to {point}")
    machine.power_cut()
    machine.initrd_files.clear()
    boot = machine.boot(*machine.arguments)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
