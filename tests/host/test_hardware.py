"""CPUs, memory, disks and addresses, from the kernel's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.core.elemental.systemdata import Disk, Hardware
from homeport.core.facts import Nic
from homeport.host.hardware import read_hardware

THREAD = ("processor\t: {n}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {socket}\n"
          "core id\t\t: {core}\nflags\t\t: fpu vme\n\n")


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_two_sockets_of_two_cores_of_two_threads(tmp_path: Path) -> None:
    put(tmp_path, "proc/cpuinfo", "".join(
        THREAD.format(n=n, socket=n // 4, core=n // 2 % 2) for n in range(8)))
    cpus = read_hardware(tmp_path, (), "").cpus
    assert [(cpu.number, cpu.cores, cpu.threads, cpu.vendor, cpu.capabilities) for cpu in cpus] == [
        (0, 2, 4, "GenuineIntel", ("fpu", "vme")), (1, 2, 4, "GenuineIntel", ("fpu", "vme"))]


def test_an_arm_machine_says_less(tmp_path: Path) -> None:
    thread = "processor\t: {n}\nFeatures\t: fp asimd\n\n"
    put(tmp_path, "proc/cpuinfo", thread.format(n=0) + thread.format(n=1) + "CPU part : 1\n")
    (cpu,) = read_hardware(tmp_path, (), "").cpus
    assert (cpu.cores, cpu.threads, cpu.capabilities) == (2, 2, ("fp", "asimd"))


def test_memory(tmp_path: Path) -> None:
    put(tmp_path, "proc/meminfo", "MemFree: 1 kB\nMemTotal:       16000000 kB\n")
    found = read_hardware(tmp_path, (), "")
    assert found.physical_memory == found.usable_memory == 16_384_000_000  # no blocks shown
    put(tmp_path, "sys/devices/system/memory/block_size_bytes", "8000000\n")
    for number, state in ((0, "online"), (1, "online"), (32, "offline")):
        put(tmp_path, f"sys/devices/system/memory/memory{number}/state", f"{state}\n")
    assert read_hardware(tmp_path, (), "").physical_memory == 2 << 27


def test_disks(tmp_path: Path) -> None:
    for name, size, turns, removable, model in (
            ("sda", 2048, 1, 0, "ST1000 \x01"), ("nvme0n1", 4096, 0, 0, "990 PRO"), ("sr0", 0, 1, 1, ""),
            ("loop0", 1, 0, 0, ""), ("dm-0", 1, 0, 0, ""), ("zram0", 1, 0, 0, "")):
        put(tmp_path, f"sys/block/{name}/size", f"{size}\n")
        put(tmp_path, f"sys/block/{name}/queue/rotational", f"{turns}\n")
        put(tmp_path, f"sys/block/{name}/removable", f"{removable}\n")
        put(tmp_path, f"sys/block/{name}/device/model", f"{model}\n")
    assert read_hardware(tmp_path, (), "").disks == (
        Disk("nvme0n1", 4096 * 512, "SSD", "NVMe", False, "990 PRO"),
        Disk("sda", 2048 * 512, "HDD", "SCSI", False, "ST1000 ."), Disk("sr0", 0, "ODD", "SCSI", True, ""))


def test_firmware_strings(tmp_path: Path) -> None:
    put(tmp_path, "sys/class/dmi/id/bios_vendor", "ACME\n")
    put(tmp_path, "sys/class/dmi/id/chassis_type", "23\n")
    found = read_hardware(tmp_path, (), "vm")
    assert (found.bios_vendor, found.chassis_type, found.hostname) == ("ACME", "23", "vm")


def test_addresses_of_a_card() -> None:
    """The loopback has one of each family; a name that no kernel takes has none."""
    found = read_hardware(Path("/"), (Nic("lo"), Nic("no-such-interface-anywhere")), "")
    assert found.addresses["lo"][0] == "127.0.0.1"
    assert found.addresses["no-such-interface-anywhere"] == ()
    if os.path.exists("/proc/net/if_inet6") and "lo" in Path("/proc/net/if_inet6").read_text():
        assert "::1" in found.addresses["lo"]


@pytest.mark.parametrize("junk", ["", "\0\0", ": : :\n\n", "processor\nphysical id : x\n\n", "MemTotal: many kB"])
def test_junk_is_nothing(tmp_path: Path, junk: str) -> None:
    for path in ("proc/cpuinfo", "proc/meminfo", "sys/devices/system/memory/block_size_bytes", "sys/block/sda/size"):
        put(tmp_path, path, junk)
    found = read_hardware(tmp_path, (), "")
    assert (found.usable_memory, found.physical_memory) == (0, 0)
    assert read_hardware(tmp_path / "nothing", (), "") == Hardware()
