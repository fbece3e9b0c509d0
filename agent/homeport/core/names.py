"""Names of interfaces as the kernel allows them.

Knows the limit and one way to keep to it: the same long name becomes the same short one on every boot and
every machine, and stays recognisable. Refuses to know which names are taken.
"""

from __future__ import annotations

from hashlib import sha256

MAX_NAME = 15  # bytes: IFNAMSIZ (include/uapi/linux/if.h) without its terminator
DIGEST = 4  # hex digits
LONGEST_TAIL = 5  # ".4094", a VLAN's number


def fits_kernel(name: str) -> bool:
    """Whether `name` is short enough for the kernel."""
    return len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME


def shorten(name: str) -> str:
    """`name` itself if it fits; otherwise its beginning, four digits of its SHA-256, and its VLAN number.

    "enp94s0f0np0.2507" is "enp94-0bca.2507".
    """
    if fits_kernel(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]
    stem, dot, number = name.rpartition(".")
    is_vlan = dot and number.isascii() and number.isdigit() and len(number) < LONGEST_TAIL
    tail = f".{number}" if is_vlan else ""
    head = stem if is_vlan else name
    safe = "".join(char for char in head if char.isascii() and (char.isalnum() or char in "-_"))
    # A dash in front would be an option to every tool on the machine.
    return f"{safe.lstrip('-')[:MAX_NAME - len(tail) - DIGEST - 1] or 'net'}-{digest}{tail}"
