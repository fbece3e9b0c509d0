"""Behind NetworkManager, when it has stopped in the initramfs: what must not reach the real root.

/run is the real root's, too, and there goes before /etc: a profile that was made for the initramfs, or a note of
NetworkManager's that a card runs on one, would win over what the real root has.  What was proven here and handed over
has the same UUID there, and stays: NetworkManager takes such a card over as it is, without a flap and without a
second lease.
"""

from __future__ import annotations

import logging
import os
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


def tidy(machine: Machine, real: Path = REAL_ROOT) -> None:
    """Nothing is touched where the root file system is on the network, or where homeport has kept out of it."""
    from homeport.host.facts import read_cmdline
    arguments = read_arguments(machine) or read_cmdline(machine.root)
    if machine.settings.initrd == "off":
        return
    if where := rootfs.network_root(arguments, machine.root):
        log.info("the root file system is on the network (%s): all is left as it is", where.reason)
        return
    theirs = Store(real).read_manifest()
    if users_own(parse(arguments)) and not theirs.keyfiles:
        log.info("left to the real root: the network of the kernel line")
        return
    staying = staying_uuids(machine, real)
    gone = remove_profiles(machine)
    loose = remove_notes(machine, staying)
    for name in loose:
        from homeport.host.linkdown import take_down
        take_down(name)
    if gone or loose:
        log.info("tidied up behind NetworkManager: %s", ", ".join([*gone, *loose]))


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


def remove_profiles(machine: Machine) -> list[str]:
    """Those in /run that were made for the initramfs: the generator's, the bootstrap's copy, what nmstate left."""
    folder = machine.root / keyfiles.RUN
    waiting = prepared.read(machine.root)
    ours = {os.path.basename(file.path) for file in waiting.profiles} if waiting else set()
    if running(machine):
        ours |= {os.path.basename(file.path) for file in machine.store.read_manifest().keyfiles}
    found = set(note(machine.root).get("found", ()))
    gone = []
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        path = f"{keyfiles.RUN}/{name}"
        if name not in ours and (name not in found or is_generated(machine.root, path)):
            remove(machine.root, path)
            gone.append(name)
    return gone


def remove_notes(machine: Machine, staying: frozenset[str]) -> list[str]:
    """NetworkManager's notes of cards that run on a profile which does not stay; those cards."""
    folder = machine.root / DEVICES
    cards = []
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        if (uuid := uuid_of(machine.root, f"{DEVICES}/{name}", b"connection-uuid")) and uuid not in staying:
            remove(machine.root, f"{DEVICES}/{name}")
            cards.append(interface_of(machine.root, name))
    return [card for card in cards if card]


def interface_of(root: Path, index: str) -> str:
    for place in (root / "sys/class/net").glob("*/ifindex"):
        if place.read_text().strip() == index:
            return place.parent.name
    return ""


def uuid_of(root: Path, path: str, wanted: bytes = b"uuid") -> str:
    for line in (read_file(root, path, LIMIT) or b"").split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip() == wanted:
            return value.strip().decode("ascii", "replace").lower()
    return ""
