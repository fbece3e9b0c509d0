"""From the initramfs to the real root: what was found out and proven, before anything there is started.

    proven here          keyfiles, document and manifest go to the real root, under the same UUIDs, so that its
                         NetworkManager takes the cards over as they are; or stay in /run where that cannot be
                         written now, and the real root's homeport keeps them
    kept, and up         the real root has it all
    nothing ran here     a document at hand is rendered for the real root's NetworkManager, which starts straight into
                         it; the real root's homeport proves it

Knows the order of writes. Never raises for what the real root's homeport
can do later, and says so.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from homeport import fastpath, kept, offline, prepared, start
from homeport.core.facts import Mode
from homeport.core.keyfile import Keyfile, parse
from homeport.errors import HomeportError, NoAssignment
from homeport.host import journal, keyfiles, realroot
from homeport.host.facts import read_machine_id
from homeport.host.files import make_dir, read_file, remove, resolve, write_atomic
from homeport.host.store import LIMIT, STAMP, Store
from homeport.machine import Machine
from homeport.prepare import REAL_ROOT, note, read_facts, tell
from homeport.sources import Reply, needs_network, seeds

log = logging.getLogger(__name__)

# The one unit whose mask switches all of homeport off.
UNIT = "etc/systemd/system/homeport.service"
RELABEL = "run/tmpfiles.d/homeport-relabel.conf"
RELABEL_LINES = (
    "# Written in the initramfs, where no SELinux policy was loaded (tmpfiles.d(5), z: restore the label).\n"
    "z /etc/NetworkManager/system-connections - - - -\n"
    "z /etc/NetworkManager/system-connections/homeport-*.nmconnection - - - -\n"
    "z /etc/NetworkManager/dispatcher.d/nmstate-*.sh - - - -\n"
    "z /etc/systemd/network/98-nmstate-*.link - - - -\n"
    "z /etc/hostname - - - -\n"
    "Z /var/lib/homeport - - - -\n")


def handover(machine: Machine, real: Path = REAL_ROOT) -> None:
    """The whole of it; what cannot be done now is left to the real root's homeport, and said."""
    if is_masked(real):
        log.info("nothing to hand over: homeport.service is masked in the real root")
        return
    read_facts(machine)
    early = machine.store.read_initrd_status()
    if note(machine.root):
        after_a_run(machine, real, early or {})
    elif machine.facts.mode in (Mode.ACTIVE, Mode.PASSIVE):
        before_any_run(machine, real)


def is_masked(real: Path) -> bool:
    """Whether somebody has switched homeport off in the real root: a link to /dev/null (systemctl(1), mask)."""
    try:
        return os.readlink(real / UNIT) == os.devnull
    except OSError:
        return False


# -- what ran here --

def after_a_run(machine: Machine, real: Path, early: Mapping[str, object]) -> None:
    """NetworkManager ran here, and homeport may have put something in force."""
    if early.get("rung") == "last-known-good" and kept.is_there(machine):
        log.info("nothing to hand over: the real root's own profiles are up")
        return
    if machine.store.read_manifest().volatile:
        log.info("nothing to hand over: what is in force is not to be kept, and stays in /run")
        return
    if not machine.store.read_manifest().complete or machine.store.read_assigned() is None:
        log.info("nothing to hand over: nothing was proven in the initramfs")
        return
    try:
        why = realroot.obstacle(machine.facts.cmdline, machine.root, real)
        if not why:
            with realroot.as_writable(real):
                give(machine, real)
    except (HomeportError, OSError) as error:
        why = str(error)
    except Exception as bug:  # what was proven must not be lost by it
        log.exception("A bug in homeport")
        why = f"a bug in homeport: {type(bug).__name__}: {bug}"
    if why:
        leave(machine, why, bool(early.get("fetched")))
        return
    log.info("handed over to the real root: revision %s", machine.store.read_manifest().revision)


def give(machine: Machine, real: Path) -> None:
    """In the order of persist.py: at every instant the former assignment is whole, or the new one is the newest.

    Raises PersistError, OSError.
    """
    here, there = machine.store, Store(real)
    manifest, texts = here.read_manifest(), profiles_here(machine)
    files = tuple(replace(file, path=keyfiles.path_of(file.interface, real)) for file in manifest.keyfiles)
    relabel(machine.root, real)
    remove(real, STAMP)
    there.keep_document(here.read_assigned() or b"")
    announced = there.announce(manifest, files)
    keyfiles.write_profiles(real, texts, announced)
    keyfiles.remove_owned(real, announced, keep=[file.path for file in files])
    for path in kept.BESIDE:
        data = read_file(machine.root, path, LIMIT)
        # A key that is there already is the machine's; a second one would make it another machine.
        if data is not None and read_file(real, path, LIMIT) is None:
            write_atomic(real, path, data)
    give_beside(machine, real)
    there.write_manifest(replace(announced, stale=(), complete=True))


def give_beside(machine: Machine, real: Path) -> None:
    """What the document says of this machine beside its profiles, as persist.py would keep it there. Raises OSError.

    The document's host name takes the place of another one; where it says none, the real root's own stays, whatever
    the initramfs is called.
    """
    manifest = machine.store.read_manifest()
    for path in manifest.side_files:
        data = read_file(machine.root, path, LIMIT)
        if data is not None and data != read_file(real, path, LIMIT):
            make_dir(real, os.path.dirname(path))
            write_atomic(real, path, data, stat.S_IMODE(os.stat(resolve(machine.root, path)).st_mode))
    if manifest.hostname is None or manifest.hostname == fastpath.host_name(str(real)):
        return
    if manifest.hostname:
        write_atomic(real, "/etc/hostname", f"{manifest.hostname}\n".encode(), 0o644)
    else:
        remove(real, "/etc/hostname")


def leave(machine: Machine, why: str, fetched: bool) -> None:
    """Keep it in /run, under the same UUIDs, for the real root's NetworkManager to use and its homeport to keep."""
    manifest, document = machine.store.read_manifest(), machine.store.read_assigned() or b""
    record = prepared.Prepared(
        prepared.ASSIGNED, source=manifest.source, url=manifest.url, etag=manifest.etag,
        content_type=manifest.content_type, proven=True, fetched=fetched, over_network=fetched)
    prepared.write(machine.root, record, document, profiles_here(machine))
    journal.console(f"the real root cannot be written yet, it keeps the network itself: {why}")
    log.info("left in /%s for the real root: %s", keyfiles.RUN, why)


def profiles_here(machine: Machine) -> dict[str, Keyfile]:
    """Interface -> profile, of what was kept in the initramfs."""
    return {file.interface: parse((read_file(machine.root, file.path, LIMIT) or b"").decode())
            for file in machine.store.read_manifest().keyfiles}


# -- what did not --

def before_any_run(machine: Machine, real: Path) -> None:
    """Nothing needed a network here; a document at hand spares the real root its DHCP."""
    for rung, way in ((prepared.ASSIGNED, an_assignment), (prepared.SEED, a_seed)):
        try:
            if way(machine, real):
                return
        except Exception as error:  # a bug, too: the other document may be without it
            tell(rung, error)


def an_assignment(machine: Machine, real: Path) -> bool:
    """Whether one is at hand and rendered. Raises HomeportError, OSError."""
    try:
        reply = start.read_at_hand(machine)
    except NoAssignment as nothing:
        log.debug("%s", nothing)
        return False
    if Store(real).read_assigned() == reply.data and not kept.why_not(real):
        log.info("the real root has it already: %s", reply.label)
        return False
    return render(machine, prepared.ASSIGNED, reply, real)


def a_seed(machine: Machine, real: Path) -> bool:
    """Whether one is rendered: only where nothing was ever proven. Raises HomeportError, OSError."""
    seed = find_seed(machine, real) if kept.why_not(real) else None
    return seed is not None and render(machine, prepared.SEED, seed, real)


def find_seed(machine: Machine, real: Path) -> Reply | None:
    """One given to this machine; the image's own only where no server is to be asked: it is the last resort."""
    given = seeds.read_at_hand(machine.settings, root=machine.root)
    if given is not None or needs_network(machine.settings, machine.root):
        return given
    return seeds.read_files(machine.settings, root=machine.root) or seeds.read_files(machine.settings, root=real)


def render(machine: Machine, rung: str, reply: Reply, real: Path) -> bool:
    """Whether the document's profiles are where the real root's NetworkManager looks first. Raises HomeportError,
    OSError.
    """
    machine.facts = replace(machine.facts, machine_id=read_machine_id(real))
    made = offline.make(machine, start.understand(machine, reply), start.known_uuids(real))
    if made:
        prepared.write(machine.root, prepared.of_reply(rung, reply), reply.data, made)
        log.info("made ready for the real root, without any network: %s: %s", reply.label, ", ".join(made))
    return bool(made)


# -- the real root --

def relabel(root: Path, real: Path) -> None:
    """Where the real root has SELinux, its tmpfiles give our files their labels before NetworkManager reads them."""
    text = (read_file(real, "/etc/selinux/config", LIMIT) or b"").decode("utf-8", "replace")
    words = [line.partition("=")[2].strip().lower() for line in text.splitlines() if line.startswith("SELINUX=")]
    if words and words[-1] in ("enforcing", "permissive"):
        make_dir(root, os.path.dirname(RELABEL), 0o755)
        write_atomic(root, RELABEL, RELABEL_LINES.encode(), 0o644)
