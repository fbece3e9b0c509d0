"""MachineInventory: what one machine gets, whatever its registration says.

Found by `tpmHash` or `machineHash`; one without either waits for the machine whose name it has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from homeport_server.manifests.documents import Document
from homeport_server.manifests.fields import Complain, Fields
from homeport_server.manifests.networks import Network, read_network, read_references

KIND = "MachineInventory"
NETWORK_PATH = ("spec", "network")
_KEYS = ("tpmHash", "machineHash", "ipAddressClaims", "ipAddressPools", "network")
_HASH = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Inventory:
    """One machine. Without a `network` of its own it has its registration's."""

    namespace: str
    name: str
    tpm_hash: str = ""
    machine_hash: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    network: Network = field(default_factory=Network)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def hashed(self) -> bool:
        """Whether it says which machine it is for; else it is for whichever has its name."""
        return bool(self.tpm_hash or self.machine_hash)


def read_inventory(document: Document, complain: Complain) -> Inventory:
    """The inventory that a manifest describes; what is wrong with it is complained about."""
    metadata = Fields(document.tree.get("metadata"), ("metadata",), complain)
    spec = Fields(document.tree.get("spec"), ("spec",), complain)
    spec.no_near_misses(_KEYS)
    network = read_network(spec.tree.get("network"), NETWORK_PATH, document.namespace, complain, pinned=True)
    return Inventory(
        namespace=document.namespace, name=document.name,
        tpm_hash=_hash(spec, "tpmHash"), machine_hash=_hash(spec, "machineHash"),
        labels=metadata.texts("labels"), annotations=metadata.texts("annotations"),
        network=replace(network, pools=read_references(spec, "ipAddressPools", document.namespace)),
    )


def _hash(spec: Fields, key: str) -> str:
    value = spec.text(key, "a SHA-256")
    if value and not _HASH.match(value.lower()):
        spec.fault((key,), value, "a SHA-256: 64 hexadecimal digits")
    return value.lower()
