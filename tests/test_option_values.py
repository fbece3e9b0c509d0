"""How values of settings are written."""

from __future__ import annotations

import pytest

from homeport.option_values import (
    for_people,
    parse_boolean,
    parse_duration,
    parse_locations,
    parse_paths,
    parse_proxy,
    parse_web_address,
    some_of,
    split,
)


@pytest.mark.parametrize(("text", "seconds"), [
    ("30", 30),
    ("30s", 30),
    (" 2min ", 120),
    ("1min 30s", 90),
    ("1m30s", 90),
    ("1.5 h", 5400),
    ("500ms", 0.5),
    ("0.25", 0.25),
    ("2 Minutes", 120),
    ("24h", 86400),
])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", [
    "", "0", "-3", "s", "3 4", "3x", "1..2", "infinity", "25h",
    "30 # seconds",  # a comment is not on a line of its own
    "３０",  # full-width digits, which int() would take
    "nan", "1e3",
])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="30s"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "value"), [
    ("yes", True), ("ON", True), ("1", True), ("no", False), (" false ", False)])
def test_booleans(text: str, value: bool) -> None:
    assert parse_boolean(text) is value


@pytest.mark.parametrize("text", ["", "2", "maybe", "yes no"])
def test_what_is_no_boolean(text: str) -> None:
    with pytest.raises(ValueError, match="yes"):
        parse_boolean(text)


@pytest.mark.parametrize(("text", "words"), [
    ("", []),
    (" a  b\tc ", ["a", "b", "c"]),
    ('"a b" c', ["a b", "c"]),
    ("'a b'c", ["a bc"]),
    ('""', [""]),  # an empty word was meant
    ('a"\'"b', ["a'b"]),
])
def test_words(text: str, words: list[str]) -> None:
    assert split(text) == words


def test_an_open_quote_is_no_word() -> None:
    with pytest.raises(ValueError, match="closing"):
        split('"a b')


@pytest.mark.parametrize(("text", "value"), [
    ("https://cfg.example/{uuid}.yaml", ("https://cfg.example/{uuid}.yaml",)),
    ("HTTP://[fe80::1]:8080/{mac}", ("HTTP://[fe80::1]:8080/{mac}",)),
    ("/etc/a.yaml https://b/{tpmhash}", ("/etc/a.yaml", "https://b/{tpmhash}")),
    ("file:///etc/a.yaml", ("/etc/a.yaml",)),
    ("/srv/documents/", ("/srv/documents/",)),  # a folder
    ("", ()),
])
def test_locations(text: str, value: tuple[str, ...]) -> None:
    assert parse_locations(text) == value


@pytest.mark.parametrize("text", [
    "cfg.example/{uuid}.yaml", "ftp://cfg.example/a", "https://", "https:///a", "http://:80/", "etc/a.yaml",
    "https://cfg.example/{UUID}",  # fields have one spelling
    "https://cfg.example/{uuid", "https://cfg.example/{}", "file://etc/a.yaml",
])
def test_what_is_no_location(text: str) -> None:
    with pytest.raises(ValueError, match=r"path|URL|fields"):
        parse_locations(text)


def test_an_unknown_field_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"\{uuid\} \{serial\} \{mac\} \{hostname\} \{tpmhash\}"):
        parse_locations("https://cfg.example/{uid}.yaml")


def test_paths_are_absolute() -> None:
    assert parse_paths('/a.pem "/b c.pem"') == ("/a.pem", "/b c.pem")
    with pytest.raises(ValueError, match="absolute"):
        parse_paths("/a.pem b.pem")


@pytest.mark.parametrize(("text", "value"), [
    ("http://proxy.example:3128", "http://proxy.example:3128"),
    ("proxy.example:3128", "http://proxy.example:3128"),
    ("none", ""), ("off", ""), ("", ""),
])
def test_proxies(text: str, value: str) -> None:
    assert parse_proxy(text) == value


def test_a_report_goes_to_a_web_address() -> None:
    assert parse_web_address("") == ""
    assert parse_web_address("https://a.example/x?y") == "https://a.example/x?y"
    for bad in ("a.example", "https://a b", "mailto:a@b"):
        with pytest.raises(ValueError, match="http"):
            parse_web_address(bad)


def test_a_list_has_each_word_once() -> None:
    parse = some_of("a", "b", "c")
    assert parse("c, A") == ("c", "a")
    for bad in ("", "a a", "d"):
        with pytest.raises(ValueError, match="at most once"):
            parse(bad)


@pytest.mark.parametrize(("text", "shown"), [
    ("https://user:secret@cfg.example/a?token=secret#secret", "https://cfg.example/a"),
    ("https://cfg.example?token=secret", "https://cfg.example"),
    ("https://a@b@cfg.example/x@y", "https://cfg.example/x@y"),
    ("/etc/a.yaml https://u@h/b", "/etc/a.yaml https://h/b"),
])
def test_no_secret_of_a_url_is_shown(text: str, shown: str) -> None:
    assert for_people(text) == shown
