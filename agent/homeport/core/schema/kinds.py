"""The kinds of value that nmstate's schema is made of: numbers, texts, lists, sections.

A kind knows what a value must look like and how to say so; it knows nothing of networks. Leniency
is nmstate's own: where its reader takes `"1500"` for 1500 or `"yes"` for true (deserializer.rs),
so do these kinds; where it takes null for "not given" (an `Option` without a reader of its own),
`null` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import IPv6Address, ip_address

from homeport.core.complaint import Complaint, Complaints, Path, render_path
from homeport.core.schema.near import Guesser
from homeport.core.showing import printable, show

_SHOWN = 60


class Enough(Exception):
    """More faults than anyone reads: the rest of the document is not looked at."""


@dataclass
class Walk:
    """One pass over a document: the complaints so far, and what is shared between kinds."""

    complaints: Complaints = field(default_factory=Complaints)
    guesser: Guesser = field(default_factory=Guesser)
    # In a policy a value may still be "{{ capture.… }}", which is then right anywhere.
    templated: bool = False

    def complain(self, path: Path, found: str, wanted: str) -> None:
        self.complaints.append(Complaint(render_path(path), found, wanted))
        if self.complaints.full:
            raise Enough


@dataclass(frozen=True)
class Kind:
    """What a value may be; `wanted` completes the sentence "it must be …"."""

    wanted: str = "anything"
    null: bool = True
    required: bool = False

    def accepts(self, value: object) -> bool:
        return True

    def check(self, value: object, path: Path, walk: Walk) -> None:
        """Complain of everything wrong in `value`, which stands at `path`. Never raises."""
        if value is None and self.null:
            return
        if walk.templated and isinstance(value, str) and "{{" in value:
            return
        self.look_at(value, path, walk)

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if not self.accepts(value):
            walk.complain(path, show(value), self.wanted)


@dataclass(frozen=True)
class Leaf(Kind):
    """A single value, judged by a function."""

    test: Callable[[object], bool] = lambda value: True

    def accepts(self, value: object) -> bool:
        return self.test(value)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list whose items are all of one kind."""

    item: Kind = Kind()
    wanted: str = "a list"

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if not isinstance(value, list):
            walk.complain(path, show(value), self.wanted)
            return
        for index, item in enumerate(value):
            self.item.check(item, (*path, index), walk)


@dataclass(frozen=True)
class MapOf(Kind):
    """A mapping whose keys are free and whose values are all of one kind."""

    item: Kind = Kind()
    wanted: str = "a mapping"

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if not isinstance(value, dict):
            walk.complain(path, show(value), self.wanted)
            return
        for key, item in value.items():
            self.item.check(item, (*path, key_text(key)), walk)


@dataclass(frozen=True)
class Section(Kind):
    """A mapping with known keys.

    `aliases` are second names of a key; giving both is a fault ("duplicate field"). `open`
    sections take any further key, as nmstate's structs without `deny_unknown_fields` do.
    `forbidden` keys are known and refused, with the reason.
    """

    keys: Mapping[str, Kind] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    open: bool = False
    wanted: str = "a mapping"

    @cached_property
    def _required(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.keys.items() if kind.required)

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if not isinstance(value, dict):
            walk.complain(path, show(value), f"a mapping with keys such as {some(self.keys)}")
            return
        seen: dict[str, str] = {}
        meant = {self._look_at_key(key_text(key), item, path, seen, walk)
                 for key, item in value.items()}
        for name in self._required:
            # A misspelt key whose meaning we guessed is one fault, not also a missing key.
            if name not in meant:
                walk.complain((*path, name), "missing", self.keys[name].wanted)

    def _look_at_key(
            self, key: str, item: object, path: Path, seen: dict[str, str], walk: Walk) -> str:
        """Judge one key and its value; returns the key that it is, or was meant to be."""
        name = self.aliases.get(key, key)
        at = (*path, show_key(key))
        kind = self.keys.get(name)
        if kind is not None:
            if name in seen:
                walk.complain(at, f"the same as {seen[name]}, which is also here", "one of the two")
            seen[name] = key
            kind.check(item, at, walk)
        elif key in self.forbidden:
            walk.complain(at, "not allowed here", self.forbidden[key])
        elif not self.open:
            guess = walk.guesser.nearest(key, (*self.keys, *self.aliases))
            known = guess in self.keys or guess in self.aliases
            wanted = f"did you mean {guess}?" if known else f"use {guess}" if guess \
                else f"keys known here: {some(self.keys)}"
            walk.complain(at, "unknown key", wanted)
            return guess
        return name


def required(kind: Kind) -> Kind:
    """The same kind, and it must be there (and not null)."""
    return replace(kind, required=True, null=False)


def not_null(kind: Kind) -> Kind:
    """The same kind where null is not the same as leaving it out."""
    return replace(kind, null=False)


def one_of(*values: str, numbers: Mapping[str, str] | None = None, null: bool = True) -> Kind:
    """One of some words. `numbers`: second spellings, which may be written as numbers too."""
    wanted = f"one of {', '.join(values)}"
    if numbers is None:
        words = frozenset(values)
        return Leaf(
            wanted, null=null, test=lambda value: isinstance(value, str) and value in words)
    spellings = frozenset(values) | frozenset(numbers)
    return Leaf(
        wanted, null=False,
        test=lambda value: (isinstance(value, str) or is_number(value)) and str(value) in spellings)


def number(low: int, high: int, *, quoted: bool = True) -> Kind:
    """A whole number from `low` to `high`; `quoted`: nmstate takes text too, but not null."""
    wanted = f"a whole number from {low} to {high}"
    if not quoted:
        return Leaf(wanted, test=lambda value: is_number(value) and _within(value, low, high))
    return Leaf(wanted, null=False, test=lambda value: _within(_number(value, low < 0), low, high))


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def read_number(value: object) -> int | None:
    """A number as nmstate reads it, quoted or not, decimal or (quoted) 0x; None if it is none."""
    found = _number(value, False)
    return _number(value, True) if found is None else found


def read_bool(value: object) -> bool | None:
    """A truth value as nmstate reads it: true, 1, "yes", "on", …; None if it is none."""
    if isinstance(value, bool):
        return value
    text = value.lower() if isinstance(value, str) else str(value) if is_number(value) else ""
    return True if text in _TRUE else False if text in _FALSE else None


_TRUE = frozenset({"1", "true", "yes", "on", "y"})
_FALSE = frozenset({"0", "false", "no", "off", "n"})


def _number(value: object, signed: bool) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or len(value) > 24:
        return None
    digits, base = (value[2:], 16) if not signed and value.startswith("0x") else (value, 10)
    body = digits[1:] if digits[:1] in ("+", "-" if signed else "+") else digits
    allowed = "0123456789abcdefABCDEF" if base == 16 else "0123456789"
    return int(digits, base) if body and all(c in allowed for c in body) else None


def _within(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and low <= value <= high


def _is_ip(value: object) -> bool:
    if not isinstance(value, str) or "%" in value:
        return False
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def _is_ip6(value: object) -> bool:
    return _is_ip(value) and isinstance(ip_address(str(value)), IPv6Address)


ANYTHING = Kind()
TEXT = Leaf("text", test=lambda value: isinstance(value, str))
# In sections that nmstate reads straight from YAML, an unquoted number or truth value is text too.
LOOSE_TEXT = Leaf("text", test=lambda value: isinstance(value, (str, int, float)))
BOOL = Leaf("true or false", test=lambda value: isinstance(value, bool))
LOOSE_BOOL = Leaf("true or false", null=False, test=lambda value: read_bool(value) is not None)
IP = Leaf("an IP address", test=_is_ip)
IP6 = Leaf("an IPv6 address", test=_is_ip6)
U8 = number(0, 2**8 - 1)
U16 = number(0, 2**16 - 1)
U32 = number(0, 2**32 - 1)
U64 = number(0, 2**64 - 1)
I32 = number(-2**31, 2**31 - 1)
I64 = number(-2**63, 2**63 - 1)
PLAIN_U8 = number(0, 2**8 - 1, quoted=False)
PLAIN_U16 = number(0, 2**16 - 1, quoted=False)
PLAIN_U32 = number(0, 2**32 - 1, quoted=False)
PLAIN_U64 = number(0, 2**64 - 1, quoted=False)


def key_text(key: object) -> str:
    """A mapping's key as nmstate sees it: YAML's scalars are all text there."""
    if isinstance(key, str):
        return key
    return "null" if key is None else str(key).lower() if isinstance(key, bool) else str(key)


def show_key(key: str) -> str:
    return key if len(key) <= _SHOWN and key.isprintable() else printable(key, _SHOWN)


def some(keys: Mapping[str, Kind], most: int = 12) -> str:
    names = list(keys)
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
