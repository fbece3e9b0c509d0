"""A disk once more, as a loop device that is read-only: whatever is mounted from it, nothing reaches the disk.

A read-only mount is not enough. ext4 still finishes what was being deleted when the power went (ext4_orphan_cleanup()
in fs/ext4/orphan.c), and notes in its superblock what it finds damaged (ext4_handle_error()); neither where the device
itself is read-only. The disk is not made so (BLKROSET): if this process were killed, nobody could mount it for good.

Knows loop(4), and how udev is kept from showing the disk's labels at the loop device. Refuses to know what is mounted.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CONTROL = "/dev/loop-control"
# include/uapi/linux/loop.h; LOOP_CONFIGURE is since Linux 5.8.
LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE = 0x4C01, 0x4C0A, 0x4C82
LO_FLAGS_READ_ONLY, LO_FLAGS_AUTOCLEAR = 1, 4
# struct loop_config: the disk and a block size of its own choice; of its struct loop_info64 only lo_flags; the rest.
LOOP_CONFIG = "=II52xI176x64x"
# udev runs; and what it knows of each device, once it has looked at it (udev_event_execute_rules in udev-event.c).
UDEV, UDEV_KNOWS = "/run/udev/control", "/run/udev/data"
WAIT = 5.0  # seconds while udev comes to a new one, or others are quicker to take it
PAUSE = 0.02


@contextmanager
def read_only(device: str) -> Iterator[str]:
    """The path of a read-only loop device over `device`, for as long as the block runs. Raises OSError.

    It goes with the last who has it open, at the latest with this process and its mounts.
    """
    disk = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        path, loop = _make(disk)
    finally:
        os.close(disk)
    try:
        yield path
    finally:
        # While it is locked: from now on nobody can open it, and no more is the disk to be seen in it.
        with suppress(OSError):
            _ioctl(loop, LOOP_CLR_FD)
        os.close(loop)


def _make(disk: int) -> tuple[str, int]:
    """A loop device over an open disk: its path, and a descriptor that keeps it."""
    end = time.monotonic() + WAIT
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            path = f"/dev/loop{_ioctl(control, LOOP_CTL_GET_FREE)}"
            loop = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _configure(loop, disk)
            except OSError as error:
                os.close(loop)
                if error.errno not in (errno.EBUSY, errno.EWOULDBLOCK) or time.monotonic() > end:
                    raise OSError(error.errno, error.strerror, path) from error
                time.sleep(PAUSE)
            else:
                return path, loop
    finally:
        os.close(control)


def _configure(loop: int, disk: int) -> None:
    import fcntl
    import struct
    # udev leaves a locked device alone (https://systemd.io/BLOCK_DEVICE_LOCKING): its links to the real root, by UUID
    # or label, must not lead to the loop device. But for one that it cannot open when it comes to it: as long as the
    # driver is not quite there, nothing of it can be opened, and soon after it can. udev must be done with that first.
    number = os.fstat(loop).st_rdev
    if os.path.exists(UDEV) and not os.path.exists(f"{UDEV_KNOWS}/b{os.major(number)}:{os.minor(number)}"):
        raise OSError(errno.EBUSY, "udev has not looked at it yet")
    fcntl.flock(loop, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _ioctl(loop, LOOP_CONFIGURE, struct.pack(LOOP_CONFIG, disk, 0, LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR))


def _ioctl(descriptor: int, request: int, argument: bytes | int = 0) -> int:
    import fcntl
    found = fcntl.ioctl(descriptor, request, argument)
    return found if isinstance(found, int) else 0
