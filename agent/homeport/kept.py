"""The real root's own profiles, used in the initramfs as they are: nobody is asked, and no DHCP packet is sent.

Knows how they come from the real root into the initramfs's own folders (`restore`), how they show that they are up,
and how they go again if they do not come up.  They were proven when they were kept; the real root looks at them, and
asks for news, as it does at every boot.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from homeport.core.keyfile import Keyfile, parse
from homeport.errors import ApplyError, HomeportError
from homeport.host import keyfiles, profiles
from homeport.host.files import read_file, write_atomic
from homeport.host.store import LIMIT, REGISTRATION_CA, SOFTWARE_EK, Store
from homeport.machine import Machine
from homeport.prepare import note

log = logging.getLogger(__name__)

# Seconds for them to come up; after that somebody is asked after all.
PATIENCE = 10.0
PAUSE = 0.05
# What else the real root remembers and a source may need here: who this machine is for a registration server.
BESIDE = (REGISTRATION_CA, SOFTWARE_EK)


def why_not(real: Path) -> str:
    """Why the profiles that the real root at `real` keeps cannot be used as they are; "" if they can."""
    store = Store(real)
    manifest = store.read_manifest()
    if not manifest.complete or not manifest.keyfiles or store.read_assigned() is None:
        return "nothing was ever proven on this machine, or it is remembered elsewhere"
    return "; ".join(keyfiles.damage(real, manifest))


def restore(real: Path, root: Path) -> tuple[str, ...]:
    """Copy them into `root`, the initramfs, with all that is remembered of them; their interfaces. Raises OSError,
    PersistError.
    """
    there, here = Store(real), Store(root)
    manifest = there.read_manifest()
    restore_beside(real, root)
    here.keep_document(there.read_assigned() or b"")
    here.write_manifest(manifest)
    try:
        keyfiles.write_profiles(root, {file.interface: _read(real, file.path) for file in manifest.keyfiles}, manifest)
    except (HomeportError, OSError):
        # Half of a network is none: NetworkManager would start with it.
        keyfiles.remove_owned(root, manifest)
        here.forget()
        raise
    return tuple(file.interface for file in manifest.keyfiles)


def restore_beside(real: Path, root: Path) -> None:
    """Copy what a source may need. Raises OSError."""
    for path in BESIDE:
        if (data := read_file(real, path, LIMIT)) is not None:
            Store(root).prepare()
            write_atomic(root, path, data)


def is_there(machine: Machine) -> bool:
    """Whether NetworkManager here has started with the real root's profiles."""
    return bool(note(machine.root).get("kept"))


def stand(machine: Machine) -> None:
    """Wait until they are up. Raises ApplyError if they do not come up; they are gone then."""
    with machine.report.step("kept") as notes:
        manifest = machine.store.read_manifest()
        machine.report.source, machine.report.revision = f"{manifest.source} {manifest.url}".strip(), manifest.revision
        try:
            notes.append(", ".join(_wait(machine, manifest.uuids)))
        except HomeportError:
            leave(machine)
            raise
        machine.report.reason = "as kept on the real root; nobody was asked"
        machine.report.persisted = True


def leave(machine: Machine) -> None:
    """Take them out of force, here only, with a way to DHCP instead. Never raises."""
    from homeport import fallback
    manifest = machine.store.read_manifest()
    try:
        removed = keyfiles.remove_owned(machine.root, manifest)
        machine.store.forget()
        machine.manager.load([f"/{path}" for path in removed])
        fallback.bring_bootstrap(machine)
    except (HomeportError, OSError) as error:
        log.warning("Cannot take the kept profiles out of force: %s, going on", error)


def _wait(machine: Machine, uuids: frozenset[str]) -> list[str]:
    """What is up, once NetworkManager has done all that it can with them."""
    end = time.monotonic() + machine.patience(PATIENCE)
    while True:
        ours = [device for device in machine.manager.devices() if device.profile in uuids]
        settled = all(device.activated for device in ours) and not machine.manager.startup()
        if ours and (settled or {device.profile for device in ours if device.activated} >= uuids):
            usable = [device for device in ours if profiles.usable(device)]
            if usable:
                return [f"{device.interface} {' '.join(device.addresses)}" for device in usable]
        if time.monotonic() > end:
            raise ApplyError("the kept profiles did not come up in time",
                             "a card or a cable is missing, or was exchanged; the sources are asked instead")
        time.sleep(PAUSE)


def _read(real: Path, path: str) -> Keyfile:
    return parse((read_file(real, path, LIMIT) or b"").decode())
