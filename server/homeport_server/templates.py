"""`${System Information/UUID}`: names, labels and annotations from what a machine says of itself.

As the operator's pkg/templater and pkg/server/labeltmpl.go do it, so that a machine has the same name with both.
Pure but for the randomness that a template may ask for, which is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

# Where a template of a hundred bytes could otherwise make megabytes of what a machine has sent.
LONGEST = 4_096
_LONGEST_NAME = 58
_NO_HOST = re.compile(r"[^0-9a-zA-Z.]")
_NO_LABEL = re.compile(r"[^0-9a-zA-Z._]")
_DASHES = re.compile(r"--+")
_ENDS = re.compile(r"^[^0-9a-zA-Z]+|[^0-9a-zA-Z]+$")
_RANDOM = ("UUID", "Hex", "Int")

Randomness = Callable[[int], int]  # n -> a number from 0 to n - 1


class NoValue(ValueError):
    """A template asks for what this machine has not said."""


class BadTemplate(ValueError):
    """A template that no machine can fill."""


def fill(template: str, data: Mapping[str, Any], chance: Randomness) -> str:
    """`template` with every `${A/B/C}` replaced. One that is not closed stays. Raises NoValue, BadTemplate."""
    result, rest = "", template
    while True:
        before, opened, behind = rest.partition("${")
        name, closed, after = behind.partition("}")
        if not opened or not closed:
            result += rest
            break
        result += before + _value(name.split("/"), data, chance)
        rest = after
        if len(result) > LONGEST:
            raise BadTemplate(f"it makes more than {LONGEST} characters")
    return result[:LONGEST]


def is_random(template: str) -> bool:
    """Whether a template would give another value each time."""
    return "${Random" in template


def host_name(text: str) -> str:
    """A machine's name: lower case, fit for a host name; "" if nothing remains."""
    return _sanitise(text, _NO_HOST).lower()


def label(text: str) -> str:
    """The value of a label."""
    return _sanitise(text, _NO_LABEL)


def _sanitise(text: str, unwanted: re.Pattern[str]) -> str:
    return _ENDS.sub("", _DASHES.sub("-", unwanted.sub("-", text)))[:_LONGEST_NAME]


def _value(path: list[str], data: Mapping[str, Any], chance: Randomness) -> str:
    if len(path) >= 2 and path[0] == "Random" and path[1] in _RANDOM:
        return _random(path, chance)
    value: Any = data
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    if not isinstance(value, str):
        raise NoValue(f"nothing is known of {'/'.join(path)}")
    return value


def _random(path: list[str], chance: Randomness) -> str:
    digits = f"{chance(1 << 128):032x}"
    number = path[2] if len(path) == 3 and path[2].isascii() and path[2].isdigit() else ""
    if path[1] == "UUID" and len(path) == 2:
        return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "89ab"[int(digits[16], 16) & 3]
                         + digits[17:20], digits[20:]))
    if path[1] == "Hex" and number and 1 <= int(number) <= 32:
        return digits[:int(number)]
    if path[1] == "Int" and number and len(number) < 19 and int(number) >= 1:
        return str(chance(int(number)))
    raise BadTemplate(f"{'/'.join(path)} is neither Random/UUID, Random/Hex/1..32 nor Random/Int/MAX")
