"""What the initramfs leaves is what the real root starts with: no DHCP with a document at hand, one question a boot.

The initramfs is early.py's; the real ones are in the tests of emulated machines.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator

import pytest

from configserver import ConfigServer
from container import Machine, mac_of
from drives import Drives
from early import before_systemd, log
from seed import ADDRESS, NIC, SEED, assert_on_dhcp, assert_seed, seed_document
from vm.wire import Capture
from world import World

FIRST = "192.168.122.77/24"
LINK = f"/etc/systemd/network/98-nmstate-{NIC}.link"


@pytest.fixture
def wire(world: World) -> Iterator[Capture]:
    """What machines send on the LAN."""
    with Capture(world.namespace, world.lan.bridge) as capture:
        yield capture


def packed(document: str) -> str:
    """For the kernel command line."""
    return base64.b64encode(gzip.compress(document.encode(), 9, mtime=0)).decode()


def in_run(machine: Machine) -> list[str]:
    names = machine.sh("ls /run/NetworkManager/system-connections").stdout.split()
    return [name for name in names if name != "lo.nmconnection"]


def test_an_assignment_at_hand_needs_no_dhcp(world: World, machine: Machine, wire: Capture) -> None:
    """A credential: rendered for the real root's NetworkManager, proven and kept there; not one DHCP packet."""
    world.dhcp.start()
    before_systemd(machine)
    given = {"homeport.assignment": seed_document()}
    boot = machine.boot(credentials=given)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"], boot.status["persisted"]) == ("assigned", 0, True)
    assert wire.dhcp() == []
    # NetworkManager started straight into it: proven and kept as it is, nothing was applied.
    assert not any("checkpoint-create" in e["MESSAGE"] for e in machine.journal("NetworkManager.service"))
    assert [e for e in machine.monitor.events(kind="ADDR", nic=NIC) if e.deleted] == []
    assert in_run(machine) == []
    assert not machine.exists("/run/homeport/prepared.json")

    machine.power_off()
    boot = machine.boot(credentials=given)
    assert "has it already" in log(machine)
    assert_seed(machine, boot)
    assert [step["name"] for step in boot.status["steps"]] == ["fast path"]
    assert wire.dhcp() == []


def test_another_assignment_takes_the_place_of_the_kept_one(world: World, machine: Machine, wire: Capture) -> None:
    """The new text has the old profile's UUID: no second profile for the same card, no DHCP in between."""
    before_systemd(machine)
    machine.boot(credentials={"homeport.assignment": seed_document()})
    machine.power_off()
    boot = machine.boot(credentials={"homeport.assignment": seed_document("192.168.122.151")})
    assert_seed(machine, boot, "192.168.122.151/24")
    assert boot.status["exit"] == 0
    assert wire.dhcp() == []
    assert in_run(machine) == []


@pytest.mark.usefixtures("falling")
@pytest.mark.parametrize("how", ["at once", "slowly"])
def test_one_that_does_not_prove_is_taken_away(world: World, machine: Machine, how: str) -> None:
    """What was proven before comes to light again, and nothing of the other, however slowly it goes."""
    world.dhcp.start()
    before_systemd(machine)
    if how == "slowly":
        machine.write("/etc/NetworkManager/dispatcher.d/pre-down.d/slow", "#!/bin/sh\nsleep 2\n", 0o755)
    machine.boot(credentials={"homeport.assignment": seed_document()})
    machine.power_off()
    with_proof = seed_document("192.168.122.151", extra="    proof: [{tcp: '192.168.122.99:1'}]\n")
    boot = machine.boot("homeport.proof-timeout=3s", credentials={"homeport.assignment": with_proof})
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("last-known-good", 75)
    assert in_run(machine) == []


@pytest.mark.usefixtures("falling")
def test_one_that_does_not_prove_on_a_new_machine(world: World, machine: Machine) -> None:
    """DHCP, as if there had been none."""
    world.dhcp.start()
    before_systemd(machine)
    with_proof = seed_document(extra="    proof: [{tcp: '192.168.122.99:1'}]\n")
    boot = machine.boot("homeport.proof-timeout=3s", credentials={"homeport.assignment": with_proof})
    assert_on_dhcp(boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("dhcp", 75)
    assert in_run(machine) == []


@pytest.mark.usefixtures("falling")
@pytest.mark.parametrize("kind", ["iso9660", "vfat"])
def test_a_drive(
    world: World, make_machine: Callable[..., Machine], drives: Drives, wire: Capture, kind: str
) -> None:
    """Labelled HOMEPORT, with one document for all: kept, so that the drive can go."""
    drives.plug("HOMEPORT", {"homeport.yaml": seed_document()}, kind=kind)
    machine = make_machine(drives=drives)
    before_systemd(machine)
    boot = machine.boot()
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert boot.status["source"] == "drive HOMEPORT/homeport.yaml"
    assert wire.dhcp() == []
    machine.power_off()
    (drives.labels / "HOMEPORT").unlink()
    boot = machine.boot()
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert wire.dhcp() == []


def test_a_seed_on_the_kernel_line_is_the_way_to_the_server(
    world: World, server: ConfigServer, machine: Machine, wire: Capture
) -> None:
    """No DHCP server anywhere: the seed's address is what the assignment is asked for with, and is then replaced."""
    before_systemd(machine)
    arguments = (f"homeport.config={server.put(SEED, seed_document())}",
                 f"homeport.seed={packed(seed_document('192.168.122.77'))}")
    boot = machine.boot(*arguments)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert [r.client for r in server.asked(SEED)] == [FIRST.partition("/")[0]]
    assert in_run(machine) == []
    assert wire.dhcp() == []
    machine.power_off()
    server.stop()
    boot = machine.boot(*arguments)
    assert_seed(machine, boot)
    assert wire.dhcp() == []


@pytest.mark.usefixtures("falling")
def test_a_seed_alone(world: World, machine: Machine, wire: Capture) -> None:
    """In force and proven, and not kept: a seed is where one starts, each time."""
    before_systemd(machine)
    boot = machine.boot(f"homeport.seed={packed(seed_document('192.168.122.77'))}")
    assert boot.addresses(NIC) == [FIRST]
    assert (boot.status["rung"], boot.status["exit"]) == ("seed", 0)
    assert not any(name.startswith("homeport-") for name in boot.keyfiles)
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    machine.run(["homeport", "refresh"])
    after = machine.look()
    assert (after.addresses(NIC), after.status["rung"], after.status["exit"]) == ([FIRST], "seed", 0)
    assert machine.exists("/run/homeport/in-force")
    assert wire.dhcp() == []


@pytest.mark.usefixtures("falling")
def test_a_broken_seed_is_loud(world: World, machine: Machine) -> None:
    """Which value, on the console; and DHCP."""
    world.dhcp.start()
    before_systemd(machine)
    bad = seed_document().replace("prefix-length: 24", "prefix-length: 99")
    boot = machine.boot(f"homeport.seed={packed(bad)}")
    assert "interfaces[0].ipv4.address[0].prefix-length" in log(machine)
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65
    # Without the prefix that systemd gives it.
    machine.says("prefix-length")
    lines = [line.partition("]: ")[2] for line in machine.console.splitlines() if "prefix-length" in line]
    assert lines and all(len(line) <= 100 for line in lines)


def test_the_initramfs_asks_and_the_real_root_does_not(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """One question a boot; the profiles are on disk before systemd starts, and no address goes away in between."""
    world.dhcp.start()
    before_systemd(machine)
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", "homeport.initrd=always")
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    early = json.loads(machine.read("/run/homeport/initrd-status.json"))
    assert (early["rung"], early["exit"], early["fetched"]) == ("assigned", 0, True)
    assert "handed over to the real root" in log(machine)
    assert "before, in the initramfs:" in boot.text("status-table")
    assert in_run(machine) == []
    machine.wait("test $(systemctl show -P SubState homeport-refresh.service) = exited || "
                 "systemctl show -P ExecMainExitTimestampMonotonic homeport-refresh.service | grep -qv '^0$'")
    assert len(server.asked(SEED)) == 1
    mine = [e for e in machine.monitor.events(kind="ADDR", nic=NIC) if ADDRESS in e.text]
    assert mine and not any(e.deleted for e in mine)

    machine.power_off()
    boot = machine.boot(f"homeport.config={url}", "homeport.initrd=off")
    assert_seed(machine, boot)
    assert [step["name"] for step in boot.status["steps"]] != []


def test_what_is_beside_the_profiles_is_handed_over_too(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """The host name and an alternative name: nothing is applied a second time, and the next boot has them as well."""
    world.dhcp.start()
    # What udev does with the file when a machine starts: there is none in a container.
    before_systemd(machine, before=f"for name in $(sed -n s/^AlternativeName=//p /sysroot{LINK}); do "
                                   f"ip link property add dev {NIC} altname $name; done")
    document = seed_document().replace("      interfaces:\n", (
        "      hostname: {running: berth-7, config: berth-7}\n      interfaces:\n"))
    document = document.replace(
        "          state: up\n", "          state: up\n          alt-names: [{name: uplink0}]\n")
    url = server.put(SEED, document)
    boot = machine.boot(f"homeport.config={url}", "homeport.initrd=always")
    assert "handed over to the real root" in log(machine)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"], boot.status["changed"]) == ("assigned", 0, False)
    assert not any("checkpoint-create" in e["MESSAGE"] for e in machine.journal("NetworkManager.service"))
    assert "AlternativeName=uplink0" in machine.read(LINK)
    assert "uplink0" in machine.run(["ip", "link", "show", NIC]).stdout
    assert machine.run(["uname", "-n"]).stdout == machine.read("/etc/hostname") == "berth-7\n"

    later = (f"homeport.config={url}", "homeport.initrd=off")
    for fast in (False, True):  # another argument is the long way
        machine.power_off()
        boot = machine.boot(*later)
        assert ([step["name"] for step in boot.status["steps"]] == ["fast path"]) == fast
        assert not boot.status["changed"]
        assert "uplink0" in machine.run(["ip", "link", "show", NIC]).stdout
        assert machine.run(["uname", "-n"]).stdout == "berth-7\n"

    machine.power_off()
    machine.write("/etc/hostname", "another\n")
    boot = machine.boot(*later)
    assert boot.status["exit"] == 0
    assert machine.run(["uname", "-n"]).stdout == machine.read("/etc/hostname") == "berth-7\n"


def test_a_real_root_that_cannot_be_written(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """It stays in /run for the real root's own homeport, which keeps it without asking again."""
    world.dhcp.start()
    before_systemd(machine, between="mount -o remount,ro,bind /sysroot")
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", "homeport.initrd=always")
    assert "it keeps the network itself: it is read-only" in log(machine)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"], boot.status["persisted"]) == ("assigned", 0, True)
    assert len(server.asked(SEED)) == 1
    assert in_run(machine) == []
    mine = [e for e in machine.monitor.events(kind="ADDR", nic=NIC) if ADDRESS in e.text]
    assert mine and not any(e.deleted for e in mine)


@pytest.mark.usefixtures("falling")
def test_nothing_of_the_initramfs_is_left_where_nothing_was_found(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """On DHCP there: the same lease goes on; when the server is back, the real root is assigned as ever."""
    world.dhcp.start()
    server.stop()
    before_systemd(machine)
    arguments = (f"homeport.config={server.url}{SEED}", "homeport.initrd=always", "homeport.initrd-deadline=9s")
    boot = machine.boot(*arguments, "homeport.deadline=2s")
    assert_on_dhcp(boot)
    assert in_run(machine) == []
    mine = [line for line in world.dhcp.log.splitlines() if mac_of(machine.name, NIC) in line]
    assert len([line for line in mine if "DHCPDISCOVER" in line]) == 1, mine


@pytest.mark.usefixtures("falling")
def test_a_server_that_comes_later(world: World, server: ConfigServer, machine: Machine) -> None:
    """The boot stands on the seed; the refresh asks over it, and the assignment replaces it for good."""
    before_systemd(machine)
    url = server.put(SEED, seed_document())
    server.stop()
    arguments = (f"homeport.config={url}", f"homeport.seed={packed(seed_document('192.168.122.77'))}",
                 "homeport.deadline=2s")
    boot = machine.boot(*arguments)
    assert boot.addresses(NIC) == [FIRST]
    assert (boot.status["rung"], boot.status["exit"]) == ("seed", 69)
    machine.wait("test $(systemctl show -P ActiveState homeport-refresh.service) != activating")
    # Asked again in vain, what is in force stays.
    assert machine.look().addresses(NIC) == [FIRST]
    server.start()
    machine.run(["homeport", "refresh"])
    assert_seed(machine, machine.look())
    assert in_run(machine) == []
    assert not machine.exists("/run/homeport/prepared.json")
    machine.power_off()
    server.stop()
    assert_seed(machine, machine.boot(*arguments))


def test_without_an_initramfs_of_ours(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], drives: Drives, allow: Callable[..., None]
) -> None:
    """A drive and a seed are heard on the real root, too: after NetworkManager has begun with DHCP in vain."""
    allow("falling back", "^homeport: seed", "Failed with result", "Failed to start")
    drives.plug("HOMEPORT", {"homeport.yaml": seed_document()}, kind="vfat")
    machine = make_machine(drives=drives)
    boot = machine.boot()
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)

    machine = make_machine()
    boot = machine.boot(f"homeport.config={server.url}{SEED}", "homeport.deadline=2s",
                        f"homeport.seed={packed(seed_document('192.168.122.77'))}")
    assert boot.addresses(NIC) == [FIRST]
    assert boot.status["rung"] == "seed"
