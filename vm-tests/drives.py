"""Drives as clouds hand them over: a labelled file system on a block device, where udev would show it.

    drives = Drives(folder)
    drives.plug("cidata", {"network-config": text, "meta-data": "instance-id: i-1\n"})     # iso9660, or kind="vfat"
    Machine(world, name, drives=drives)          # sees /dev/disk/by-label/cidata, and the device behind it

A kernel without loop devices shows the image itself: homeport reads either.  A drive may also come later
(`plug` while the machine runs), as udev's links do.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType


class Drives:
    """The drives of one machine. Its labels are links in a folder that is /dev/disk/by-label there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.labels = folder / "by-label"
        self.labels.mkdir(parents=True)
        self.devices: list[Path] = []
        self._loops: list[str] = []

    def plug(self, label: str, files: Mapping[str, str | bytes], *, kind: str = "iso9660", late: bool = False) -> Path:
        """A drive with these files; the path of its device. `late`: nobody has seen its label yet (`settle`)."""
        content = self.folder / f"content-{len(self.devices)}"
        for name, data in files.items():
            file = content / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.encode() if isinstance(data, str) else data)
        image = self.folder / f"drive-{len(self.devices)}.img"
        make_image(content, image, label, kind)
        device = self._attach(image)
        self.devices.append(device)
        if not late:
            self.settle(label, device)
        return device

    def settle(self, label: str, device: Path) -> None:
        """What udev does: the link."""
        (self.labels / label).symlink_to(f"../../{device.name}")

    def binds(self) -> list[str]:
        """For systemd-nspawn."""
        return [f"--bind-ro={self.labels}:/dev/disk/by-label",
                *(f"--bind={device}:/dev/{device.name}" for device in self.devices)]

    def _attach(self, image: Path) -> Path:
        done = subprocess.run(["losetup", "--find", "--show", "--read-only", str(image)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return image
        self._loops.append(done.stdout.strip())
        return Path(self._loops[-1])

    def close(self) -> None:
        for loop in self._loops:
            subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)
        self._loops.clear()

    def __enter__(self) -> Drives:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def make_image(content: Path, image: Path, label: str, kind: str) -> None:
    """A file system with what is in `content`; `kind` is "iso9660" or "vfat"."""
    if kind == "iso9660":
        _run("genisoimage", "-quiet", "-R", "-J", "-V", label, "-o", str(image), str(content))
        return
    _run("truncate", "--size=1M", str(image))
    _run("mkfs.vfat", "-n", label, str(image))
    _run("mcopy", "-s", "-i", str(image), *map(str, content.iterdir()), "::")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
