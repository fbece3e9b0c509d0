"""A tree as YAML for people, which nmstate reads back as the same tree.

PyYAML's own writer quotes what YAML 1.1 would mistake; to serde_yaml, `1e3` and `0o17` are numbers
as well and would change from text on their way.  Here text stays unquoted only if it cannot be
anything else to either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from homeport.core.scalars import plain_text

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*\Z")
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?\Z")
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
# To YAML 1.1, 1.2, or to people who know one of them.
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def render_yaml(tree: Any) -> str:
    """`tree` (dicts with text keys, lists, scalars) as a YAML document in block style."""
    if isinstance(tree, dict | list) and tree:
        return "\n".join(_lines(tree)) + "\n"
    return _scalar(tree) + "\n"


def _lines(tree: dict[str, Any] | list[Any]) -> Iterator[str]:
    if isinstance(tree, list):
        for item in tree:
            # The first line of a container goes beside its dash, as people write it.
            first, *rest = _lines(item) if _is_block(item) else (_scalar(item),)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
        return
    for key, value in tree.items():
        if not _is_block(value):
            yield f"{_text(key)}: {_scalar(value)}"
            continue
        yield f"{_text(key)}:"
        indent = "" if isinstance(value, list) else "  "
        yield from (indent + line for line in _lines(value))


def _is_block(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return _SPECIAL.get(repr(value)) or plain_text(value)


_SPECIAL = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}


def _text(text: str) -> str:
    import json

    if _ADDRESS.match(text) or (_PLAIN.match(text) and text.casefold() not in _WORDS):
        return text
    # JSON's quoting is YAML's, but that YAML cannot join the halves of a surrogate pair, refuses
    # some characters as they are, and that nmstatectl makes spaces of no-break spaces.
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}",
                        json.dumps(text, ensure_ascii=False))
