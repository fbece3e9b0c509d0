"""The messages of a registration: one byte that says which, then its payload (spec/elemental.md, 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from homeport.core.showing import printable
from homeport.core.yamlsafe import read_yaml

LONGEST_TEXT = 300  # characters of a server's own words that people are shown
LARGEST_ERROR = 64 << 10
LONGEST_PAUSE = 3600  # seconds; a server that says more is not heeded


class Kind(IntEnum):
    READY = 1
    SMBIOS = 2
    LABELS = 3
    GET = 4
    VERSION = 5
    SYSTEM_DATA = 6  # deprecated: a dump of Go structures, never sent by us
    CONFIG = 7
    ERROR = 8
    ANNOTATIONS = 9
    UPDATE = 10
    SYSTEM_DATA_V2 = 11
    NETWORK_CONFIG = 12  # never sent by anyone: knowing it means that the configuration has network keys


LATEST = max(Kind)
# A server before this one knows no version numbers at all, and one that knows them speaks at least this.
FIRST_WITH_VERSIONS = Kind.VERSION


def message(kind: Kind, payload: bytes = b"") -> bytes:
    return bytes([kind]) + payload


def render_json(value: Mapping[str, Any]) -> bytes:
    """As Go's encoder ends it; keys sorted, so that the same machine says the same."""
    import json
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class Reason:
    """Why a server goes no further: its words, fit for a console, "" if it has none.

    `pending` and `retry_after` (seconds) are homeport-server's: "not yet" is no fault, and has its time.
    """

    words: str = ""
    pending: bool = False
    retry_after: float | None = None


def parse_error(payload: bytes) -> Reason:
    """What an ERROR message says. Never raises."""
    if len(payload) > LARGEST_ERROR:
        return Reason()
    tree = read_yaml(payload.decode("utf-8", "replace")).value
    if not isinstance(tree, dict):
        return Reason()
    text = tree.get("message")
    return Reason(
        words=printable(" ".join(text.split()), LONGEST_TEXT) if isinstance(text, str) else "",
        pending=tree.get("pending") is True,
        retry_after=_seconds(tree.get("retry-after")))


def _seconds(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_PAUSE:
        return float(value)
    return None


def name_of(message: bytes) -> str:
    """What a message claims to be, for people."""
    if not message:
        return "an empty message"
    try:
        return f"'{Kind(message[0]).name.lower()}'"
    except ValueError:
        return f"a message of the unknown kind {message[0]}"
