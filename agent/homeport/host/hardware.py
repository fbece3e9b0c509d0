"""CPUs, memory, disks and addresses of this machine, for whoever labels machines by them.

Knows the kernel's files (Documentation/ABI, proc(5)). Reads a bounded amount; never raises: what is not there is
left out.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from homeport.core.elemental.systemdata import MOST, Cpu, Disk, Hardware
from homeport.core.facts import Nic
from homeport.core.smbios import clean

SIOCGIFADDR = 0x8915  # include/uapi/linux/sockios.h
SECTOR = 512  # bytes, whatever the disk's own are (Documentation/ABI/stable/sysfs-block)
BLOCK = "sys/block"
DMI = "sys/class/dmi/id"
LIMIT = 1 << 20
# What is no disk of its own: memory, loops, mapped devices, floppies (as ghw does).
NOT_DISKS = ("loop", "ram", "dm-", "zram", "md", "fd", "nbd")
CONTROLLERS = (("nvme", "NVMe"), ("vd", "virtio"), ("mmcblk", "MMC"), ("sd", "SCSI"), ("sr", "SCSI"), ("hd", "IDE"))


def read_hardware(root: Path, nics: Sequence[Nic], hostname: str) -> Hardware:
    """What the kernel of the machine below `root` shows."""
    usable = _usable_memory(root)
    return Hardware(
        cpus=_cpus(root), physical_memory=_physical_memory(root) or usable, usable_memory=usable,
        disks=tuple(_disks(root)), hostname=hostname,
        # The kernel answers for the namespace that we are in, whatever the root is.
        addresses={nic.name: tuple(_addresses(root, nic.name)) for nic in nics[:MOST]},
        bios_vendor=_dmi(root, "bios_vendor"), bios_version=_dmi(root, "bios_version"),
        bios_date=_dmi(root, "bios_date"), board_version=_dmi(root, "board_version"),
        board_asset_tag=_dmi(root, "board_asset_tag"),
        chassis_vendor=_dmi(root, "chassis_vendor"), chassis_version=_dmi(root, "chassis_version"),
        chassis_type=_dmi(root, "chassis_type"))


def _cpus(root: Path) -> tuple[Cpu, ...]:
    """One for each socket: a processor of /proc/cpuinfo is a thread."""
    sockets: dict[int, tuple[Cpu, set[str]]] = {}
    for block in _read(root / "proc/cpuinfo").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if "processor" not in fields:
            continue
        number = _number(fields.get("physical id", "0"))
        known, cores = sockets.get(number, (Cpu(), set()))
        cores.add(fields.get("core id", fields["processor"]))
        sockets[number] = Cpu(
            number, known.vendor or fields.get("vendor_id", ""), known.model or fields.get("model name", ""),
            len(cores), known.threads + 1,
            known.capabilities or tuple((fields.get("flags") or fields.get("Features") or "").split())), cores
    return tuple(cpu for cpu, _ in sockets.values())[:MOST]


def _usable_memory(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return _number(line.split()[1]) * 1024
    return 0


def _physical_memory(root: Path) -> int:
    """Memory blocks that are online, times their size (Documentation/ABI/testing/sysfs-devices-memory)."""
    folder = root / "sys/devices/system/memory"
    size = _number(_read(folder / "block_size_bytes").strip() or "0", 16)
    online = sum(_read(folder / name / "state").strip() == "online" for name in _list(folder)
                 if name.startswith("memory") and name[6:].isdigit()) if size else 0
    return size * online


def _disks(root: Path) -> Iterable[Disk]:
    for name in [name for name in _list(root / BLOCK) if not name.startswith(NOT_DISKS)][:MOST]:
        folder = root / BLOCK / name
        turns = _read(folder / "queue/rotational").strip() == "1"
        yield Disk(
            name, _number(_read(folder / "size").strip() or "0") * SECTOR,
            kind="ODD" if name.startswith("sr") else "HDD" if turns else "SSD",
            controller=next((words for start, words in CONTROLLERS if name.startswith(start)), "Unknown"),
            removable=_read(folder / "removable").strip() == "1",
            model=clean(_read(folder / "device/model").encode()))


def _addresses(root: Path, nic: str) -> Iterable[str]:
    """The first IPv4 address and all IPv6 ones."""
    import fcntl
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ask:
        try:
            answer = fcntl.ioctl(ask, SIOCGIFADDR, struct.pack("256s", nic.encode()[:15]))
            yield socket.inet_ntoa(answer[20:24])
        except OSError:
            pass  # it has none, or is not here
    for line in _read(root / "proc/net/if_inet6").splitlines():
        digits, *_, name = line.split()
        if name == nic:
            yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))


def _dmi(root: Path, name: str) -> str:
    return clean(_read(root / DMI / name).encode())


def _list(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _number(text: str, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        return 0
