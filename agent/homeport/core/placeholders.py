"""`{name}`, `{name.prefix}` and `{name.gateway}` in a configuration, filled from `ipAddresses`.

Filled on the parsed tree, in string values and keyfile text, never in keys and never by rewriting
YAML: an address cannot become syntax.  What the braces mean:

- a known name is filled wherever it stands, as Elemental's client does;
- an unknown one is *open*, which means that the server has no address for it yet (pending), if it
  looks like a name and could hold an address: outermost braces, nothing but a name in them.  In
  text that people write (descriptions, passwords, scripts) it is just text;
- `{{ … }}` belongs to nmstate's policies, `${…}` to shells: neither is ever ours.

Only an assignment has placeholders.  A bare nmstate document means what nmstate says, braces
included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.core.addresses import Address
from homeport.core.complaint import Complaint, Path
from homeport.core.showing import safe_path, show

# Innermost braces on one line; a Kubernetes name has at most 253 characters, and ".gateway" on top.
_BRACES = re.compile(r"\{([^{}\n]{1,270})\}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_FIELDS = ("prefix", "gateway")

# Values that people write as they like, so that unknown braces in them are text (nmstate's keys,
# and NetworkManager's: nm-settings-keyfile(5)).
_FREE_TEXT = frozenset({
    "description", "password", "private-key-password", "identity", "psk", "mka-cak",
    "post-activation", "post-deactivation",
})  # fmt: skip
_FREE_KEYFILE_LINE = re.compile(
    r"\s*(?:[#;]|id\s*=|[\w.-]*(?:password|psk|secret|identity|cak)[\w.-]*\s*=)", re.IGNORECASE)


@dataclass(frozen=True)
class Open:
    """A placeholder without a value: its name as written, and where it stands."""

    name: str
    path: str


def fill(tree: Any, addresses: Mapping[str, Address],
         path: Path = ()) -> tuple[Any, tuple[Open, ...]]:
    """A copy of `tree` with the placeholders of `addresses` filled, and those that stay open.

    A value that is `{name.prefix}` and nothing else becomes a number, as nmstate wants it.
    """
    filler = _Filler(addresses, keyfiles=False)
    return filler.tree(tree, path, ""), tuple(filler.open)


def fill_keyfiles(config: Mapping[str, Any], addresses: Mapping[str, Address],
                  path: Path = ()) -> tuple[dict[str, Any], tuple[Open, ...]]:
    """The same for `nmconnections`: a mapping of names to keyfile text."""
    filler = _Filler(addresses, keyfiles=True)
    return {stem: filler.tree(text, (*path, stem), "") for stem, text in config.items()}, tuple(
        filler.open)


def unquoted(tree: Any, addresses: Mapping[str, Address], path: Path = ()) -> Iterator[Complaint]:
    """Complaints about `{name}` without quotes, which YAML reads as a mapping with one key."""
    if isinstance(tree, list):
        for index, part in enumerate(tree):
            yield from unquoted(part, addresses, (*path, index))
    if isinstance(tree, dict):
        if len(tree) == 1 and None in tree.values():
            name = next(iter(tree))
            if _lookup(name, addresses) is not None:
                yield Complaint(safe_path(path), f"{{{name}}} without quotes, which is a mapping",
                                f"'{{{name}}}' in quotes")
                return
        for key, part in tree.items():
            yield from unquoted(part, addresses, (*path, key))


class _Filler:
    """One walk over one configuration."""

    def __init__(self, addresses: Mapping[str, Address], *, keyfiles: bool) -> None:
        self.addresses = addresses
        self.keyfiles = keyfiles
        self.open: list[Open] = []

    def tree(self, value: Any, path: Path, key: str) -> Any:
        if isinstance(value, str):
            return self.text(value, path, key) if "{" in value else value
        if isinstance(value, dict):
            return {k: self.tree(part, (*path, k), k) for k, part in value.items()}
        if isinstance(value, list):
            return [self.tree(part, (*path, index), key) for index, part in enumerate(value)]
        return value

    def text(self, text: str, path: Path, key: str) -> str | int:
        if self.keyfiles:
            return "\n".join(
                str(self.line(line, path, free=_FREE_KEYFILE_LINE.match(line) is not None))
                for line in text.split("\n"))
        return self.line(text, path, free=key in _FREE_TEXT)

    def line(self, text: str, path: Path, *, free: bool) -> str | int:
        whole = _BRACES.fullmatch(text)
        if whole is not None and not self.keyfiles:
            value = _lookup(whole.group(1), self.addresses)
            if value is not None:
                return value

        def replace(match: re.Match[str]) -> str:
            name = match.group(1)
            before = text[match.start() - 1 : match.start()]
            after = text[match.end() : match.end() + 1]
            if before == "$" or (before == "{" and after == "}"):
                return match.group()
            value = _lookup(name, self.addresses)
            if value is not None:
                return str(value)
            if not free and before != "{" and after != "}" and _NAME.match(name):
                self.open.append(Open(name, safe_path(path)))
            return match.group()

        return _BRACES.sub(replace, text)


def _lookup(name: str, addresses: Mapping[str, Address]) -> str | int | None:
    """What `name` stands for; a name that is declared wins over a field of a shorter one."""
    if name in addresses:
        return addresses[name].ip
    base, _, field = name.rpartition(".")
    if field not in _FIELDS or base not in addresses:
        return None
    address = addresses[base]
    return address.prefix if field == "prefix" else address.gateway


def describe_open(open_ones: tuple[Open, ...], addresses: Mapping[str, Address]) -> tuple[str, str]:
    """Message and hint about placeholders that wait for a value."""
    names = list(dict.fromkeys(one.name for one in open_ones))
    first = open_ones[0]
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    placeholder = show("{" + first.name + "}")
    message = f"no value yet for the placeholder {placeholder} at {first.path}{others}"
    base, _, field = first.name.rpartition(".")
    if field in _FIELDS and base in addresses:
        return message, f"ipAddresses has {base}, but without its {field}"
    have = ", ".join(sorted(addresses)[:5])
    return message, f"ipAddresses has only {have}" if have else "ipAddresses has no address yet"
