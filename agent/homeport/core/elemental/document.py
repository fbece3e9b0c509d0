"""The network part of the server's configuration message, as a document of ours.

The message is one mapping with secrets of other programs in it (a token of Kubernetes', users' passwords), and
with values that Go wrote as lists of bytes (spec/elemental.md, 1.6). What goes on from here, to the disk at last,
has the keys of an assignment and nothing else, and is readable.
"""

from __future__ import annotations

from typing import Any

from homeport.core.body import read_body
from homeport.core.complaint import Complaint
from homeport.core.rawextension import decode_raws
from homeport.core.shapes import ASSIGNMENT_KEYS
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError


def network_document(message: bytes) -> bytes:
    """The assignment in a CONFIG message, as YAML. Raises DocumentError if it is not such a message."""
    body = read_body(message)
    if body.text is None:
        raise DocumentError(body.complaints)
    tree = read_yaml(body.text)
    complaints = (*body.complaints, *tree.complaints)
    if complaints:
        raise DocumentError(complaints)
    if not isinstance(tree.value, dict) or "elemental" not in tree.value:
        raise DocumentError([Complaint("", "no configuration message", "a mapping with the key 'elemental'")])
    network: dict[str, Any] = {key: tree.value[key] for key in ASSIGNMENT_KEYS if key in tree.value}
    if isinstance(network.get("config"), dict):
        network["config"], found = decode_raws(network["config"], ("config",))
        if found:
            raise DocumentError(found)
    # The key alone says whose shape this is, and that its absence of a network is an answer.
    return render_yaml({"elemental": {}, **network}).encode()


def registration_ca(message: bytes) -> str:
    """The authorities (PEM) that the server says it will be known by; "" if it does not say."""
    tree = read_yaml(message.decode("utf-8", "replace")).value
    for key in ("elemental", "registration", "ca-cert"):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, str) and "-----BEGIN CERTIFICATE-----" in tree else ""
