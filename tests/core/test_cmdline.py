"""Kernel arguments, as the kernel's own next_arg() takes them apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.cmdline import homeport_arguments, our_arguments, parse, quote


@pytest.mark.parametrize(("text", "arguments"), [
    ("", []),
    ("  quiet\tro\n", [("quiet", None), ("ro", None)]),
    ("a=1 b= c", [("a", "1"), ("b", ""), ("c", None)]),
    ("root=UUID=12=3", [("root", "UUID=12=3")]),  # the first "=" divides
    ('a="b c" d', [("a", "b c"), ("d", None)]),
    ('"a=b c" d', [("a", "b c"), ("d", None)]),
    ('"a b"', [("a b", None)]),
    ('a=b"c d"e', [("a", 'b"c d"e')]),  # quotes inside stay, as with the kernel
    ('a="b c', [("a", "b c")]),  # never closed
    ('a=" b', [("a", " b")]),
    ('""', [("", None)]),
    ("=x", [("", "x")]),
    ('a=""', [("a", "")]),
    ("-- a", [("--", None), ("a", None)]),
])
def test_arguments(text: str, arguments: list[tuple[str, str | None]]) -> None:
    assert parse(text) == arguments


def test_ours_are_known_by_their_prefix() -> None:
    text = "homeport.mode=live xhomeport.a=1 HomePort.NIC_Wait=3 homeport homeport.refresh homeport.mode=reset"
    assert our_arguments(text) == [("mode", "live"), ("NIC_Wait", "3"), ("refresh", None), ("mode", "reset")]
    assert homeport_arguments(text) == {"mode": "reset", "nic-wait": "3", "refresh": ""}


@settings(deadline=None)  # finds faults, not busy machines
@given(st.text())
def test_any_text_is_arguments(text: str) -> None:
    parse(text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters='"\0', exclude_categories=["Cs"]), min_size=1))
def test_a_quoted_word_is_one_argument(word: str) -> None:
    (name, value), = parse(quote(word))
    assert (name if value is None else f"{name}={value}") == word
