"""What a person asks for: `check`, `list`, `show`. Reads, and prints; changes nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from homeport.core.showing import printable
from homeport.report import show_table
from homeport_server.manifests import folder
from homeport_server.manifests.documents import Fault
from homeport_server.manifests.sets import Manifests, read_manifests
from homeport_server.ranges import parse_address
from homeport_server.store import addresses, machines
from homeport_server.store.addresses import Held
from homeport_server.store.database import Database
from homeport_server.store.machines import Machine
from homeport_server.store.tokens import kept_tokens, recall

LONGEST_LINE = 4_096  # characters


def check(path: Path, check_config: bool) -> tuple[Manifests, list[Fault]]:
    """The manifests of a folder, and what is wrong with them. Raises UnreadableFolder."""
    return read_manifests(folder.read_files(path), check_config=check_config)


def describe(manifests: Manifests) -> str:
    """A good set in a few lines."""
    lines = [str(manifests)]
    lines += [f"  {pool}: {pool.ranges.size} addresses, /{pool.prefix}, gateway {pool.gateway or '(none)'}"
              for pool in manifests.pools.values()]
    lines += [f"  MachineRegistration/{one.key}: {one.network.configurator}, "
              f"addresses for {', '.join(one.network.names) or 'nothing'}" for one in manifests.registrations]
    lines += [f"  MachineInventory/{one.key}: "
              + (", ".join(f"{name} {address.ip}" for name, address in one.network.fixed.items()) or "no address fixed")
              for one in manifests.inventories]
    return "\n".join(lines)


def overview(database: Database) -> dict[str, Any]:
    """Every machine and every address, as `list --json` has them."""
    def read(connection: Connection) -> dict[str, Any]:
        held = addresses.everything(connection)
        known = machines.find_all(connection)
        return {"machines": [as_json(machine, _of(held, machine)) for machine in known],
                "reserved": [_held_json(one) for one in held if one.machine is None]}

    return database.look(read)


def show_list(tree: Mapping[str, Any]) -> str:
    """`overview` as a table."""
    rows = [("NAME", "IDENTITY", "ADDRESSES", "SEEN", "STATUS")]
    for machine in tree["machines"]:
        rows.append((machine["name"], _identity(machine), _addresses(machine["addresses"]), _ago(machine["seen"]),
                     _status(machine)))
    for held in tree["reserved"]:
        rows.append(("-", held["reservedFor"] or "-", f"{held['name']}={held['address']}", "-",
                     "reserved" if held["reservedFor"] else "resting"))
    return show_table(rows) if len(rows) > 1 else "no machines yet"


def details(database: Database, text: str) -> list[dict[str, Any]]:
    """All that is known of what `text` may mean: machines, a registration, an address."""
    def read(connection: Connection) -> list[dict[str, Any]]:
        found = {machine.id: machine for machine in machines.find_by_id(connection, text)}
        holder = addresses.holder(connection, text) if _is_address(text) else None
        if holder is not None and holder.machine is not None:
            found |= {one.id: one for one in machines.find_all(connection) if one.id == holder.machine}
        known = [as_json(machine, addresses.of_machine(connection, machine.id).values())
                 for machine in found.values()]
        if holder is not None and holder.machine is None:
            known.append(_held_json(holder))
        url, ca = recall(connection, "url"), recall(connection, "ca")
        for key, token in kept_tokens(connection).items():
            if text in (key, key.rpartition("/")[2]):
                known.append({"registration": key, "token": token, "ca-cert": ca,
                              "url": f"{url}/elemental/registration/{token}",
                              "config": f"{url}/assignments/{{uuid}}?token={token}",
                              "report": f"{url}/reports/{{uuid}}?token={token}"})
        return known

    return database.look(read)


def show_details(tree: Sequence[Mapping[str, Any]]) -> str:
    """`details` as rows of name and value."""
    return "\n\n".join("\n".join(_row(key, value) for key, value in part.items() if value not in ("", None, {}, []))
                       for part in tree)


def as_json(machine: Machine, held: Iterable[Held]) -> dict[str, Any]:
    """A machine for programs; the keys are stable."""
    return {
        "name": machine.name, "namespace": machine.namespace, "registration": machine.registration,
        "identities": [{"kind": one.kind, "hash": one.digest, "id": one.value} for one in machine.identities],
        "uuid": machine.facts.uuid, "serial": machine.facts.serial, "macs": sorted(machine.facts.macs),
        "addresses": [_held_json(one) for one in held],
        "pending": machine.pending, "note": machine.note, "revision": machine.revision,
        "report": dict(machine.report), "reported": machine.reported, "created": machine.created,
        "seen": machine.seen, "labels": dict(machine.labels), "annotations": dict(machine.annotations),
    }  # fmt: skip


def _held_json(held: Held) -> dict[str, Any]:
    return {"address": held.ip, "name": held.name, "pool": held.pool, "reservedFor": held.reserved_for,
            "since": held.since, "freeAt": held.free_at}


def _of(held: Iterable[Held], machine: Machine) -> list[Held]:
    return [one for one in held if one.machine == machine.id]


def _identity(machine: Mapping[str, Any]) -> str:
    if not machine["identities"]:
        return "-"
    last = machine["identities"][-1]
    return f"tpm {last['hash'][:12]}…" if last["kind"] == "tpm" else str(last["id"] or last["hash"][:12] + "…")


def _addresses(held: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(f"{one['name']}={one['address']}" for one in held) or "-"


def _status(machine: Mapping[str, Any]) -> str:
    return printable(_what_became(machine), LONGEST_LINE)


def _what_became(machine: Mapping[str, Any]) -> str:
    report = machine["report"]
    if machine["pending"]:
        return f"PENDING: {machine['pending']}"
    what = str(report.get("rung") or ("assigned" if machine["revision"] else "known"))
    if report.get("revision") and machine["revision"] and report["revision"] != machine["revision"]:
        what += " (not the newest)"
    return f"{what}; {machine['note']}" if machine["note"] else what


def _row(key: str, value: Any) -> str:
    if key in ("seen", "created", "reported", "since", "freeAt") and isinstance(value, int | float):
        value = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(value))
    if key == "addresses":
        value = "\n".join(f"{one['name']}={one['address']}" + (f" (reserved for {one['reservedFor']})"
                          if one["reservedFor"] else "") + (f" from {one['pool']}" if one["pool"] else "")
                          for one in value)
    elif key == "identities":
        value = "\n".join(f"{one['kind']} {one['id'] or one['hash']}" for one in value)
    elif isinstance(value, list):
        value = "\n".join(map(str, value))
    elif isinstance(value, dict):
        value = "\n".join(f"{name}: {part if isinstance(part, str) else json.dumps(part)}"
                          for name, part in value.items())
    # What a machine says may hold what a terminal obeys.
    first, *rest = [printable(line, LONGEST_LINE) for line in str(value).splitlines()] or [""]
    return "\n".join([f"{key + ':':<14}{first}", *(f"{'':<14}{line}" for line in rest)])


def _ago(seen: float) -> str:
    seconds = max(0, int(time.time() - seen))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True
