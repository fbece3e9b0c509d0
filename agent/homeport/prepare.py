"""Before NetworkManager starts in the initramfs: what is to be done there, and what it is to start with.

    nothing     homeport.initrd=off; the kernel line has a network of the user's own; nothing needs one and nothing
                is at hand
    later       nothing needs a network here: a document at hand is rendered once the real root is there
                (`handover.py`), for the real root's NetworkManager
    now         the network is wanted here: a document at hand, or the real root's own profiles, or a seed become
                what NetworkManager starts with; without any of them it starts with DHCP, and a source is asked

Knows the order and the marks that the units look at. Never raises for what a lower choice can mend, and never blocks:
each wait has a limit.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from homeport import fallback, kept, offline, prepared, sources, steps
from homeport.core import initrd
from homeport.core.cmdline import parse
from homeport.core.identity import Identity
from homeport.core.initrd import Decision
from homeport.errors import HomeportError, NoAssignment, Unconfigured
from homeport.host import journal, keyfiles, profiles
from homeport.host.files import make_dir, read_file, remove, write_atomic
from homeport.host.store import HANDOVER, INITRD, LIMIT, RUN_DIR, Store
from homeport.machine import Machine
from homeport.sources import AT_HAND, Reply, drive, seeds

log = logging.getLogger(__name__)

# Makes NetworkManager start in the initramfs, in all generations of its units.
NEEDNET = "run/NetworkManager/initrd/neednet"
DRACUTS = ("etc/cmdline", "etc/cmdline.d")
UDEV_BUSY = "run/udev/queue"
# Seconds for udev to find what it was told to look for, and for the device of the root file system.
DRIVE_WAIT, ROOT_WAIT = 5.0, 5.0
PAUSE = 0.05
GENERATOR = b"org.freedesktop.NetworkManager.origin=nm-initrd-generator"


def prepare(machine: Machine) -> None:
    """The whole of it. What goes wrong is on the console; the initramfs goes on in any case."""
    steps.read_facts(machine)
    decision = initrd.decide(machine.settings.initrd, machine.facts.mode, read_arguments(machine))
    log.info("%s: %s", _summary(decision), decision.reason)
    if not decision.look and not decision.network:
        return
    if decision.network:
        bring_network(machine, decision)
    mark(machine, HANDOVER, {"reason": decision.reason, "network": decision.network})


def bring_network(machine: Machine, decision: Decision) -> None:
    """Leave NetworkManager something to start with, and see to it that it starts."""
    ways: list[tuple[str, Callable[[Machine], str]]] = [("DHCP", use_dhcp)]
    if decision.look:
        wait_for_drive(machine)
        ways = [("assigned", use_assignment), ("last-known-good", use_kept), ("seed", use_seed), *ways]
    for name, way in ways:
        try:
            used = way(machine)
        except (NoAssignment, Unconfigured) as nothing:
            log.debug("%s: %s", name, nothing)
        except (HomeportError, OSError) as error:
            tell(name, error)
        else:
            log.info("NetworkManager starts with: %s", used)
            replace_generated(machine)
            break
    make_dir(machine.root, os.path.dirname(NEEDNET), 0o755)
    write_atomic(machine.root, NEEDNET, b"", 0o644)
    # What is there now and is not the generator's was put there by somebody else, and is left to them.
    ours = {os.path.basename(file.path) for file in machine.prepared.profiles} if machine.prepared else set()
    found = set(listing(machine)) - ours - {f"{profiles.BOOTSTRAP}.nmconnection"}
    mark(machine, INITRD, {"started": machine.started, "reason": decision.reason, "found": sorted(found),
                           "kept": name == "last-known-good"})


def use_assignment(machine: Machine) -> str:
    """The document that a source without network has, rendered; or what is kept of that very document."""
    reply = read_at_hand(machine)
    with real_root(machine) as real:
        if real is not None and Store(real).read_assigned() == reply.data and not kept.why_not(real):
            return take_over(machine, real)
        known = known_uuids(real) if real else {}
    return render(machine, prepared.ASSIGNED, reply, known)


def use_kept(machine: Machine) -> str:
    """What the real root keeps, as it is."""
    with real_root(machine) as real:
        if real is None:
            raise NoAssignment("the real root cannot be looked at")
        if why := kept.why_not(real):
            kept.restore_beside(real, machine.root)
            raise NoAssignment(why)
        return take_over(machine, real)


def use_seed(machine: Machine) -> str:
    """One that was given to this machine; the image's own only where no server is to be asked: it is the last resort.
    """
    reply = seeds.read_at_hand(machine.settings, root=machine.root)
    if reply is None and not sources.needs_network(machine.settings, machine.root):
        reply = seeds.read_files(machine.settings, root=machine.root)
    if reply is None:
        raise NoAssignment("there is no seed")
    return render(machine, prepared.SEED, reply, {})


def use_dhcp(machine: Machine) -> str:
    return f"DHCP (/{fallback.put_bootstrap(machine)})"


def read_at_hand(machine: Machine) -> Reply:
    """The document of the first source that needs no network. Raises as `sources.fetch` does."""
    if not sources.is_at_hand(machine.settings, machine.root):
        raise Unconfigured("no document is at hand")
    if machine.identity is None:
        steps.identify(machine)
    here = machine.settings.replace(sources=tuple(name for name in machine.settings.sources if name in AT_HAND))
    return sources.fetch(here, machine.identity or Identity(), root=machine.root, facts=machine.facts,
                         deadline=time.monotonic() + DRIVE_WAIT)


def render(machine: Machine, rung: str, reply: Reply, known: dict[str, str]) -> str:
    """The document's profiles, where NetworkManager looks first. Raises DocumentError, ApplyError, PersistError."""
    if machine.identity is None:
        steps.identify(machine)
    assignment = steps.understand(machine, reply)
    made = offline.make(machine, assignment, known)
    if not made:
        raise NoAssignment(f"{reply.label} configures nothing")
    machine.prepared = prepared.write(machine.root, prepared.of_reply(rung, reply), reply.data, made)
    return f"{reply.label}: {', '.join(made)}"


def take_over(machine: Machine, real: Path) -> str:
    return f"the real root's own profiles: {', '.join(kept.restore(real, machine.root))}"


def known_uuids(real: Path) -> dict[str, str]:
    """Interface -> UUID of the profiles that the real root keeps."""
    return {file.interface: file.uuid for file in Store(real).read_manifest().keyfiles}


@contextmanager
def real_root(machine: Machine) -> Iterator[Path | None]:
    """The real root, mounted read-only and without replay for a moment; None if it is not on a device that is here, or
    cannot be read as it is.
    """
    from homeport.host import mounts
    device = initrd.root_device(parse(read_arguments(machine)))
    with ExitStack() as stack:
        real = None
        if device is not None and wait_for(device.path, machine.patience(ROOT_WAIT)):
            try:
                real = stack.enter_context(mounts.read_only(device.path, device.fstype, device.options))
            except OSError as error:
                log.info("the real root cannot be looked at: %s", error)
        yield real


def wait_for_drive(machine: Machine) -> None:
    """While udev is still at it, a drive with our label may come."""
    end = time.monotonic() + machine.patience(DRIVE_WAIT)
    while os.path.exists(machine.root / UDEV_BUSY) and not drive.is_there(machine.root) and time.monotonic() < end:
        time.sleep(PAUSE)


def wait_for(path: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True


def replace_generated(machine: Machine) -> None:
    """Take away NetworkManager's generated default, now that there is something better: it has no user's word in it."""
    for name in listing(machine):
        if is_generated(machine.root, f"{keyfiles.RUN}/{name}"):
            remove(machine.root, f"{keyfiles.RUN}/{name}")


def listing(machine: Machine) -> list[str]:
    """The names of the profiles in /run."""
    folder = machine.root / keyfiles.RUN
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def is_generated(root: Path, path: str) -> bool:
    """Whether a profile was made by NetworkManager's generator, from the kernel line."""
    try:
        return GENERATOR in (read_file(root, path, LIMIT) or b"")
    except OSError:
        return False


def read_arguments(machine: Machine) -> str:
    """The kernel command line, and what dracut adds to it, from the image and as it goes (dracut.cmdline(7))."""
    found = [machine.facts.cmdline]
    for path in DRACUTS:
        place = machine.root / path
        files = sorted(place.glob("*.conf")) if place.is_dir() else [place]
        found = [*(file.read_text(errors="replace") for file in files if file.is_file()), *found]
    return " ".join(" ".join(text.split("\n")) for text in found)


def mark(machine: Machine, path: str, value: dict[str, object]) -> None:
    """Say something to those who come after; the units look at whether it is there."""
    make_dir(machine.root, RUN_DIR, 0o755)
    write_atomic(machine.root, path, json.dumps(value).encode() + b"\n", 0o644)


def tell(rung: str, error: HomeportError | OSError) -> None:
    """One line on the console, the whole in the journal."""
    journal.console(f"{rung}: {error.message if isinstance(error, HomeportError) else error}")
    log.warning("%s: %s, falling back", rung, error)


def _summary(decision: Decision) -> str:
    if decision.network:
        return "bringing up the network in the initramfs"
    return "looking for a document at hand" if decision.look else "nothing to do in the initramfs"
