"""What a platform says of its instance, for others on this machine: attributes and host name, as files.

Knows where they go and what must not be overwritten. What they are is in `core/platforms/attributes.py`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from homeport.core.platforms.attributes import attributes, environment_file, hostname
from homeport.errors import PersistError
from homeport.host.files import make_dir, read_file, write_atomic
from homeport.machine import Machine
from homeport.sources import platform

# Names that nobody chose (hostname(5); what images come with).
NO_NAMES = ("", "localhost", "localhost.localdomain", "localhost.localdomain6", "(none)")
MAX_NAME = 4096  # bytes of a file that holds one


@dataclass(frozen=True)
class Instance:
    """`environment` is the text of an EnvironmentFile; `hostname` "" if the platform gives none."""

    environment: str
    hostname: str


def read(machine: Machine) -> Instance:
    """What the platform says now. Raises SourceError."""
    settings = machine.settings
    found, files = platform.read_instance(
        settings, machine.facts, root=machine.root, deadline=time.monotonic() + settings.deadline)
    return Instance(environment_file(attributes(found, files)), hostname(found, files))


def write_attributes(root: Path, path: str, instance: Instance) -> None:
    """For everybody to read: there are no secrets among them. Raises PersistError."""
    _write(root, path, instance.environment)


def write_hostname(root: Path, path: str, instance: Instance) -> str:
    """The name, where nobody has set one; what became of it, in words. Raises PersistError."""
    if not instance.hostname:
        return "the platform gives this machine no host name"
    lines = (read_file(root, path, MAX_NAME) or b"").decode("utf-8", "replace").splitlines()
    there = next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")
    if there == instance.hostname:
        return f"the host name is {there}"
    if there not in NO_NAMES:
        return f"the host name stays {there}: somebody has set it"
    _write(root, path, f"{instance.hostname}\n")
    return f"the host name is {instance.hostname} now"


def _write(root: Path, path: str, text: str) -> None:
    try:
        make_dir(root, os.path.dirname(path) or "/")
        write_atomic(root, path, text.encode(), mode=0o644)
    except OSError as error:
        raise PersistError(f"cannot write {path}: {error.strerror}") from error
