"""Everything that this machine says of itself, read before anything is decided.

Knows which file each fact stands in. Decides nothing and repairs nothing: what cannot be read is left out,
with a note.
"""

from __future__ import annotations

import os
from pathlib import Path

from homeport.core.cmdline import quote
from homeport.core.facts import Facts, Stage
from homeport.core.identity import OVERRIDE_FILE
from homeport.core.mode import MARKERS, find_mode
from homeport.host.nics import read_nics
from homeport.host.smbios import read_smbios_with_notes
from homeport.settings import Settings

MAX_CMDLINE = 64 * 1024  # bytes; the kernel's own limit is far below (COMMAND_LINE_SIZE)
MAX_LINE = 4096
# Both say that we are in a container: systemd writes the first, container managers the second.
CONTAINER_MARKS = ("run/systemd/container", "run/host/container-manager")


def read_facts(settings: Settings, stage: Stage, root: Path = Path("/")) -> Facts:
    """The facts of the machine whose root is `root`. Never raises for what is missing or unreadable."""
    smbios, notes = read_smbios_with_notes(root)
    cmdline = read_cmdline(root)
    mode, reason = find_mode(settings.mode, cmdline, read_markers(root))
    return Facts(
        smbios=smbios, nics=read_nics(root), cmdline=cmdline, mode=mode, mode_reason=reason, stage=stage,
        hostname=read_hostname(root), machine_id=read_machine_id(root),
        identity_override=read_override(root), notes=notes)


def read_cmdline(root: Path = Path("/")) -> str:
    """The kernel command line; in a container the arguments of PID 1 instead.

    That is what systemd's own proc_cmdline() takes: the kernel's belongs to the host there.
    """
    if any((root / mark).exists() for mark in CONTAINER_MARKS):
        arguments = _read(root / "proc/1/cmdline", MAX_CMDLINE).split("\0")[1:]
        return " ".join(quote(argument) for argument in arguments if argument)
    return _read(root / "proc/cmdline", MAX_CMDLINE).strip()


def read_markers(root: Path = Path("/")) -> frozenset[str]:
    """Those of Elemental's marker files that exist."""
    return frozenset(path for path in MARKERS if (root / path.lstrip("/")).exists())


def read_hostname(root: Path = Path("/")) -> str:
    """The running host name of this machine, the configured one of another root; "" if there is none."""
    name = os.uname().nodename if root == Path("/") else ""
    return name or _first_line(_read(root / "etc/hostname", MAX_LINE))


def read_machine_id(root: Path = Path("/")) -> str:
    """machine-id(5), 32 hex digits; "" if it is not set yet ("uninitialized" or empty)."""
    text = _read(root / "etc/machine-id", MAX_LINE).strip().lower()
    return text if len(text) == 32 and all(digit in "0123456789abcdef" for digit in text) else ""


def read_boot_id(root: Path = Path("/")) -> str:
    """What makes this boot different from every other: a random UUID of the kernel (random(4))."""
    return _read(root / "proc/sys/kernel/random/boot_id", MAX_LINE).strip()


def read_override(root: Path = Path("/")) -> str:
    """The identity that a person wrote down in /etc/homeport/identity; "" if nobody did."""
    return _first_line(_read(root / OVERRIDE_FILE.lstrip("/"), MAX_LINE))


def _first_line(text: str) -> str:
    """The first line that is neither empty nor a comment."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def _read(path: Path, limit: int) -> str:
    """The start of a file as text, "" if there is none or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""
