"""Between a platform and others on this machine: attributes and host name as files, and word of a boot back to it.

Knows where they go and what must not be overwritten. What they are is in `core/platforms/attributes.py`, what
is told to whom in the platforms' modules.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from homeport.core.checks.names import is_host_name
from homeport.core.platforms.attributes import HOSTNAME_MAX, attributes, hostname, shortened
from homeport.core.platforms.environment import environment_file
from homeport.core.showing import listing, show
from homeport.errors import HomeportError, PersistError
from homeport.host.files import make_dir, read_file, write_atomic
from homeport.machine import Machine
from homeport.sources import platform
from homeport.sources.platforms import checkin

log = logging.getLogger(__name__)

# Names that nobody chose (hostname(5); what images come with).
NO_NAMES = ("", "localhost", "localhost.localdomain", "localhost.localdomain6", "(none)")
MAX_NAME = 4096  # bytes of a file that holds one
MAX_SHOWN = 255  # characters of a name that is cut: as long as a domain name can be
HOSTNAME = "/etc/hostname"
BOOT_COMPLETE = "boot-complete"
NOTHING = "# This machine is on no platform that homeport knows.\n"


@dataclass(frozen=True)
class Instance:
    """`environment` is the text of an EnvironmentFile; `hostname` fits the kernel, "" if the platform gives none.

    `cut_from` is the name that the platform gives, where it does not fit.
    """

    environment: str
    hostname: str
    cut_from: str = ""


def read(machine: Machine) -> Instance:
    """What the platform says now. Raises SourceError."""
    settings = machine.settings
    found, files = platform.read_instance(
        settings, machine.facts, root=machine.root, deadline=time.monotonic() + settings.deadline)
    environment, left_out = environment_file(attributes(found, files))
    if left_out:
        log.warning("%s names attributes that cannot be variables, or more than fit: %s; they are left out",
                    found.title, listing(left_out, 3))
    given = hostname(found, files)
    name = shortened(given)
    return Instance(environment, name, given if given != name else "")


def write_attributes(root: Path, path: str, instance: Instance) -> None:
    """For everybody to read: there are no secrets among them. Raises PersistError."""
    _write(root, path, instance.environment)


def name_that_stands(root: Path, path: str) -> str:
    """The host name that somebody has set; "" if nobody has. Raises PersistError for a file that can't be read."""
    try:
        lines = (read_file(root, path, MAX_NAME) or b"").decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise PersistError(f"cannot read {path}: {error.strerror}", "the host name stays as it is") from error
    there = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
    return "" if there in NO_NAMES else there


def write_hostname(root: Path, path: str, instance: Instance, set_name: Callable[[str], None] | None = None) -> str:
    """The name, where nobody has set one; what became of it, in words.

    `set_name` sets it in this running machine and on its disk, else `path` is written. Raises PersistError, and
    what `set_name` raises.
    """
    if not instance.hostname:
        return "the platform gives this machine no host name"
    if not is_name(instance.hostname):
        return f"the platform gives {show(instance.hostname)}, which is no host name"
    if there := name_that_stands(root, path):
        return f"the host name is {there}" if there == instance.hostname else (
            f"the host name stays {there}: somebody has set it")
    if set_name is None:
        _write(root, path, f"{instance.hostname}\n")
    else:
        set_name(instance.hostname)
    cut = f", cut from {show(instance.cut_from, MAX_SHOWN)}: at most {HOSTNAME_MAX} bytes" if instance.cut_from else ""
    return f"the host name is {instance.hostname} now{cut}"


def is_name(name: str) -> bool:
    """Whether the machine can have it: a host name, or 64 bytes without a dot, as what is cut may be.

    DNS has no such label; the kernel, NetworkManager and systemd-hostnamed take it, and so does Afterburn.
    """
    whole = len(name) == HOSTNAME_MAX and "." not in name
    return is_host_name(name) or (whole and is_host_name(name[1:]) and is_host_name(name[:-1]))


def set_running_name(machine: Machine) -> Callable[[str], None]:
    """By NetworkManager, which tells hostnamed: the file, its label, the running name, and no DHCP over it."""
    return lambda name: machine.manager.save_hostname(name)


def check_in(machine: Machine) -> Iterator[str]:
    """Tell the platform, and the server of `report=`, that this boot is complete; a line for each.

    Raises SourceError, PersistError, or DocumentError after both have been tried.
    """
    settings, failed = machine.settings, None
    deadline = time.monotonic() + settings.deadline
    found = [candidate.platform for candidate in platform.candidates(settings, machine.facts, machine.root)]
    told = next((each for each in found if each.check_in), None)
    if told is not None:
        try:
            yield checkin.check_in(told, settings, root=machine.root, deadline=deadline, progress=log.info,
                                   lease_option=lambda name: _lease_option(machine, name))
        except HomeportError as error:
            failed = error
    if settings.report:
        yield _report(machine)
    if failed is not None:
        raise failed
    if told is None and not settings.report:
        yield f"nobody wants to hear of this boot: {found[0].title if found else 'no platform, and no Report='}"


def _report(machine: Machine) -> str:
    """The outcome of this boot as it was posted before, now that all of the boot is complete."""
    from homeport import asking
    from homeport.sources.outcome import post_report
    asking.identify(machine)
    assert machine.identity is not None
    outcome = {**(machine.store.read_status() or {}), "event": BOOT_COMPLETE}
    post_report(machine.settings, machine.identity, outcome, root=machine.root)
    return "the server of Report= knows that this boot is complete"


def _lease_option(machine: Machine, name: str) -> str:
    """A lease is not the only way to know the address: without NetworkManager it is the well-known one."""
    try:
        return machine.manager.lease_option(name)
    except HomeportError as error:
        log.info("%s; going on with the address that is known", error)
        return ""


def _write(root: Path, path: str, text: str) -> None:
    try:
        make_dir(root, os.path.dirname(path) or "/")
        write_atomic(root, path, text.encode(), mode=0o644)
    except OSError as error:
        raise PersistError(f"cannot write {path}: {error.strerror}") from error
