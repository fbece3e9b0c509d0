"""Behind NetworkManager, when it has stopped in the initramfs: what must not reach the real root.

/run is the real root's, too, and there goes before /etc: a profile that was made for the initramfs, or a note of
NetworkManager's that a card runs on one, would win over what the real root has.  What was proven here and handed over
has the same UUID there, and stays: NetworkManager takes such a card over as it is, without a flap and without a
second lease.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from homeport import prepared
from homeport.core.cmdline import parse
from homeport.core.initrd import users_own
from homeport.host import keyfiles, profiles, rootfs
from homeport.host.files import read_file, remove
from homeport.host.store import LIMIT, Store
from homeport.machine import Machine
from homeport.prepare import DEVICES, REAL_ROOT, is_generated, note, read_arguments

log = logging.getLogger(__name__)

BOOTSTRAP_OF_ROOT = f"usr/lib/NetworkManager/system-connections/{profiles.BOOTSTRAP}.nmconnection"
ORIGIN = b"org.freedesktop.NetworkManager.origin=homeport"


def tidy(machine: Machine, real: Path = REAL_ROOT) -> None:
    """Nothing is touched where the root file system is on the network, or where homeport has kept out of it."""
    arguments = read_arguments(machine)
    if machine.settings.initrd == "off":
        return
    if where := rootfs.network_root(arguments, machine.root):
        log.info("the root file system is on the network (%s): all is left as it is", where.reason)
        return
    if table := rootfs.firmware_table(arguments, machine.root):
        log.info("left as it is: the network of the firmware's table %s", table)
        return
    theirs = Store(real).read_manifest()
    if users_own(parse(arguments)) and not theirs.keyfiles:
        log.info("left to the real root: the network of the kernel line")
        return
    removed, uuids = remove_profiles(machine)
    loose = remove_notes(machine, staying_uuids(machine, real), uuids)
    for name in loose:
        from homeport.host.linkdown import take_down
        take_down(name)
    if removed or loose:
        log.info("tidied up behind NetworkManager: %s", ", ".join([*removed, *loose]))


def staying_uuids(machine: Machine, real: Path) -> frozenset[str]:
    """The profiles that the real root has, or is to take from /run.

    The bootstrap profile is one as long as nothing better is kept there: its lease goes on.
    """
    theirs = Store(real).read_manifest()
    found = set(theirs.uuids | running(machine))
    waiting = prepared.read(machine.root)
    if waiting is not None:
        found |= waiting.uuids
    if not found and (bootstrap := uuid_of(real, BOOTSTRAP_OF_ROOT)):
        found.add(bootstrap)
    return frozenset(found)


def running(machine: Machine) -> frozenset[str]:
    """The profiles of an assignment that is in force and not to be kept: it is in /run, and the real root's too."""
    manifest = machine.store.read_manifest()
    return manifest.uuids if manifest.volatile else frozenset()


def remove_profiles(machine: Machine) -> tuple[list[str], frozenset[str]]:
    """Those in /run that were made for the initramfs, by name and by UUID: the generator's, the bootstrap's copy, what
    nmstate left. Where homeport has not brought the network up, only what says itself whose it is.
    """
    waiting = prepared.read(machine.root)
    staying = {os.path.basename(file.path) for file in waiting.profiles} if waiting else set()
    if running(machine):
        staying |= {os.path.basename(file.path) for file in machine.store.read_manifest().keyfiles}
    left = note(machine.root)
    found = set(left.get("found", ()))
    removed, uuids = [], set()
    for name in listing(machine.root, keyfiles.RUN):
        path = f"{keyfiles.RUN}/{name}"
        if name in staying:
            continue
        if is_generated(machine.root, path) or (name not in found if left else is_ours(machine.root, path)):
            uuid = uuid_of(machine.root, path)
            if take_away(machine.root, path):
                removed.append(name)
                uuids.add(uuid)
    return removed, frozenset(uuids - {""})


def remove_notes(machine: Machine, staying: frozenset[str], removed: frozenset[str]) -> list[str]:
    """NetworkManager's notes of cards that run on a profile which does not stay; those cards, but for the loopback.

    A stranger's stays; and where homeport has not brought the network up, all but those that were removed.
    """
    ours = bool(note(machine.root))
    staying |= {uuid_of(machine.root, f"{keyfiles.RUN}/{name}") for name in listing(machine.root, keyfiles.RUN)}
    cards = []
    for name in listing(machine.root, DEVICES):
        uuid = uuid_of(machine.root, f"{DEVICES}/{name}", b"connection-uuid")
        if uuid and uuid not in staying and (ours or uuid in removed) and take_away(machine.root, f"{DEVICES}/{name}"):
            cards.append(interface_of(machine.root, name))
    return [card for card in cards if card not in ("", "lo")]


def take_away(root: Path, path: str) -> bool:
    """Never raises: one that stays is no reason to leave the others, too."""
    try:
        return remove(root, path)
    except OSError as error:
        log.warning("Cannot remove /%s: %s, going on", path, error.strerror)
        return False


def is_ours(root: Path, path: str) -> bool:
    """Whether a profile says that homeport made it."""
    return ORIGIN in read(root, path).split(b"\n")


def interface_of(root: Path, index: str) -> str:
    """The card of this number; "" if there is none, any more."""
    for place in (root / "sys/class/net").glob("*/ifindex"):
        with suppress(OSError):  # it may go while it is looked at
            if place.read_text().strip() == index:
                return place.parent.name
    return ""


def uuid_of(root: Path, path: str, wanted: bytes = b"uuid") -> str:
    for line in read(root, path).split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip() == wanted:
            return value.strip().decode("ascii", "replace").lower()
    return ""


def read(root: Path, path: str) -> bytes:
    """Nothing of what cannot be read: it is not known whose that is."""
    try:
        return read_file(root, path, LIMIT) or b""
    except OSError:
        return b""


def listing(root: Path, path: str) -> list[str]:
    return sorted(os.listdir(root / path)) if (root / path).is_dir() else []
