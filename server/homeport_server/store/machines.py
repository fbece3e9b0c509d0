"""Machines and their identities in the database: found, made, changed.

Functions of one connection; what they mean together is `registrar.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Row, Select, delete, insert, or_, select, update

from homeport_server.caller import Caller, Facts, Kind, as_mac
from homeport_server.store.tables import cards, identities, machines


@dataclass(frozen=True)
class Machine:
    """A machine as the server knows it; the mappings are not to be changed."""

    id: int
    namespace: str
    name: str
    registration: str
    facts: Facts
    identities: tuple[Caller, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    network: Mapping[str, Any]
    revision: str
    pending: str
    note: str
    report: Mapping[str, Any]
    reported: float | None
    created: float
    seen: float

    @property
    def uuid(self) -> str:
        return self.facts.uuid

    @property
    def serial(self) -> str:
        return self.facts.serial

    @property
    def proven(self) -> bool:
        """Whether it has ever shown a TPM."""
        return any(identity.kind == "tpm" for identity in self.identities)

    def __str__(self) -> str:
        return self.name


def find(connection: Connection, caller: Caller) -> Machine | None:
    """The machine with this identity."""
    found = _load(connection, select(machines).join(identities).where(
        identities.c.kind == caller.kind, identities.c.digest == caller.digest))
    return found[0] if found else None


def find_all(connection: Connection) -> list[Machine]:
    return _load(connection, select(machines).order_by(machines.c.namespace, machines.c.name))


def find_named(connection: Connection, namespace: str, name: str) -> Machine | None:
    found = _load(connection, select(machines).where(machines.c.namespace == namespace, machines.c.name == name))
    return found[0] if found else None


def find_by_id(connection: Connection, text: str) -> list[Machine]:
    """The machines that `text` may mean: a name, a hash, a plain identity, a UUID, a serial number or a MAC."""
    lower, mac = text.lower(), as_mac(text)
    namespace, slash, name = text.rpartition("/")
    return _load(connection, select(machines).where(or_(
        (machines.c.name == name) & (machines.c.namespace == namespace) if slash else machines.c.name == text,
        machines.c.uuid == lower,
        machines.c.serial == text,
        machines.c.id.in_(select(identities.c.machine).where(
            or_(identities.c.digest == lower, identities.c.value == text, identities.c.value == (mac or text)))),
        machines.c.id.in_(select(cards.c.machine).where(cards.c.mac == (mac or lower))),
    )) if text else select(machines).where(machines.c.id < 0))


def find_board(connection: Connection, facts: Facts) -> list[Machine]:
    """The machines of this very board: same serial number and a network card in common."""
    if not facts.serial or not facts.macs:
        return []
    candidates = _load(connection, select(machines).where(machines.c.serial == facts.serial))
    return [machine for machine in candidates if machine.facts.same_board(facts)]


def create(connection: Connection, namespace: str, name: str, registration: str, now: float) -> int:
    """A new machine without an identity; gives its id."""
    result = connection.execute(insert(machines).values(
        namespace=namespace, name=name, registration=registration, created=now, seen=now))
    assert result.inserted_primary_key is not None
    return cast(int, result.inserted_primary_key[0])


def add_identity(connection: Connection, machine: int, caller: Caller, now: float) -> None:
    connection.execute(insert(identities).values(
        kind=caller.kind, digest=caller.digest, value=caller.value, machine=machine, since=now))


def set_cards(connection: Connection, machine: Machine, macs: frozenset[str]) -> None:
    """The machine's network cards are these now."""
    if machine.facts.macs - macs:
        connection.execute(delete(cards).where(
            cards.c.machine == machine.id, cards.c.mac.in_(sorted(machine.facts.macs - macs))))
    if macs - machine.facts.macs:
        connection.execute(insert(cards), [
            {"machine": machine.id, "mac": mac} for mac in sorted(macs - machine.facts.macs)])


def change(connection: Connection, machine: int, **values: Any) -> None:
    """Set columns; mappings become JSON."""
    written = {key: json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value
               for key, value in values.items()}
    connection.execute(update(machines).where(machines.c.id == machine).values(**written))


def remove(connection: Connection, machine: int) -> None:
    """Forget a machine; its addresses must be released before."""
    connection.execute(delete(machines).where(machines.c.id == machine))


def _load(connection: Connection, statement: Select[Any]) -> list[Machine]:
    rows = connection.execute(statement).all()
    ids = [row.id for row in rows]
    callers = _grouped(connection, select(identities).order_by(identities.c.since), ids, identities.c.machine)
    macs = _grouped(connection, select(cards), ids, cards.c.machine)
    return [_machine(row, callers.get(row.id, ()), macs.get(row.id, ())) for row in rows]


def _grouped(connection: Connection, statement: Select[Any], ids: Sequence[int],
             column: Any) -> dict[int, list[Row[Any]]]:
    """The rows of `statement` by machine; all of them at once where most are wanted (SQLite bounds an IN)."""
    if not ids:
        return {}
    wanted = set(ids)
    groups: dict[int, list[Row[Any]]] = {}
    for row in connection.execute(statement.where(column.in_(ids)) if len(ids) <= 500 else statement):
        if row.machine in wanted:
            groups.setdefault(row.machine, []).append(row)
    return groups


def _machine(row: Row[Any], callers: Iterable[Row[Any]], macs: Iterable[Row[Any]]) -> Machine:
    return Machine(
        id=row.id, namespace=row.namespace, name=row.name, registration=row.registration,
        facts=Facts(row.uuid, row.serial, frozenset(one.mac for one in macs)),
        identities=tuple(Caller(cast(Kind, one.kind), one.digest, one.value) for one in callers),
        labels=json.loads(row.labels), annotations=json.loads(row.annotations), network=json.loads(row.network),
        revision=row.revision, pending=row.pending, note=row.note, report=json.loads(row.report),
        reported=row.reported, created=row.created, seen=row.seen)
