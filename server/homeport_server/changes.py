"""What a person changes beside a running server: `release` and `reserve`. One transaction each."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sqlalchemy import Connection

from homeport.errors import HomeportError
from homeport_server.granting import PINNED, reservation_key
from homeport_server.ranges import parse_address, to_text
from homeport_server.registrar import let_go
from homeport_server.store import addresses, machines
from homeport_server.store.database import Database
from homeport_server.store.machines import Machine


class NoSuchMachine(HomeportError):
    """An id that means none, or several."""

    status = os.EX_NOINPUT


class NotFree(HomeportError):
    """An address that somebody has."""

    status = os.EX_DATAERR


def release(database: Database, text: str, now: float, *, forget: bool) -> list[str]:
    """Take a machine's addresses; with `forget` its identities and reservations, too. Gives the addresses.

    Raises NoSuchMachine, StoreError.
    """
    def change(connection: Connection) -> list[str]:
        machine = _one(connection, text)
        if machine is None and not forget:
            raise NoSuchMachine(f"Cannot release {text}: no machine is known by this", "homeport-server list")
        released = let_go(connection, machine, now, "released by command") if machine else []
        if forget:
            ended = _end_reservations(connection, machine, text)
            if machine is None and not ended:
                raise NoSuchMachine(f"Cannot forget {text}: no machine and no reservation is known by this",
                                    "homeport-server list")
            released += [ip for ip in ended if ip not in released]
            if machine is not None:
                machines.remove(connection, machine.id)
        return released

    return database.change(change)


def reserve(database: Database, text: str, wanted: Mapping[str, str], now: float) -> str:
    """Fix addresses (name -> address) for the machine `text`, known or not. Gives for whom they are now.

    Raises NotFree, NoSuchMachine, StoreError.
    """
    def change(connection: Connection) -> str:
        machine = _one(connection, text)
        key = reservation_key(text)
        for name, given in wanted.items():
            ip = to_text(*parse_address(given))
            holder = addresses.holder(connection, ip)
            theirs = holder is not None and not holder.at_rest and (
                holder.machine != (machine.id if machine else None) or holder.reserved_for not in (None, key))
            if holder is not None and theirs and not (holder.machine is None and holder.reserved_for == key):
                raise NotFree(f"Cannot reserve {ip} for {text}: it is {_whose(connection, holder)}",
                              f"homeport-server show {ip}; release it there first")
            _drop(connection, machine, key, name, ip, now)
            if holder is None:
                addresses.hold(connection, ip, name, None, now, reserved_for=key)
            else:
                addresses.reserve(connection, ip, name, key, holder.machine, now)
        return machine.name if machine else f"whichever machine is {text}"

    return database.change(change)


def _drop(connection: Connection, machine: Machine | None, key: str, name: str, ip: str, now: float) -> None:
    """What was reserved or held under this name before makes way; the machine gets the new one when it asks."""
    former = addresses.reserved(connection, {key}, name)
    if former is not None and former.ip != ip:
        addresses.end_reservation(connection, former)
    if machine is not None and name in (held := addresses.of_machine(connection, machine.id)) and held[name].ip != ip:
        addresses.release(connection, machine.id, now, names={name})


def _end_reservations(connection: Connection, machine: Machine | None, text: str) -> list[str]:
    keys = {reservation_key(text)}
    if machine is not None:
        keys |= {reservation_key(word) for word in (machine.name, machine.facts.uuid, machine.facts.serial,
                                                    *machine.facts.macs) if word}
        keys |= {reservation_key(word) for one in machine.identities for word in (one.digest, one.value) if word}
    mine = [held for held in addresses.reservations(connection) if held.reserved_for in keys]
    for held in mine:
        addresses.end_reservation(connection, held)
    return [held.ip for held in mine]


def _one(connection: Connection, text: str) -> Machine | None:
    found = machines.find_by_id(connection, text)
    if len(found) > 1:
        raise NoSuchMachine(f"{text} means {len(found)} machines: {', '.join(map(str, found[:5]))}",
                            "name one by its name or hash")
    return found[0] if found else None


def _whose(connection: Connection, held: addresses.Held) -> str:
    if held.machine is not None:
        owner = next((one for one in machines.find_all(connection) if one.id == held.machine), None)
        return f"{owner}'s" if owner else "another machine's"
    return f"reserved for {(held.reserved_for or 'another').removeprefix(PINNED)}"
