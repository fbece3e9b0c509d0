"""The registrar: who a machine is, and what it is assigned. The same for every protocol.

One request is one transaction, in this order: recognise, admit, find its network, give it its addresses, write down
what it says and what it is told. Everything is decided from the manifests in force and the database; nothing is kept
in memory, so a server that is killed forgets nothing that anybody was told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from homeport_server import admission, granting, naming
from homeport_server.admission import Desk, Moved, Request
from homeport_server.caller import Caller
from homeport_server.manifests.inventories import Inventory
from homeport_server.manifests.networks import Network
from homeport_server.manifests.sets import Manifests
from homeport_server.outcome import Assigned, Outcome, Refused, Waiting
from homeport_server.store import addresses, machines
from homeport_server.store.database import Database
from homeport_server.store.machines import Machine

RESET = "reset"  # the event, or the mode, of a machine that has gone back to DHCP for good
SEEN_EVERY = 60.0  # seconds: when a machine was last heard of is known no finer


class Registrar:
    """Decides; `clock` gives seconds since 1970, `chance(n)` a number below n."""

    def __init__(self, database: Database, clock: Callable[[], float], chance: Callable[[int], int],
                 moved: Moved = "same") -> None:
        self.database = database
        self.clock = clock
        self.chance = chance
        self.moved: Moved = moved
        self.manifests = Manifests()

    def put_in_force(self, manifests: Manifests) -> list[str]:
        """Use these manifests from now on. Gives warnings: addresses that an inventory fixes, but others have."""
        warnings = self.database.change(
            lambda connection: granting.fix_addresses(connection, manifests, self.clock()))
        self.manifests = manifests
        return warnings

    def known(self, caller: Caller) -> bool:
        """Whether there is a machine with this identity, or an inventory that waits for it."""
        return (self.manifests.pinned(caller.kind, caller.digest) is not None
                or self.database.look(lambda connection: machines.find(connection, caller)) is not None)

    def ask(self, request: Request) -> Outcome:
        """Register, or register again. Raises StoreError."""
        return self.database.change(lambda connection: _answer(
            Desk(connection, self.manifests, self.clock(), self.chance, self.moved), request))

    def look_up(self, text: str) -> list[Machine]:
        """The machines that an id in a URL or on a command line may mean."""
        return self.database.look(lambda connection: machines.find_by_id(connection, text))

    def hear(self, caller: Caller, report: Mapping[str, str]) -> list[str]:
        """What the machine with this identity, if there is one, says of itself; gives what it let go of."""
        machine = self.database.look(lambda connection: machines.find(connection, caller))
        return self.report(machine, report) if machine else []

    def report(self, machine: Machine, report: Mapping[str, Any]) -> list[str]:
        """Keep what a machine says came of its assignment. After a reset it has none: gives what it let go of."""
        now = self.clock()

        def change(connection: Connection) -> list[str]:
            machines.change(connection, machine.id, report=report, reported=now, seen=now)
            if RESET in (report.get("event"), report.get("mode")):
                return let_go(connection, machine, now, "reset by the machine")
            return []

        return self.database.change(change)


def let_go(connection: Connection, machine: Machine, now: float, note: str) -> list[str]:
    """Take all addresses from a machine, which stays known."""
    machines.change(connection, machine.id, network={}, revision="", pending="", note=note)
    return addresses.release(connection, machine.id, now)


def _answer(desk: Desk, request: Request) -> Outcome:
    """The story of one request."""
    found = admission.recognise(desk, request) or admission.admit(desk, request)
    if isinstance(found, Refused):
        return found
    machine, note = found
    inventory = _inventory(desk.manifests, machine)
    if inventory is None and request.registration is None:
        return Refused(f"{machine.name} is of the registration {machine.registration or '(none)'}, which is not in "
                       f"force any more")
    network = _network(request, inventory)
    granted, missing = granting.grant(desk, request, machine, inventory, network)
    outcome = Waiting(machine.name, "; ".join(missing)) if missing else Assigned(
        machine.name, machine.namespace, network, granted, note)
    said = _said(desk, request, machine, inventory, note)
    _change(desk, machine, said | _told(outcome, network))
    return outcome


def _inventory(manifests: Manifests, machine: Machine) -> Inventory | None:
    """The manifest that pins this machine, by any of its identities or by its name."""
    for identity in machine.identities:
        found = manifests.pinned(identity.kind, identity.digest)
        if found is not None:
            return found
    named = manifests.inventory(machine.namespace, machine.name)
    return named if named and (not named.hashed or not machine.identities) else None


def _said(desk: Desk, request: Request, machine: Machine, inventory: Inventory | None, note: str) -> dict[str, Any]:
    """What the machine says of itself, as columns."""
    facts = request.facts.over(machine.facts)
    machines.set_cards(desk.connection, machine, facts.macs)
    labels, annotations = naming.marks(
        request.registration, machine.labels, machine.annotations, request.labels, request.annotations,
        request.data, desk.chance)
    if inventory is not None:
        labels, annotations = {**labels, **inventory.labels}, {**annotations, **inventory.annotations}
    return {
        "uuid": facts.uuid, "serial": facts.serial, "labels": labels, "annotations": annotations,
        "note": note or machine.note,
        "registration": request.registration.key if request.registration else machine.registration,
        "seen": desk.now if desk.now - machine.seen > SEEN_EVERY else machine.seen,
    }  # fmt: skip


def _network(request: Request, inventory: Inventory | None) -> Network:
    """The inventory's network; an inventory that only fixes addresses leaves the rest to the registration."""
    template = request.registration.network if request.registration else Network()
    if inventory is None:
        return template
    if inventory.network:
        return inventory.network
    return replace(template, fixed=inventory.network.fixed,
                   pools={**template.pools, **inventory.network.pools})


def _told(outcome: Outcome, network: Network) -> dict[str, Any]:
    """What the machine is told, as columns, for people and for `export`."""
    return {
        "pending": outcome.reason if isinstance(outcome, Waiting) else "",
        "revision": outcome.revision if isinstance(outcome, Assigned) and network else "",
        "network": {"configurator": network.configurator, "config": network.config, "pools": dict(network.pools)},
    }  # fmt: skip


def _change(desk: Desk, machine: Machine, values: dict[str, Any]) -> None:
    """Write what is different, and nothing if nothing is: a machine that asks again costs no wait for the disk."""
    different = {key: value for key, value in values.items() if getattr(machine, key) != value}
    if different:
        machines.change(desk.connection, machine.id, **different)
