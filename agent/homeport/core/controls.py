"""Control characters in text: what none of a document's strings may hold.

Escapes bring them past the parser (`"\\e"`), and past it they reach keyfiles, consoles and D-Bus.
Tab and line ends are not among them: block text has line ends, and where one would do harm (names,
descriptions) is for `checks` to say.
"""

from __future__ import annotations

import re
from typing import Any

from homeport.core.complaint import Complaint, Path
from homeport.core.showing import safe_path, show

# C0 without tab and line ends, DEL, C1, and lone surrogates, which no UTF-8 can hold.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def walk_controls(value: Any, path: Path = ()) -> list[Complaint]:
    """Complaints about control characters in a tree that did not come through `read_yaml`."""
    if isinstance(value, str):
        if not CONTROL.search(value):
            return []
        return [Complaint(safe_path(path), f"a control character in {show(value)}",
                          "text without it")]
    if isinstance(value, dict):
        parts: list[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    else:
        return []
    found = [c for key, part in parts for c in walk_controls(part, (*path, key))]
    keys = [part for part, _ in parts if isinstance(part, str) and CONTROL.search(part)]
    return found + [Complaint(safe_path(path), f"a control character in the key {show(key)}",
                              "a key without it") for key in keys]
