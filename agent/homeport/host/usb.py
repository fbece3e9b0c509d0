"""USB drives that the kernel has found and not yet shown.

A hub tells of what is plugged into it some tenths of a second after it was found itself (hub_activate and
hub_port_debounce in drivers/usb/core/hub.c). usb-storage looks at a stick only a second later, for sticks that are slow
to start (`delay_use`, in drivers/usb/storage/usb.c); uas looks in a work of its own (uas.c); sd may wait for a disk to
turn. udev has nothing to do meanwhile. Knows where sysfs and udev show how far that is. Refuses to know what is on a
drive, and how long to wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from homeport.host.files import Where, attribute

DEVICES, DRIVERS = "sys/bus/usb/devices", "sys/bus/usb/drivers"
HUB, HUB_SETTLES = "09", 1000  # bDeviceClass; ms in which it has found what is plugged in, twice what it takes
STORAGE = ("usb-storage", "uas", "ums-")  # the last: usb-storage's own subdrivers, which begin so
UDEV, UDEV_KNOWS = "run/udev/control", "run/udev/data"
# What becomes a block device (include/scsi/scsi_proto.h): disk, WORM, CD, optical disk, reduced block commands, zoned.
BLOCK_TYPES = ("0", "4", "5", "7", "14", "20")


def drives_on_their_way(root: Where = "/") -> bool:
    """Whether a drive at a USB port has still to be looked at, by its hub, by its driver or then by udev.

    False where no udev runs: nobody would give it a name. One whose driver never finds anything is on its way for good,
    so a caller has a limit. Never raises.
    """
    return os.path.exists(os.path.join(root, UDEV)) and (
        any(_is_settling(device) for device in _below(os.path.join(root, DEVICES), ""))
        or any(not _is_here(root, interface) for interface in _interfaces(root)))


def _is_settling(device: str) -> bool:
    """Whether it is a hub that was found just now (connected_duration in Documentation/ABI/testing/sysfs-bus-usb)."""
    if attribute(os.path.join(device, "bDeviceClass")) != HUB:
        return False
    there = attribute(os.path.join(device, "power/connected_duration"))
    return there.isdecimal() and int(there) < HUB_SETTLES


def _interfaces(root: Where) -> Iterator[str]:
    """The USB interfaces that a storage driver has: links that are named as `1-2:1.0`."""
    for driver in _below(os.path.join(root, DRIVERS), ""):
        if os.path.basename(driver).startswith(STORAGE):
            yield from (link for link in _below(driver, "") if ":" in os.path.basename(link))


def _is_here(root: Where, interface: str) -> bool:
    units = [unit for host in _below(interface, "host") for target in _below(host, "target")
             for unit in _below(target, "") if ":" in os.path.basename(unit)]
    return bool(units) and all(_is_shown(root, unit) for unit in units)


def _is_shown(root: Where, unit: str) -> bool:
    """Whether udev knows the drive and its partitions, or there is none in it."""
    if attribute(os.path.join(unit, "type")) not in BLOCK_TYPES:
        return True
    disks = list(_below(os.path.join(unit, "block"), ""))
    return bool(disks) and all(
        attribute(os.path.join(disk, "size")) == "0"
        or all(_udev_knows(root, part) for part in (disk, *_partitions(disk))) for disk in disks)


def _partitions(disk: str) -> Iterator[str]:
    """They are folders in the disk's own, with its name and a number."""
    return _below(disk, os.path.basename(disk))


def _udev_knows(root: Where, device: str) -> bool:
    """udev writes this file of every block device, after its links (udev_event_execute_rules in udev-event.c)."""
    return os.path.exists(os.path.join(root, UDEV_KNOWS, f"b{attribute(os.path.join(device, 'dev'))}"))


def _below(folder: str, prefix: str) -> Iterator[str]:
    return (os.path.join(folder, name) for name in _names(folder) if name.startswith(prefix))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # unplugged, or nothing of that kind is there
        return []
