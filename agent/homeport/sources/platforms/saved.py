"""Metadata that somebody saved into a folder, as `wget -r` does: read as if the platform had answered.

The names in it are the paths of the platform's service or drive; where a service lists a folder, the
folder itself is the list.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from homeport.core.complaint import Complaint
from homeport.core.platforms.reading import Fault
from homeport.core.platforms.shape import Files, NotThere, Platform, Want, gather
from homeport.errors import DocumentError, UsageError
from homeport.host.files import is_dir, read_file, resolve
from homeport.sources.reply import LARGEST

Where = str | os.PathLike[str]


def read(platform: Platform, folder: Where) -> Files:
    """What the first of the platform's ways finds there. Raises UsageError if none finds anything, DocumentError for
    metadata that lead nowhere.
    """
    missing = []
    for way in platform.ways:
        try:
            return gather(way.wants, from_folder(folder))
        except NotThere as error:
            missing.append(error.path)
        except Fault as fault:
            raise DocumentError([fault.complaint], f"this is what {folder} has of {platform.title}") from fault
    if not platform.ways:
        return {}
    names = " or ".join(filter(None, missing))
    raise UsageError(f"{folder} has no metadata of {platform.title}", f"it would have {names}" if names else "")


def from_folder(folder: Where) -> Callable[[Want], bytes | None]:
    """What answers for the folder. Nothing outside of it is read, whatever a name or link in it says."""
    def ask(want: Want) -> bytes | None:
        path = want.path.rstrip("/")
        try:
            if is_dir(folder, path):
                return os.fsencode("".join(f"{name}\n" for name in listing(resolve(folder, path))))
            return read_file(folder, path, LARGEST)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise DocumentError([Complaint(path, f"more than {LARGEST >> 10} KiB", "less")]) from error
            raise UsageError(f"cannot read {folder}/{path}: {error.strerror}") from error

    return ask


def listing(folder: Where) -> list[str]:
    """The names in a folder, folders with a slash, as metadata services write them."""
    with os.scandir(folder) as entries:
        return sorted(entry.name + "/" * entry.is_dir() for entry in entries)
