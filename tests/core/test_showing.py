"""Values in a few words that are safe to print."""

from __future__ import annotations

import pytest

from homeport.core.showing import listing, meant, nearest, printable, safe_path, show


@pytest.mark.parametrize(("value", "shown"), [
    (None, "nothing"), (True, "true"), (False, "false"), (24, "24"), (1.5, "1.5"), ("x", "'x'"), ("", "''"),
    ({}, "an empty mapping"), ({"a": 1}, "a mapping with key a"),
    ({str(n): n for n in range(6)}, "a mapping with keys 0, 1, 2, 3 and 2 more"),
    ([], "an empty list"), ([1, 2], "a list of 2"), ("a\nb\x1b[2J", "'a\\nb\\x1b[2J'"),
    ("\u202e", "'\\u202e'"), ("é \N{GRINNING FACE}", "'é \N{GRINNING FACE}'"), ("x" * 70, "'" + "x" * 60 + "…'"),
])
def test_show(value: object, shown: str) -> None:
    assert show(value) == shown


def test_a_megabyte_is_cut_before_it_is_looked_at() -> None:
    assert printable("\x1b" * 10, 2) == "\\x1b\\x1b…"


@pytest.mark.parametrize(("word", "near"), [
    ("ip_addresses", "ipAddresses"), ("IPADDRESSES", "ipAddresses"), ("confg", "config"), ("zzz", ""), ("", ""),
    ("x" * 100_000, ""),
])
def test_nearest(word: str, near: str) -> None:
    assert nearest(word, ("configurator", "ipAddresses", "config")) == near


def test_meant() -> None:
    assert meant("confg", ("config", "proof")) == "did you mean 'config'?"
    assert meant("confg", ("config", "proof"), guess=False) == "one of config, proof"
    assert meant(7, ("config", "proof")) == "one of config, proof"


def test_listing() -> None:
    assert listing(range(4), 2) == "0, 1 and 2 more"


def test_safe_path() -> None:
    assert safe_path(("a", 0, "x\ny")) == "a[0].x\\ny"
