"""What an unquoted YAML word means to nmstate: serde_yaml 0.9's rules, not PyYAML's.

A document must mean for us what it means for `nmstatectl`, or our checks are about another
document. PyYAML follows YAML 1.1, where `yes` is a boolean, `012` is ten, `12:34:56` a number in
base sixty and `2024-01-01` a date; serde_yaml (src/de.rs: parse_bool, parse_null, visit_int,
parse_f64, digits_but_not_number) reads all of these as text.  Knows nothing of documents, keys or
quotes.
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_SPECIAL_FLOATS = {
    ".inf": float("inf"), ".Inf": float("inf"), ".INF": float("inf"),
    "+.inf": float("inf"), "+.Inf": float("inf"), "+.INF": float("inf"),
    "-.inf": float("-inf"), "-.Inf": float("-inf"), "-.INF": float("-inf"),
    ".nan": float("nan"), ".NaN": float("nan"), ".NAN": float("nan"),
}  # fmt: skip
# Only words that begin like this can be anything but text; the test keeps the common case cheap.
_NOT_TEXT_FIRST = frozenset("0123456789+-.nNtTfF~")

_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*)\Z")
_BASED = re.compile(r"[+-]?0(?:x[0-9A-Fa-f]+|o[0-7]+|b[01]+)\Z")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_ZERO_PADDED = re.compile(r"[+-]?0[0-9]+\Z")

# serde_yaml tries u64, i64, u128, i128; what fits none of them is a float if it is finite.
_LARGEST, _SMALLEST = 2**128 - 1, -(2**127)
# No number of interest is longer; int() of longer text costs quadratic time (CVE-2020-10735).
_LONGEST_NUMBER = 400


def resolve(word: str) -> Scalar:
    """The value of an unquoted `word`, as serde_yaml 0.9 gives it to nmstate."""
    if not word or word in _NULLS:
        return None
    if word[0] not in _NOT_TEXT_FIRST:
        return word
    if word in _BOOLEANS:
        return _BOOLEANS[word]
    return _number(word)


def _number(word: str) -> Scalar:
    if len(word) > _LONGEST_NUMBER:
        return word
    if _DECIMAL.match(word) or _BASED.match(word):
        value = _integer(word)
        if _SMALLEST <= value <= _LARGEST:
            return value
    if word in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[word]
    # "007" is text by YAML 1.2, though Rust would read it as a number.
    if _ZERO_PADDED.match(word) or not _FLOAT.match(word):
        return word
    value_f = float(word)
    return word if value_f in (float("inf"), float("-inf")) else value_f


def _integer(word: str) -> int:
    digits = word.lstrip("+-")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2], 10)
    value = int(digits, base)
    return -value if word.startswith("-") else value


def plain_text(value: Scalar) -> str:
    """The usual spelling of a value, for where its own is not known (it came as JSON)."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
