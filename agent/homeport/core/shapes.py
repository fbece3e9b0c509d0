"""Which kind of document a tree is, and where in it the network stands.

Knows the outsides: an assignment as such, a MachineInventory, Elemental's configuration message,
many machines in one, bare nmstate and its policies.  What stands inside the network part is
`assignment.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.showing import GUESSES, listing, meant, safe_path, show

ASSIGNMENT_KEYS = ("configurator", "ipAddresses", "config", "revision", "proof", "force")
NMSTATE_KEYS = ("description", "hostname", "dns-resolver", "route-rules", "routes", "interfaces",
                "ovs-db", "ovn")
POLICY_KEYS = ("capture", "desired", "desiredState", "current")
_ELEMENTAL_KEYS = ("elemental", "cloud-config")
_GROUP = "elemental.cattle.io"

# Documents of others that arrive here by mistake: a key that tells them, what they are.
_FOREIGN = {
    "network": "netplan or cloud-init network configuration",
    "ethernets": "netplan configuration",
    "ignition": "an Ignition configuration",
    "links": "OpenStack network_data.json",
    "stages": "a yip cloud-config",
    "runcmd": "a cloud-config",
    "error": "a server's error message",
    "message": "a server's error message",
}


@dataclass(frozen=True)
class Network:
    """The part of a document that assigns a network: its keys are `ASSIGNMENT_KEYS`.

    `tolerant` documents come from a server that may be newer than we are, so that unknown keys in
    them are not ours to judge.
    """

    shape: str
    tree: dict[str, Any]
    path: Path = ()
    tolerant: bool = False


@dataclass(frozen=True)
class Shape:
    """What a document is: one `network`, or the value of `machines:`, or (with a reason in
    `nothing`) a sound document that assigns no network; else there are complaints."""

    network: Network | None = None
    machines: Any = None
    nothing: str = ""
    complaints: tuple[Complaint, ...] = ()


def find_shape(tree: dict[str, Any]) -> Shape:
    """The shape of a document, told by its top-level keys."""
    if "machines" in tree:
        return Shape(machines=tree["machines"], complaints=tuple(
            _unknown(set(tree) - {"machines", "description"}, ("machines", "description"), tree)))
    if "apiVersion" in tree or {"kind", "spec"} <= set(tree):
        return _kubernetes(tree)
    if "elemental" in tree:
        return _elemental(tree)
    if any(key in tree for key in ASSIGNMENT_KEYS):
        return _assignment(tree)
    if any(key in tree for key in POLICY_KEYS[:3]):
        return _bare(tree, "policy", POLICY_KEYS)
    if any(key in tree for key in NMSTATE_KEYS):
        return _bare(tree, "nmstate", NMSTATE_KEYS)
    return Shape(complaints=tuple(_stranger(tree)))


def unknown_keys(network: Network) -> list[Complaint]:
    """Complaints about keys beside an assignment's own."""
    if network.tolerant or network.shape in ("nmstate", "policy"):
        return []
    return _unknown(set(network.tree) - set(ASSIGNMENT_KEYS), ASSIGNMENT_KEYS, network.tree,
                    network.path)


def _assignment(tree: dict[str, Any]) -> Shape:
    return Shape(Network("assignment", tree))


def _bare(tree: dict[str, Any], shape: str, known: tuple[str, ...]) -> Shape:
    config = {key: value for key, value in tree.items() if key in known}
    return Shape(Network(shape, {"config": config}),
                 complaints=tuple(_unknown(set(tree) - set(known), known, tree)))


def _elemental(tree: dict[str, Any]) -> Shape:
    network = {key: tree[key] for key in ASSIGNMENT_KEYS if key in tree}
    if not network:
        return Shape(nothing="the registration server configures no network for this machine "
                             "(configurator: none)")
    return Shape(Network("elemental", network, tolerant=True))


def _kubernetes(tree: dict[str, Any]) -> Shape:
    kind, version = tree.get("kind"), tree.get("apiVersion")
    complaints = []
    if kind != "MachineInventory":
        wanted = "a MachineInventory"
        if kind == "MachineRegistration":
            wanted += "; a MachineRegistration is the template for many and has no addresses"
        complaints.append(Complaint("kind", show(kind), wanted))
    if not isinstance(version, str) or version.partition("/")[0] != _GROUP:
        complaints.append(Complaint("apiVersion", show(version), f"{_GROUP}/v1beta1"))
    if complaints:
        return Shape(complaints=tuple(complaints))
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        return Shape(complaints=(Complaint("spec", show(spec), "the inventory's specification"),))
    network = spec.get("network")
    if network is None or network == {}:
        return Shape(nothing="the MachineInventory has no spec.network")
    if not isinstance(network, dict):
        return Shape(complaints=(Complaint("spec.network", show(network),
                                           "a mapping with 'config' and 'ipAddresses'"),))
    return Shape(Network("inventory", network, ("spec", "network")))


def _stranger(tree: dict[str, Any]) -> Iterable[Complaint]:
    """A mapping without one key of ours."""
    if not tree:
        yield Complaint("", "an empty mapping", "an assignment or nmstate's own keys")
        return
    foreign = next((what for key, what in _FOREIGN.items() if key in tree), "")
    if foreign:
        yield Complaint("", f"{foreign} ({show(tree)})",
                        "an assignment, a MachineInventory, or nmstate's own keys")
        return
    known = (*ASSIGNMENT_KEYS, *NMSTATE_KEYS, *POLICY_KEYS, *_ELEMENTAL_KEYS, "machines",
             "apiVersion")
    if len(tree) < 20:
        yield from _unknown(set(tree), known, tree)
    else:
        yield Complaint("", show(tree), f"keys such as {listing(ASSIGNMENT_KEYS)}")


def _unknown(keys: set[str], known: Iterable[str], tree: dict[str, Any],
             path: Path = ()) -> list[Complaint]:
    known = tuple(known)
    complaints = Complaints()
    for key in tree:  # in the document's order
        if key not in keys:
            continue
        wanted = meant(key, known, len(complaints) < GUESSES, limit=12)
        if key in NMSTATE_KEYS and "config" in known:
            wanted = "nmstate's own keys belong below 'config'"
        complaints.append(Complaint(safe_path((*path, key)), f"unknown key {show(key)}", wanted))
    return complaints
