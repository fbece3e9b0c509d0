"""What reaches NetworkManager's folders, which of it is ours, and how ours goes again.

Knows the folders, the marks of a file of ours, and that a stranger's file is never changed or removed.
Refuses to know what is in a profile (`core/keyfile`) and to talk to NetworkManager.

A file is ours if its name is (`homeport-*.nmconnection`), it is a regular file, and it carries our mark
made for its own UUID.  The mark alone is enough, without the manifest: a reset whose manifest was lost
with /var must still end on DHCP, and so must one after a crash that left a file the manifest does not
know.  The manifest alone is not enough: where the mark is gone, somebody has put a file of their own in
the place of ours.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.core.keyfile import Keyfile, KeyfileError, file_name, is_ours, parse
from homeport.core.keyfile.format import scan
from homeport.core.keyfile.names import is_our_file_name
from homeport.errors import PersistError
from homeport.host.files import make_dir, read_file, remove, resolve, sweep, write_atomic
from homeport.host.store import STATE_DIR

if TYPE_CHECKING:
    from homeport.host.store import Manifest, OwnedFile

log = logging.getLogger(__name__)

ETC = "etc/NetworkManager/system-connections"
RUN = "run/NetworkManager/system-connections"

# A profile of ours is at most 1 MiB of text (core/keyfile/format.py).
_LIMIT = 1 << 20
# Someone who occupies this many of our names does not want us to write.
_MOST_NAMES = 9


@dataclass(frozen=True)
class Written:
    """A profile on disk: where, what it is, and whether we had to write it."""

    name: str
    path: str
    uuid: str
    fingerprint: str
    changed: bool


def path_of(name: str, root: Path | None = None, *, folder: str = ETC) -> str:
    """Where the profile `name` goes, below the root: the first of its names that no stranger holds.

    Without `root` the first of its names.  Raises PersistError if all are taken.
    """
    for number in range(1, _MOST_NAMES + 1):
        path = f"{folder}/{file_name(name, number)}"
        if root is None or not _is_there(root, path) or owns(root, path):
            return path
    raise PersistError(f"cannot keep the profile of {name}: other files hold all its names in /{folder}",
                       f"move {file_name(name)} away, or give it another name")


def write_profiles(
    root: Path, profiles: Mapping[str, Keyfile], manifest: Manifest | None = None, *, folder: str = ETC,
) -> tuple[Written, ...]:
    """Put the profiles on disk, each read back and compared before it counts; the others stay as they are.

    One that is there already, byte for byte and root's alone, is left alone.  `manifest` may have said where
    a profile will be.  Raises PersistError, naming the file; what was written until then stays, and the
    manifest knows of it.
    """
    announced = {file.interface: file.path for file in manifest.keyfiles} if manifest else {}
    _make_folder(root, folder)
    paths = {name: announced.get(name) or path_of(name, root, folder=folder) for name in profiles}
    for name, path in paths.items():
        _refuse_strangers(root, name, path, profiles[name], paths.values())
        if path != path_of(name, folder=folder):
            log.warning("/%s is not homeport's, keeping the profile of %s as /%s",
                        path_of(name, folder=folder), name, path)
    return tuple(_write_one(root, name, paths[name], profiles[name]) for name in profiles)


def list_owned(root: Path, *, folder: str = ETC) -> tuple[str, ...]:
    """The paths of our files, below the root, sorted."""
    return tuple(path for path in _list(root, folder) if owns(root, path))


def owns(root: Path, path: str) -> bool:
    """True if the file is ours to change and remove (see the head of this module)."""
    data = _read_bytes(root, path) if is_our_file_name(os.path.basename(path)) else None
    # Not parse(): an edit that made the file faulty does not make it a stranger's.
    return data is not None and is_ours(Keyfile(scan(data.decode("utf-8", "replace"))[0]))


def remove_owned(
    root: Path, manifest: Manifest | None = None, *, keep: Collection[str] = (), folder: str = ETC,
) -> tuple[str, ...]:
    """Remove every file of ours but those to `keep`; the paths that went. Raises PersistError.

    A file that the manifest names and that is not ours any more stays, with a warning.
    """
    for path in [file.path for file in manifest.owned] if manifest else []:
        if path not in keep and _is_there(root, path) and not owns(root, path):
            log.warning("/%s does not carry our mark any more, leaving it as it is", path)
    gone = [path for path in list_owned(root, folder=folder) if path not in keep]
    return tuple(path for path in gone if _remove(root, path))


def remove_files(root: Path, files: Iterable[OwnedFile]) -> tuple[str, ...]:
    """Remove those of these files that are still ours; the paths that went. Raises PersistError."""
    return tuple(file.path for file in files if owns(root, file.path) and _remove(root, file.path))


def sweep_up(root: Path) -> None:
    """Remove what a run that was killed left half-written, here and in our own folder; nobody else writes now."""
    for folder in (ETC, STATE_DIR):
        with suppress(OSError):  # a file system that is read-only
            sweep(root, folder)


def intact(root: Path, manifest: Manifest) -> bool:
    """True if every file of the manifest is on disk as we wrote it."""
    return not damage(root, manifest)


def damage(root: Path, manifest: Manifest) -> tuple[str, ...]:
    """What is not as we wrote it, a line for each file of the manifest that somebody touched."""
    found = []
    for file in manifest.keyfiles:
        data = _read_bytes(root, file.path)
        if data is None:
            found.append(f"/{file.path} is missing")
        elif hashlib.sha256(data).hexdigest() != file.sha256:
            found.append(f"/{file.path} was edited")
        elif not _is_private(root, file.path):
            found.append(f"/{file.path} is not for root alone: NetworkManager ignores it")
    return tuple(found)


def holders(root: Path, uuid: str, *, folder: str = ETC) -> tuple[str, ...]:
    """The paths of a stranger's files whose profile has this UUID: theirs or ours would be ignored."""
    return tuple(path for path in _list(root, folder)
                 if not owns(root, path) and _uuid(root, path) == uuid.lower())


def fingerprint(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write_one(root: Path, name: str, path: str, profile: Keyfile) -> Written:
    data = profile.render().encode()
    changed = _read_bytes(root, path) != data or not _is_private(root, path)
    try:
        if changed:
            write_atomic(root, path, data, 0o600)
        back = read_file(root, path, _LIMIT)
    except OSError as error:
        raise PersistError(f"cannot be kept: {error.strerror} (/{path})",
                           "it is in force, but a reboot loses it") from error
    if back is None or _parse(back) != profile or not _is_private(root, path):
        raise PersistError(f"/{path} does not read back as it was written",
                           "the disk or another program changed it")
    uuid = profile.raw("connection", "uuid") or ""
    return Written(name, path, uuid, fingerprint(data), changed)


def _refuse_strangers(root: Path, name: str, path: str, profile: Keyfile, ours: Collection[str]) -> None:
    """Raise PersistError rather than touch or shadow somebody else's profile."""
    if _is_there(root, path) and not owns(root, path):
        raise PersistError(f"cannot keep the profile of {name}: /{path} is not homeport's",
                           "move it away, or give it another name")
    uuid = profile.raw("connection", "uuid") or ""
    twins = [twin for twin in holders(root, uuid, folder=os.path.dirname(path)) if twin not in ours]
    if twins:
        raise PersistError(f"cannot keep the profile of {name}: /{twins[0]} has its UUID {uuid}",
                           "NetworkManager would ignore one of the two; remove that file's uuid= line")


def _make_folder(root: Path, folder: str) -> None:
    try:
        make_dir(root, folder, 0o700)
    except OSError as error:
        raise PersistError(f"cannot make the folder /{folder}: {error.strerror}",
                           "the profiles are in force, but a reboot loses them") from error


def _remove(root: Path, path: str) -> bool:
    try:
        return remove(root, path)
    except OSError as error:
        raise PersistError(f"cannot remove /{path}: {error.strerror}",
                           "NetworkManager will bring it up again at the next boot") from error


def _list(root: Path, folder: str) -> list[str]:
    """Every file that NetworkManager would read as a keyfile."""
    try:
        names = sorted(os.listdir(resolve(root, folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [f"{folder}/{name}" for name in names if name.endswith(".nmconnection") and name[0] != "."]


def _is_there(root: Path, path: str) -> bool:
    return os.path.lexists(resolve(root, path, follow_last=False))


def _is_private(root: Path, path: str) -> bool:
    """A regular file that only its owner, we, may read: NetworkManager ignores any other."""
    status = os.lstat(resolve(root, path, follow_last=False))
    return status.st_mode == stat.S_IFREG | 0o600 and status.st_uid == os.geteuid()


def _read_bytes(root: Path, path: str) -> bytes | None:
    """What is in a regular file, None if it is none: a link in our name is a stranger's."""
    try:
        if stat.S_ISREG(os.lstat(resolve(root, path, follow_last=False)).st_mode):
            return read_file(root, path, _LIMIT)
    except OSError:
        return None
    return None


def _parse(data: bytes) -> Keyfile | None:
    try:
        return parse(data.decode())
    except (KeyfileError, UnicodeDecodeError):
        return None


def _uuid(root: Path, path: str) -> str:
    """The UUID in a file that we may be too strict to read as a whole."""
    for line in (_read_bytes(root, path) or b"").split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip() == b"uuid":
            return value.strip().decode("utf-8", "replace").lower()
    return ""
