"""The messages of a registration: a byte of type, then a payload (spec/elemental.md, 1.3).

Reads what a machine sends within fixed bounds, and writes what it is sent. Raises `Unacceptable` with the reason
in words, for the log; what the machine is told about it is `session.py`'s.
"""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

from homeport.core.yamlsafe import MAX_DEPTH

# A machine with hundreds of disks and cards sends some hundred kilobytes of system data.
LARGEST_MESSAGE = 512 << 10
LARGEST_SESSION = 1 << 20
MOST_MESSAGES = 64
MOST_ENTRIES = 200  # labels or annotations in one message
MOST_NODES = 50_000  # values in system data


class Type(IntEnum):
    """Message types; the highest of them is also the version of the protocol."""

    UNDEFINED = 0
    READY = 1
    SMBIOS = 2
    LABELS = 3
    GET = 4
    VERSION = 5
    SYSTEM_DATA = 6
    CONFIG = 7
    ERROR = 8
    ANNOTATIONS = 9
    UPDATE = 10
    SYSTEM_DATA_V2 = 11
    NETWORK_CONFIG = 12


NEWEST = Type.NETWORK_CONFIG
NAMES = {
    Type.SMBIOS: "SMBIOS", Type.LABELS: "Labels", Type.GET: "Get", Type.VERSION: "Version",
    Type.SYSTEM_DATA: "System", Type.ANNOTATIONS: "Annotations", Type.UPDATE: "Update",
    Type.SYSTEM_DATA_V2: "SystemDataV2",
}  # fmt: skip
# The order in which elemental-register sends them is no rule; these alone may come at all.
FROM_MACHINES = frozenset(NAMES)


class Unacceptable(Exception):
    """A message that is not answered; the text says why."""


def encode(kind: Type, payload: bytes = b"") -> bytes:
    return bytes((kind,)) + payload


def decode(message: bytes) -> tuple[Type, bytes]:
    """Type and payload of what a machine has sent."""
    if not message:
        raise Unacceptable("an empty message")
    if message[0] not in FROM_MACHINES:
        known = message[0] <= NEWEST
        raise Unacceptable(f"a message of type {message[0]}, which " +
                           ("is not for machines to send" if known else "does not exist"))
    return Type(message[0]), message[1:]


def agreed_version(payload: bytes) -> int:
    """The version that both speak. Up to 4 was another protocol, which nobody speaks any more."""
    if len(payload) != 1:
        raise Unacceptable(f"a version of {len(payload)} bytes, not 1")
    if payload[0] <= Type.GET:
        raise Unacceptable(f"protocol version {payload[0]}; at least {Type.VERSION} is needed")
    return min(payload[0], NEWEST)


def read_object(payload: bytes) -> dict[str, Any]:
    """A JSON object, as SMBIOS and system data are."""
    value = _read_json(payload)
    if not isinstance(value, dict):
        raise Unacceptable("JSON, but no object")
    _check_tree(value)
    return value


def read_texts(payload: bytes) -> dict[str, str]:
    """A JSON object whose values are text, as labels and annotations are."""
    value = read_object(payload)
    for key, text in value.items():
        if not isinstance(text, str):
            raise Unacceptable(f"a {type(text).__name__} as value of {key[:60]!r}, not text")
    if len(value) > MOST_ENTRIES:
        raise Unacceptable(f"{len(value)} entries; {MOST_ENTRIES} are allowed")
    return value


def _read_json(payload: bytes) -> Any:
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unacceptable(f"bytes that are not UTF-8 (at {error.start})") from None
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Unacceptable(f"no JSON: {str(error)[:100]}") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _check_tree(value: dict[str, Any]) -> None:
    """Level by level, so that the check itself needs no deep recursion."""
    level: list[Any] = [value]
    nodes = 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for part in level:
            inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
            below += inner
            for text in (*(part if isinstance(part, dict) else ()), part):
                # Half of a surrogate pair is JSON, but no text that a database can keep.
                if isinstance(text, str) and not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
                    raise Unacceptable("text with half a surrogate pair")
        nodes += len(level)
        if nodes > MOST_NODES:
            raise Unacceptable(f"more than {MOST_NODES} values")
        level = below
        if not level:
            return
    raise Unacceptable(f"more than {MAX_DEPTH} levels")
