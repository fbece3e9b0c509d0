"""Whole machines, from firmware to network-online: the initramfs, SMBIOS, a TPM, permanent MACs, NICs in another order.

Chains of boots where a machine's life is one: each boot takes a minute without KVM.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from configserver import ConfigServer
from container import Nic
from firmware import Firmware
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, assert_early, assert_on_dhcp, assert_seed, default_routes, seed_document
from tagged import Tagged
from vm.machine import Vm
from vm.wire import client_ids, messages
from world import World

pytestmark = pytest.mark.vm

MakeVm = Callable[..., Vm]
UUID = "4c4c4544-0042-3010-8051-b4c04f564432"
FIRST, SECOND = "52:54:00:aa:00:01", "52:54:00:aa:00:02"
# Without KVM everything takes ten times as long, and a busy machine doubles that.
SLOW = ("homeport.initrd-deadline=150s", "homeport.proof-timeout=40s", "homeport.connect-timeout=20s")
NETWORK = ("rd.neednet=1", *SLOW)


def in_initrd(machine: Vm) -> list[str]:
    """What homeport said in the initramfs, in this boot."""
    units = (f"homeport-{name}.service" for name in ("prepare", "initrd", "handover", "tidy"))
    return [entry.get("MESSAGE", "") for entry in machine.journal(*units)]


def test_from_the_initramfs(world: World, server: ConfigServer, make_vm: MakeVm) -> None:
    """By URL, and in force in the real root; the power is cut, and the server gone; recovery by the kernel line."""
    world.dhcp.start()
    machine = make_vm(firmware=Firmware(UUID, "SERIAL-1"))
    path = f"/{UUID}.yaml"
    server.put(path, seed_document())
    arguments = (f"homeport.config={server.url}/{{uuid}}.yaml", *NETWORK)

    boot = machine.boot(*arguments)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert boot.failed_units == []
    assert_early(boot)
    assert (boot.early["mode"], boot.early["identity"]["value"]) == ("active", UUID)
    assert "asked in the initramfs" in {step["name"]: step["note"] for step in boot.status["steps"]}["fetch"]
    assert machine.run(["homeport", "status", "--json"]).json()["initrd"] == boot.early
    wire = machine.wire(NIC)
    # One lease, for the client whom the real root would be, too.
    assert len(client_ids(wire.dhcp())) == 1
    assert messages(wire.dhcp()).count("discover") == 1
    cut_the_power(machine)
    assert [request.status for request in server.asked(path)] == [200]

    server.stop()
    world.dhcp.stop()
    count_writes_of_the_look(machine)
    boot = machine.boot(*arguments)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert boot.status["fetched"] is False
    # What was kept is in force before NetworkManager starts, in the initramfs, too.
    assert_early(boot, "last-known-good", fetched=False)
    assert machine.wire(NIC).dhcp() == []
    assert machine.read(WRITES) == "0\n"
    machine.power_off()
    assert_sound(machine)

    world.dhcp.start()
    boot = machine.boot(*arguments, "homeport.mode=recovery")
    assert_on_dhcp(boot, keyfiles=False)
    assert (boot.status["rung"], boot.status["exit"], boot.status["mode"]) == ("dhcp", 0, "recovery")
    assert_early(boot, "dhcp", fetched=False)
    assert boot.early["mode"] == "recovery"
    assert_shell_on_the_console(machine)


def cut_the_power(machine: Vm) -> None:
    """While a file is open that was deleted: the disk then has a journal to be replayed, and a file to be freed."""
    machine.sh("systemd-run --quiet --unit=holder sh -c "
               "'exec 3>/var/open; head -c 4M /dev/zero >&3; rm /var/open; touch /run/deleted; exec sleep infinity'")
    machine.wait("test -e /run/deleted")
    # What is frozen has left the journal: the file is noted in the superblock, too, where a mount without it looks.
    machine.sh("sync; fsfreeze --freeze /; fsfreeze --unfreeze /; sync")
    machine.power_cut()
    header = tool("dumpe2fs", "-h", machine)
    assert "needs_recovery" in header and "First orphan inode" in header, header


# What had been written to the disk by then, since the machine was switched on (Documentation/block/stat.rst).
WRITES = "/run/written-by-the-look"
COUNT = f"""\
[Service]
ExecStartPost=+sh -c 'read -r _ _ _ _ count _ </sys/class/block/vda/stat; echo $$count >{WRITES}'
"""


def count_writes_of_the_look(machine: Vm) -> None:
    """The unit that looks at the real root is the first one that may reach its disk."""
    machine.write_in_initrd("/etc/systemd/system/homeport-prepare.service.d/count.conf", COUNT)


def assert_sound(machine: Vm) -> None:
    """All that is on the disk agrees; the machine is off."""
    tool("e2fsck", "-fn", machine)


def tool(name: str, option: str, machine: Vm) -> str:
    """What one of e2fsprogs says of the disk. It fails if that is no good."""
    machine.disk.unmount()
    done = subprocess.run([name, option, machine.disk.image], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_shell_on_the_console(machine: Vm) -> None:
    """The way in of `make vm-shell`, which nobody needs until something has failed."""
    machine.sh("systemctl start vm-shell")
    said = b""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        line.connect(str(machine.folder / "console"))
        for _ in range(12):
            # What is typed before the shell reads is thrown away.
            line.sendall(b"\necho at the $((6 * 7))\n")
            with suppress(TimeoutError):
                while b"at the 42\r" not in said:
                    said += line.recv(4096) or b"at the 42\r, but off"
                break
    assert b"at the 42\r" in said, said


def test_bond_with_a_vlan(world: World, server: ConfigServer, make_vm: MakeVm, falling: None) -> None:
    """Two cards by their permanent MACs, a bond over both, a VLAN over that; then the cards swap their slots.

    What was kept is worked out anew for the new names, once nobody has answered.
    """
    world.dhcp.start()
    machine = make_vm(nics=(Nic("enp1s0", FIRST), Nic("enp2s0", SECOND)))
    arguments = (f"homeport.config={server.put(SEED, bond_document())}", *NETWORK)
    with Tagged(world.lan, 10, ["10.46.0.1"]) as host:
        boot = machine.boot(*arguments)
        assert_bond(machine, boot, {"enp1s0": FIRST, "enp2s0": SECOND}, host)
        assert_early(boot)
        machine.power_off()

        server.stop()
        world.dhcp.stop()
        machine.nics = (Nic("enp1s0", SECOND), Nic("enp2s0", FIRST))
        boot = machine.boot(*arguments, "homeport.deadline=5s")
        assert_bond(machine, boot, {"enp1s0": SECOND, "enp2s0": FIRST}, host)
        # By the cards' MACs, it came up as it was kept.
        assert_early(boot, "last-known-good", fetched=False)
        assert boot.status["exit"] == 0


def bond_document() -> str:
    """Names of the document's own for the cards, whose MACs count. JSON is YAML."""
    cards = [{"name": name, "type": "ethernet", "state": "up", "identifier": "mac-address", "mac-address": mac,
              "ipv4": {"enabled": False}, "ipv6": {"enabled": False}}
             for name, mac in (("left", FIRST), ("right", SECOND))]
    bond = {"name": "bond0", "type": "bond", "state": "up", "mac-address": FIRST,
            "link-aggregation": {"mode": "active-backup", "options": {"miimon": "100", "primary": "left"},
                                 "port": ["left", "right"]},
            "ipv4": static("192.168.122.150"), "ipv6": {"enabled": False}}
    vlan = {"name": "bond0.10", "type": "vlan", "state": "up", "vlan": {"base-iface": "bond0", "id": 10},
            "ipv4": static("10.46.0.150"), "ipv6": {"enabled": False}}
    route = {"destination": "0.0.0.0/0", "next-hop-address": "192.168.122.1", "next-hop-interface": "bond0",
             "metric": 150}
    return json.dumps({"interfaces": [*cards, bond, vlan], "routes": {"config": [route]},
                       "dns-resolver": {"config": {"server": ["192.168.122.1"]}}})


def static(address: str) -> dict[str, Any]:
    return {"enabled": True, "dhcp": False, "address": [{"ip": address, "prefix-length": 24}]}


def assert_bond(machine: Vm, boot: Outcome, cards: dict[str, str], host: Tagged) -> None:
    assert boot.addresses("bond0") == [ADDRESS]
    assert boot.addresses("bond0.10") == ["10.46.0.150/24"]
    assert default_routes(boot) == [("192.168.122.1", "bond0", 150, "main")]
    links = {link["ifname"]: link for link in boot.parsed("address")}
    for name, mac in cards.items():
        assert links[name].get("permaddr", links[name]["address"]) == mac
        assert links[name]["master"] == "bond0"
    # The primary is the card that the document means, under whichever name it has today.
    primary = next(name for name, mac in cards.items() if mac == FIRST)
    assert machine.sh("cat /sys/class/net/bond0/bonding/primary").stdout.strip() == primary
    host.asked.clear()
    machine.sh("ping -c 1 -W 5 10.46.0.1")
    assert host.asked == ["ARP 10.46.0.1"]
    assert links["bond0"]["address"] == FIRST
    (kept,) = (name for name in boot.keyfiles if name.startswith("homeport-bond0.") and "10" not in name)
    assert kept


def test_proof_fails_in_the_initramfs(world: World, server: ConfigServer, make_vm: MakeVm, falling: None) -> None:
    """Nothing comes back to the assigned address: refused there, rolled back, and the machine boots on its lease."""
    world.dhcp.start()
    world.cut_off("192.168.122.150")
    machine = make_vm()
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", *NETWORK, "homeport.proof-timeout=5s")
    assert_on_dhcp(boot)
    assert boot.status["rung"] == "dhcp"
    assert_early(boot, "dhcp", status=75)
    # It was in force there, and nothing came back.
    assert "prove" in [step["name"] for step in boot.early["steps"]]
    assert boot.early["fallen"][0].startswith("assigned: Proof failed: ")
    assert boot.early["persisted"] is False
