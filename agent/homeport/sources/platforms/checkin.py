"""Telling a platform that this machine has booted: one message, within a deadline, changing nothing here.

Knows how long to go on, what an address in a DHCP lease looks like, and how "once" is remembered.  What is
told, and to whom, is in the platform's module.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from homeport.core.platforms import Platform
from homeport.core.platforms.reading import Fault
from homeport.core.platforms.shape import CheckIn, Message, NotThere
from homeport.errors import DocumentError, NoAssignment, PersistError, Unreachable
from homeport.host.files import make_dir, read_file, write_atomic
from homeport.host.store import CHECKED_IN, STATE_DIR
from homeport.sources.patience import SYSTEM_CLOCK, Clock, delays
from homeport.sources.platforms.service import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from homeport.settings import Settings

LAST_TRY = 1.0  # seconds before the deadline: later there is no time for an answer
DIGEST = 64  # hex digits


def check_in(platform: Platform, settings: Settings, *, root: str | os.PathLike[str] = "/", deadline: float,
             lease_option: Callable[[str], str] = lambda name: "", clock: Clock = SYSTEM_CLOCK,
             progress: Callable[[str], None] = lambda line: None) -> str:
    """Tell `platform`, and say what came of it. `lease_option` looks one up in what DHCP gave.

    Raises SourceError if it could not be told before `deadline` (of `clock.monotonic`), DocumentError for
    metadata that make no message, PersistError if it was told and that could not be noted.
    """
    wanted = platform.check_in
    if wanted is None:
        return f"{platform.title} wants to hear of no boot"
    services = wanted.services
    if wanted.lease_option and (server := lease_address(lease_option(wanted.lease_option))):
        services = tuple(replace(service, base=f"http://{server}") for service in services)
    sessions = [Session(service, settings, clock, lambda: deadline - clock.monotonic(), root=root)
                for service in services]
    for delay in delays(clock.chance):
        silent: Unreachable | None = None
        for session in sessions:
            try:
                return _tell(platform, wanted, session, root)
            except Unreachable as error:
                silent = error
        assert silent is not None
        delay = max(delay, silent.retry_after or 0)
        if clock.monotonic() + delay + LAST_TRY > deadline:
            raise silent
        progress(f"{silent.message}; telling it again in {delay:.1f} s")
        clock.sleep(delay)
    raise AssertionError("delays() never ends")


def _tell(platform: Platform, wanted: CheckIn, session: Session, root: str | os.PathLike[str]) -> str:
    try:
        message = wanted.message(session.read())
    except NotThere as error:
        raise NoAssignment(f"{platform.title} has no {error.path or 'metadata'} for this machine") from None
    except Fault as fault:
        raise DocumentError([fault.complaint], f"this is what {platform.title} says") from fault
    if message is None:
        return f"{platform.title} wants to hear of no boot of this machine"
    if wanted.once and _is_noted(message, root):
        return f"{platform.title} has heard of this machine before"
    session.send(message)
    if wanted.once:
        _note(message, root)
    return f"{platform.title} knows that this machine has booted"


def _is_noted(message: Message, root: str | os.PathLike[str]) -> bool:
    try:
        return (read_file(root, CHECKED_IN, DIGEST + 1) or b"").decode("ascii", "replace").strip() == _digest(message)
    except OSError:
        return False


def _note(message: Message, root: str | os.PathLike[str]) -> None:
    try:
        make_dir(root, STATE_DIR, 0o700)
        write_atomic(root, CHECKED_IN, f"{_digest(message)}\n".encode())
    except OSError as error:
        raise PersistError(f"The platform was told of this boot, but /{CHECKED_IN} cannot be written: "
                           f"{error.strerror}", "it will be told again after the next boot") from error


def _digest(message: Message) -> str:
    """Which instance: the address to call is another one for each."""
    return hashlib.sha256(message.place.encode()).hexdigest()


def lease_address(text: str) -> str:
    """An IPv4 address in a DHCP option, as NetworkManager shows bytes ("a8:3f:81:10"); "" if it is none."""
    try:
        octets = bytes(int(part, 16) for part in text.split(":")) if ":" in text else b""
        address = IPv4Address(octets if len(octets) == 4 else text)
    except ValueError:
        return ""
    usable = not (address.is_multicast or address.is_unspecified or address.is_loopback)
    return str(address) if usable else ""
