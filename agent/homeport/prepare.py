"""Before NetworkManager starts in the initramfs: whether there is anything to do, and marks for who comes after.

    nothing     homeport.initrd=off; the kernel line has a network of the user's own, or the firmware one that it has
                booted over; nothing needs one and nothing is at hand
    later       nothing needs a network here: a document at hand is rendered once the real root is there
                (`handover.py`), for the real root's NetworkManager
    now         the network is wanted here: `start.py` leaves NetworkManager something to start with

Most boots have nothing to do, and find that out here: what costs time is imported where there is.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from homeport.core import initrd
from homeport.core.facts import Facts, Mode
from homeport.core.initrd import Decision
from homeport.errors import Bug, HomeportError
from homeport.host import facts, journal, rootfs
from homeport.host.files import make_dir, read_file, write_atomic
from homeport.host.store import HANDOVER, INITRD, LIMIT, RUN_DIR
from homeport.host.usb import drives_on_their_way
from homeport.machine import Machine
from homeport.sources import drive, is_at_hand

log = logging.getLogger(__name__)

UDEV_BUSY = "run/udev/queue"
DRIVE_WAIT = 5.0  # seconds
PAUSE = 0.05
REAL_ROOT = Path("/sysroot")
DRACUTS = ("etc/cmdline", "etc/cmdline.d")
PROFILES, DEVICES = "run/NetworkManager/system-connections", "run/NetworkManager/devices"
GENERATOR = b"org.freedesktop.NetworkManager.origin=nm-initrd-generator"


def prepare(machine: Machine) -> None:
    """The whole of it. What goes wrong is on the console; the initramfs goes on in any case."""
    read_facts(machine)
    arguments = read_arguments(machine)
    decision = initrd.decide(machine.settings.initrd, machine.facts.mode, arguments,
                             rootfs.firmware_table(arguments, machine.root))
    log.info("%s: %s", _summary(decision), decision.reason)
    if not decision.look and not decision.network:
        return
    # First: if this ends halfway, the handover still does its part.
    mark(machine, HANDOVER, {"reason": decision.reason, "network": decision.network})
    if decision.network:
        from homeport.start import bring_network
        bring_network(machine, decision)


def read_facts(machine: Machine) -> None:
    """A machine that we fail to read gets a network all the same, if one is wanted here: by DHCP, which suits all."""
    try:
        machine.facts = facts.read_facts(machine.settings, machine.stage, machine.root)
    except Exception as error:
        tell("facts", error)
        machine.facts = Facts(cmdline=facts.read_cmdline(machine.root), mode=Mode.RECOVERY, stage=machine.stage)


def has_something(machine: Machine, real: Path = REAL_ROOT) -> bool:
    """Whether something ran here, or a document is at hand that the real root may want. Nothing is read for it; a drive
    that is on its way is waited for.
    """
    if note(machine.root):
        return True
    wait_for_drive(machine)
    if is_at_hand(machine.settings, machine.root) or drive.is_there(machine.root):
        return True
    return any(not seed.startswith("/") or os.path.exists(root / seed.lstrip("/"))
               for seed in machine.settings.seed for root in (machine.root, real))


def wait_for_drive(machine: Machine) -> None:
    """While udev is at it, or the kernel still looks at a USB port, a drive with our label may come."""
    end = time.monotonic() + machine.patience(DRIVE_WAIT)
    while not drive.is_there(machine.root) and time.monotonic() < end and (
            os.path.exists(machine.root / UDEV_BUSY) or drives_on_their_way(machine.root)):
        time.sleep(PAUSE)


def is_tidy(root: Path) -> bool:
    """Whether NetworkManager, and whoever made profiles for it, has left nothing."""
    return not any(os.path.isdir(root / folder) and os.listdir(root / folder) for folder in (PROFILES, DEVICES))


def note(root: Path) -> dict[str, Any]:
    """What this has left for the run after it; empty outside of the initramfs, and where no network was wanted."""
    try:
        value = json.loads(read_file(root, INITRD, LIMIT) or b"{}")
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def is_generated(root: Path, path: str) -> bool:
    """Whether a profile was made by NetworkManager's generator, from the kernel line."""
    try:
        return GENERATOR in (read_file(root, path, LIMIT) or b"")
    except OSError:
        return False


def read_arguments(machine: Machine) -> str:
    """The kernel command line, and what dracut adds to it, from the image and as it goes (dracut.cmdline(7))."""
    found = [machine.facts.cmdline or facts.read_cmdline(machine.root)]
    for path in DRACUTS:
        place = machine.root / path
        files = sorted(place.glob("*.conf")) if place.is_dir() else [place]
        found = [*(file.read_text(errors="replace") for file in files if file.is_file()), *found]
    return " ".join(" ".join(text.split("\n")) for text in found)


def mark(machine: Machine, path: str, value: dict[str, object]) -> None:
    """Say something to those who come after; the units look at whether it is there."""
    make_dir(machine.root, RUN_DIR, 0o755)
    write_atomic(machine.root, path, json.dumps(value).encode() + b"\n", 0o644)


def tell(rung: str, error: Exception) -> None:
    """One line on the console, the whole in the journal; with a traceback if it is a fault of ours."""
    if not isinstance(error, HomeportError | OSError):
        log.error("A bug in homeport", exc_info=error)
        error = Bug(f"a bug in homeport: {type(error).__name__}: {error}",
                    "its journal has the traceback; please report it")
    journal.console(f"{rung}: {error.message if isinstance(error, HomeportError) else error}")
    log.warning("%s: %s, falling back", rung, error)


def _summary(decision: Decision) -> str:
    if decision.network:
        return "bringing up the network in the initramfs"
    return "looking for a document at hand" if decision.look else "nothing to do in the initramfs"
