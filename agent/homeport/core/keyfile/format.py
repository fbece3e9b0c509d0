"""The keyfile format: text to ordered sections and back, with GLib's escapes.

Knows the format of `.nmconnection` files as GLib's GKeyFile reads it (glib/gkeyfile.c) and as
NetworkManager writes it (nm-settings-keyfile(5)).  Stricter than both where they guess: GLib merges
a second `[connection]` section into the first and lets the last of two equal keys win, which is how
a newline in a description becomes another profile.  Refuses to know what any key means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from homeport.core.complaint import Complaint
from homeport.core.keyfile.escapes import (
    CONTROL,
    KeyfileError,
    decode,
    decode_bytes,
    decode_list,
    decode_mac,
    encode,
    shown,
)

# A document is at most 512 KiB, and a profile with thousands of routes is bulky but works.
MAX_BYTES = 1024 * 1024
# Nobody reads more, and a hostile megabyte must not become a hundred megabytes of complaints.
MAX_COMPLAINTS = 100

Pairs = tuple[tuple[str, str], ...]

# Spaces within a key are GLib's; `key[xx]` is its translated form, which no profile has.
_KEY = re.compile("[^=\\[\\]\t# ]([^=\\[\\]\t]*[^=\\[\\]\t ])?")
_SECTION = re.compile("[^\\[\\]\t]+")
_WORDS = re.compile("([^0-9]*)([0-9]{0,18})")  # Python refuses to read numbers of thousands of digits
_FIRST = ("connection", "", "ipv4", "ipv6", "user")
_FIRST_KEYS = ("id", "uuid", "type", "interface-name", "")


@dataclass(frozen=True)
class Keyfile:
    """Ordered sections of ordered `key=raw value`; a value that cannot be written cannot be made.

    Raw values are as they stand in the file, escapes included.  Two keyfiles are equal if they
    render to the same text.  `set`, `remove` and their like return a new one.
    """

    sections: tuple[tuple[str, Pairs], ...] = ()

    def __post_init__(self) -> None:
        complaints = list(_faults(self.sections))
        if complaints:
            raise KeyfileError(complaints[:MAX_COMPLAINTS])

    @classmethod
    def parse(cls, text: str) -> Keyfile:
        """Read a keyfile; raises KeyfileError with every fault of the text, each with its line.

        Comments and blank lines go.  Line ends may be CR LF, as GLib allows.
        """
        sections, complaints = scan(text)
        if complaints:
            raise KeyfileError(complaints)
        return cls(sections)

    def render(self) -> str:
        """The text of the file; `parse` gives back an equal keyfile."""
        return "\n".join(
            f"[{name}]\n" + "".join(f"{key}={raw}\n" for key, raw in pairs)
            for name, pairs in self.sections)

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.sections)

    def has(self, section: str) -> bool:
        return section in self.names()

    def items(self, section: str) -> Pairs:
        """Keys and raw values of a section in their order; empty if there is none."""
        return next((pairs for name, pairs in self.sections if name == section), ())

    def raw(self, section: str, key: str) -> str | None:
        return next((raw for name, raw in self.items(section) if name == key), None)

    def get(self, section: str, key: str) -> str | None:
        """The value as text, None if there is none; raises KeyfileError on an escape GLib does not know."""
        raw = self.raw(section, key)
        return None if raw is None else decode(raw, f"[{section}] {key}")

    def get_list(self, section: str, key: str) -> tuple[str, ...]:
        """A `;` list as NetworkManager writes it; empty if the key is absent."""
        raw = self.raw(section, key)
        return () if raw is None else tuple(decode_list(raw, f"[{section}] {key}"))

    def get_int(self, section: str, key: str) -> int | None:
        """A decimal number, None if the key is absent or is no number."""
        text = (self.raw(section, key) or "").strip()
        digits = text[1:] if text[:1] in ("-", "+") else text
        return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None

    def get_bytes(self, section: str, key: str) -> bytes | None:
        """A byte list (`97;59;98;`), or the text's own bytes: an SSID comes in both shapes."""
        raw = self.raw(section, key)
        return None if raw is None else decode_bytes(raw, f"[{section}] {key}")

    def get_mac(self, section: str, key: str) -> str | None:
        """A MAC in lower case with colons; None if the key is absent or holds something else."""
        return decode_mac(self.raw(section, key) or "")

    def set(self, section: str, key: str, text: str) -> Keyfile:
        """With this value, escaped; a new key goes to the end of its section, a new section to the end."""
        return self.set_raw(section, key, encode(text))

    def set_list(self, section: str, key: str, items: Iterable[str]) -> Keyfile:
        return self.set_raw(section, key, "".join(encode(item, separator=";") + ";" for item in items))

    def set_raw(self, section: str, key: str, raw: str) -> Keyfile:
        Keyfile(((section, ((key, raw),)),))
        pairs = self.items(section)
        if any(name == key for name, _ in pairs):
            pairs = tuple((name, raw if name == key else old) for name, old in pairs)
        else:
            pairs = (*pairs, (key, raw))
        return self._replaced(section, pairs)

    def with_section(self, section: str, pairs: Pairs) -> Keyfile:
        """With these keys in the section, in its old place if it had one."""
        Keyfile(((section, pairs),))
        return self._replaced(section, pairs)

    def _replaced(self, section: str, pairs: Pairs) -> Keyfile:
        if not self.has(section):
            return _sound((*self.sections, (section, pairs)))
        return _sound(tuple((name, pairs if name == section else old) for name, old in self.sections))

    def remove(self, section: str, *keys: str) -> Keyfile:
        """Without these keys; without the whole section if none is named."""
        if keys:
            kept = tuple(pair for pair in self.items(section) if pair[0] not in keys)
            return self._replaced(section, kept) if self.has(section) else self
        return _sound(tuple(entry for entry in self.sections if entry[0] != section))


    def in_order(self) -> Keyfile:
        """In the order that NetworkManager writes, but [user] last: equal content is equal text."""
        return _sound(tuple(
            (name, tuple(sorted(pairs, key=lambda pair: _rank(pair[0], _FIRST_KEYS))))
            for name, pairs in sorted(self.sections, key=lambda entry: _rank(entry[0], _FIRST))))


def parse(text: str) -> Keyfile:
    """`Keyfile.parse`, for those who read better without the class."""
    return Keyfile.parse(text)


def _sound(sections: tuple[tuple[str, Pairs], ...]) -> Keyfile:
    """A keyfile of parts that were judged before: a change costs the change, not the whole file."""
    keyfile = object.__new__(Keyfile)
    object.__setattr__(keyfile, "sections", sections)
    return keyfile


def scan(text: str) -> tuple[tuple[tuple[str, Pairs], ...], list[Complaint]]:
    """What is sound of the text, and what is not: for those who want all complaints in one go."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return (), [Complaint("", f"keyfile of more than {MAX_BYTES} bytes", "a keyfile is smaller")]
    reader = _Reader()
    # Not splitlines(): that also breaks at U+0085 and U+2028, where NetworkManager does not.
    for number, line in enumerate(text.split("\n"), 1):
        reader.read_line(number, line.removesuffix("\r"))
    return reader.sections(), reader.complaints


class _Reader:
    """The state of one reading: where we are, what we have, on which line it was."""

    def __init__(self) -> None:
        self.complaints: list[Complaint] = []
        self._keys: dict[str, dict[str, tuple[str, int]]] = {}
        self._lines: dict[str, int] = {}
        self._current: dict[str, tuple[str, int]] | None = None
        self._lost = False

    def sections(self) -> tuple[tuple[str, Pairs], ...]:
        return tuple((name, tuple((key, raw) for key, (raw, _) in keys.items()))
                     for name, keys in self._keys.items())

    def read_line(self, number: int, line: str) -> None:
        if bad := CONTROL.search(line):
            self._complain(number, f"control character U+{ord(bad[0]):04X}", "printable text only")
            return
        line = line.lstrip(" \t")
        if not line or line.startswith("#"):
            return
        if line.startswith("["):
            self._open(number, line)
        elif "=" in line:
            self._add(number, line)
        else:
            self._complain(number, f"“{shown(line)}”", "a [section], key=value or a # comment")

    def _open(self, number: int, line: str) -> None:
        name = line.rstrip(" \t")[1:-1]
        self._current = None
        self._lost = True
        if not line.rstrip(" \t").endswith("]") or not _is_section(name):
            self._complain(number, f"“{shown(line)}”", "a section's name in square brackets")
        elif name in self._keys:
            self._complain(number, f"second section [{shown(name)}]",
                           f"each section once; the first is on line {self._lines[name]}")
        else:
            self._lines[name] = number
            self._current = self._keys[name] = {}

    def _add(self, number: int, line: str) -> None:
        key, _, raw = line.partition("=")
        key, raw = key.rstrip(" \t"), raw.lstrip(" \t")
        if self._current is None:
            # Keys below a refused section are not a fault of their own.
            if not self._lost:
                self._complain(number, f"key “{shown(key)}” before any section",
                               "a [section] line first")
        elif not _is_key(key):
            self._complain(number, f"key “{shown(key)}”", "a key without brackets")
        elif key in self._current:
            self._complain(number, f"second “{shown(key)}” in its section",
                           f"each key once; the first is on line {self._current[key][1]}")
        else:
            self._current[key] = (raw, number)

    def _complain(self, number: int, found: str, wanted: str) -> None:
        if len(self.complaints) < MAX_COMPLAINTS:
            self.complaints.append(Complaint(f"line {number}", found, wanted))


def _rank(name: str, order: Sequence[str]) -> tuple[int, list[tuple[str, int]]]:
    """By the place in `order` ("" is for all others), then by the alphabet, numbers as numbers."""
    place = order.index(name) if name in order else order.index("")
    return place, [(word, int(digits or -1)) for word, digits in _WORDS.findall(name)]


def _faults(sections: Sequence[tuple[str, Pairs]]) -> Iterator[Complaint]:
    """What would not come back from `parse` as it is."""
    seen = set()
    for section, pairs in sections:
        if section in seen or not _is_section(section):
            yield Complaint(f"[{shown(section)}]", "section", "a printable name without brackets, once")
        seen.add(section)
        keys = set()
        for key, raw in pairs:
            path = f"[{section}] {shown(key)}"
            if key in keys or not _is_key(key):
                yield Complaint(path, "key", "a printable name without =, # and brackets, once")
            if raw.startswith((" ", "\t")) or CONTROL.search(raw):
                yield Complaint(path, f"raw value “{shown(raw)}”", "one line of escaped text")
            keys.add(key)


def _is_section(name: str) -> bool:
    return bool(_SECTION.fullmatch(name)) and not CONTROL.search(name)


def _is_key(key: str) -> bool:
    return bool(_KEY.fullmatch(key)) and not CONTROL.search(key)
