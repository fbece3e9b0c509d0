"""MAC addresses: every spelling is one MAC.

Knows Ethernet's six bytes and InfiniBand's twenty. Refuses to know whose address it is.
"""

from __future__ import annotations

LENGTHS = (6, 20)  # bytes: Ethernet (EUI-48), IP over InfiniBand (RFC 4391)


def normalise_mac(text: str) -> str:
    """`text` as the kernel writes it: lower case, colons.

    Understands colons, dashes, dots (Cisco's groups of four) and nothing between the digits, in either
    case. Raises ValueError for anything else.
    """
    stripped = text.strip().lower()
    for separator, width in ((":", 2), ("-", 2), (".", 4), ("", 0)):
        if separator and separator not in stripped:
            continue
        groups = stripped.split(separator) if separator else [stripped]
        digits = "".join(groups)
        if all(len(group) == width for group in groups if width) and _is_mac(digits):
            return ":".join(digits[at:at + 2] for at in range(0, len(digits), 2))
        break
    raise ValueError("a MAC address such as 52:54:00:12:34:56")


def is_locally_administered(mac: str) -> bool:
    """Whether nobody was assigned this (normalised) MAC: bit 1 of the first byte (IEEE 802, 8.4)."""
    return bool(int(mac[:2], 16) & 2)


def is_usable_mac(mac: str) -> bool:
    """Whether a normalised MAC can be one card's: not all zeros, not all ones, not a group address."""
    return mac.strip("0:") != "" and mac.strip("f:") != "" and not (len(mac) == 17 and int(mac[:2], 16) & 1)


def _is_mac(digits: str) -> bool:
    known_length = len(digits) in [2 * length for length in LENGTHS]
    return known_length and all(digit in "0123456789abcdef" for digit in digits)
