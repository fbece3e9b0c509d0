"""Which addresses a machine gets: the one it is pinned to, the one reserved for it, the one it has, a free one.

In this order, for each name that its network asks for. What it has once it keeps, whatever becomes of the pool.
"""

from __future__ import annotations

from sqlalchemy import Connection

from homeport.core.addresses import Address
from homeport_server.admission import Desk, Request
from homeport_server.caller import as_mac
from homeport_server.manifests.inventories import Inventory
from homeport_server.manifests.networks import Network, complete
from homeport_server.manifests.sets import Manifests
from homeport_server.store import addresses
from homeport_server.store.addresses import Held
from homeport_server.store.machines import Machine

PINNED = "inventory:"  # before the key of the inventory: reserved_for of addresses that a manifest fixes


class Missing(Exception):
    """There is no address for a name now; says why."""


def grant(desk: Desk, request: Request, machine: Machine, inventory: Inventory | None,
          network: Network) -> tuple[dict[str, Address], list[str]]:
    """The address for each name of `network`, and for each that is missing the reason."""
    granted: dict[str, Address] = {}
    missing: list[str] = []
    if not network:
        return granted, missing
    held = addresses.of_machine(desk.connection, machine.id)
    keys = _reservation_keys(request, machine)
    for name in network.names:
        fixed = network.fixed.get(name) if inventory else None
        try:
            if fixed is not None and inventory is not None:
                ip = _pin(desk, machine, name, fixed.ip, inventory, held.get(name))
            else:
                ip = (_reserved(desk, machine, name, keys, held.get(name))
                      or _of_pool(desk, machine, name, held.get(name), network.pools.get(name, "")))
        except Missing as reason:
            missing.append(f"{name}: {reason}")
            continue
        pool = desk.manifests.pools.get(network.pools.get(name, ""))
        granted[name] = complete(fixed or Address(ip), pool)
    return granted, missing


def _pin(desk: Desk, machine: Machine, name: str, ip: str, inventory: Inventory, held: Held | None) -> str:
    """The address that the inventory says."""
    key = PINNED + inventory.key
    row = addresses.holder(desk.connection, ip)
    if row is not None and not row.at_rest and row.machine != machine.id and (
            row.machine is not None or row.reserved_for != key):
        raise Missing(f"{ip} is fixed by the inventory, but another machine has it (homeport-server show {ip})")
    if held is not None and held.ip != ip:
        addresses.release(desk.connection, machine.id, desk.now, names={name})
    if row is None:
        addresses.hold(desk.connection, ip, name, machine.id, desk.now, reserved_for=key)
    elif (row.machine, row.reserved_for, row.name) != (machine.id, key, name):
        addresses.reserve(desk.connection, ip, name, key, machine.id, desk.now)
    return ip


def _reserved(desk: Desk, machine: Machine, name: str, keys: set[str], held: Held | None) -> str:
    """The address that is reserved for this machine, "" if none is."""
    row = addresses.reserved(desk.connection, keys, name)
    if row is None:
        return ""
    if row.machine is not None and row.machine != machine.id:
        raise Missing(f"{row.ip} is reserved for this machine, but another one has it (homeport-server show {row.ip})")
    if row.machine is None:
        if held is not None:
            addresses.release(desk.connection, machine.id, desk.now, names={name})
        addresses.hand_over(desk.connection, row.ip, machine.id, desk.now)
    return row.ip


def _of_pool(desk: Desk, machine: Machine, name: str, held: Held | None, key: str) -> str:
    """The address that the machine has, else a free one of its pool."""
    if held is not None:
        return held.ip
    pool = desk.manifests.pools.get(key)
    if pool is None:
        raise Missing("neither a pool nor an address is named for it")
    ip = addresses.take_free(desk.connection, pool, machine.id, name, desk.now)
    if ip is None:
        raise Missing(f"no address of {pool} is free (it has {pool.ranges.size}); enlarge it, or release machines "
                      f"that are gone")
    return ip


def _reservation_keys(request: Request, machine: Machine) -> set[str]:
    """Everything that an address may be reserved for and that means this machine."""
    facts = request.facts.over(machine.facts)
    words = [machine.name, facts.uuid, facts.serial, *facts.macs]
    for identity in machine.identities:
        words += [identity.digest, identity.value]
    return {reservation_key(word) for word in words if word}


def reservation_key(text: str) -> str:
    """An identity as reservations are kept under it: any spelling is one."""
    return as_mac(text) or text.strip().lower()


def fix_addresses(connection: Connection, manifests: Manifests, now: float) -> list[str]:
    """Take the addresses that inventories fix out of the pools, before a machine can be given one of them.

    Gives a warning for each that somebody has already.
    """
    wanted = {(PINNED + one.key, name): address.ip
              for one in manifests.inventories for name, address in one.network.fixed.items()}
    warnings = []
    for row in addresses.reservations(connection, PINNED):
        if wanted.get((row.reserved_for or "", row.name)) != row.ip:
            addresses.end_reservation(connection, row)
    for (key, name), ip in wanted.items():
        holder = addresses.holder(connection, ip)
        if holder is None:
            addresses.hold(connection, ip, name, None, now, reserved_for=key)
        elif holder.at_rest:
            addresses.reserve(connection, ip, name, key, None, now)
        elif holder.reserved_for != key:
            warnings.append(f"{ip} is fixed by {key.removeprefix(PINNED)}, but is held already (homeport-server show "
                            f"{ip}); unless that is this machine, release it there")
    return warnings
