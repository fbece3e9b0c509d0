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
from contextlib import contextmanager

CONTROL = "/dev/loop-control"
# include/uapi/linux/loop.h; LOOP_CONFIGURE is since Linux 5.8.
LOOP_CONFIGURE, LOOP_CTL_GET_FREE = 0x4C0A, 0x4C82
LO_FLAGS_READ_ONLY, LO_FLAGS_AUTOCLEAR = 1, 4
# struct loop_config: the disk and a block size of its own choice; of its struct loop_info64 only lo_flags; the rest.
LOOP_CONFIG = "=II52xI176x64x"
# While others are quicker to take the free one, or udev still looks at it: two seconds.
TRIES, PAUSE = 40, 0.05


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
        os.close(loop)


def _make(disk: int) -> tuple[str, int]:
    """A loop device over an open disk: its path, and a descriptor that keeps it."""
    import fcntl
    control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(TRIES):
            path = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            loop = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _configure(loop, disk)
            except OSError as error:
                os.close(loop)
                if error.errno not in (errno.EBUSY, errno.EWOULDBLOCK):
                    raise OSError(error.errno, error.strerror, path) from error
                time.sleep(PAUSE)
            else:
                return path, loop
    finally:
        os.close(control)
    raise OSError(errno.EBUSY, "no loop device is free", CONTROL)


def _configure(loop: int, disk: int) -> None:
    import fcntl
    import struct
    # udev leaves a locked device alone (https://systemd.io/BLOCK_DEVICE_LOCKING): its links to the real root, by UUID
    # or label, must not lead to the loop device. Once it is unlocked, there is nothing to be seen in it any more.
    fcntl.flock(loop, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.ioctl(loop, LOOP_CONFIGURE, struct.pack(LOOP_CONFIG, disk, 0, LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR))
