"""What survives: reboots with the server gone, the modes that go back to DHCP, and reset."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

DHCP_MODES = ("recovery", "reset", "live")


def test_reboot_with_nobody_there(world: World, seeded: Seeded) -> None:
    """Neither a configuration server nor a DHCP server: the machine comes up as it was assigned."""
    seeded.server.stop()
    world.dhcp.stop()
    boot = seeded.reboot()
    assert_seed(seeded.machine, boot)
    assert boot.status["exit"] == 0
    assert boot.status["rung"] in ("assigned", "last-known-good")
    assert boot.status["fetched"] is False
    assert boot.status["changed"] is False
    assert boot.failed_units == []


def test_power_cut_after_the_first_boot(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine]
) -> None:
    """No farewell, on a disk that has only what was synced: what was said to be kept is kept."""
    world.dhcp.start()
    seeded = Seeded(make_machine(lossy=True), server, server.put(SEED, seed_document()))
    seeded.machine.power_cut()
    server.stop()
    world.dhcp.stop()
    boot = seeded.machine.boot(f"homeport.config={seeded.url}")
    assert_seed(seeded.machine, boot)
    assert boot.status["exit"] == 0


def test_second_boot_changes_nothing(world: World, seeded: Seeded) -> None:
    """The fast path: no apply, nothing rewritten; its NIC sees one address come, and none go."""
    machine = seeded.machine
    before = _disk(machine)
    asked = len(seeded.server.asked(SEED))

    boot = seeded.reboot()
    # The refresh that follows network-online has had its turn, and found nothing new either.
    machine.wait("! systemctl is-active --quiet homeport-refresh.service || "
                 "test $(systemctl show -P SubState homeport-refresh.service) = exited")  # fmt: skip

    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert boot.status["fetched"] is False
    assert boot.status["changed"] is False
    names = [step["name"] for step in boot.status["steps"]]
    assert "apply" not in names
    assert "fetch" not in names
    addresses = [e for e in machine.monitor.events(kind="ADDR", nic=NIC) if "inet " in e.text]
    assert [e for e in addresses if e.deleted] == []
    # Seen again when duplicate address detection is over, but always the same address.
    assert all(ADDRESS in e.text for e in addresses), [*map(str, addresses)]
    assert _disk(machine) == before
    later = seeded.server.asked(SEED)[asked:]
    assert [r.status for r in later] in ([], [304])


def test_boot_again_on_a_running_machine(seeded: Seeded) -> None:
    """`homeport boot` on a machine that is as it should be: not one event of the kernel."""
    machine = seeded.machine
    mark = machine.monitor.mark()
    machine.run(["homeport", "boot"])
    assert [*map(str, machine.monitor.events(since=mark, nic=NIC))] == []
    assert_seed(machine, machine.look())


@pytest.mark.parametrize("mode", ["recovery", "live"])
def test_dhcp_for_one_boot(world: World, seeded: Seeded, mode: str) -> None:
    """After a static assignment: on a lease, with the lease's DNS and route, although no server answers.

    The next boot is as assigned again, with nobody there to ask.
    """
    seeded.server.stop()
    boot = seeded.reboot(f"homeport.mode={mode}")
    assert_on_dhcp(boot, keyfiles=False)
    assert_by_mode(boot, mode)
    world.dhcp.stop()
    boot = seeded.reboot()
    assert_seed(seeded.machine, boot)
    assert boot.status["exit"] == 0


def assert_by_mode(boot: Outcome, mode: str) -> None:
    """On DHCP because that was asked for: nothing is wrong."""
    assert boot.status["exit"] == 0
    assert boot.status["rung"] == "dhcp"
    assert boot.status["mode"] == mode
    assert mode in boot.status["reason"]
    assert boot.failed_units == []


def test_reset_mode_forgets(world: World, seeded: Seeded, falling: None) -> None:
    """The same in reset mode, and afterwards there is nothing to fall back to but DHCP."""
    seeded.server.stop()
    boot = seeded.reboot("homeport.mode=reset")
    assert_on_dhcp(boot)
    assert_by_mode(boot, "reset")
    assert not seeded.machine.exists("/var/lib/homeport/assigned.yaml")
    boot = seeded.reboot("homeport.deadline=3s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69


@pytest.mark.parametrize("mode", DHCP_MODES)
def test_dhcp_by_mode_on_a_new_machine(world: World, machine: Machine, mode: str) -> None:
    """The same on a machine that never had an assignment, with a server that would have one."""
    world.dhcp.start()
    server = world.serve()
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", f"homeport.mode={mode}")
    assert_on_dhcp(boot)
    assert_by_mode(boot, mode)
    assert server.requests == []


def test_reset_on_a_running_machine(
    world: World, seeded: Seeded, falling: None
) -> None:
    """`homeport reset` forgets ours and only ours: DHCP at once, and after a reboot with no server."""
    machine = seeded.machine
    seeded.server.stop()
    theirs = _foreign_profile("eth7")
    machine.write("/etc/NetworkManager/system-connections/theirs.nmconnection", theirs, 0o600)

    machine.run(["homeport", "reset", "--yes"])

    assert_on_dhcp(machine.look())
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    boot = seeded.reboot("homeport.deadline=3s")
    assert_on_dhcp(boot)
    assert machine.read("/etc/NetworkManager/system-connections/theirs.nmconnection") == theirs


def test_reset_asks_first(seeded: Seeded) -> None:
    """Without --yes and without a terminal nothing happens."""
    done = seeded.machine.run(["homeport", "reset"], check=False)
    assert done.status == 64, done
    assert_seed(seeded.machine, seeded.machine.look())


def test_refresh_applies_a_change(world: World, seeded: Seeded) -> None:
    """The server has another document: refresh puts it in force under a checkpoint, and keeps the old one."""
    machine = seeded.machine
    seeded.assign(seed_document("192.168.122.151"))

    machine.run(["homeport", "refresh"])

    assert_seed(machine, machine.look(), "192.168.122.151/24")
    status = json.loads(machine.read("/run/homeport/status.json"))
    assert (status["exit"], status["rung"], status["changed"]) == (0, "assigned", True)
    assert "192.168.122.150" in machine.read("/var/lib/homeport/previous.yaml")
    assert "192.168.122.151" in machine.read("/var/lib/homeport/assigned.yaml")
    assert any('op="checkpoint-create"' in e["MESSAGE"] for e in machine.journal("NetworkManager.service"))

    seeded.server.stop()
    world.dhcp.stop()
    assert_seed(machine, seeded.reboot(), "192.168.122.151/24")


def test_refresh_without_a_change(seeded: Seeded) -> None:
    """Refresh asks conditionally, is told 304, and touches nothing."""
    machine = seeded.machine
    mark = machine.monitor.mark()
    before = _disk(machine)
    machine.run(["homeport", "refresh"])
    assert seeded.server.asked(SEED)[-1].status == 304
    assert machine.monitor.events(since=mark, nic=NIC) == []
    assert _disk(machine) == before
    assert_seed(machine, machine.look())


def test_strangers_survive(world: World, server: ConfigServer, machine: Machine) -> None:
    """An administrator's own profile for the same NIC, and a foreign file that has a name like ours."""
    folder = "/etc/NetworkManager/system-connections"
    theirs = {
        "admin.nmconnection": _foreign_profile(NIC),
        "homeport-lab.nmconnection": _foreign_profile("eth7"),
    }
    for name, text in theirs.items():
        machine.write(f"{folder}/{name}", text, 0o600)
    world.dhcp.start()
    url = server.put(SEED, seed_document())

    boot = machine.boot(f"homeport.config={url}")
    assert boot.addresses(NIC) == [ADDRESS]
    assert boot.status["exit"] == 0
    _assert_untouched(machine, folder, theirs)

    machine.power_off()
    boot = machine.boot(f"homeport.config={url}")
    assert boot.addresses(NIC) == [ADDRESS]
    _assert_untouched(machine, folder, theirs)

    machine.run(["homeport", "reset", "--yes"])
    _assert_untouched(machine, folder, theirs)


def _assert_untouched(machine: Machine, folder: str, theirs: dict[str, str]) -> None:
    for name, text in theirs.items():
        assert machine.read(f"{folder}/{name}") == text
        # In NetworkManager too, not only on disk.
        assert f"{folder}/{name}" in machine.look().text("connections")


def _foreign_profile(nic: str) -> str:
    uuid = {NIC: "11111111-1111-4111-8111-111111111111"}.get(nic, "22222222-2222-4222-8222-222222222222")
    return (
        f"[connection]\nid=by hand {nic}\nuuid={uuid}\ntype=ethernet\ninterface-name={nic}\n"
        "autoconnect=false\n\n[ipv4]\nmethod=manual\naddress1=10.9.8.7/24\n\n[ipv6]\nmethod=disabled\n"
    )


def _disk(machine: Machine) -> str:
    """Everything that we write, with the time it was written."""
    return machine.sh(
        "find /etc/NetworkManager/system-connections /var/lib/homeport -type f "
        "-printf '%p %s %m %T@\\n' | sort; cat /var/lib/homeport/assigned.yaml"
    ).stdout
