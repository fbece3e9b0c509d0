"""Mounting, for as long as something is read or written: never seen by others, never left behind.

Knows mount(2) and which file systems can be looked at without replaying their journal. Every mount is made in a mount
namespace of this process's own.
"""

from __future__ import annotations

import ctypes
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

# include/uapi/linux/mount.h, sched.h
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, REC, PRIVATE = 1, 2, 4, 8, 32, 16384, 1 << 18
DETACH = 2  # include/linux/fs.h, MNT_DETACH
NEWNS = 0x00020000
# Each with what keeps it from writing even when it was not unmounted cleanly: the journal is not replayed. One that is
# not here is not looked at.
WITHOUT_REPLAY = {"ext4": "noload", "xfs": "norecovery", "btrfs": "rescue=nologreplay", "ext2": "", "squashfs": "",
                  "erofs": "", "iso9660": "", "vfat": ""}


@contextmanager
def read_only(device: str, fstype: str = "", options: str = "") -> Iterator[Path]:
    """The file system on `device`, read-only, at a path that ends with the block. Raises OSError.

    `options` are those that choose what of the file system is meant (`subvol=`); the others are not ours to heed.
    """
    own_namespace()
    place = Path(tempfile.mkdtemp(prefix="homeport-root-", dir="/run"))
    try:
        _mount_any(device, place, fstype, options)
        try:
            yield place
        finally:
            _unmount(place)
    finally:
        os.rmdir(place)


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """The file system at `path`, mounted read-only, writable until the block ends. Raises OSError.

    Only what this process sees of it is a writable mount; but a file system is one for all, and takes the writes.
    """
    own_namespace()
    _call("mount", None, os.fsencode(path), None, REMOUNT, None, about=path)
    try:
        yield
    finally:
        try:
            _call("mount", None, os.fsencode(path), None, REMOUNT | RDONLY, None, about=path)
        except OSError as error:
            log.debug("%s stays writable: %s", path, error.strerror)


def own_namespace() -> None:
    """From now on this process's mounts are its own, and those of others still reach it. Idempotent."""
    global _is_own
    if not _is_own:
        _call("unshare", NEWNS, about="a mount namespace")
        _call("mount", None, b"/", None, REC | PRIVATE, None, about="/")
        _is_own = True


_is_own = False


def _mount_any(device: str, place: Path, fstype: str, options: str) -> None:
    """By the type that is said, or by each that we know: the kernel refuses those that it is not."""
    kinds = [fstype] if fstype in WITHOUT_REPLAY else [] if fstype else list(WITHOUT_REPLAY)
    chosen = [option for option in options.split(",") if option.startswith(("subvol=", "subvolid="))]
    failure = OSError(0, f"not looked at: file system {fstype}", device)
    for kind in kinds:
        data = ",".join(filter(None, [WITHOUT_REPLAY[kind], *(chosen if kind == "btrfs" else [])]))
        try:
            _call("mount", os.fsencode(device), os.fsencode(place), kind.encode(), RDONLY | NOSUID | NODEV | NOEXEC,
                  data.encode() or None, about=device)
            return
        except OSError as error:
            failure = error
    raise failure


def _unmount(place: Path) -> None:
    try:
        _call("umount2", os.fsencode(place), 0, about=place)
    except OSError as error:
        # It goes with this process at the latest; the real mount must not find the device in use.
        log.debug("%s is in use (%s), detaching it", place, error.strerror)
        _call("umount2", os.fsencode(place), DETACH, about=place)


def _call(name: str, *arguments: object, about: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(about) if isinstance(about, Path) else str(about))
