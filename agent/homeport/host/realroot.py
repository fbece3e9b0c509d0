"""The real root as the initramfs has it: whether its own /etc and /var can be written now, and how.

Knows what will be mounted over a place later: fstab, mount units, the kernel line. Refuses to know what is written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from homeport.core.cmdline import parse
from homeport.host import mounts, rootfs
from homeport.host.files import is_dir, read_file, resolve
from homeport.host.store import LIMIT

# Where a file system of its own would hide what is written now.
PLACES = {"/etc": "/etc", "/etc/NetworkManager": "/etc", "/var": "/var", "/var/lib": "/var",
          "/var/lib/homeport": "/var"}
# Those on which a read-only mount may be made writable for a moment. Not an image's own kinds, and not the network.
WRITABLE_TYPES = ("ext4", "xfs", "btrfs", "f2fs", "ext2", "ext3")


def obstacle(cmdline: str, root: Path, real: Path) -> str:
    """Why the real root's own files cannot be written from here; "" if they can, or can be made to."""
    if where := rootfs.network_root(cmdline, root):
        return f"it is on the network ({where.reason})"
    fstab, extra = read_fstab(real), mounts_of_line(cmdline)
    for point, place in PLACES.items():
        if ((point in fstab or point in extra or has_mount_unit(root, real, point))
                and not os.path.ismount(resolve(real, place))):
            return f"{point} is another file system, which is not mounted yet"
    for folder in ("/etc", "/var/lib"):
        if not is_dir(real, folder):
            return f"there is no {folder} yet"
    # A part of it that is read-only by itself is so on purpose.
    if is_read_only(real) and not (mounts.is_read_only(real) and may_be_made_writable(real, fstab)):
        return "it is read-only"
    return ""


def read_fstab(real: Path) -> dict[str, tuple[str, str]]:
    """Mount point -> type and options, as the real root mounts it itself (fstab(5))."""
    try:
        text = (read_file(real, "/etc/fstab", LIMIT) or b"").decode("utf-8", "replace")
    except OSError:
        return {}
    lines = (line.split() for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {fields[1].rstrip("/") or "/": (fields[2], fields[3] if len(fields) > 3 else "")
            for fields in lines if len(fields) > 2}


def mounts_of_line(cmdline: str) -> set[str]:
    """Where the kernel line mounts something on the real root (systemd-fstab-generator(8)); an ostree has its own /var
    (ostree-system-generator).
    """
    found = set()
    for name, value in parse(cmdline):
        if name == "systemd.mount-extra":
            found.add(f"{value or ''}:".split(":")[1].rstrip("/"))
        elif name == "ostree":
            found.add("/var")
    return found


def has_mount_unit(root: Path, real: Path, point: str) -> bool:
    """Whether the real root has a mount unit for `point`, in the order of systemd.unit(5): the first that is there
    counts, and that may be a mask. It needs not be enabled: what needs the place pulls it in.

    No partition that systemd finds by itself (systemd-gpt-auto-generator(8)) hides anything: it is not mounted over a
    folder that is not empty, and without a /var/lib nothing is written.
    """
    name = f"systemd/system/{point.strip('/').replace('/', '-')}.mount"
    for where, path in ((real, f"/etc/{name}"), (root, f"/run/{name}"), (real, f"/usr/local/lib/{name}"),
                        (real, f"/usr/lib/{name}")):
        file = os.path.join(resolve(where, os.path.dirname(path)), os.path.basename(path))
        if os.path.lexists(file):
            return not (os.path.islink(file) and os.readlink(file) == os.devnull)
    return False


def is_read_only(real: Path) -> bool:
    return any(mounts.is_read_only(resolve(real, folder)) for folder in ("/etc", "/var/lib"))


def may_be_made_writable(real: Path, fstab: Mapping[str, tuple[str, str]]) -> bool:
    """Whether the real root makes itself writable in a moment: then nothing speaks against it now.

    An image that is meant to stay as it is says `ro` there, or nothing at all.
    """
    fstype, options = fstab.get("/", ("", ""))
    return bool(fstype) and "ro" not in options.split(",") and mounted_type(real) in WRITABLE_TYPES


def mounted_type(real: Path) -> str:
    """The type of the file system that is mounted at `real`, "" if none is."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[4] == str(real)]
    return found[-1] if found else ""


@contextmanager
def as_writable(real: Path) -> Iterator[None]:
    """A context in which the real root can be written. Raises OSError."""
    if not is_read_only(real):
        yield
        return
    with mounts.writable(real):
        if is_read_only(real):
            raise OSError(errno.EROFS, "a part of it stays read-only", str(real))
        yield
