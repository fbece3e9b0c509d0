"""The disk of a virtual machine: an ext4 file system in a file, written to from outside while the machine is off.

    make_disk(tree, base)                            # once for a tree
    disk = Disk(base, folder / "disk.img")           # a machine's own
    (disk.mount() / "etc/x").write_text("…"); disk.unmount()
    disk.keep_as(path), disk.put_back(path)

A raw file and not a qcow2 overlay: a sparse copy costs a fraction of a second, and what is on it can be mounted here.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from namespaces import make_mounts_private

LABEL = "root"
SPARE_MIB = 300  # for what a machine writes


def make_disk(tree: Path, image: Path, label: str = LABEL, spare_mib: int = SPARE_MIB) -> None:
    """A file system with all that is in `tree`, at `image`."""
    done = subprocess.run(["du", "-sxm", "--apparent-size", str(tree)], check=True, capture_output=True, text=True)
    size = int(done.stdout.split()[0]) * 5 // 4 + spare_mib
    partial = image.with_suffix(".partial")
    image.parent.mkdir(parents=True, exist_ok=True)
    _run("truncate", f"--size={size}M", str(partial))
    _run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=0,nodiscard", "-L", label,
         "-d", str(tree), str(partial))  # fmt: skip
    partial.replace(image)


def vfat_disk(image: Path, label: str, files: dict[str, str]) -> None:
    """A small drive as a person brings it: FAT with a label, and these files."""
    _run("truncate", "--size=8M", str(image))
    _run("mkfs.vfat", "-n", label, str(image))
    for name, text in files.items():
        done = subprocess.run(["mcopy", "-i", str(image), "-", f"::{name}"], input=text.encode(),
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"mcopy {name}: {done.stderr.decode().strip()}")


class Disk:
    """See the head of this module."""

    def __init__(self, base: Path, image: Path) -> None:
        self.image = image
        self._folder = image.with_suffix(".mounted")
        self._mounted = False
        _copy(base, image)

    def mount(self) -> Path:
        """Its root folder, as long as the machine is off; `unmount` before it is switched on."""
        if not self._mounted:
            make_mounts_private()
            self._folder.mkdir(exist_ok=True)
            # noatime, and no barriers: whoever reads a disk does not change it, and nobody cuts our own power.
            _run("mount", "-o", "loop,noatime,nobarrier", str(self.image), str(self._folder))
            self._mounted = True
        return self._folder

    def unmount(self) -> None:
        """All that was written is in the file."""
        if self._mounted:
            _run("umount", str(self._folder))
            self._mounted = False

    def keep_as(self, path: Path) -> Path:
        """A copy of it as it is now."""
        self.unmount()
        _copy(self.image, path)
        return path

    def put_back(self, path: Path) -> None:
        """It is again as it was at `keep_as`."""
        self.unmount()
        _copy(path, self.image)


def _copy(source: Path, target: Path) -> None:
    _run("cp", "--sparse=always", "--reflink=auto", str(source), str(target))


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
