"""How one value is written: GLib's escapes, `;` lists, byte lists; and how a stranger's text is shown.

The facts are GLib's (glib/gkeyfile.c: g_key_file_parse_string_as_value and
g_key_file_parse_value_as_string) and nm-settings-keyfile(5)'s; tests compare them with nmcli.
"""

from __future__ import annotations

import re

from homeport.core.complaint import Complaint
from homeport.errors import DocumentError

# C0, DEL and C1 but the tab, and lone surrogates, which are no text.
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")

_MAC = re.compile("[0-9a-f]{2}([:-][0-9a-f]{2})+")
_UNESCAPED = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
_ESCAPED = {"\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_LEADING = {" ": "\\s", "\t": "\\t"}


class KeyfileError(DocumentError):
    """A keyfile that we neither read nor write; every complaint has its line or its key."""


def encode(text: str, separator: str = "") -> str:
    """The raw value for a text, or with a separator for one item of a list.

    Raises KeyfileError on control characters that have no escape.
    """
    raw = []
    leading = True
    for char in text:
        if leading and char in _LEADING:
            raw.append(_LEADING[char])
            continue
        leading = char == separator
        raw.append("\\" + char if char == separator else _ESCAPED.get(char, char))
    encoded = "".join(raw)
    if CONTROL.search(encoded):
        raise KeyfileError([Complaint("", f"value “{shown(text)}”", "text without control characters")])
    return encoded


def decode(raw: str, path: str) -> str:
    """The text of a raw value; `path` is where it stands, for the KeyfileError on a wrong escape."""
    return "".join(decode_list(raw, path, separator=""))


def decode_list(raw: str, path: str, separator: str = ";") -> list[str]:
    """The items between separators, the last one only if it is not empty."""
    items: list[list[str]] = [[]]
    chars = iter(raw)
    for char in chars:
        if char == "\\":
            items[-1].append(_unescape(next(chars, ""), separator, path))
        elif char == separator:
            items.append([])
        else:
            items[-1].append(char)
    pieces = ["".join(item) for item in items]
    return pieces if pieces[-1] or not separator else pieces[:-1]


def escape_fault(raw: str, path: str) -> tuple[Complaint, ...]:
    """What is wrong with the escapes of a raw value, be it a list or not; empty if nothing is."""
    try:
        decode_list(raw, path)
    except KeyfileError as error:
        return error.complaints
    return ()


def decode_bytes(raw: str, path: str) -> bytes:
    """A byte list (`97;59;98;`), or the text's own bytes: an SSID comes in both shapes."""
    octets = _octets(raw)
    # NetworkManager escapes a `;` in a text, so that it is no list, and then the backslash of that.
    plain = raw.replace("\\\\;", ";").replace("\\;", ";")
    return decode(plain, path).encode() if octets is None else octets


def decode_mac(raw: str) -> str | None:
    """A MAC in lower case with colons, from `AA:BB:…` or the old byte list; None if neither."""
    octets = _octets(raw)
    if octets is not None:
        return octets.hex(":")
    text = raw.strip().lower()
    return text.replace("-", ":") if _MAC.fullmatch(text) else None


def escape_gc(text: str) -> str:
    """The text of `nmstatectl gc` with its values escaped: it writes them as they are.

    NetworkManager would read `a\\tb` in a password as a tab, drop a value with `\\x` and lose leading
    blanks (nmstate 2.2.62, nm/nm_dbus/gen_conf/keyfile.rs).  Whatever is no `key=value` stays, for
    `check_untrusted` to complain about.
    """
    lines = []
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        sound = equals and not line.startswith(("[", "#")) and not CONTROL.search(value)
        lines.append(f"{key}={encode(value)}" if sound else line)
    return "\n".join(lines)


def shown(text: str, limit: int = 60) -> str:
    """Enough of a stranger's text to recognise it, safe for a console: no escapes, no reversed letters."""
    plain = "".join(char if char.isprintable() else "?" for char in text[:limit])
    return plain + "…" if len(text) > limit else plain


def _octets(raw: str) -> bytes | None:
    """The bytes of a list of decimal numbers, None if it is something else.

    A lone number is a list only with its `;`.
    """
    parts = [part.strip() for part in raw.split(";")]
    if len(parts) < 2:
        return None
    numbers = parts if parts[-1] else parts[:-1]
    sound = all(part.isascii() and part.isdecimal() and len(part) < 4 and int(part) < 256 for part in numbers)
    return bytes(map(int, numbers)) if sound else None


def _unescape(char: str, separator: str, path: str) -> str:
    if char and char == separator:
        return char
    if char not in _UNESCAPED:
        raise KeyfileError([Complaint(shown(path), f"escape “\\{shown(char)}”", r"one of \s \n \t \r \\")])
    return _UNESCAPED[char]
