"""To and from the operator: machines as MachineInventory manifests, with the addresses that they have.

What `export` writes, `kubectl apply` and `import` take; what `kubectl get machineinventory -o yaml` writes, `import`
takes, so that people can move either way and no machine gets another address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from homeport.core.complaint import Complaint
from homeport.core.placeholders import fill
from homeport.core.yamlwrite import render_yaml
from homeport_server.caller import Caller
from homeport_server.granting import PINNED
from homeport_server.manifests import inventories, pools, registrations
from homeport_server.manifests.documents import Document, Fault, read_documents
from homeport_server.manifests.inventories import Inventory, read_inventory
from homeport_server.store import addresses, machines
from homeport_server.store.addresses import Held
from homeport_server.store.database import Database
from homeport_server.store.machines import Machine


class Refusal(Exception):
    """An import with faults: nothing of it was done."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = tuple(faults)


def export(database: Database, names: Sequence[str]) -> str:
    """All machines, or those that `names` mean, as one YAML stream."""
    def read(connection: Connection) -> list[dict[str, Any]]:
        found = machines.find_all(connection) if not names else [
            machine for name in names for machine in machines.find_by_id(connection, name)]
        return [manifest(machine, addresses.of_machine(connection, machine.id)) for machine in found]

    return "".join(f"---\n{render_yaml(tree)}" for tree in database.look(read))


def manifest(machine: Machine, held: Mapping[str, Held]) -> dict[str, Any]:
    """One machine as the operator would have it. Prefix and gateway are filled in: it knows only addresses."""
    spec: dict[str, Any] = {}
    for identity in machine.identities:  # the last of each kind is the one that it has now
        spec["tpmHash" if identity.kind == "tpm" else "machineHash"] = identity.digest
    if "tpmHash" in spec:
        spec.pop("machineHash", None)
    references = machine.network.get("pools") or {}
    if references:
        spec["ipAddressPools"] = {name: _reference(key) for name, key in references.items()}
    configurator = machine.network.get("configurator") or "none"
    if configurator != "none":
        known = {name: replace(one.with_subnet, ip="{" + name + "}") for name, one in held.items()}
        config, _open = fill(machine.network.get("config") or {}, known)
        spec["network"] = {"configurator": configurator, "config": config,
                           "ipAddresses": {name: one.ip for name, one in held.items()}}
    metadata: dict[str, Any] = {"name": machine.name, "namespace": machine.namespace}
    metadata |= {key: dict(marks) for key, marks in (
        ("labels", machine.labels), ("annotations", machine.annotations)) if marks}
    return {"apiVersion": f"{registrations.GROUP}/v1beta1", "kind": inventories.KIND, "metadata": metadata,
            "spec": spec}


def read_for_import(files: Mapping[str, bytes]) -> list[tuple[Document, Inventory]]:
    """The inventories in these files. Raises Refusal with every fault."""
    found: list[tuple[Document, Inventory]] = []
    faults: list[Fault] = []

    def read(document: Document) -> Inventory:
        def complain(complaint: Complaint) -> None:
            faults.append(Fault(document.file, document.subject, complaint))

        inventory = read_inventory(document, complain)
        if not inventory.hashed:
            complain(Complaint("spec", "neither tpmHash nor machineHash", "an inventory that says whose it is"))
        return inventory

    for file, data in files.items():
        documents, complaints = read_documents(file, data)
        faults += complaints
        mine = [(document, read(document)) for document in documents if document.kind == inventories.KIND]
        if not mine and not complaints:
            faults.append(Fault(file, "", Complaint("", f"no {inventories.KIND}", "at least one")))
        found += mine
    if faults:
        raise Refusal(faults)
    return found


def import_machines(database: Database, found: Sequence[tuple[Document, Inventory]], now: float) -> int:
    """Know these machines from now on, with these addresses. Raises Refusal, and then nothing was changed."""
    def change(connection: Connection) -> int:
        faults: list[Fault] = []
        for document, inventory in found:
            for complaint in _import(connection, inventory, now):
                faults.append(Fault(document.file, document.subject, complaint))
        if faults:
            raise Refusal(faults)
        return len(found)

    return database.change(change)


def _import(connection: Connection, inventory: Inventory, now: float) -> list[Complaint]:
    caller = Caller("tpm", inventory.tpm_hash) if inventory.tpm_hash else Caller("plain", inventory.machine_hash)
    machine = machines.find(connection, caller)
    if machine is None:
        if machines.find_named(connection, inventory.namespace, inventory.name) is not None:
            return [Complaint("metadata.name", f"{inventory.key} is another machine here already", "another name")]
        machines.create(connection, inventory.namespace, inventory.name, "", now)
        machine = machines.find_named(connection, inventory.namespace, inventory.name)
        assert machine is not None
        machines.add_identity(connection, machine.id, caller, now)
    network = inventory.network
    machines.change(
        connection, machine.id, labels=dict(inventory.labels), annotations=dict(inventory.annotations),
        network={"configurator": network.configurator, "config": network.config, "pools": dict(network.pools)})
    complaints = []
    for name, address in network.fixed.items():
        holder = addresses.holder(connection, address.ip)
        if holder is not None and holder.machine == machine.id and holder.name == name:
            continue
        if holder is not None and not (holder.at_rest or holder.reserved_for == PINNED + inventory.key):
            complaints.append(Complaint(f"spec.network.ipAddresses.{name}", f"{address.ip} is not free here",
                                        f"its holder released (homeport-server show {address.ip})"))
            continue
        addresses.release(connection, machine.id, now, names={name})
        if holder is None:
            addresses.hold(connection, address.ip, name, machine.id, now)
        else:
            addresses.hand_over(connection, address.ip, machine.id, now)
    return complaints


def _reference(key: str) -> dict[str, str]:
    kind, _, rest = key.partition("/")
    return {"apiGroup": pools.GROUP, "kind": kind, "name": rest.rpartition("/")[2]}
