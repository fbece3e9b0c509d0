"""The folder of manifests on disk: its files, whether they have changed, and the last set that was good.

Knows `*.yaml`, `*.yml` and `*.json` in a folder and below it, but for what begins with a dot. Refuses to know what
is in them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from homeport.errors import HomeportError

SUFFIXES = (".yaml", ".yml", ".json")
MOST_FILES = 5_000
LARGEST = 512 * 1024

Signature = tuple[tuple[str, int, int, int], ...]


class UnreadableFolder(HomeportError):
    """The manifests cannot be read at all."""

    status = os.EX_NOINPUT


def signature(folder: Path) -> Signature:
    """Changes whenever a file is added, removed or written."""
    found = []
    for path in _files(folder):
        try:
            status = path.stat()
        except OSError:  # gone between listing and looking: the next look sees it so
            continue
        found.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def read_files(folder: Path) -> dict[str, bytes]:
    """The files by their name below the folder. Raises UnreadableFolder; for a file too large it keeps the start."""
    try:
        return {str(path.relative_to(folder)): _read(path) for path in _files(folder)}
    except OSError as error:
        raise UnreadableFolder(f"Cannot read the manifests in {folder}: {error.strerror}: {error.filename}",
                               "name the folder that has the pools and registrations") from None


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    if not folder.is_dir():
        raise UnreadableFolder(f"Cannot read the manifests in {folder}: it is no folder",
                               "name the folder that has the pools and registrations")
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIXES) and not name.startswith("."):
                count += 1
                if count > MOST_FILES:
                    raise UnreadableFolder(f"Cannot read the manifests in {folder}: more than {MOST_FILES} files",
                                           "name a folder that has only manifests")
                yield Path(parent, name)


def _read(path: Path) -> bytes:
    # One byte more than a document may have: the reader then says that it is too large.
    with path.open("rb") as file:
        return file.read(LARGEST + 1)


def keep_good(path: Path, files: Mapping[str, bytes]) -> None:
    """Keep a set that was good, for a start at a time when the folder is not."""
    text = json.dumps({name: data.decode("utf-8", "surrogateescape") for name, data in files.items()})
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(text, encoding="utf-8", errors="surrogatepass")
    temporary.replace(path)


def last_good(path: Path) -> dict[str, bytes] | None:
    """The set that `keep_good` has kept, None if there is none that can be read."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        return {str(name): str(text).encode("utf-8", "surrogateescape") for name, text in kept.items()}
    except (OSError, ValueError, AttributeError):
        return None
