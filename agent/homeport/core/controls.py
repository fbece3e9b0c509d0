"""Control characters in text: what none of a document's strings may hold.

Escapes bring them past the parser (`"\\e"`), and past it they reach keyfiles, consoles and D-Bus.
Tab and line ends are not among them: block text has line ends, and where one would do harm (names,
descriptions) is for `checks` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from homeport.core.complaint import Complaint, Path
from homeport.core.showing import safe_path, show

# C0 without tab and line ends, DEL, C1, and lone surrogates, which no UTF-8 can hold.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def walk_controls(value: Any, path: Path = ()) -> Iterator[Complaint]:
    """Complaints about control characters in a tree that did not come through `read_yaml`."""
    if isinstance(value, str):
        if CONTROL.search(value):
            yield Complaint(safe_path(path), f"a control character in {show(value)}",
                            "text without it")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from walk_controls(part, (*path, key))
            if CONTROL.search(key):
                yield Complaint(safe_path(path), f"a control character in the key {show(key)}",
                                "a key without it")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from walk_controls(part, (*path, index))
