"""YAML from strangers: what it means, and that nothing in it costs more than its size."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.complaint import MAX_COMPLAINTS
from homeport.core.yamlsafe import MAX_DEPTH, YamlTree, read_yaml


def complaints(text: str) -> list[str]:
    return [str(complaint) for complaint in read_yaml(text).complaints]


@pytest.mark.parametrize(("text", "value"), [
    ("", None), ("# nothing\n", None), ("---\n", None), ("a: 1\n...\n", {"a": 1}),
    ("--- {a: [b, 'c', \"d\"]}", {"a": ["b", "c", "d"]}),
    ('{"a": [1, null, true, "x"]}', {"a": [1, None, True, "x"]}),
    ("a: |\n  x\n  y\nb: >\n  24\n", {"a": "x\ny\n", "b": "24\n"}),
    ("a: '24'\nb: \"yes\"\nc: yes", {"a": "24", "b": "yes", "c": "yes"}),
    ("1: a\nyes: b\n~: c\n1.0: d", {"1": "a", "yes": "b", "~": "c", "1.0": "d"}),  # keys are their text
    ("- &a {x: [1]}\n- *a", [{"x": [1]}, {"x": [1]}]),
    ("a: !!str 12\nb: !!int '0x10'\nc: !!float 1\nd: !!bool \"true\"\ne: !!null ~\nf: !!map {}\ng: !!seq []",
     {"a": "12", "b": 16, "c": 1, "d": True, "e": None, "f": {}, "g": []}),
    ("\ufeffa: 1", {"a": 1}),
    ("a: x\u0085b: y", {"a": "x", "b": "y"}),  # YAML 1.1 ends a line with NEL
])
def test_meaning(text: str, value: Any) -> None:
    assert read_yaml(text) == YamlTree(value, (), usable=True)


def test_an_anchor_on_a_key_names_its_text() -> None:
    assert read_yaml("&k name: 1\nb: *k\n*k : 2").value == {"name": 2, "b": "name"}


def test_aliases_are_copies() -> None:
    tree = read_yaml("a: &a [1]\nb: *a\nc: [*a, *a]").value
    tree["a"].append(2)
    assert tree == {"a": [1, 2], "b": [1], "c": [[1], [1]]}


@pytest.mark.parametrize(("text", "found"), [
    ("a: 1\nb: 2\na: 3", ["a: 'a' stands here twice, in line 1 and in line 3; each key once"]),
    ("- {x: {y: 1, y: 2}}", ["[0].x.y: 'y' stands here twice, in line 1 and in line 1; each key once"]),
    ("a: 1\n'a': 2", ["a: 'a' stands here twice, in line 1 and in line 2; each key once"]),
    ("a: {<<: {b: 1}}\nc: {c: 1, c: 2}",
     ["a: a merge key '<<' at line 1; the keys written out; nmstate does not merge",
      "c.c: 'c' stands here twice, in line 2 and in line 2; each key once"]),
    ("a: !python/object:os.system x",
     ["a: the tag '!python/object:os.system' in line 1; a value without tag"]),
    ("a: !!python/name:os.system x",
     ["a: the tag 'tag:yaml.org,2002:python/name:os.system' in line 1; a value without tag"]),
    ("a: !!binary aGk=\nb: ! x\nc: !foo [1]",
     ["a: the tag 'tag:yaml.org,2002:binary' in line 1; a value without tag",
      "b: the tag '!' in line 2; a value without tag", "c: the tag '!foo' in line 3; a value without tag"]),
    ("a: !!int x", ["a: 'x' tagged !!int; a value that fits its tag"]),
    ('a: "x\\ey"', ["a: a control character in 'x\\x1by'; text without it"]),
    ('"\\0": 1', ["a control character in '\\x00'; text without it"]),
    ("a: &a 1\n? *a\n: 2", ["alias *a as a key; a word as key"]),
])
def test_complaints_that_reading_survives(text: str, found: list[str]) -> None:
    assert complaints(text) == found
    assert read_yaml(text).usable


@pytest.mark.parametrize(("text", "found"), [
    ("a: 1\n---\nb: 2", "a second document starts at line 2; one document"),
    ("a: &a [1, *a]", "a[1]: alias *a at line 1 stands inside what it names"),
    ("a: *b", "a: alias *b at line 1 has no anchor &b before it"),
    ("? [a]\n: b", "a key at line 1 that is no single word"),
    ("a:\n\tb: 1", "spaces for indentation, not tabs"),
    ("a: [1, 2", "at line 2, column 1; brackets and braces closed"),
    ("a: b: c", "a value with ': ' in it quoted"),
    ("a: 'x", "this looks cut off"),
    ("ip: @home", "quotes around a value that starts with a special character"),
    ("%YAML 3.0\n--- a", "found incompatible YAML document"),
    ('"\\ud83d\\ude00"', "found invalid Unicode character escape code"),  # so does nmstatectl
])
def test_complaints_that_end_the_reading(text: str, found: str) -> None:
    tree = read_yaml(text)
    assert not tree.usable
    assert found in str(tree.complaints[-1])


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_depth() -> None:
    assert read_yaml(nested(MAX_DEPTH)).usable
    assert "more than 64 levels at line 1" in complaints(nested(MAX_DEPTH + 1))[0]
    deep = "\n".join(" " * level + "a:" for level in range(MAX_DEPTH + 2))
    assert "more than 64 levels" in complaints(deep)[0]


def test_depth_through_aliases() -> None:
    """Each alias wraps the one before: few events, but a tree deeper than any list in the text."""
    text = "- &a0 [x]\n" + "".join(f"- &a{n} [[[[[[[[*a{n - 1}]]]]]]]]\n" for n in range(1, 9))
    assert "an alias that makes more than 64 levels" in complaints(text)[0]


def bomb(width: int, levels: int) -> str:
    """The billion laughs: each level is `width` times the one below."""
    return "a0: &a0 [" + ",".join("x" * width) + "]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * width)}]\n" for n in range(1, levels))


def test_alias_bomb() -> None:
    assert "aliases that expand to more than 10000 nodes" in complaints(bomb(9, 9))[0]
    # What expands to less is read: 9 * 10 + 9 * 91 nodes come out of aliases.
    assert read_yaml(bomb(9, 3)).usable


def test_aliases_are_counted_by_what_they_expand_to() -> None:
    assert read_yaml(aliases(100)).usable  # 100 nodes each
    assert not read_yaml(aliases(101)).usable


def aliases(count: int) -> str:
    return "a: &a [" + ",".join("1" * 99) + "]\nb: [" + ",".join(["*a"] * count) + "]"


def test_nobody_mends_a_thousand_faults() -> None:
    assert len(read_yaml("a: 1\n" * 100_000).complaints) == MAX_COMPLAINTS


def test_text_as_it_stands() -> None:
    text = "a: 0x10\nb: [yes, ~, 1e3, '1']\nc: !!int 5\nd: TRUE"
    assert read_yaml(text, as_text=True).value == {
        "a": "0x10", "b": ["yes", "~", "1e3", "1"], "c": "5", "d": "TRUE"}


LIMIT = 512 * 1024
HOSTILE = {
    "numbers": "[" + "1," * (LIMIT // 2 - 2) + "1]",
    "hexadecimal": "[" + "0x1," * (LIMIT // 4 - 2) + "1]",
    "items": "- 1\n" * (LIMIT // 4),
    "keys": "".join(f"k{n}: v\n" for n in range(45_000)),
    "duplicate keys": "{" + "a: 1," * 100_000 + "}",
    "one long word": "a: " + "x" * (LIMIT - 3),
    "one long number": "a: " + "9" * (LIMIT - 3),
    "open brackets": "[" * LIMIT,
    "open braces": "{a: " * (LIMIT // 4),
    "question marks": "? " * (LIMIT // 2),
    "dashes": "- " * (LIMIT // 2),
    "anchors": "".join(f"- &a{n} 1\n" for n in range(40_000)),
    "aliases": "- &a 1\n" + "- *a\n" * 100_000,
    "comments": "#\n" * (LIMIT // 2),
    "line ends": "a: \"" + "\n" * (LIMIT - 5) + "\"",
    "escapes": "a: \"" + "\\e" * (LIMIT // 2 - 3) + "\"",
    "tags": "- !x 1\n" * (LIMIT // 7),
    "colons": "a:" * (LIMIT // 2),
    "quotes": "'" * LIMIT,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_half_a_mebibyte_of_anything_is_read_in_time(name: str) -> None:
    """Far above what it takes (0.7 s at worst), far below what quadratic behaviour would take."""
    start = time.process_time()
    read_yaml(HOSTILE[name])
    assert time.process_time() - start < 3


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60)
       | st.text(alphabet="[]{}:,-?&*!|>'\"#%@ \n\tab01<~\\", max_size=60))
def test_any_text_gives_a_tree_or_complaints(text: str) -> None:
    tree = read_yaml(text)
    assert tree.usable or tree.complaints
    assert (tree.value is None) or tree.usable


PURE = """
import sys, yaml
yaml.__with_libyaml__ = False
from homeport.core.yamlsafe import read_yaml
print(read_yaml(sys.stdin.read()))
"""


@pytest.mark.parametrize("text", [
    "a: [1, {b: yes, c: &x 0x10}, *x]\nd: |\n  text\n", bomb(9, 9), nested(80), "a: 1\na: 2", "a: {",
])
def test_without_libyaml(text: str) -> None:
    """Some distributions' PyYAML has no libyaml: slower, with the same bounds and values."""
    done = subprocess.run([sys.executable, "-c", PURE], input=text, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": "agent"}, check=True)
    ours = read_yaml(text)
    assert done.stdout.strip() == str(ours) or (not ours.usable and "usable=False" in done.stdout)
