"""Braces: which are placeholders, what fills them, and which ones mean pending."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.addresses import Address
from homeport.core.placeholders import Open, describe_open, fill, fill_keyfiles, unquoted

ADDRESSES = {
    "inventory-ip": Address("192.168.122.150"),
    "v6": Address("2001:db8::10", 64, "fe80::1"),
    "lan": Address("10.0.0.5", 24, "10.0.0.1"),
    "lan.gateway": Address("10.9.9.9"),  # a name of its own goes before a field of `lan`
    "odd name": Address("10.0.0.6"),
}


def filled(value: Any, key: str = "ip") -> tuple[Any, list[str]]:
    tree, open_ones = fill({key: value}, ADDRESSES, ("config",))
    return tree[key], [one.name for one in open_ones]


@pytest.mark.parametrize(("text", "result"), [
    ("{inventory-ip}", "192.168.122.150"),
    ("{lan}/24", "10.0.0.5/24"),
    ("http://[{v6}]:80/{lan}", "http://[2001:db8::10]:80/10.0.0.5"),
    ("{lan}/{lan.prefix}", "10.0.0.5/24"),
    ("{lan.prefix}", 24),  # a prefix alone is a number, as nmstate wants it
    ("{lan.prefix} ", "24 "),
    ("{v6.gateway}", "fe80::1"),
    ("{lan.gateway}", "10.9.9.9"),
    ("{odd name}", "10.0.0.6"),  # a declared name may be odd
    ("a {lan} b {lan}", "a 10.0.0.5 b 10.0.0.5"),
    ('{"ip": "{lan}"}', '{"ip": "10.0.0.5"}'),
    ("{x{lan}y}", "{x10.0.0.5y}"),
])
def test_filled(text: str, result: object) -> None:
    assert filled(text) == (result, [])


@pytest.mark.parametrize("text", [
    "{{ capture.gw.interfaces.0.name }}", "{{capture.gw}}", "{{lan}}",  # nmstate's policies
    "${lan}", "${HOME}", "$ {", "{", "}", "{}", "{foo bar}", "{a,b}", "{-x}", "{\nlan}", "{ lan }",
    "{lan", "lan}", "{{unknown}", "{unknown}}",
])
def test_text(text: str) -> None:
    assert filled(text) == (text, [])


@pytest.mark.parametrize(("text", "names"), [
    ("{other}", ["other"]), ("{a}/{b}", ["a", "b"]),
    ("{inventory-ip.prefix}", ["inventory-ip.prefix"]),  # its address came without a prefix
    ("{inventory-ip.gateway}", ["inventory-ip.gateway"]),
    ("{lan.netmask}", ["lan.netmask"]),
])
def test_open(text: str, names: list[str]) -> None:
    assert filled(text) == (text, names)


@pytest.mark.parametrize("key", ["description", "password", "psk", "post-activation", "identity"])
def test_in_free_text_only_known_names_are_placeholders(key: str) -> None:
    """`rack {7}` in a description must never hold a machine back; nmstate takes it."""
    assert filled("{rack-7} {lan}", key) == ("{rack-7} 10.0.0.5", [])


def test_keys_are_not_filled_and_everything_else_is_kept() -> None:
    tree = {"{lan}": [1, None, True, 2.5, {"a": ["{lan}"]}]}
    assert fill(tree, ADDRESSES) == ({"{lan}": [1, None, True, 2.5, {"a": ["10.0.0.5"]}]}, ())


def test_the_tree_itself_stays() -> None:
    tree = {"a": ["{lan}"]}
    fill(tree, ADDRESSES)
    assert tree == {"a": ["{lan}"]}


def test_open_ones_say_where() -> None:
    _, open_ones = fill({"interfaces": [{"ip": "{a}"}]}, {}, ("spec", "network", "config"))
    assert open_ones == (Open("a", "spec.network.config.interfaces[0].ip"),)


KEYFILE = """[connection]
id=rack {7} {lan}
type=ethernet

# {comment}
[wifi-security]
psk={ab}cd
[ipv4]
address1={inventory-ip}/24,{lan.gateway}
dns={other};
route1=0.0.0.0/0,{lan}
"""


def test_keyfiles() -> None:
    config, open_ones = fill_keyfiles({"eth0": KEYFILE}, ADDRESSES, ("config",))
    assert config["eth0"] == KEYFILE.replace("{lan}", "10.0.0.5").replace(
        "{inventory-ip}", "192.168.122.150").replace("{lan.gateway}", "10.9.9.9")
    assert open_ones == (Open("other", "config.eth0"),)


def test_a_keyfile_stays_text() -> None:
    assert fill_keyfiles({"a": "{lan.prefix}"}, ADDRESSES) == ({"a": "24"}, ())


@pytest.mark.parametrize(("tree", "complaints"), [
    ({"ip": {"lan": None}}, ["ip: {lan} without quotes, which is a mapping; '{lan}' in quotes"]),
    ([{"prefix-length": {"lan.prefix": None}}],
     ["[0].prefix-length: {lan.prefix} without quotes, which is a mapping; '{lan.prefix}' in quotes"]),
    ({"ipv6": {"enabled": None}}, []),  # nmstate's own
    ({"lan": 1, "x": None}, []),
])
def test_unquoted(tree: Any, complaints: list[str]) -> None:
    assert [str(complaint) for complaint in unquoted(tree, ADDRESSES)] == complaints


@pytest.mark.parametrize(("name", "addresses", "hint"), [
    ("x", {}, "ipAddresses has no address yet"),
    ("x", ADDRESSES, "ipAddresses has only inventory-ip, lan, lan.gateway, odd name, v6"),
    ("inventory-ip.prefix", ADDRESSES, "ipAddresses has inventory-ip, but without its prefix"),
])
def test_what_is_said_of_open_ones(name: str, addresses: dict[str, Address], hint: str) -> None:
    assert describe_open((Open(name, "config.x"), Open("y", "config.y")), addresses) == (
        f"no value yet for the placeholder '{{{name}}}' at config.x and 1 more", hint)


texts = st.text(alphabet="{}$a .b\n", max_size=12)
trees = st.recursive(texts | st.none() | st.integers() | st.booleans(),
                     lambda parts: st.lists(parts, max_size=3) | st.dictionaries(texts, parts, max_size=3),
                     max_leaves=8)
names = st.sampled_from(["a", "b", "a.b", "ab"])
addresses = st.dictionaries(names, st.builds(
    Address, st.sampled_from(["192.0.2.1", "2001:db8::1"]), st.none() | st.integers(0, 32),
    st.none() | st.just("192.0.2.254")), max_size=3)


@given(trees, addresses)
def test_filling_again_changes_nothing(tree: Any, given_addresses: dict[str, Address]) -> None:
    once, _ = fill(tree, given_addresses)
    assert fill(once, given_addresses)[0] == once


@given(trees)
def test_without_addresses_nothing_changes(tree: Any) -> None:
    assert fill(tree, {})[0] == tree


@given(trees, addresses)
def test_what_is_open_has_no_value(tree: Any, given_addresses: dict[str, Address]) -> None:
    _, open_ones = fill(tree, given_addresses)
    assert not {one.name for one in open_ones} & set(given_addresses)
