"""RawExtensions as the real server writes them, and as a hostile one might."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.rawextension import decode_raws, is_raw


def raw(text: str) -> dict[str, Any]:
    return {"raw": list(text.encode()), "object": None}


def decode(value: Any) -> tuple[Any, list[str]]:
    config, complaints = decode_raws({"x": value}, ("config",))
    return config["x"], [str(complaint) for complaint in complaints]


@pytest.mark.parametrize(("value", "decoded"), [
    (raw('{"config":[{"metric":150}]}'), {"config": [{"metric": 150}]}),
    ({"raw": list(b'"text"')}, "text"),  # without `object`, which Go accepts too
    (raw('"\\u003ctag\\u003e \\ud83d\\ude00"'), "<tag> \N{GRINNING FACE}"),  # Go escapes < > &
    ({"raw": '{"a": 1}', "object": None}, {"a": 1}),  # text, from a server that writes JSON
    ({"raw": {"a": 1}, "object": None}, {"a": 1}),
    ({"raw": None, "object": None}, None),
    ({"raw": [1], "other": 2}, {"raw": [1], "other": 2}),  # somebody's own mapping
    ([1, 2], [1, 2]),
])
def test_decoded(value: Any, decoded: Any) -> None:
    assert decode(value) == (decoded, [])


@pytest.mark.parametrize(("value", "complaint"), [
    ({"raw": [123, 999]}, "config.x.raw: a list of 2; numbers 0 to 255, the bytes of JSON text"),
    ({"raw": [True]}, "config.x.raw: a list of 1; numbers 0 to 255, the bytes of JSON text"),
    ({"raw": ["1"]}, "config.x.raw: a list of 1; numbers 0 to 255, the bytes of JSON text"),
    ({"raw": 5}, "config.x.raw: 5; the bytes of JSON text"),
    ({"raw": [0xFF, 0xFE]}, "config.x.raw: bytes that are not UTF-8; JSON text in UTF-8"),
    ({"raw": []}, "config.x.raw: no JSON: Expecting value: line 1 column 1 (char 0); JSON text"),
    (raw("NaN"), "config.x.raw: no JSON: NaN is no JSON number; JSON text"),
    (raw("[" * 65 + "]" * 65), "config.x.raw: more than 64 levels; at most 64 levels of lists and mappings"),
    (raw('{"a":{"b":1,"b":2}}'), "config.x.raw: the key 'b' twice in one mapping; each key once"),
    (raw('{"a":["x\\u001b"]}'), "config.x.raw.a[0]: a control character in 'x\\x1b'; text without it"),
    (raw('{"\\u0000":1}'), "config.x.raw: a control character in the key '\\x00'; a key without it"),
    (raw('"\\ud800"'), "config.x.raw: a control character in '\\ud800'; text without it"),
])
def test_refused(value: Any, complaint: str) -> None:
    assert decode(value)[1] == [complaint]


def test_a_tower_of_brackets_is_no_bug() -> None:
    """Python's own reader gives up with a RecursionError."""
    assert "no JSON" in decode(raw("[" * 20_000))[1][0]


def test_huge_numbers_are_no_bug() -> None:
    """int() of so many digits is a ValueError (CVE-2020-10735)."""
    assert "no JSON" in decode(raw("9" * 10_000))[1][0]


@pytest.mark.parametrize(("value", "is_one"), [
    ({"raw": [1], "object": None}, True), ({"raw": [1]}, True), ({"object": None}, False),
    ({"raw": 1, "x": 2}, False), ([], False), (None, False),
])
def test_is_raw(value: object, is_one: bool) -> None:
    assert is_raw(value) is is_one
