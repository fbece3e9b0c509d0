"""Profiles that were made before NetworkManager ran, and still have to show that they work.

In the initramfs a document that needs no network becomes keyfiles in /run (`prepare.py`, `handover.py`), and
NetworkManager starts straight into them, there or on the real root. Whoever runs next, in either stage, takes them for
ours: compares, proves and keeps them, or takes them away again. What the initramfs has proven and could not keep
waits here, too, for a disk that can be written.

Knows the record in /run/homeport and what NetworkManager must be told. What a document means is not its business.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeport.host import keyfiles
from homeport.host.files import make_dir, read_file, remove, write_atomic
from homeport.host.store import LIMIT, PREPARED, PREPARED_DOCUMENT, RUN_DIR, OwnedFile
from homeport.sources.reply import Reply

if TYPE_CHECKING:
    from homeport.core.keyfile import Keyfile
    from homeport.host.networkmanager import Manager
    from homeport.machine import Machine

log = logging.getLogger(__name__)

# Seconds in which NetworkManager must have brought up what it found when it started: duplicate address detection, a
# bond's ports, a switch port that takes its time.
PATIENCE = 10.0
PAUSE = 0.05
# The rungs that a document may be for.
ASSIGNED, SEED = "assigned", "seed"


@dataclass(frozen=True)
class Prepared:
    """The profiles of one document, and how it came here. `rung` is the one that it is for.

    `proven`: all of it was in force and proven in this boot. `fetched`: a source beyond the network was asked for it.
    """

    rung: str
    profiles: tuple[OwnedFile, ...] = ()
    source: str = ""
    url: str = ""
    content_type: str = ""
    etag: str = ""
    over_network: bool = False
    proven: bool = False
    fetched: bool = False

    @property
    def uuids(self) -> frozenset[str]:
        return frozenset(file.uuid for file in self.profiles)

    def reply(self, document: bytes) -> Reply:
        """The document as it came from its source."""
        return Reply(document, source=self.source, url=self.url, content_type=self.content_type, etag=self.etag,
                     over_network=self.over_network)


def of_reply(rung: str, reply: Reply, **more: Any) -> Prepared:
    return Prepared(rung, source=reply.source, url=reply.url, content_type=reply.content_type, etag=reply.etag,
                    over_network=reply.over_network, **more)


def write(root: Path, prepared: Prepared, document: bytes, made: Mapping[str, Keyfile]) -> Prepared:
    """Put the keyfiles (interface -> profile) where NetworkManager looks first. Raises PersistError, OSError.

    The record comes first: a keyfile that it does not name would be nobody's. All of them or none: NetworkManager
    would start with half a network.
    """
    for folder, mode in (("run/NetworkManager", 0o755), (keyfiles.RUN, 0o700), (RUN_DIR, 0o755)):
        make_dir(root, folder, mode)
    files = []
    for interface, keyfile in made.items():
        text = keyfile.render().encode()
        files.append(OwnedFile(keyfiles.path_of(interface, root, folder=keyfiles.RUN), keyfiles.fingerprint(text),
                               keyfile.raw("connection", "uuid") or "", interface))
    prepared = replace(prepared, profiles=tuple(files))
    write_atomic(root, PREPARED_DOCUMENT, document)
    try:
        _record(root, prepared)
        for file in files:
            write_atomic(root, file.path, made[file.interface].render().encode())
    except BaseException:  # also a bug's, or a signal's
        _remove(root, files)
        with suppress(OSError):
            forget(root)
        raise
    return prepared


def read(root: Path) -> Prepared | None:
    """What is prepared and not settled yet; None also if the record cannot be understood."""
    try:
        data = json.loads(read_file(root, PREPARED, LIMIT) or b"{}")
        return Prepared(**{**data, "profiles": tuple(OwnedFile(**item) for item in data["profiles"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def document(root: Path) -> bytes:
    return read_file(root, PREPARED_DOCUMENT, LIMIT) or b""


def forget(root: Path) -> None:
    """There is nothing prepared any more; the profiles are somebody else's to keep."""
    for path in (PREPARED_DOCUMENT, PREPARED):
        remove(root, path)


def is_prepared(machine: Machine, reply: Reply) -> bool:
    """Whether NetworkManager has started with profiles that were made of this very document."""
    return machine.prepared is not None and document(machine.root) == reply.data


def await_prepared(machine: Machine) -> frozenset[str]:
    """The UUIDs of the prepared profiles, once they are as up as they get; whether they are is for others to see."""
    prepared = machine.prepared
    if prepared is None:
        return frozenset()
    _await_up(machine, prepared)
    machine.current = None
    return prepared.uuids


def _await_up(machine: Machine, prepared: Prepared) -> None:
    end = time.monotonic() + machine.patience(PATIENCE)
    wanted = set(prepared.uuids)
    while time.monotonic() < end:
        devices = machine.manager.devices()
        up = {device.profile for device in devices if device.activated}
        if wanted <= up or not (machine.manager.startup() or wanted & {device.profile for device in devices}):
            return
        time.sleep(PAUSE)


def confirm(machine: Machine, prepared: Prepared) -> None:
    """They are proven."""
    machine.prepared = replace(prepared, proven=True)
    try:
        _record(machine.root, machine.prepared)
    except OSError as error:
        log.debug("cannot write %s: %s", PREPARED, error)


def hand_on(machine: Machine) -> None:
    """They are kept in /etc now, and were taken over there; what of them was not goes."""
    prepared = machine.prepared
    kept = machine.store.read_manifest().uuids
    if prepared is not None and not prepared.uuids <= kept:
        machine.prepared = replace(prepared, profiles=tuple(f for f in prepared.profiles if f.uuid not in kept))
        drop(machine)
        return
    machine.prepared = None
    try:
        forget(machine.root)
    except OSError as error:
        log.debug("cannot forget %s: %s", PREPARED, error)


def drop(machine: Machine) -> None:
    """Take the prepared profiles out of force, and with them what they were for. Never raises.

    The file in /etc that one may have shadowed is in force again; a card that the root file system stands on is left
    as it is.
    """
    from homeport.errors import HomeportError
    prepared, machine.prepared = machine.prepared, None
    if prepared is None:
        return
    log.info("taking away the profiles that were prepared: %s", ", ".join(file.interface for file in prepared.profiles))
    try:
        _take_down(machine, machine.manager, prepared)
    except (HomeportError, OSError) as error:
        log.warning("Cannot take away all profiles that were prepared: %s, going on", error)
        if not machine.protected:
            # A NetworkManager that is not there now must not start with them.
            _remove(machine.root, prepared.profiles)
    try:
        forget(machine.root)
    except OSError as error:
        log.debug("cannot forget %s: %s", PREPARED, error)


def _take_down(machine: Machine, manager: Manager, prepared: Prepared) -> None:
    from homeport.host.activation import COMING_BACK, come_back
    held = {device.profile for device in manager.devices() if device.interface in machine.protected}
    gone = [file for file in prepared.profiles if file.uuid not in held]
    _remove(machine.root, gone)
    paths = [f"/{file.path}" for file in gone]
    owned = {file.uuid: f"/{file.path}" for file in machine.store.read_manifest().keyfiles}
    lit = [owned[file.uuid] for file in gone if file.uuid in owned and os.path.exists(owned[file.uuid])]
    # Those in /etc first: a profile whose last file goes takes its card along.
    manager.load([*lit, *paths])
    for file in gone:
        left = manager.profile(file.uuid)
        if left is not None:
            # It came to light, and is not in force before it is activated again.
            manager.activate(file.uuid, left.interface_name or None)
    come_back(manager, {file.interface for file in gone}, machine.patience(COMING_BACK))


def _remove(root: Path, files: Iterable[OwnedFile]) -> None:
    for file in files:
        try:
            remove(root, file.path)
        except OSError as error:
            log.debug("cannot remove /%s: %s", file.path, error)


def _record(root: Path, prepared: Prepared) -> None:
    write_atomic(root, PREPARED, json.dumps(asdict(prepared), indent=1).encode())
