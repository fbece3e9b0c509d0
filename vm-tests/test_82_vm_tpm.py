"""Whole machines with a TPM as their identity: a seed on a drive, and a registration.

Apart from test_80_vm.py, so that two processes can do one half each.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import yaml

from elemental import make_elemental
from poolserver import PoolServer, pool, registration
from seed import NIC, assert_early, assert_on_dhcp, assert_seed, seed_document
from test_80_vm import NETWORK, SLOW, MakeVm, in_initrd
from vm.disk import vfat_disk
from vm.hardware import Hardware
from vm.machine import Vm
from world import World

pytestmark = pytest.mark.vm


def test_seed_on_a_drive(world: World, make_vm: MakeVm, tmp_path: Path) -> None:
    """For the machine with this TPM, whose driver is late: NetworkManager in the initramfs starts straight into it.

    Nobody on the wire gives out addresses, and nobody is asked: not one DHCP packet leaves the machine. Again without
    a network in the initramfs; and in the end the TPM hangs.
    """
    machine = make_vm(tpm=True)
    drive = tmp_path / "drive.img"
    identity = hash_by_tpm2_tools(machine)
    vfat_disk(drive, "HOMEPORT", {"homeport.yaml": for_one_machine({"tpmHash": identity})})
    machine.hardware = Hardware(drives={"stick": drive})
    make_tpm_late(machine)
    boot = machine.boot(*NETWORK)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert_early(boot)
    assert boot.status["source"] == boot.early["source"] == "drive HOMEPORT/homeport.yaml"
    assert {step["name"]: step["note"] for step in boot.early["steps"]}["plan"] == "in force"
    assert machine.wire(NIC).dhcp() == []
    assert machine.journal("late-tpm.service", priority=4) == []
    early = [entry["MESSAGE"] for entry in machine.journal("nm-initrd.service", "NetworkManager-initrd.service")]
    assert any(f"({NIC}): Activation: successful" in line for line in early), early
    machine.power_off()

    machine.initrd_files.clear()
    boot = machine.boot(*SLOW)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert boot.early == {}
    assert "the real root has it already: drive HOMEPORT/homeport.yaml" in in_initrd(machine)
    assert machine.wire(NIC).dhcp() == []
    assert_left_behind(machine)


def for_one_machine(match: dict[str, str]) -> str:
    """The seed case, for a machine of which this is true and nobody else. JSON is YAML."""
    network = yaml.safe_load(seed_document())["spec"]["network"]
    return json.dumps({"machines": [{"match": match, **network}]})


LATE = """\
[Unit]
DefaultDependencies=no
Conflicts=initrd-switch-root.target
Before=initrd-switch-root.target
[Service]
ExecStartPre=sh /late-tpm off
ExecStart=sh /late-tpm on
"""
LATE_SCRIPT = """\
case $1 in
off)
    mv /dev/tpmrm0 /dev/late;;
on)
    # By then its list of devices is made.
    until [ -e /sys/fs/cgroup/system.slice/homeport-prepare.service/cgroup.procs ]; do sleep 0.1; done
    sleep 0.5
    mv /dev/late /dev/tpmrm0;;
esac
"""


def make_tpm_late(machine: Vm) -> None:
    """Its node comes when homeport runs already in the initramfs, as that of a driver that is loaded late.

    The driver itself is built in; taken off and put back, it gives another number, as IMA holds the first.
    """
    machine.write_in_initrd("/late-tpm", LATE_SCRIPT)
    machine.write_in_initrd("/etc/systemd/system/late-tpm.service", LATE)
    machine.write_in_initrd("/etc/systemd/system/homeport-prepare.service.d/late-tpm.conf",
                            "[Unit]\nWants=late-tpm.service\nAfter=late-tpm.service\n")


def assert_left_behind(machine: Vm) -> None:
    """The TPM hangs: whoever asks ends in time, in a unit as ours are, and who waits for the kernel is in a scope.

    In the unit's cgroup systemd would wait for it, for twice TimeoutStopSec=, which is two minutes.
    """
    assert machine.tpm
    machine.sh("sed -e '/^Condition/d; s|^ExecStart=.*|ExecStart=/usr/bin/homeport identify --tpm-timeout=3s|' "
               "/usr/lib/systemd/system/homeport-refresh.service >/run/systemd/system/hung.service")
    with machine.tpm.hanging():
        machine.sh("systemctl start hung", timeout=100)
        assert "did not give its certificate within 3 s" in machine.sh("journalctl -u hung -o cat").stdout
        scopes = machine.sh("systemctl list-units --plain --no-legend 'homeport-tpm-*.scope'").stdout
        assert "A command that the TPM does not finish" in scopes
        states = machine.sh("cd /sys/fs/cgroup/system.slice; cat homeport-tpm-*.scope/cgroup.procs | "
                            "while read -r pid; do grep State /proc/$pid/status; done").stdout
        assert "D (disk sleep)" in states
    machine.wait("! systemctl is-active --quiet 'homeport-tpm-*.scope'")


def test_registered_by_its_tpm(world: World, make_vm: MakeVm) -> None:
    """From the live medium to an installed machine, named by its TPM as tpm2-tools name it; again with nobody there."""
    world.dhcp.start()
    machine = make_vm(tpm=True)
    assert machine.tpm
    boot = machine.boot("rd.cos.disable", *SLOW)
    assert_on_dhcp(boot)
    assert (boot.status["mode"], boot.status["exit"]) == ("live", 0)
    machine.power_off()

    with PoolServer(world, pool("192.168.122.150"), registration()) as server:
        make_elemental(machine, server.bootstrap())
        boot = machine.boot(*SLOW)
        assert_seed(machine, boot)
        identity = boot.status["identity"]
        assert identity["kind"] == "tpm"
        machine.power_off()
        assert identity["value"] == hash_by_tpm2_tools(machine)
        (known,) = json.loads(server.ask("show", identity["value"], "--json"))
        assert known["name"] == f"test-btrfs-{machine.firmware.uuid}"
    world.dhcp.stop()
    boot = machine.boot(*SLOW)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


def hash_by_tpm2_tools(machine: Vm) -> str:
    """SHA-256 of the endorsement key as a DER SubjectPublicKeyInfo, made by tpm2-tools on the same TPM."""
    assert machine.tpm
    with machine.tpm as chip:
        chip.tool("tpm2_createek", "-G", "rsa", "-c", "ek.ctx", "-u", "ek.der", "-f", "der")
        return hashlib.sha256((chip.folder / "ek.der").read_bytes()).hexdigest()
