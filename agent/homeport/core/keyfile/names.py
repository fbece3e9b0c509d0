"""Names that are safe as files, and UUIDs that stay the same.

Knows what a file name of ours looks like and how a profile's UUID is made; refuses to know
directories.
"""

from __future__ import annotations

from homeport.core.complaint import Complaint
from homeport.core.keyfile.escapes import KeyfileError, shown

PREFIX = "homeport-"
SUFFIX = ".nmconnection"

# RFC 4122, appendix C, has the namespaces of others; this one is ours, random, and never changes:
# another value would give every profile in the field another UUID.
_NAMESPACE = bytes.fromhex("6f0c5f9ab1d64f2e9a4be7a3d1c88f50")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def file_name(name: str, number: int = 1) -> str:
    """The file of the profile of this name: `homeport-enp1s0.nmconnection`.

    Names that are legal and that a shell does not like (`a;b`, `My NIC`) are percent-encoded, so that
    two names never share a file; `+2` and up is for a file name that a stranger holds.  Raises
    KeyfileError for a name that is no name: empty, with separators, white space or control
    characters, too long.
    """
    fault = _fault(name)
    encoded = "" if fault else "".join(
        char if char in _PLAIN else "".join(f"%{byte:02x}" for byte in char.encode()) for char in name)
    file = PREFIX + encoded + (f"+{number}" if number > 1 else "") + SUFFIX
    if fault or len(file) > 255:
        raise KeyfileError([Complaint("name", f"“{shown(name)}”{fault and ' ' + fault}",
                                      "a name that can be a file name")])
    return file


def is_our_file_name(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(SUFFIX) and "/" not in name


def stable_uuid(machine_id: str, name: str) -> str:
    """The UUID of this machine's profile `name` (RFC 4122 version 5, SHA-1).

    The same at every boot and different on every machine, which `nmstatectl gc`'s are not: those
    come from the interface's name alone (spec/nmstate-and-peers.md, 1.5).  Raises ValueError
    without a machine id: then all machines would share it.
    """
    if not machine_id:
        raise ValueError("a stable UUID needs the machine's id")
    import hashlib

    data = _NAMESPACE + f"{machine_id}\0{name}".encode()
    digest = bytearray(hashlib.sha1(data, usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_uuid(text: str) -> bool:
    """`8-4-4-4-12` hexadecimal digits, as NetworkManager normalises them."""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        set(part) <= set("0123456789abcdefABCDEF") for part in parts)


def _fault(name: str) -> str:
    if not name:
        return "is empty"
    if name.startswith("."):
        return "begins with a dot"
    if "/" in name or "\\" in name:
        return "has a separator in it"
    if not name.isprintable():
        return "has control characters in it"
    return ""
