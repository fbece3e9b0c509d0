"""Unquoted words mean what they mean to nmstatectl, asked itself where it is installed."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess

import pytest

from homeport.core.scalars import plain_text, resolve
from homeport.core.yamlsafe import read_yaml

WORDS = [
    ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None),
    ("nUll", "nUll"),
    ("true", True), ("True", True), ("FALSE", False),
    ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"),  # YAML 1.1's booleans
    ("0", 0), ("24", 24), ("-1", -1), ("+7", 7), ("-0", 0),
    ("012", "012"), ("00", "00"), ("-012", "-012"),  # YAML 1.1's octal
    ("0o17", 15), ("-0o17", -15), ("0x600", 1536), ("+0x1F", 31), ("0b101", 5),
    ("0x", "0x"), ("0o8", "0o8"), ("0X10", "0X10"), ("--1", "--1"), ("+-1", "+-1"), ("0x-1", "0x-1"),
    ("1_000", "1_000"),
    ("12:34:56", "12:34:56"), ("52:54:00:12:34:56", "52:54:00:12:34:56"),  # base sixty
    ("190:20:30.15", "190:20:30.15"),
    ("2024-01-01", "2024-01-01"), ("2001:db8::1", "2001:db8::1"), ("192.168.122.150", "192.168.122.150"),
    ("1.5", 1.5), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("+1.5", 1.5), ("1E-2", 0.01),
    ("012.5", 12.5),  # only whole numbers keep their zeros as text
    (".", "."), ("e5", "e5"), ("1e", "1e"), ("1e400", "1e400"), ("inf", "inf"), ("nan", "nan"),
    (".inf", math.inf), ("-.INF", -math.inf), ("+.inf", math.inf), (".iNf", ".iNf"),
    ("18446744073709551615", 2**64 - 1), ("-9223372036854775808", -(2**63)),
    ("1٢", "1٢"),  # a digit to Python's isdigit(), none to Rust
    ("<<", "<<"), ("=", "="),
]  # fmt: skip


@pytest.mark.parametrize(("word", "value"), WORDS)
def test_a_word_is_what_serde_yaml_reads(word: str, value: object) -> None:
    found = resolve(word)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(("word", "value"), [
    (str(2**64), 2**64), (str(2**128), float(2**128)), (str(-(2**127)), -(2**127)),
    ("9" * 400, "9" * 400), ("9" * 300_000, "9" * 300_000),  # no quadratic int()
])
def test_long_numbers_become_what_is_still_exact_enough(word: str, value: object) -> None:
    assert resolve(word) == value


def test_not_a_number_is_one() -> None:
    found = resolve(".nan")
    assert isinstance(found, float) and math.isnan(found)


@pytest.mark.parametrize(("value", "text"), [
    (None, "null"), (True, "true"), (150, "150"), (1.5, "1.5"), ("x", "x"),
])
def test_plain_text(value: object, text: str) -> None:
    assert plain_text(value) == text  # type: ignore[arg-type]


def nmstatectl() -> str:
    """The released program, for tests that ask it; what they check is also in tables without it."""
    found = os.environ.get("NMSTATECTL") or shutil.which("nmstatectl")
    if not found:
        pytest.skip("no nmstatectl on PATH or in $NMSTATECTL to compare with")
    return found


def test_nmstatectl_agrees_with_the_table() -> None:
    """An interface of unknown type keeps its keys, so `format` shows what each word was read as."""
    # Without `.inf` and the like, which JSON values (through which nmstate reads) cannot hold.
    words = [word for word, value in WORDS if not isinstance(value, float) or math.isfinite(value)]
    document = "interfaces:\n- name: x\n" + "".join(
        f"  k{index}: {word}\n" for index, word in enumerate(words))
    done = subprocess.run([nmstatectl(), "-q", "format", "-"], input=document.encode(),
                          capture_output=True, check=True)
    theirs = read_yaml(done.stdout.decode()).value["interfaces"][0]
    ours = read_yaml(document).value["interfaces"][0]
    differing = {word: (ours[f"k{index}"], theirs[f"k{index}"]) for index, word in enumerate(words)
                 if json.dumps(ours[f"k{index}"]) != json.dumps(theirs[f"k{index}"])}
    assert not differing
