"""Drives: file systems with a label that says they are for us, read without mounting.

Knows where udev shows labels.  Not mounted: that would need the kernel to trust the drive, and homeport's
unit to have the right; reading needs a device that may be opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.core.platforms.shape import Drive, Files, NotThere, Want, gather
from homeport.errors import DocumentError, SourceError
from homeport.host.files import resolve
from homeport.sources.platforms.fat import Fat
from homeport.sources.platforms.image import Damaged, Image
from homeport.sources.platforms.iso9660 import Iso9660
from homeport.sources.reply import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_LABEL = "/dev/disk/by-label"
FILE_SYSTEMS: dict[str, Callable[[Image], Iso9660 | Fat]] = {"iso9660": Iso9660, "vfat": Fat}


class Session:
    """A drive while this machine looks for it."""

    def __init__(self, drive: Drive, root: str | os.PathLike[str] = "/") -> None:
        self.drive = drive
        self.root = root
        self.place = f"{BY_LABEL}/{drive.labels[0]}"

    def read(self) -> Files:
        """Everything that the platform wants; raises NotThere if no such drive has it, SourceError for one
        that can't be read, DocumentError for one that is damaged.
        """
        for label in self.drive.labels:
            path = f"{BY_LABEL}/{label}"
            try:
                with open(resolve(self.root, path), "rb", buffering=0) as device:
                    return self._from(device.fileno(), path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise SourceError(f"Cannot read the drive {path}: {error.strerror}",
                                  "only root may read it" if isinstance(error, PermissionError) else "") from error
        raise NotThere(f"drive labelled {' or '.join(self.drive.labels)}")

    def _from(self, device: int, path: str) -> Files:
        self.place = path
        image = Image.of_device(device)
        for kind in self.drive.kinds:
            try:
                found = FILE_SYSTEMS[kind](image)
            except Damaged:
                continue
            try:
                return gather(self.drive.wants, _reader(found))
            except Damaged as damage:
                raise DocumentError([Complaint("", f"the drive {path}: {damage}", "a sound drive")]) from damage
        raise NotThere(f"{path} as {' or '.join(self.drive.kinds)}")


def _reader(found: Iso9660 | Fat) -> Callable[[Want], bytes | None]:
    return lambda want: found.read(want.path, LARGEST)


def labels(root: str | os.PathLike[str] = "/") -> frozenset[str]:
    """The labels of all file systems that udev has seen."""
    return frozenset(_names(root))


def _names(root: str | os.PathLike[str]) -> Iterator[str]:
    try:
        yield from os.listdir(resolve(root, BY_LABEL))
    except OSError:
        return
