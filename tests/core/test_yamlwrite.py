"""YAML that comes back as it went."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.controls import CONTROL
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml

PAGE = """\
interfaces:
- name: eth0
  ipv4:
    address:
    - ip: 192.168.122.150
      prefix-length: 24
    enabled: true
  description: "Main NIC: {x}"
- - 1
  - []
routes: {}
hostname:
  config: "1e3"
dns: null
"""


def test_a_page() -> None:
    assert render_yaml({
        "interfaces": [{"name": "eth0", "ipv4": {"address": [{"ip": "192.168.122.150", "prefix-length": 24}],
                                                 "enabled": True}, "description": "Main NIC: {x}"},
                       [1, []]],
        "routes": {}, "hostname": {"config": "1e3"}, "dns": None,
    }) == PAGE


@pytest.mark.parametrize("text", [
    "", "~", "null", "yes", "No", "0o17", "1e3", "012", "12:34:56", "<<", "- x", "a: b", "a #b", "'", '"',
    "x\ny\n", "\t", "a\u00a0b", "\u2028", "\ufeff", "\N{GRINNING FACE}", "52:54:00:12:34:56", "::1", "x ",
    "2001:db8::/32", "@", "!x", "*a", "&a", "%", "{x}", "true", "-1", "+.inf", "192.168.1.300", "\x85",
])
def test_text_stays_text(text: str) -> None:
    found = read_yaml(render_yaml({"a": [text], text: 1}))
    assert found.value == {"a": [text], text: 1} or CONTROL.search(text) or text == "<<"


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
scalars = texts | st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
trees = st.recursive(scalars, lambda parts: st.lists(parts, max_size=4) | st.dictionaries(
    texts.filter(lambda key: key != "<<"), parts, max_size=4), max_leaves=20)


@given(trees)
def test_a_tree_comes_back(tree: Any) -> None:
    assert read_yaml(render_yaml(tree)).value == tree
