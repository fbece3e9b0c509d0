"""The `fw-cfg` source: what QEMU hands to the machine as a file of its firmware.

    qemu-system-x86_64 … -fw_cfg name=opt/io.homeport/assignment,file=assignment.yaml

Knows where the kernel's module qemu_fw_cfg shows it (Documentation/ABI/testing/sysfs-firmware-qemu_fw_cfg). A machine
without that module, or without the file, has none.
"""

from __future__ import annotations

import os

from homeport.errors import NoAssignment, SourceError
from homeport.host.files import read_file
from homeport.sources.file import too_large
from homeport.sources.reply import LARGEST, Reply

NAME = "fw-cfg"
ITEM = "opt/io.homeport/assignment"
PATH = f"sys/firmware/qemu_fw_cfg/by_name/{ITEM}/raw"


def fetch(*, root: str | os.PathLike[str] = "/") -> Reply:
    """The document. Raises NoAssignment if there is none, SourceError if it cannot be read."""
    try:
        data = read_file(root, PATH, LARGEST)
    except OSError as error:
        raise too_large(error, f"fw_cfg file {ITEM}") or SourceError(
            f"Cannot read the fw_cfg file {ITEM}: {error.strerror}",
            "only root may read it" if isinstance(error, PermissionError) else "") from error
    if data is None:
        raise NoAssignment(f"QEMU passed no fw_cfg file {ITEM}")
    return Reply(data, source=NAME, url=ITEM)


def is_there(root: str | os.PathLike[str] = "/") -> bool:
    """Whether there is one, without reading it."""
    return os.path.exists(os.path.join(root, PATH))
