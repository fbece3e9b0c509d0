"""What a machine that asks is to be told, as values.

Three answers: this is yours, not yet, no. Each reason is for people: for the machine's console, the log and
`homeport-server show`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.core.addresses import Address
from homeport_server.manifests.networks import Network, as_document

# Seconds after which "not yet" is worth asking again: about as long as a person needs to release an address.
ASK_AGAIN = 10


@dataclass(frozen=True)
class Assigned:
    """`network` with its `addresses`; a network that is false assigns none, and that is an answer, too.

    `note` is what a person should know of this time: that the machine has moved, say.
    """

    machine: str
    namespace: str
    network: Network = field(default_factory=Network)
    addresses: Mapping[str, Address] = field(default_factory=dict)
    note: str = ""

    @property
    def document(self) -> dict[str, Any]:
        """The assignment in the agent's own shape, with its revision."""
        document = as_document(self.network, self.addresses)
        return {"revision": _revision(document), **document}

    @property
    def revision(self) -> str:
        return str(self.document["revision"])


@dataclass(frozen=True)
class Waiting:
    """Known, and worth asking again in `retry_after` seconds."""

    machine: str
    reason: str
    retry_after: int = ASK_AGAIN


@dataclass(frozen=True)
class Refused:
    """Nothing for this one, until a person does something."""

    reason: str


Outcome = Assigned | Waiting | Refused


def _revision(document: Mapping[str, Any]) -> str:
    """A name for what is assigned: it changes with it, and with nothing else."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
