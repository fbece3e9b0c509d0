"""The fields of a manifest, taken one by one: what is missing, of the wrong type or unknown is complained about.

A taker never raises; what cannot be used is complained about and replaced by its default, so that one reading
finds every fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from homeport.core.complaint import Complaint, Path
from homeport.core.showing import meant, nearest, safe_path, show

Complain = Callable[[Complaint], None]


class Fields:
    """A mapping of a manifest at `path`; faults go to `complain`."""

    def __init__(self, tree: Any, path: Path, complain: Complain, wanted: str = "a mapping") -> None:
        self.path = path
        self.complain = complain
        if tree is not None and not isinstance(tree, dict):
            self.fault((), tree, wanted)
        self.tree: dict[str, Any] = tree if isinstance(tree, dict) else {}

    def fault(self, where: Path, found: object, wanted: str) -> None:
        """Complain about what stands at `where` below here."""
        self.complain(Complaint(safe_path((*self.path, *where)), show(found), wanted))

    def say(self, where: Path, found: str, wanted: str) -> None:
        """Complain in words of one's own."""
        self.complain(Complaint(safe_path((*self.path, *where)), found, wanted))

    def __contains__(self, key: str) -> bool:
        return self.tree.get(key) is not None

    def text(self, key: str, wanted: str = "text", *, required: bool = False) -> str:
        value = self.tree.get(key)
        if isinstance(value, str) and (value or not required):
            return value
        if value is not None or required:
            self.fault((key,), value, wanted)
        return ""

    def number(self, key: str, low: int, high: int, *, required: bool = False) -> int | None:
        value = self.tree.get(key)
        if type(value) is int and low <= value <= high:
            return value
        if value is not None or required:
            self.fault((key,), value, f"a number from {low} to {high}")
        return None

    def flag(self, key: str) -> bool:
        value = self.tree.get(key, False)
        if not isinstance(value, bool):
            self.fault((key,), value, "true or false")
        return value is True

    def below(self, key: str, wanted: str = "a mapping") -> Fields:
        return Fields(self.tree.get(key), (*self.path, key), self.complain, wanted)

    def items(self, key: str, wanted: str = "a list") -> list[Any]:
        value = self.tree.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.fault((key,), value, wanted)
        return []

    def texts(self, key: str) -> dict[str, str]:
        """A mapping of text to text, as labels are."""
        part = self.below(key, "a mapping of names to text")
        for name, value in part.tree.items():
            if not isinstance(value, str):
                part.fault((name,), value, "text, in quotes where YAML would read something else")
        return {name: value for name, value in part.tree.items() if isinstance(value, str)}

    def only(self, known: Sequence[str]) -> None:
        """Complain about every key that is none of `known`."""
        for key in self.tree:
            if key not in known:
                self.say((key,), f"unknown key {show(key)}", meant(key, known))

    def no_near_misses(self, known: Iterable[str]) -> None:
        """Complain about unknown keys that look like one of `known`; others may be of a newer API."""
        names = list(known)
        for key in self.tree:
            near = "" if key in names else nearest(key, names)
            if near:
                self.say((key,), f"unknown key {show(key)}", f"did you mean '{near}'?")
