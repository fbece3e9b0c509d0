"""Which drives carry a label: all of them, where /dev/disk/by-label/ shows one, whichever udev came to last.

Knows udev's database: a file for each block device, with a line for each link that it would have (udev_db in
src/libsystemd/sd-device/device-private.c). Refuses to know what is on a drive.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from homeport.host.files import Where, attribute, read_file

DATABASE = "run/udev/data"
BLOCK = "sys/dev/block"
LIMIT = 64 << 10
BY_LABEL, BY_PATH = "S:disk/by-label/", "S:disk/by-path/"


def drives(root: Where, label: str) -> list[str]:
    """The devices with this label, as paths below `root`, in an order that the next boot has, too: what is plugged in
    goes before what is built in, then by the way that leads there, which a name like sda is not. Of a drive and its
    partitions only the drive. Empty where udev keeps no database. Never raises.
    """
    found = sorted(_claimants(root, label))
    disks = {sysfs for _, _, sysfs in found}
    return [f"dev/{os.path.basename(sysfs).replace('!', '/')}" for _, _, sysfs in found
            if os.path.dirname(sysfs) not in disks]


def _claimants(root: Where, label: str) -> Iterator[tuple[bool, str, str]]:
    """Whether it is built in, the way to it, its place in sysfs."""
    for name in _names(os.path.join(root, DATABASE)):
        lines = _lines(root, f"{DATABASE}/{name}") if name.startswith("b") else []
        sysfs = os.path.realpath(os.path.join(root, BLOCK, name[1:]))
        if BY_LABEL + label in lines and os.path.exists(sysfs):
            ways = sorted(line for line in lines if line.startswith(BY_PATH))
            yield not _is_plugged_in(sysfs), ways[0] if ways else os.path.basename(sysfs), sysfs


def _is_plugged_in(sysfs: str) -> bool:
    """USB, a disc, a card: put there by somebody for now, and so for more than what was there before."""
    disk = os.path.dirname(sysfs) if os.path.exists(os.path.join(sysfs, "partition")) else sysfs
    return "/usb" in sysfs or attribute(os.path.join(disk, "removable")) == "1"


def _lines(root: Where, path: str) -> list[str]:
    try:
        return (read_file(root, path, LIMIT) or b"").decode("utf-8", "replace").splitlines()
    except OSError:  # a device that goes just now
        return []


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
