"""All manifests of a folder as one set: either all of it is sound, or the faults say what is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from homeport.core.complaint import Complaint, render_path
from homeport.core.showing import show
from homeport_server.manifests import inventories, pools, registrations
from homeport_server.manifests.documents import Document, Fault, read_documents
from homeport_server.manifests.inventories import Inventory
from homeport_server.manifests.networks import Network, check_references, check_template
from homeport_server.manifests.pools import Pool
from homeport_server.manifests.registrations import Registration
from homeport_server.ranges import parse_address

# Kinds of ours by API group; whatever else a folder has is somebody else's, and left alone.
_OURS = {
    pools.GROUP: pools.KINDS,
    registrations.GROUP: (registrations.KIND, inventories.KIND),
}


@dataclass(frozen=True)
class Manifests:
    """What is in force: pools by their key, registrations and inventories in the order of their files."""

    pools: Mapping[str, Pool] = field(default_factory=dict)
    registrations: tuple[Registration, ...] = ()
    inventories: tuple[Inventory, ...] = ()

    def pinned(self, kind: str, digest: str) -> Inventory | None:
        """The inventory of the machine with this `tpm` or `plain` hash."""
        return next((one for one in self.inventories
                     if digest and digest == (one.tpm_hash if kind == "tpm" else one.machine_hash)), None)

    def inventory(self, namespace: str, name: str) -> Inventory | None:
        return next((one for one in self.inventories if (one.namespace, one.name) == (namespace, name)), None)

    def registration(self, key: str) -> Registration | None:
        """The registration `namespace/name`."""
        return next((one for one in self.registrations if one.key == key), None)

    def __str__(self) -> str:
        return (f"{len(self.pools)} pools, {len(self.registrations)} registrations, "
                f"{len(self.inventories)} inventories")


def read_manifests(files: Mapping[str, bytes], *, check_config: bool = True) -> tuple[Manifests, list[Fault]]:
    """The set in these files (name -> content), and everything that is wrong with it.

    With faults the set is only as good as what could be read. `check_config=False` leaves what stands below
    `config` to the machines.
    """
    documents: list[Document] = []
    faults: list[Fault] = []
    for name in sorted(files):
        found, complaints = read_documents(name, files[name])
        documents += found
        faults += complaints
    reader = _Reader(faults)
    for document in documents:
        reader.read(document)
    reader.check(check_config)
    return Manifests(reader.pools, tuple(reader.registrations), tuple(reader.inventories)), faults


class _Reader:
    """Documents in, the parts of a set out; knows from which document each part is."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.pools: dict[str, Pool] = {}
        self.broken: set[str] = set()
        self.registrations: list[Registration] = []
        self.inventories: list[Inventory] = []
        self.networks: list[tuple[Document, Network, tuple[str, ...]]] = []
        self.seen: dict[tuple[str, ...], Document] = {}

    def read(self, document: Document) -> None:
        complain = partial(self.complain, document)
        if document.group not in _OURS:
            return
        if document.kind not in _OURS[document.group]:
            self.unknown_kind(document)
            return
        if not document.name:
            complain(Complaint("metadata.name", show(None), "a name"))
            return
        if not self.once(document, (document.kind, document.namespace, document.name), "metadata.name",
                         f"{document.subject} in {document.namespace}"):
            return
        if document.kind in pools.KINDS:
            pool = pools.read_pool(document, complain)
            if pool is not None:
                self.pools[pool.key] = pool
            else:
                self.broken.add(pools.pool_key(document.kind, document.namespace, document.name))
        elif document.kind == registrations.KIND:
            self.add_registration(document, registrations.read_registration(document, complain))
        else:
            self.add_inventory(document, inventories.read_inventory(document, complain))

    def add_registration(self, document: Document, registration: Registration) -> None:
        if registration.token:
            self.once(document, ("token", registration.token), "spec.token", "the same token")
        self.registrations.append(registration)
        self.networks.append((document, registration.network, registrations.NETWORK_PATH))

    def add_inventory(self, document: Document, inventory: Inventory) -> None:
        for key, digest in (("tpmHash", inventory.tpm_hash), ("machineHash", inventory.machine_hash)):
            if digest:
                self.once(document, (key, digest), f"spec.{key}", "the same machine")
        for name, address in inventory.network.fixed.items():
            self.once(document, ("address", str(parse_address(address.ip))), f"spec.network.ipAddresses.{name}",
                      address.ip)
        self.inventories.append(inventory)
        self.networks.append((document, inventory.network, inventories.NETWORK_PATH))

    def check(self, check_config: bool) -> None:
        """What can be said only when all documents are read; after other faults it would be about those."""
        broken = {(fault.file, fault.subject) for fault in self.faults}
        for document, network, path in self.networks:
            if self.broken.intersection(network.pools.values()):
                continue
            where = render_path(path)
            found = check_references(network, where, self.pools)
            if not found and check_config and (document.file, document.subject) not in broken:
                found = check_template(network, where, self.pools)
            for complaint in found:
                self.complain(document, complaint)

    def once(self, document: Document, key: tuple[str, ...], path: str, what: str) -> bool:
        """Whether `key` is new; if not, that is a complaint which names the other file."""
        other = self.seen.setdefault(key, document)
        if other is document:
            return True
        self.complain(document, Complaint(path, f"{what} once more, as in {other.file}: {other.subject}", "it once"))
        return False

    def unknown_kind(self, document: Document) -> None:
        """Other kinds of these groups are none of our business, but a wrong letter must not hide a pool."""
        kinds: Iterable[str] = _OURS[document.group]
        near = next((kind for kind in kinds if kind.lower() == document.kind.lower()), "")
        if near:
            self.complain(document, Complaint("kind", show(document.kind), f"did you mean '{near}'?"))

    def complain(self, document: Document, complaint: Complaint) -> None:
        self.faults.append(Fault(document.file, document.subject, complaint))
