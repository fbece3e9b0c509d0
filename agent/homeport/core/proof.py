"""`proof:` of an assignment: what must be reached before its configuration is kept.

Only what the document asks for; how a target is reached is `host/proof.py`'s business.  Without a
`proof:` there are no targets here, and the default of design.md, section 5, holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.showing import GUESSES, listing, meant, nearest, safe_path, show

# Seconds for one target that has no limit of its own: as long as a whole proof may take by default.
DEFAULT_TIMEOUT = 30.0
MAX_TIMEOUT = 600.0
MAX_TARGETS = 32

_WORDS = ("gateway", "source", "none")
_VALUED = ("tcp", "http", "dns")
_KINDS = (*_WORDS, *_VALUED)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?\Z")
_TCP = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:]+)):(?P<port>[0-9]{1,5})\Z")


@dataclass(frozen=True)
class Target:
    """One thing to reach: `gateway`, `source` or `none` without a value; `tcp` "host:port",
    `http` a URL, `dns` a name to resolve.  `timeout` in seconds."""

    kind: str
    value: str = ""
    timeout: float = DEFAULT_TIMEOUT


def parse_targets(tree: Any, path: Path = ("proof",),
                  waiting: Collection[str] = ()) -> tuple[tuple[Target, ...], list[Complaint]]:
    """The targets of a `proof:` value, in its order; none of them where nothing is declared.

    Values at the paths in `waiting` have a placeholder that is still open: they cannot be judged yet.
    """
    if tree is None:
        return (), []
    if not isinstance(tree, list):
        tree = [tree]
    targets: list[Target] = []
    complaints = Complaints()
    if len(tree) > MAX_TARGETS:
        complaints.append(Complaint(safe_path(path), f"{len(tree)} targets",
                                    f"at most {MAX_TARGETS}"))
    for index, item in enumerate(tree[:MAX_TARGETS]):
        target = _parse_target(item, (*path, index), waiting, complaints)
        if target is not None:
            targets.append(target)
    if len(targets) > 1 and any(target.kind == "none" for target in targets):
        complaints.append(Complaint(safe_path(path), "'none' beside other targets",
                                    "'none' alone, or the targets without it"))
    return tuple(targets), complaints


def _parse_target(item: Any, where: Path, waiting: Collection[str],
                  complaints: list[Complaint]) -> Target | None:
    if isinstance(item, str) and item in _WORDS:
        return Target(item)
    if not isinstance(item, dict):
        near = nearest(item, _KINDS) if isinstance(item, str) else ""
        complaints.append(Complaint(safe_path(where), show(item),
                                    f"did you mean {_written(near)}?" if near else
                                    f"one of {listing(map(_written, _KINDS))}"))
        return None
    kinds = [key for key in item if key in _KINDS]
    before = len(complaints)
    for key in item:
        if key not in _KINDS and key != "timeout":
            complaints.append(Complaint(safe_path((*where, key)), f"unknown key {show(key)}",
                                        meant(key, (*_KINDS, "timeout"),
                                              len(complaints) < GUESSES)))
    if len(kinds) != 1:
        if before == len(complaints):
            complaints.append(Complaint(safe_path(where), show(item),
                                        f"exactly one of {listing(_KINDS)}"))
        return None
    timeout = _parse_timeout(item.get("timeout"), (*where, "timeout"), complaints)
    value_at = (*where, kinds[0])
    if safe_path(value_at) in waiting:
        return Target(kinds[0], str(item[kinds[0]]), timeout)
    value = _parse_value(kinds[0], item[kinds[0]], value_at, complaints)
    return None if value is None else Target(kinds[0], value, timeout)


def _written(kind: str) -> str:
    """A kind as it stands in a document."""
    return {"tcp": "{tcp: host:port}", "http": "{http: URL}", "dns": "{dns: name}"}.get(kind, kind)


def _parse_timeout(value: Any, where: Path, complaints: list[Complaint]) -> float:
    if value is None:
        return DEFAULT_TIMEOUT
    if type(value) in (int, float) and 0 < value <= MAX_TIMEOUT:
        return float(value)
    complaints.append(Complaint(safe_path(where), show(value),
                                f"seconds, more than 0 and at most {MAX_TIMEOUT:g}"))
    return DEFAULT_TIMEOUT


def _parse_value(kind: str, value: Any, where: Path, complaints: list[Complaint]) -> str | None:
    if kind in _WORDS:
        if value is None or value is True:
            return ""
        complaints.append(Complaint(safe_path(where), show(value), f"'{kind}' has no value"))
        return None
    sound, wanted = {
        "tcp": (_is_tcp, "host:port, such as 192.0.2.1:443 or [2001:db8::1]:443"),
        "http": (_is_url, "an http or https URL without user and password, in ASCII (%C3%BC for ü)"),
        "dns": (_is_host, "a name to resolve, such as ntp.example.com"),
    }[kind]
    if isinstance(value, str) and sound(value):
        return value
    complaints.append(Complaint(safe_path(where), show(value), wanted))
    return None


def _is_host(text: str) -> bool:
    return _HOST.match(text) is not None and ".." not in text


def _is_tcp(text: str) -> bool:
    found = _TCP.match(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        return False
    return _is_host(found["host"]) if found["host"] else _is_ipv6(found["v6"])


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_url(text: str) -> bool:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    return (parts.scheme in ("http", "https") and port != 0 and not parts.username
            and not parts.password and text.isascii() and text.isprintable() and " " not in text
            and (_is_host(host) or _is_ipv6(host)))
