"""A field of metadata, however it is written."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import Any

import pytest

from homeport.core.platforms.reading import Fault, Node, first_host


def node(value: Any) -> Node:
    return Node(value, "file: field")


@pytest.mark.parametrize(("value", "wanted"), [
    (True, True), ("true", True), ("yes", True), ("On", True), ("y", True),
    (False, False), ("False", False), ("NO", False), ("off", False), ("n", False), (None, False), ("", False)])
def test_a_yes_or_no(value: Any, wanted: bool) -> None:
    assert node(value).flag() is wanted


@pytest.mark.parametrize("value", ["maybe", 2, ["yes"], {"a": 1}, "yess"])
def test_no_yes_or_no(value: Any) -> None:
    with pytest.raises(Fault, match="true or false"):
        node(value).flag()


@pytest.mark.parametrize(("value", "version", "wanted"), [
    ("24", 4, 24), (24, 4, 24), ("024", 4, 24), ("255.255.255.0", 4, 24), ("0.0.0.0", 4, 0), ("ffff::", 6, 16),
    (128, 6, 128)])
def test_a_prefix_length(value: Any, version: int, wanted: int) -> None:
    assert node(value).prefix(version) == wanted


@pytest.mark.parametrize(("value", "version"), [
    ("0" * 5000, 4), ("9" * 5000, 6), ("33", 4), ("129", 6), ("255.0.255.0", 4), ("ffff::", 4), ("-1", 4), (1.0, 4),
    (True, 4), ("٢٤", 4)])
def test_no_prefix_length(value: Any, version: int) -> None:
    with pytest.raises(Fault):
        node(value).prefix(version)


def test_a_zone_is_another_machines_name_for_an_interface() -> None:
    assert str(node("fe80::1%eth0").ip()) == "fe80::1"
    assert str(node("fe80::1%eth0/64").interface()) == "fe80::1/64"
    assert str(node("fe80::1%eth0").interface(node(64))) == "fe80::1/64"
    assert str(node("192.0.2.1").ip()) == "192.0.2.1"


@pytest.mark.parametrize(("interface", "wanted"), [
    ("192.0.2.10/24", "192.0.2.1"), ("192.0.2.10/30", "192.0.2.9"), ("192.0.2.10/31", None), ("192.0.2.10/32", None),
    ("255.255.255.255/32", None), ("2001:db8::9/64", "2001:db8::1"), ("2001:db8::9/128", None)])
def test_where_a_router_is_if_nobody_says(interface: str, wanted: str | None) -> None:
    found = first_host(ip_interface(interface))
    assert (None if found is None else str(found)) == wanted
