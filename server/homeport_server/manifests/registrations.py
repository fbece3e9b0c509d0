"""MachineRegistration: whom to let in, what to call them, and what network they get.

The fields of elemental.cattle.io/v1beta1. What the server does not act upon (install, reset, cloud-config) is
kept as it is, for the machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.core.showing import listing
from homeport_server.manifests.documents import Document
from homeport_server.manifests.fields import Complain, Fields
from homeport_server.manifests.networks import Network, read_network

GROUP = "elemental.cattle.io"
KIND = "MachineRegistration"
NETWORK_PATH = ("spec", "config", "network")
AUTHS = ("tpm", "mac", "sys-uuid")
_KEYS = ("token", "machineName", "machineInventoryLabels", "machineInventoryAnnotations", "labelPrefix", "config")
_CONFIG_KEYS = ("elemental", "network", "cloud-config")
_TOKEN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\Z")
_LONGEST_TOKEN = 253


@dataclass(frozen=True)
class Registration:
    """A registration. `token` is "" where the server is to choose one; `auth` "" where any is allowed.

    `elemental` and `cloud_config` are passed on as they stand in `spec.config`.
    """

    namespace: str
    name: str
    token: str = ""
    machine_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    label_prefix: str = "elemental.cattle.io/"
    auth: str = ""
    elemental: Mapping[str, Any] = field(default_factory=dict)
    cloud_config: Mapping[str, Any] = field(default_factory=dict)
    network: Network = field(default_factory=Network)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def read_registration(document: Document, complain: Complain) -> Registration:
    """The registration that a manifest describes; what is wrong with it is complained about."""
    spec = Fields(document.tree.get("spec"), ("spec",), complain)
    spec.no_near_misses(_KEYS)
    config = spec.below("config")
    config.no_near_misses(_CONFIG_KEYS)
    elemental = config.below("elemental")
    registration = elemental.below("registration")
    auth = registration.text("auth", f"one of {listing(AUTHS)}")
    if auth and auth not in AUTHS:
        registration.fault(("auth",), auth, f"one of {listing(AUTHS)}")
    return Registration(
        namespace=document.namespace, name=document.name,
        token=_token(spec, document),
        machine_name=spec.text("machineName"),
        labels=spec.texts("machineInventoryLabels"),
        annotations=spec.texts("machineInventoryAnnotations"),
        label_prefix=_label_prefix(spec.text("labelPrefix")),
        auth=auth,
        elemental=elemental.tree,
        cloud_config=config.below("cloud-config").tree,
        network=read_network(config.tree.get("network"), NETWORK_PATH, document.namespace, complain),
    )


def _token(spec: Fields, document: Document) -> str:
    """`spec.token`; else the one that an operator has put into the status, so that its machines find us too."""
    token = spec.text("token", "lower-case letters, digits and dashes")
    if token and (not _TOKEN.match(token) or len(token) > _LONGEST_TOKEN):
        spec.fault(("token",), token, "lower-case letters, digits and dashes, a letter or digit at both ends, "
                   f"at most {_LONGEST_TOKEN}")
        return ""
    status = document.tree.get("status")
    given = status.get("registrationToken") if isinstance(status, dict) else None
    return token or (given if isinstance(given, str) and _TOKEN.match(given) else "")


def _label_prefix(given: str) -> str:
    """As the operator's GetLabelPrefix: "-" is none, "" the default."""
    return {"": f"{GROUP}/", "-": ""}.get(given, f"{given}/")
