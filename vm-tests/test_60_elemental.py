"""A machine of Elemental's: it registers, is given an address of a pool, and keeps it as Elemental keeps things.

The machine has what an Elemental image has of it: /oem with config.yaml, the marker file of its mode, and an /etc
that is empty at each boot until what /oem says is written into it. The server is homeport-server.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from container import Machine
from namespaces import wait_until
from poolserver import PoolServer, pool, python, registration
from seed import ADDRESS, NIC, assert_on_dhcp, assert_seed, seed_document
from swtpm import Swtpm, missing
from trees import NotPrepared
from world import World

CONFIG = "/oem/registration/config.yaml"
OEM = "/oem/elemental-network.yaml"

# What elemental-setup-initramfs does with the files in /oem, and no more of it than they use.
REPLAY = """\
import glob, os, subprocess, yaml
for old in glob.glob("/etc/NetworkManager/system-connections/*"):
    os.unlink(old)
for name in sorted(glob.glob("/oem/*.yaml")):
    for stage in yaml.safe_load(open(name)).get("stages", {}).get("initramfs", ()):
        if subprocess.run(["sh", "-c", stage.get("if", "true")]).returncode == 0:
            for file in stage.get("files", ()):
                with open(file["path"], "w") as out:
                    os.chmod(file["path"], file["permissions"])
                    out.write(file["content"])
"""
UNIT = """\
[Unit]
Description=Write what /oem says into /etc
DefaultDependencies=no
After=local-fs.target systemd-tmpfiles-setup.service
Before=NetworkManager.service basic.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /usr/local/lib/replay.py
[Install]
WantedBy=sysinit.target
"""


@pytest.fixture(autouse=True)
def _prepared() -> None:
    try:
        python()
    except NotPrepared as error:
        pytest.skip(str(error))


@pytest.fixture
def server(world: World) -> Iterator[PoolServer]:
    with PoolServer(world, pool("192.168.122.150"), registration("sys-uuid")) as running:
        yield running


def make_elemental(machine: Machine, server: PoolServer) -> None:
    machine.write(CONFIG, server.bootstrap(), 0o600)
    machine.write("/usr/local/lib/replay.py", REPLAY)
    machine.write("/etc/systemd/system/replay.service", UNIT)
    wants = machine.on_disk("/etc/systemd/system/sysinit.target.wants/replay.service")
    wants.parent.mkdir(parents=True, exist_ok=True)
    wants.symlink_to("/etc/systemd/system/replay.service")
    set_mode(machine, "active")


def set_mode(machine: Machine, mode: str) -> None:
    """What the initramfs leaves in /run for the mode that was booted."""
    machine.write("/etc/tmpfiles.d/elemental.conf",
                  f"d /run/elemental 0755\nf /run/elemental/{mode}_mode 0644 - - - 1\n")


def test_from_registration_to_reset(world: World, server: PoolServer, machine: Machine) -> None:
    """First boot, a boot without server and DHCP, recovery, active again, reset: one machine's life."""
    world.dhcp.start()
    make_elemental(machine, server)

    boot = machine.boot()
    assert_seed(machine, boot)
    assert boot.status["source"] == "elemental https://192.168.122.2/elemental/registration"
    assert stat.S_IMODE(machine.on_disk(OEM).stat().st_mode) == 0o600
    (known,) = server.machines()
    assert known["name"] == f"test-btrfs-{machine.firmware.uuid}"
    assert "t0ken" not in machine.story() + boot.text("status") + machine.console
    # The refresh after the boot tells what came of it.
    wait_until(lambda: '"assigned"' in server.ask("show", known["name"], "--json"), timeout=30,
               what="the server to hear of the outcome")  # fmt: skip

    server.stop()
    world.dhcp.stop()
    machine.power_off()
    boot = machine.boot()
    assert_seed(machine, boot)
    assert (boot.status["exit"], boot.status["fetched"], boot.status["changed"]) == (0, False, False)

    world.dhcp.start()
    machine.power_off()
    set_mode(machine, "recovery")
    boot = machine.boot()
    assert_on_dhcp(boot)
    assert machine.exists(OEM)

    machine.power_off()
    set_mode(machine, "active")
    assert_seed(machine, machine.boot())

    machine.power_off()
    set_mode(machine, "recovery")
    machine.write("/oem/reset-cloud-config.yaml", "name: reset\n")
    boot = machine.boot()
    assert_on_dhcp(boot)
    assert boot.status["mode"] == "reset"
    assert not machine.exists(OEM)


def test_a_reset_gives_the_address_back(world: World, server: PoolServer, machine: Machine) -> None:
    """By command, with the server there: the next machine may have it."""
    world.dhcp.start()
    make_elemental(machine, server)
    assert_seed(machine, machine.boot())
    (known,) = server.machines()
    machine.run(["homeport", "reset", "--yes"], timeout=90)
    assert not machine.exists(OEM)
    assert "192.168.122.150" not in server.ask("list")
    # It is still known: whoever registers again is the same machine.
    machine.run(["homeport", "refresh"], timeout=90)
    assert machine.look().addresses("enp1s0") == [ADDRESS]
    assert [one["name"] for one in server.machines()] == [known["name"]]


def test_an_exhausted_pool_is_waited_for(
    world: World, server: PoolServer, machine: Machine, falling: None
) -> None:
    """Pending, with the server's own reason, until an address comes free."""
    world.dhcp.start()
    server.ask("reserve", "52:54:00:ff:ff:ff", "inventory-ip=192.168.122.150")
    make_elemental(machine, server)
    machine.start()
    wait_until(lambda: "not ready" in machine.story(), timeout=60, what="the machine to be told to wait")
    server.ask("release", "52:54:00:ff:ff:ff", "--forget")
    assert_seed(machine, machine.wait_online(60))


def test_a_site_without_dhcp(world: World, server: PoolServer, machine: Machine, falling: None) -> None:
    """The image's seed gives the first address; registration follows over it, and the assignment replaces it."""
    make_elemental(machine, server)
    machine.write("/usr/lib/homeport/seed.yaml", seed_document("192.168.122.77"))
    boot = machine.boot("homeport.deadline=3s")
    assert boot.status["rung"] == "seed"
    assert boot.addresses(NIC) == ["192.168.122.77/24"]
    machine.wait(f"ip -4 address show {NIC} | grep -q 192.168.122.150", timeout=60)
    machine.wait("grep -q '\"assigned\"' /run/homeport/status.json", timeout=30)
    machine.power_off()
    assert_seed(machine, machine.boot("homeport.deadline=3s"))


def test_by_tpm(world: World, machine: Machine) -> None:
    """The server's challenge is opened by the machine's (software) TPM, and the TPM is what names the machine."""
    if why := missing():
        pytest.skip(why)
    world.dhcp.start()
    # On the machine's own disk, so that the socket is the same file inside and outside.
    with PoolServer(world, pool("192.168.122.150"), registration()) as server, Swtpm(machine.on_disk("/var/tpm")):
        make_elemental(machine, server)
        machine.write("/etc/tmpfiles.d/tpm.conf", "L+ /dev/tpmrm0 - - - - /var/tpm/tpm\n")
        boot = machine.boot()
        assert_seed(machine, boot)
        identity = boot.status["identity"]
        assert identity["kind"] == "tpm"
        assert server.ask("show", identity["value"])
        shown = machine.run(["homeport", "identify"]).stdout
        assert "ek-rsa2048-template" in shown
