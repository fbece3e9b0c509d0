"""Mounting, for as long as something is read or written: never seen by others, never left behind.

Knows mount(2), which file systems can be looked at without replaying their journal, and which need a device that is
read-only itself. Every mount is made in a mount namespace of this process's own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

# include/uapi/linux/mount.h, sched.h
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, SLAVE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 19
DETACH = 2  # include/linux/fs.h, MNT_DETACH
NEWNS = 0x00020000
# Each with what keeps it from writing even when it was not unmounted cleanly: the journal is not replayed. One that is
# not here is not looked at. What is damaged is for the check that comes later, and must not end the boot before it,
# whatever the superblock says (tune2fs(8), -e panic).
WITHOUT_REPLAY = {"ext4": "noload,errors=continue", "xfs": "norecovery", "btrfs": "rescue=nologreplay",
                  "ext2": "errors=continue", "squashfs": "", "erofs": "", "iso9660": "", "vfat": ""}
# Where the superblock of ext2, ext3 and ext4 has its magic number, and what that is (fs/ext4/ext4.h, s_magic).
EXT_MAGIC_AT, EXT_MAGIC = 1024 + 56, b"\x53\xef"


@contextmanager
def read_only(device: str, fstype: str = "", options: str = "") -> Iterator[Path]:
    """The file system on `device`, read-only, at a path that ends with the block. Not a byte of the device changes.
    Raises OSError.

    `options` are those that choose what of the file system is meant (`subvol=`); the others are not ours to heed.
    """
    import tempfile
    own_namespace()
    place = Path(tempfile.mkdtemp(prefix="homeport-root-", dir="/run"))
    try:
        with _unwritable(device) as source:
            _mount_any(device, source, place, fstype, options)
            try:
                yield place
            finally:
                _unmount(place)
    finally:
        os.rmdir(place)


@contextmanager
def _unwritable(device: str) -> Iterator[str]:
    """What to mount, so that no driver writes to `device`. ext4's does, on a read-only mount, too (loop.py); xfs and
    btrfs do not without their journals, and btrfs would remember the other device as a part of the file system.
    """
    with open(device, "rb", buffering=0) as disk:
        is_ext = os.pread(disk.fileno(), len(EXT_MAGIC), EXT_MAGIC_AT) == EXT_MAGIC
    if not is_ext:
        yield device
        return
    from homeport.host import loop
    with loop.read_only(device) as path:
        yield path


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """The mount at `path`, writable until the block ends. Raises OSError.

    One that is read-only by itself becomes writable for this process alone. Where the file system is, all of its mounts
    are writable meanwhile, as far as they are not read-only themselves; only then is it made read-only again.
    """
    if not is_read_only(path):
        yield
        return
    own_namespace()
    if not file_system_is_read_only(path):
        _call("mount", None, os.fsencode(path), None, REMOUNT | BIND | _kept_flags(path), None, about=path)
        yield
        return
    flags = _kept_flags(path)
    _call("mount", None, os.fsencode(path), None, REMOUNT | flags, None, about=path)
    try:
        yield
    finally:
        try:
            _call("mount", None, os.fsencode(path), None, REMOUNT | RDONLY | flags, None, about=path)
        except OSError as error:
            log.debug("%s stays writable: %s", path, error.strerror)


def is_read_only(path: str | Path) -> bool:
    """Whether nothing can be written there, by the mount or by its file system. Raises OSError."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def file_system_is_read_only(path: Path) -> bool:
    """Whether the file system is read-only that is mounted at `path`: for all of its mounts (proc_pid_mountinfo(5))."""
    found = False
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[4] == str(path):
            found = "ro" in right.split()[-1].split(",")
    return found


def _kept_flags(path: Path) -> int:
    """What a remount would take away if it did not say it again; those of access times stay by themselves."""
    return os.statvfs(path).f_flag & (NOSUID | NODEV | NOEXEC)


def own_namespace() -> None:
    """From now on nobody sees this process's mounts; those of others still come and go in it. Idempotent."""
    global _is_own
    if not _is_own:
        _call("unshare", NEWNS, about="a mount namespace")
        _call("mount", None, b"/", None, REC | SLAVE, None, about="/")
        _is_own = True


_is_own = False


def _mount_any(device: str, source: str, place: Path, fstype: str, options: str) -> None:
    """By the type that is said, or by each that we know: the kernel refuses those that it is not."""
    kinds = [fstype] if fstype in WITHOUT_REPLAY else [] if fstype else list(WITHOUT_REPLAY)
    chosen = [option for option in options.split(",") if option.startswith(("subvol=", "subvolid="))]
    failure = OSError(0, f"not looked at: file system {fstype}", device)
    for kind in kinds:
        data = ",".join(filter(None, [WITHOUT_REPLAY[kind], *(chosen if kind == "btrfs" else [])]))
        try:
            _call("mount", os.fsencode(source), os.fsencode(place), kind.encode(), RDONLY | NOSUID | NODEV | NOEXEC,
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
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(about) if isinstance(about, Path) else str(about))
