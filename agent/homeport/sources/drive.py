"""The `drive` source: a partition or a drive labelled HOMEPORT, with a document on it for this machine, or for all.

Knows the names: `<uuid|serial|mac|hostname>.yaml` (also `.yml`, `.json`; a MAC with dashes, as FAT allows no colons)
is one machine's, `homeport.yaml` everyone's else; `seed.yaml` is a seed (`sources/seeds.py`).  All of them lie at the
top of the file system, which is read and not mounted (`sources/platforms/`): FAT, ISO 9660 or ext4.  Of several drives
one is taken, the same at every boot, and that is said.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.errors import DocumentError, NoAssignment, SourceError, Unconfigured
from homeport.host import journal
from homeport.host.files import resolve
from homeport.sources.reply import LARGEST, Reply

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.sources.platforms.ext import Ext
    from homeport.sources.platforms.fat import Fat
    from homeport.sources.platforms.image import Image
    from homeport.sources.platforms.iso9660 import Iso9660

    FileSystem = Ext | Fat | Iso9660

log = logging.getLogger(__name__)

NAME = "drive"
LABELS = ("HOMEPORT", "homeport")
BY_LABEL = "dev/disk/by-label"
ENDINGS = (".yaml", ".yml", ".json")
LUKS = b"LUKS\xba\xbe"  # how an encrypted partition begins, which has a label of its own (LUKS2 On-Disk Format, 2.1)
FOR_ALL = "homeport"
SEED = "seed"
Where = str | os.PathLike[str]


def fetch(identity: Identity, *, root: Where = "/") -> Reply:
    """The document on the drive. Raises NoAssignment if there is no drive, or none for this machine on it;
    SourceError if it can't be read; DocumentError for one that is damaged, too large or ambiguous.
    """
    label, path = find(root)
    ours = list(_names_of(identity))
    with _opened(root, label, path) as files:
        found = _read(files, ours) or _read(files, [FOR_ALL])
        has_seed = not found and bool(_read(files, [SEED]))
    if len(found) > 1:
        raise DocumentError([Complaint("", f"the drive {label} has more than one document for this machine: "
                                           + ", ".join(name for name, _ in found), "one of them must go")])
    if has_seed:
        raise Unconfigured(f"The drive {label} has a seed, and no document for this machine")
    if not found:
        raise NoAssignment(f"The drive {label} has no document for this machine",
                           f"it would be {' or '.join(f'{name}.yaml' for name in (*ours[:1], FOR_ALL))}")
    name, data = found[0]
    return Reply(data, source=NAME, url=f"{label}/{name}")


def read_seed(root: Where = "/") -> Reply | None:
    """The seed on the drive, None if there is no drive or no seed on it. Raises as `fetch` does."""
    if not is_there(root):
        return None
    label, path = find(root)
    with _opened(root, label, path) as files:
        found = _read(files, [SEED])
    return Reply(found[0][1], source="seed", url=f"{label}/{found[0][0]}") if found else None


def is_there(root: Where = "/") -> bool:
    """Whether udev has seen such a drive."""
    return any(os.path.exists(os.path.join(root, BY_LABEL, label)) for label in LABELS)


def find(root: Where) -> tuple[str, str]:
    """The label of the drive that is there, and where it is below `root`. Raises NoAssignment."""
    from homeport.host import labels
    there = [label for label in LABELS if os.path.exists(resolve(root, f"{BY_LABEL}/{label}"))]
    if not there:
        raise NoAssignment(f"No drive is labelled {LABELS[0]}")
    drives = [(label, path) for label in there for path in labels.drives(root, label)
              if os.path.exists(os.path.join(root, path))]
    if len(drives) < 2:
        return there[0], f"{BY_LABEL}/{there[0]}"
    taken, *left = (f"/{path}" for _, path in drives)
    _say(f"{len(drives)} drives are labelled {' or '.join(there)}: taking {taken}, leaving {', '.join(left)}")
    return drives[0]


@cache
def _say(text: str) -> None:
    """Once in a process: a drive is looked for in several places."""
    journal.console(text)
    log.warning("%s", text)


def _names_of(identity: Identity) -> Iterator[str]:
    """What a document for this machine may be named after, each once."""
    seen = set()
    for values in identity.match_facts.values():
        for value in values:
            for name in (value, value.replace(":", "-"), value.replace(":", "")):
                folded = name.casefold()
                if "/" not in name and folded not in seen:
                    seen.add(folded)
                    yield name


def _read(files: FileSystem, names: list[str]) -> list[tuple[str, bytes]]:
    """The files of these names, whatever their ending, with their bytes; of more than two, the first two."""
    found = ((f"{name}{ending}", files.read(f"{name}{ending}", LARGEST)) for name in names for ending in ENDINGS)
    return list(islice(((name, data) for name, data in found if data is not None), 2))


@contextmanager
def _opened(root: Where, label: str, path: str) -> Iterator[FileSystem]:
    """What is on the drive, which is open that long. Raises SourceError, DocumentError for one that is damaged."""
    from homeport.sources.platforms.image import Damaged, Image
    try:
        with open(resolve(root, path), "rb", buffering=0) as device:
            yield _file_system(Image.of_device(device.fileno()), label)
    except Damaged as damage:
        raise DocumentError([Complaint("", f"the drive {label}: {damage}", "a sound drive")]) from damage
    except OSError as error:
        raise SourceError(f"Cannot read the drive {label}: {error.strerror}",
                          "only root may read it" if isinstance(error, PermissionError) else "") from error


def _file_system(image: Image, label: str) -> FileSystem:
    from homeport.sources.platforms.drive import FILE_SYSTEMS
    from homeport.sources.platforms.ext import Ext
    from homeport.sources.platforms.image import Damaged
    for kind in (*FILE_SYSTEMS.values(), Ext):
        with suppress(Damaged):
            return kind(image)
    with suppress(Damaged):
        if image.read(0, len(LUKS)) == LUKS:
            raise SourceError(f"Cannot read the drive {label}: it is encrypted (LUKS)",
                              "a drive with a document has a plain file system")
    raise SourceError(f"Cannot read the drive {label}: it is none of {', '.join(FILE_SYSTEMS)}, ext4",
                      "mkfs.vfat -n HOMEPORT, or genisoimage -V HOMEPORT")
