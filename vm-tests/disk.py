"""The top layer of a machine, kept from boot to boot: a folder, or a disk that forgets at a power cut.

A `LossyDisk` is an ext4 file system in a file.  What the machine wrote and nobody synced is still in the
page cache above that file system, not in the file; so a copy of the file, taken while the machine stands
still, is what a real disk holds after the power went.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from namespaces import make_mounts_private

SIZE = "256M"
# Seconds between ext4's own commits: longer than any test, so that nothing is saved by waiting. And no help for
# programs that rename a file without having synced it.
OPTIONS = "loop,commit=3600,noauto_da_alloc"


class LossyDisk:
    """An ext4 file system in `folder`/disk.img, mounted at `folder`/lossy."""

    def __init__(self, folder: Path) -> None:
        make_mounts_private()
        self.image = folder / "disk.img"
        self.path = folder / "lossy"
        self.path.mkdir(parents=True)
        _run("truncate", f"--size={SIZE}", str(self.image))
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", str(self.image))
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", OPTIONS, str(self.image), str(self.path))

    def unmount(self) -> None:
        _run("umount", str(self.path))

    def remember(self) -> Path:
        """A copy of what is on the disk at this moment; the machine must stand still."""
        copy = self.image.with_suffix(".cut")
        _run("cp", "--sparse=always", str(self.image), str(copy))
        return copy

    def fall_back_to(self, copy: Path) -> None:
        """Make the remembered state the disk's; nothing may use it."""
        self.unmount()
        copy.replace(self.image)
        self.mount()


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
