"""An assignment that is keyfiles (`configurator: nmconnections`): how it is planned like any other.

Knows how its keyfiles become ours, and what they say in nmstate's words. They come to NetworkManager as they are
otherwise; `host/activation.py` puts them in force.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from homeport.core.complaint import Complaint
from homeport.core.document import Assignment
from homeport.core.keyfile import Keyfile, own_profiles
from homeport.core.keyfile.meaning import desired_state, interface_names
from homeport.core.nics import Resolved
from homeport.machine import Machine


def stated(assignment: Assignment) -> Assignment:
    """The assignment with what its keyfiles bring about as its configuration, in nmstate's words."""
    return replace(assignment, config=desired_state(assignment.config))


def own_keyfiles(machine: Machine, assignment: Assignment) -> dict[str, Keyfile]:
    """The keyfiles, made ours. Raises DocumentError.

    Their UUIDs are new: what is kept from before is put aside, not changed, until these are proven.
    """
    return own_profiles(
        assignment.config, uuids={name: str(uuid.uuid4()) for name in assignment.config}, nics=machine.facts.nics,
        tags={"revision": assignment.revision})


def kernel_names(assignment: Assignment, resolved: Resolved) -> Mapping[str, str]:
    """The interface that each keyfile is for."""
    return {name: resolved.names.get(interface, interface)
            for name, interface in interface_names(assignment.config).items()}


def changes(machine: Machine, assignment: Assignment) -> list[Complaint]:
    """That these are not the keyfiles that are kept: not all that they say can be seen from outside."""
    kept = machine.store.read_manifest().revision
    if kept == assignment.revision or machine.on_prepared:
        return []
    return [Complaint(assignment.config_path, f"keyfiles of revision {kept or '(none)'}",
                      f"those of revision {assignment.revision}")]
