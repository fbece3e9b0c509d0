"""Kubernetes' RawExtension, as Elemental's server writes it into YAML: `{raw: [123, 34, …],
object: null}`.

The Go struct holds JSON as bytes, and yaml.v3 writes bytes as a list of numbers (spec/elemental.md,
1.6).  Also read: `raw` as text or as the value itself, for servers that write what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.controls import walk_controls
from homeport.core.showing import printable, safe_path, show
from homeport.core.yamlsafe import MAX_DEPTH

_KEYS = frozenset({"raw", "object"})


def is_raw(value: object) -> bool:
    """Whether `value` is a RawExtension and not a section that someone wrote."""
    return isinstance(value, dict) and "raw" in value and _KEYS.issuperset(value)


def decode_raws(config: dict[str, Any], path: Path) -> tuple[dict[str, Any], list[Complaint]]:
    """`config` with each RawExtension among its values replaced by what it holds."""
    decoded: dict[str, Any] = {}
    complaints = Complaints()
    for key, value in config.items():
        if is_raw(value):
            value, found = _decode(value["raw"], (*path, key, "raw"))
            complaints += found
        decoded[key] = value
    return decoded, complaints


def _decode(raw: Any, path: Path) -> tuple[Any, list[Complaint]]:
    if raw is None:
        return None, []
    where = safe_path(path)
    if isinstance(raw, list):
        if not all(type(byte) is int and 0 <= byte <= 255 for byte in raw):
            return None, [Complaint(where, show(raw), "numbers 0 to 255, the bytes of JSON text")]
        return _read_json(bytes(raw), path)
    if isinstance(raw, str):
        return _read_json(raw.encode("utf-8", errors="surrogatepass"), path)
    if isinstance(raw, dict):
        return raw, []
    return None, [Complaint(where, show(raw), "the bytes of JSON text")]


def _read_json(data: bytes, path: Path) -> tuple[Any, list[Complaint]]:
    """JSON with the bounds that `yamlsafe` keeps for YAML; its size is bounded by the
    document's."""
    import json

    where = safe_path(path)
    doubles: list[str] = []

    def pairs(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(entries)
        if len(mapping) < len(entries):
            doubles.extend(_doubles(key for key, _ in entries))
        return mapping

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=pairs,
                           parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        return None, [Complaint(where, "bytes that are not UTF-8", "JSON text in UTF-8")]
    except (ValueError, RecursionError) as error:
        return None, [Complaint(where, f"no JSON: {printable(str(error))}", "JSON text")]
    if not _within_depth(value):
        return None, [Complaint(where, f"more than {MAX_DEPTH} levels",
                                f"at most {MAX_DEPTH} levels of lists and mappings")]
    complaints = Complaints()
    complaints += (Complaint(where, f"the key {show(key)} twice in one mapping", "each key once")
                   for key in doubles)
    complaints += walk_controls(value, path)
    return value, complaints


def _doubles(keys: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [key for key in keys if key in seen or seen.add(key)]  # type: ignore[func-returns-value]


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _within_depth(value: Any) -> bool:
    """Level by level, for a recursion would itself need the bound that it checks."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for parent in level if isinstance(parent, dict | list)
                 for part in (parent.values() if isinstance(parent, dict) else parent)
                 if isinstance(part, dict | list)]
        if not level:
            return True
    return False
