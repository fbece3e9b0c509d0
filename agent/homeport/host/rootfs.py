"""What the root file system stands on: the network cards that must not be taken down, whatever an assignment says.

Knows /proc/self/mountinfo, the block devices' places in sysfs, and how to ask the kernel which card leads to a server.
Changes nothing.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from homeport.core import initrd
from homeport.core.cmdline import parse

log = logging.getLogger(__name__)

NETWORK_TYPES = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "afs")
# The root itself, that of an initramfs, and what is below it where the root is an overlay or a live image.
ROOTS = ("/", "/sysroot", "/usr", "/sysroot/usr", "/run/rootfsbase", "/run/initramfs/live")
# Where the firmware says over which network it has booted: iSCSI's table (the kernel shows it once iscsi_ibft is there)
# and NVMe over TCP's (one or more). dracut and NetworkManager's generator make the network of the initramfs of them.
IBFT, TABLES, NBFT = "sys/firmware/ibft", "sys/firmware/acpi/tables", "NBFT"
ADDRESS = re.compile(r"(?:^|,)(?:addr|traddr)=([^,\s]+)")
PORT = 9  # discard: nothing is sent there


@dataclass(frozen=True)
class NetworkRoot:
    """A root file system on the network: what says so, and the servers that are known by address."""

    reason: str
    servers: tuple[str, ...] = ()


def network_root(cmdline: str, root: Path = Path("/"), *, promised: bool = True) -> NetworkRoot | None:
    """None if the root file system is not on the network, as far as can be seen.

    What the kernel line says counts if `promised` is true, or if there is a session that it may speak of.
    """
    found = list(_mounted(root))
    if found:
        return NetworkRoot(found[0].reason, tuple(server for each in found for server in each.servers))
    session = _has_session(root)
    said = initrd.standing_on_network(parse(cmdline)) if promised or session else ""
    if said:
        return NetworkRoot(said, initrd.servers(said))
    if session and (table := firmware_table(cmdline, root)):
        return NetworkRoot(table, _servers_of_block(root))
    return None


def firmware_table(cmdline: str, root: Path = Path("/")) -> str:
    """The firmware's table with the network that it has booted over, "" if there is none or the kernel line says that
    it is not to be heeded (dracut.cmdline(7)).
    """
    arguments = parse(cmdline)
    if os.path.isdir(root / IBFT) and False not in {initrd.switch(arguments, name) for name in initrd.FIRMWARE}:
        return f"/{IBFT}"
    nbft = [] if initrd.switch(arguments, "rd.nvmf.nonbft") else sorted((root / TABLES).glob(f"{NBFT}*"))
    return f"/{TABLES}/{nbft[0].name}" if nbft else ""


def cards_under(where: NetworkRoot, root: Path = Path("/")) -> frozenset[str]:
    """The interfaces that the root stands on, and all that those stand on (a bond's ports, a VLAN's base).

    Where the server is not known, every interface with an address may be one.
    """
    from homeport.host.proof.kernel import read_network
    network = read_network()
    local = {source for server in where.servers if (source := _source_to(server))}
    names = {network.name(address.index) for address in network.addresses
             if address.ip in local or not (where.servers or address.ip.startswith("fe80:"))}
    return frozenset(_with_lower(names - {"lo", ""}, root))


def _mounted(root: Path) -> Iterator[NetworkRoot]:
    """Root file systems that are on the network, by what is mounted now."""
    try:
        lines = (root / "proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, after = left.split(), right.split()
        if len(fields) < 5 or len(after) < 3 or fields[4] not in ROOTS:
            continue
        fstype, source, options = after[0], after[1], after[2]
        if fstype in NETWORK_TYPES:
            addresses = tuple(match[1] for match in ADDRESS.finditer(options))
            yield NetworkRoot(f"{fstype} {source}", addresses or initrd.servers(f"={fstype}:{source}"))
        elif why := _network_block(_block_device(fields[2], source, root), root):
            yield NetworkRoot(f"{why} {source}", _servers_of_block(root))


def _has_session(root: Path) -> bool:
    """Whether any block device is reached over a network now (also iSCSI by firmware, and NBD)."""
    sysfs = root / "sys"
    return any(True for pattern in ("class/iscsi_session/*", "block/nbd*/pid", "class/nvme-fabrics/ctl/nvme*")
               for _ in sysfs.glob(pattern))


def _block_device(number: str, source: str, root: Path) -> Path:
    """The place in sysfs of what is mounted: by its number, or by its name where the number is the file system's own
    (btrfs, whose device may be any of several).
    """
    if number.startswith("0:") and source.startswith("/dev/"):
        return root / "sys/class/block" / os.path.basename(os.path.realpath(root / source.lstrip("/")))
    return root / "sys/dev/block" / number


def _network_block(device: Path, root: Path) -> str:
    """How a block device is reached over a network, also through what it is made of; "" if it is not."""
    todo, seen = [device], set[str]()
    while todo:
        path = os.path.realpath(todo.pop())
        if path in seen:
            continue
        seen.add(path)
        for mark, kind in (("/session", "iscsi"), ("/nbd", "nbd"), ("/rbd", "rbd"), ("/ctlr_", "fcoe")):
            if mark in path:
                return kind
        if "/nvme-fabrics/" in path or ("/nvme-subsystem/" in path and _is_fabric(root)):
            return "nvme"
        slaves = Path(path, "slaves")
        todo += list(slaves.iterdir()) if slaves.is_dir() else []
    return ""


def _is_fabric(root: Path) -> bool:
    return any(_read(path) in ("tcp", "rdma") for path in (root / "sys/class/nvme").glob("*/transport"))


def _servers_of_block(root: Path) -> tuple[str, ...]:
    """The addresses of iSCSI's and NVMe's servers."""
    found = [_read(path) for path in (root / "sys/class/iscsi_connection").glob("*/persistent_address")]
    for path in (root / "sys/class/nvme").glob("*/address"):
        found += [match[1] for match in ADDRESS.finditer(_read(path))]
    return tuple(dict.fromkeys(filter(None, found)))


def _source_to(server: str) -> str:
    """The local address by which the kernel would reach `server`, "" if by none. Nothing is sent."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((server.strip("[]"), PORT))
            return str(asking.getsockname()[0])
    except OSError:
        return ""


def _with_lower(names: Iterable[str], root: Path) -> set[str]:
    todo, found = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        try:
            entries = os.listdir(root / "sys/class/net" / name)
        except OSError:
            continue
        todo += [entry.removeprefix("lower_") for entry in entries if entry.startswith("lower_")]
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
