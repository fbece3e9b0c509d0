"""A document for people to look at: as it is, but with its secrets masked.

Knows which keys carry secrets, in nmstate's documents, in keyfile text and in what Elemental's server
sends along. Masks the values of the parsed tree, so that no way of quoting hides one.
"""

from __future__ import annotations

import re
from typing import Any

from homeport.core.body import read_body
from homeport.core.rawextension import decode_raws, is_raw
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError

MASK = "<secret>"
_KEY = re.compile(r"(?:.*[-_])?(?:password|passwd|psk|secret|token|cak|private-key|wep-key\d?|pin)", re.IGNORECASE)
# The same in the text of a keyfile.
_LINE = re.compile(rf"^(\s*{_KEY.pattern}\s*=).+$", re.IGNORECASE | re.MULTILINE)


def mask_document(data: bytes) -> str:
    """The document as YAML without secrets. Raises DocumentError if it is none."""
    body = read_body(data, "")
    if body.text is None:
        raise DocumentError(body.complaints)
    tree = read_yaml(body.text)
    if not tree.usable:
        raise DocumentError(tree.complaints)
    return render_yaml(mask(tree.value))


def mask(tree: Any) -> Any:
    """`tree` with every secret value replaced, also inside Kubernetes' raw bytes."""
    if isinstance(tree, dict):
        if any(is_raw(value) for value in tree.values()):
            tree, _ = decode_raws(tree, ())
        return {key: MASK if _is_secret(key, value) else mask(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [mask(item) for item in tree]
    return _LINE.sub(rf"\1{MASK}", tree) if isinstance(tree, str) else tree


def _is_secret(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, str | int | float) and bool(_KEY.fullmatch(key)) and bool(value)
