"""What NetworkManager starts with in the initramfs, where the network is wanted there.

    a document at hand      rendered, unproven; or what the real root keeps of that very document
    the real root's own     as they are, if it can be looked at: nobody is asked, no DHCP
    a seed                  of this machine; the image's only where no server is to be asked
    DHCP                    the bootstrap profile

Knows the order. Raises nothing: what a lower choice can mend is on the console. Each wait has a limit.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from homeport import asking, fallback, kept, offline, prepared, sources
from homeport.core import identity, initrd
from homeport.core.cmdline import parse
from homeport.core.document import Assignment
from homeport.core.identity import Identity
from homeport.core.initrd import Decision
from homeport.errors import NoAssignment, Unconfigured
from homeport.host import keyfiles, profiles
from homeport.host.files import is_dir, make_dir, remove, write_atomic
from homeport.host.store import INITRD, Store
from homeport.machine import Machine
from homeport.prepare import DRIVE_WAIT, PAUSE, is_generated, mark, read_arguments, tell, wait_for_drive
from homeport.sources import AT_HAND, Reply, drive, seeds
from homeport.sources.address import is_url

log = logging.getLogger(__name__)

# Makes NetworkManager start in the initramfs, in all generations of its units.
NEEDNET = "run/NetworkManager/initrd/neednet"
CRYPTTAB = "etc/crypttab"
# Seconds for the device of the root file system.
ROOT_WAIT = 5.0


def bring_network(machine: Machine, decision: Decision) -> None:
    """Leave NetworkManager something to start with, and see to it that it starts."""
    found = False
    try:
        found = decision.look and finds(machine)
    finally:  # also if systemd does not wait any longer
        if not found:
            takes(machine, "DHCP", use_dhcp)
        start_manager(machine, decision)


def finds(machine: Machine) -> bool:
    """Whether there is something to start with here; at most some seconds for what udev has yet to show."""
    wait_for_drive(machine)
    wait_for_root(machine)
    return (takes(machine, "assigned", use_assignment) or takes(machine, "last-known-good", use_kept)
            or takes(machine, "seed", use_seed))


def takes(machine: Machine, name: str, way: Callable[[Machine], str]) -> bool:
    """Whether NetworkManager has something to start with by this way."""
    try:
        used = way(machine)
    except NoAssignment as nothing:
        log.log(logging.DEBUG if isinstance(nothing, Unconfigured) else logging.INFO, "%s: %s", name, nothing)
    except Exception as error:  # a bug, too: without a network nobody could look into it
        tell(name, error)
    else:
        log.info("NetworkManager starts with: %s", used)
        replace_generated(machine)
        return True
    return False


def start_manager(machine: Machine, decision: Decision) -> None:
    """NetworkManager starts once this has ended, and homeport-initrd.service after it."""
    make_dir(machine.root, os.path.dirname(NEEDNET), 0o755)
    write_atomic(machine.root, NEEDNET, b"", 0o644)
    # What is there now and is not the generator's was put there by somebody else, and is left to them.
    ours = {os.path.basename(file.path) for file in machine.prepared.profiles} if machine.prepared else set()
    found = set(listing(machine)) - ours - {f"{profiles.BOOTSTRAP}.nmconnection"}
    mark(machine, INITRD, {"started": machine.started, "reason": decision.reason, "found": sorted(found),
                           "kept": bool(machine.store.read_manifest().keyfiles)})


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
            raise Unconfigured("the real root cannot be looked at")
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
        raise Unconfigured("there is no seed")
    return render(machine, prepared.SEED, reply, {})


def use_dhcp(machine: Machine) -> str:
    return f"DHCP (/{fallback.put_bootstrap(machine)})"


def read_at_hand(machine: Machine) -> Reply:
    """The document of the first source that needs no network. Raises as `sources.fetch` does."""
    if not sources.is_at_hand(machine.settings, machine.root):
        raise Unconfigured("no document is at hand")
    identify(machine, thoroughly=may_be_named_by_tpm(machine))
    here = machine.settings.replace(sources=tuple(name for name in machine.settings.sources if name in AT_HAND))
    return sources.fetch(here, machine.identity or Identity(), root=machine.root, facts=machine.facts,
                         deadline=time.monotonic() + DRIVE_WAIT)


def render(machine: Machine, rung: str, reply: Reply, known: dict[str, str]) -> str:
    """The document's profiles, where NetworkManager looks first. Raises DocumentError, ApplyError, PersistError."""
    made = offline.make(machine, understand(machine, reply), known)
    if not made:
        raise NoAssignment(f"{reply.label} configures nothing")
    machine.prepared = prepared.write(machine.root, prepared.of_reply(rung, reply), reply.data, made)
    return f"{reply.label}: {', '.join(made)}"


def understand(machine: Machine, reply: Reply) -> Assignment:
    """The assignment in it for this machine. Raises DocumentError, Pending, NoAssignment."""
    identify(machine, thoroughly=b"tpmhash" in reply.data.lower())
    return asking.understand(machine, reply)


def identify(machine: Machine, *, thoroughly: bool) -> None:
    """Who this machine is, as far as a document at hand may ask: the TPM, which may take half a minute, only if that
    may choose another one.
    """
    if thoroughly:
        if machine.report.identity == {}:
            asking.identify(machine)
        return
    if machine.identity is None:
        order = tuple(kind for kind in machine.settings.identity_order if kind != "tpm")
        machine.identity = identity.identify(machine.facts, order=order, override=machine.settings.identity)


def may_be_named_by_tpm(machine: Machine) -> bool:
    """Whether there is a place where documents are named after machines."""
    places = [location for location in machine.settings.config if not is_url(location)]
    return drive.is_there(machine.root) or any("{tpmhash}" in place or is_dir(machine.root, place) for place in places)


def take_over(machine: Machine, real: Path) -> str:
    return f"the real root's own profiles: {', '.join(kept.restore(real, machine.root))}"


def known_uuids(real: Path) -> dict[str, str]:
    """Interface -> UUID of the profiles that the real root keeps."""
    return {file.interface: file.uuid for file in Store(real).read_manifest().keyfiles}


@contextmanager
def real_root(machine: Machine) -> Iterator[Path | None]:
    """The real root, mounted read-only and without replay for a moment; None if it is not on a device that is here by
    now (`wait_for_root`), or cannot be read as it is.
    """
    from homeport.host import mounts
    device = initrd.root_device(parse(read_arguments(machine)))
    with ExitStack() as stack:
        real = None
        if device is not None and os.path.exists(device.path):
            try:
                real = stack.enter_context(mounts.read_only(device.path, device.fstype, device.options))
            except OSError as error:
                log.info("the real root cannot be looked at: %s", error)
        yield real


def wait_for_root(machine: Machine) -> None:
    """Until its device is there. Once: what has not come by then, and what needs more than a device, is not waited for
    again.
    """
    arguments = parse(read_arguments(machine))
    device, why = initrd.root_device(arguments), initrd.why_no_device(arguments)
    if device is not None and not wait_for(device.path, machine.patience(ROOT_WAIT)):
        why = f"{'encrypted and not open yet' if has_crypttab(machine) else 'not there in time'}: {device.path}"
    if why:
        log.info("the real root cannot be looked at: %s", why)


def has_crypttab(machine: Machine) -> bool:
    """Whether some device is still to be unlocked by what the image knows (crypttab(5))."""
    try:
        return bool((machine.root / CRYPTTAB).read_text(errors="replace").strip())
    except OSError:
        return False


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
