"""What an Elemental image leaves on a machine: how to register, whether it has, what its labels are.

Knows the places (spec/elemental.md, 3). What the files mean is `core/elemental/config.py`. Nothing of Elemental's
is changed here.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace

from homeport.core.elemental.config import Registration, is_registered, parse_config, parse_labels, parse_os_release
from homeport.host.files import read_file

log = logging.getLogger(__name__)

Where = str | os.PathLike[str]

# The installed machine's, then the one on the live medium.
CONFIGS = ("oem/registration/config.yaml", "run/initramfs/live/livecd-cloud-config.yaml")
STATE = "oem/registration/state.yaml"
LABELS = "etc/elemental/labels.yaml"
OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
LIMIT = 256 << 10  # bytes of one file; a configuration has a certificate in it, no more
LARGEST_CA = 4 << 20


def read_registration(root: Where = "/") -> Registration:
    """How Elemental says that this machine registers; an empty one if it says nothing. Never raises.

    Its notes say what could not be used, and in which file.
    """
    for path in CONFIGS:
        text = _read(root, path)
        registration = parse_config(text) if text else Registration()
        if registration.url:
            return replace(registration, notes=tuple(f"/{path}: {note}" for note in registration.notes))
    return Registration()


def read_registered(root: Where = "/") -> bool:
    """Whether Elemental registered this machine before. Never raises: unreadable is no."""
    return is_registered(_read(root, STATE))


def read_local_labels(root: Where = "/") -> dict[str, str]:
    """The labels that somebody gave this machine. Never raises."""
    labels, notes = parse_labels(_read(root, LABELS) or "{}")
    for note in notes:
        log.warning("/%s: %s, going on without it", LABELS, note)
    return labels


def read_os_release(root: Where = "/") -> dict[str, str]:
    """The annotations about the system that runs here. Never raises."""
    return parse_os_release(next(filter(None, (_read(root, path) for path in OS_RELEASE)), ""))


def read_ca(ca: str, root: Where = "/") -> str:
    """The PEM text that `ca` is or, as for elemental-register, that the file of that name holds."""
    if not ca or "-----BEGIN" in ca or "\n" in ca:
        return ca
    return _read(root, ca, LARGEST_CA) or ca


def _read(root: Where, path: str, limit: int = LIMIT) -> str:
    """A file's text, "" if there is none that can be read."""
    try:
        return (read_file(root, path, limit) or b"").decode("utf-8", "replace")
    except OSError as error:
        log.warning("Cannot read /%s: %s, going on without it", path.lstrip("/"), error.strerror)
        return ""
