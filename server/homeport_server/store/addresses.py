"""Addresses in the database: taken from a pool, reserved, handed over, released.

Functions of one connection. Two that run at once cannot give the same address: `addresses.key` is the primary key,
so the slower one fails and `Database.change` runs it again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from homeport.core.addresses import Address
from homeport_server.manifests.pools import Pool
from homeport_server.ranges import Span, from_key, parse_address, to_key, to_text
from homeport_server.store.tables import addresses


@dataclass(frozen=True)
class Held:
    """An address that is not free: whose, for whom, and from where."""

    ip: str
    name: str
    machine: int | None
    reserved_for: str | None
    pool: str
    prefix: int | None
    gateway: str | None
    since: float
    free_at: float | None

    @property
    def with_subnet(self) -> Address:
        """The address, with what its pool said when it was given."""
        return Address(self.ip, self.prefix, self.gateway)

    @property
    def at_rest(self) -> bool:
        """Whether it only waits until it is free again."""
        return self.machine is None and self.reserved_for is None


def of_machine(connection: Connection, machine: int) -> dict[str, Held]:
    """The addresses of a machine by their names."""
    rows = connection.execute(select(addresses).where(addresses.c.machine == machine).order_by(addresses.c.name))
    return {row.name: _held(row) for row in rows}


def everything(connection: Connection) -> list[Held]:
    """All addresses that are not free, in order."""
    return [_held(row) for row in connection.execute(select(addresses).order_by(addresses.c.key))]


def holder(connection: Connection, ip: str) -> Held | None:
    """Who has this address."""
    row = connection.execute(select(addresses).where(addresses.c.key == key_of(ip))).first()
    return _held(row) if row else None


def reserved(connection: Connection, keys: Collection[str], name: str) -> Held | None:
    """The address that is reserved under `name` for one of these identities; the first in order if several are."""
    row = connection.execute(select(addresses).where(
        addresses.c.reserved_for.in_(sorted(keys)), addresses.c.name == name).order_by(addresses.c.key)).first()
    return _held(row) if row else None


def take_free(connection: Connection, pool: Pool, machine: int, name: str, now: float) -> str | None:
    """Give `machine` the lowest free address of `pool` under `name`; None if there is no free one."""
    def taken(span: Span) -> tuple[int, int]:
        return _taken(connection, pool.ranges.version, span)

    number = pool.ranges.first_free(taken)
    if number is None and _wake_rested(connection, now):
        number = pool.ranges.first_free(taken)
    if number is None:
        return None
    ip = to_text(pool.ranges.version, number)
    hold(connection, ip, name, machine, now, pool=pool)
    return ip


def hold(connection: Connection, ip: str, name: str, machine: int | None, now: float, *, pool: Pool | None = None,
         reserved_for: str | None = None) -> None:
    """Write down that an address is not free any more; it must have been."""
    connection.execute(insert(addresses).values(
        key=key_of(ip), ip=ip, name=name, machine=machine, reserved_for=reserved_for, since=now,
        pool=pool.key if pool else "", prefix=pool.prefix if pool else None,
        gateway=pool.gateway if pool else None, rest=pool.grace if pool else 0))


def hand_over(connection: Connection, ip: str, machine: int, now: float) -> None:
    """A reserved address goes to the machine that it was reserved for."""
    connection.execute(update(addresses).where(addresses.c.key == key_of(ip)).values(
        machine=machine, since=now, free_at=None))


def reserve(connection: Connection, ip: str, name: str, reserved_for: str, machine: int | None, now: float) -> None:
    """An address that is not free already is for `reserved_for` from now on."""
    connection.execute(update(addresses).where(addresses.c.key == key_of(ip)).values(
        name=name, reserved_for=reserved_for, machine=machine, free_at=None, since=now))


def release(connection: Connection, machine: int, now: float, *, names: Collection[str] | None = None,
            keep_reserved: bool = True) -> list[str]:
    """Take addresses from a machine, all or those with `names`; gives them back as text.

    A reserved one waits for the next machine of that identity, unless `keep_reserved` is false; one of a pool with
    a grace period rests; the others are free at once.
    """
    rows = connection.execute(select(addresses).where(addresses.c.machine == machine)).all()
    released = []
    for row in rows:
        if names is not None and row.name not in names:
            continue
        this = addresses.c.key == row.key
        if row.reserved_for and keep_reserved:
            connection.execute(update(addresses).where(this).values(machine=None))
        elif row.rest:
            connection.execute(update(addresses).where(this).values(
                machine=None, reserved_for=None, free_at=now + row.rest))
        else:
            connection.execute(delete(addresses).where(this))
        released.append(row.ip)
    return released


def reservations(connection: Connection, prefix: str = "") -> list[Held]:
    """What is reserved, under keys that begin with `prefix`."""
    return [_held(row) for row in connection.execute(select(addresses).where(
        addresses.c.reserved_for.startswith(prefix, autoescape=True)).order_by(addresses.c.key))]


def end_reservation(connection: Connection, held: Held) -> None:
    """Nobody's any more; but a machine that has the address keeps it."""
    this = addresses.c.key == key_of(held.ip)
    if held.machine is None:
        connection.execute(delete(addresses).where(this))
    else:
        connection.execute(update(addresses).where(this).values(reserved_for=None))


def key_of(ip: str) -> str:
    return to_key(*parse_address(ip))


def _taken(connection: Connection, version: int, span: Span) -> tuple[int, int]:
    """How many addresses of a span are not free, and the highest of them."""
    row = connection.execute(select(func.count(), func.max(addresses.c.key)).where(
        addresses.c.key.between(to_key(version, span[0]), to_key(version, span[1])))).one()
    return row[0], from_key(row[1])[1] if row[1] else -1


def _wake_rested(connection: Connection, now: float) -> int:
    """Free what has rested long enough; how many were."""
    return connection.execute(delete(addresses).where(
        addresses.c.free_at <= now, addresses.c.machine.is_(None), addresses.c.reserved_for.is_(None))).rowcount


def _held(row: Row[Any]) -> Held:
    return Held(row.ip, row.name, row.machine, row.reserved_for, row.pool, row.prefix, row.gateway, row.since,
                row.free_at)
