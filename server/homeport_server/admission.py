"""Who is it? A machine that asks is known, known by another name, new, or not let in.

An identity leads to one machine for ever. A new identity on a known board is the same machine (its UUID changed,
say), unless a TPM is in the play: what was proven is not to be had for a serial number that anybody can claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection

from homeport_server import naming
from homeport_server.caller import Caller, Facts
from homeport_server.manifests.inventories import Inventory
from homeport_server.manifests.registrations import Registration
from homeport_server.manifests.sets import Manifests
from homeport_server.outcome import Refused
from homeport_server.store import machines
from homeport_server.store.machines import Machine

# A new identity on a known board: the same machine, which keeps its addresses, or another one.
Moved = Literal["same", "new"]


@dataclass(frozen=True)
class Desk:
    """What a decision is made with: one transaction, the manifests in force, now (seconds since 1970), chance."""

    connection: Connection
    manifests: Manifests
    now: float
    chance: Callable[[int], int]
    moved: Moved = "same"


@dataclass(frozen=True)
class Request:
    """One machine asking, by its identity or as the known one with this namespace and name.

    `data` is what it says of itself, for templates; labels and annotations as it sent them.
    """

    caller: Caller | None
    registration: Registration | None
    known: tuple[str, str] | None = None
    facts: Facts = field(default_factory=Facts)
    data: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


Found = tuple[Machine, str]  # the machine, and what a person should know of how it was found


def recognise(desk: Desk, request: Request) -> Found | Refused | None:
    """The machine that the identity names, or that the board was under another identity; None if it is new."""
    if request.caller is None:
        assert request.known is not None
        machine = machines.find_named(desk.connection, *request.known)
        return _same_identity(request, machine.name, machine) if machine else None
    machine = machines.find(desk.connection, request.caller)
    if machine is not None:
        return _same_identity(request, str(request.caller), machine)
    boards = machines.find_board(desk.connection, request.facts) if desk.moved == "same" else []
    return _same_board(desk, request.caller, boards[0]) if boards else None


def _same_identity(request: Request, caller: str, machine: Machine) -> Found | Refused:
    now, before = request.facts, machine.facts
    if now.other_board(before):
        return Refused(
            f"{caller} is {machine.name} with serial number {before.serial}, but this is another board (serial number "
            f"{now.serial}): two machines with one identity, or a replaced board; if replaced: homeport-server "
            f"release --forget {machine.name}")
    if now.uuid and before.uuid and now.uuid != before.uuid:
        return machine, f"its UUID was {before.uuid}, now it is {now.uuid}"
    return machine, ""


def _same_board(desk: Desk, caller: Caller, machine: Machine) -> Found | Refused:
    if machine.proven or caller.kind == "tpm":
        return Refused(
            f"{caller} has the serial number and a network card of {machine.name}, but not its TPM: no second address. "
            f"If it is the same machine: homeport-server release --forget {machine.name}")
    former = machine.identities[-1].value if machine.identities else "unknown"
    machines.add_identity(desk.connection, machine.id, caller, desk.now)
    return machine, f"moved: it was {former}, now it is {caller.value}"


def admit(desk: Desk, request: Request) -> Found | Refused:
    """A machine that is not known yet: named by its inventory, else by its registration."""
    pinned, registration = _pinned(desk.manifests, request), request.registration
    if pinned is not None:
        namespace, name = pinned.namespace, pinned.name
    elif registration is not None:
        namespace = registration.namespace
        try:
            name = naming.machine_name(registration.machine_name, request.data, desk.chance)
        except ValueError as error:
            return Refused(f"MachineInventory creation failed: no name by {registration.key}: {error}")
    else:
        return Refused("no registration and no inventory is for this machine")
    machine = machines.find_named(desk.connection, namespace, name)
    if machine is not None and machine.identities:
        return Refused(
            f"MachineInventory creation failed: failed to create machine inventory {namespace}/{name}: it already "
            f"exists, for {machine.identities[-1]}; machineName must make another name for each machine")
    made = machine.id if machine else machines.create(
        desk.connection, namespace, name, registration.key if registration else "", desk.now)
    if request.caller is not None:
        machines.add_identity(desk.connection, made, request.caller, desk.now)
    machine = machines.find_named(desk.connection, namespace, name)
    assert machine is not None
    return machine, ""


def _pinned(manifests: Manifests, request: Request) -> Inventory | None:
    """The inventory that waits for this machine."""
    if request.caller is None:
        assert request.known is not None
        return manifests.inventory(*request.known)
    return manifests.pinned(request.caller.kind, request.caller.digest)
