"""The `file` source: a document on this machine, or a folder with one for each machine.

Knows how a document in a folder is named after the machine it is for: `<uuid|serial|mac|hostname>.yaml`
(also `.yml`, `.json`), `default.yaml` for all others; case does not count, nor how a MAC is punctuated.
A "/" in a value is written `%2F`.  Refuses to know what is in a document.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from homeport.core.complaint import Complaint
from homeport.errors import DocumentError, NoAssignment, SourceError
from homeport.host.files import is_dir, read_file, resolve
from homeport.sources.address import MissingFact, fill, is_url
from homeport.sources.reply import LARGEST, Reply

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.settings import Settings

NAME = "file"
ENDINGS = (".yaml", ".yml", ".json")
DEFAULT = "default"
Where = str | os.PathLike[str]


def locations(settings: Settings) -> Sequence[str]:
    """What of the settings is ours to read."""
    return [location for location in settings.config if not is_url(location)]


def fetch(settings: Settings, identity: Identity, *, root: Where = "/") -> Reply:
    """The first document that is there. Raises NoAssignment if none is, SourceError for what can't be
    read, DocumentError for what is too large or ambiguous."""
    missing: list[str] = []
    wrong: SourceError | None = None
    for template in locations(settings):
        try:
            path = fill(template, identity.fields)
        except MissingFact as error:
            wrong = wrong or error
            continue
        found = _in_folder(root, path, identity) if is_dir(root, path) else path
        data = _read(root, found) if found else None
        if data is not None:
            return Reply(data, source=NAME, url=found)
        missing.append(path)
    if wrong is not None:
        raise wrong
    raise NoAssignment(f"No document for this machine at {' or '.join(missing)}",
                       "put one there, or name another place with config=")


def read_first(paths: Sequence[str], *, root: Where, source: str) -> Reply | None:
    """The first of `paths` that exists, None if none does. Raises as `fetch` does."""
    for path in paths:
        data = _read(root, path)
        if data is not None:
            return Reply(data, source=source, url=path)
    return None


def too_large(error: OSError, what: str) -> DocumentError | None:
    """The complaint about a document of more than LARGEST bytes, None if `error` is about something else.
    """
    if error.errno != errno.EFBIG:
        return None
    return DocumentError([Complaint("", f"the {what} is larger than {LARGEST >> 10} KiB",
                                    "an assignment is a few KiB; is this one?")])


def _read(root: Where, path: str) -> bytes | None:
    try:
        return read_file(root, path, LARGEST)
    except OSError as error:
        raise too_large(error, f"document {path}") or SourceError(
            f"Cannot read the document {path}: {error.strerror}",
            "only root may read it" if isinstance(error, PermissionError) else "") from error


def _in_folder(root: Where, folder: str, identity: Identity) -> str:
    """The document for this machine, "" if there is none. Raises DocumentError if there are two."""
    names = dict(_documents(root, folder))
    ours = {_fold(value) for values in identity.match_facts.values() for value in values}
    fitting = sorted(name for name, stem in names.items() if _fold(stem) in ours)
    if len(fitting) > 1:
        raise DocumentError([Complaint("", f"{folder} has more than one document for this machine: "
                                           + ", ".join(fitting), "one of them must go")])
    fitting = fitting or sorted(name for name, stem in names.items() if stem == DEFAULT)
    return f"{folder.rstrip('/')}/{fitting[0]}" if fitting else ""


def _documents(root: Where, folder: str) -> Iterator[tuple[str, str]]:
    """Each document's file name and what it is named after."""
    try:
        names = os.listdir(resolve(root, folder))
    except OSError as error:
        raise SourceError(f"Cannot look for documents in {folder}: {error.strerror}") from error
    for name in names:
        stem, ending = os.path.splitext(name)
        if ending.lower() in ENDINGS and not name.startswith("."):
            yield name, unquote(stem)


def _fold(value: str) -> str:
    """One spelling for all: `52-54-00-AB-CD-EF` and `52:54:00:ab:cd:ef` name the same NIC."""
    return value.casefold().replace(":", "").replace("-", "")
