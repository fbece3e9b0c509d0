"""Names and labels from templates; the rows are the operator's own where it has them (its labeltmpl_test.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport_server import naming, templates
from homeport_server.manifests.registrations import Registration
from homeport_server.templates import BadTemplate, NoValue

DATA: dict[str, Any] = {
    "level1A": {"level2A": "level2AValue", "level2B": {"level3A": "level3AValue"}},
    "level1B": "level1BValue",
    "System Information": {"UUID": "4C4C4544-0042", "Serial Number": "SN 1", "Slots": 3, "": "nameless"},
}


def no_chance(_limit: int) -> int:
    raise AssertionError("no randomness is asked for here")


@pytest.mark.parametrize(("template", "filled"), [
    ("${level1B}", "level1BValue"),
    ("${level1B", "${level1B"),
    ("a${level1B", "a${level1B"),
    ("${", "${"),
    ("a${", "a${"),
    ("a${level1B}c${level1B}", "alevel1BValueclevel1BValue"),
    ("${level1A/level2B/level3A}", "level3AValue"),
    ("$level1B {level1B}", "$level1B {level1B}"),
    ("m-${System Information/UUID}", "m-4C4C4544-0042"),
    ("${System Information/}", "nameless"),
    ("${Random}${level1B}", None),  # not one of the random ones, and no value
    ("${}", None),
    ("${level1A}", None),
    ("${System Information/Slots}", None),  # a number
    ("${level1B/deeper}", None),
    ("${nothing}", None),
])
def test_fill(template: str, filled: str | None) -> None:
    if filled is None:
        with pytest.raises(NoValue):
            templates.fill(template, DATA, no_chance)
    else:
        assert templates.fill(template, DATA, no_chance) == filled


@pytest.mark.parametrize(("template", "length", "good"), [
    ("${Random/UUID}", 36, True),
    ("${Random/UUID/ABC}", 0, False),
    ("${Random/Hex/1}", 1, True),
    ("${Random/Hex/32}", 32, True),
    ("${Random/Hex/33}", 0, False),
    ("${Random/Hex/0}", 0, False),
    ("${Random/Hex}", 0, False),
    ("${Random/Int/1}", 1, True),
    ("${Random/Int/0}", 0, False),
    ("${Random/Int/pippo}", 0, False),
    ("${Random/Int/1000/extra}", 0, False),
    ("${Random/Int/" + "9" * 30 + "}", 0, False),
])
def test_random(template: str, length: int, good: bool) -> None:
    def chance(limit: int) -> int:
        return limit - 1

    if good:
        assert len(templates.fill(template, {}, chance)) == length
    else:
        with pytest.raises(BadTemplate):
            templates.fill(template, {}, chance)


def test_a_random_uuid_is_one_of_version_4() -> None:
    import secrets
    import uuid

    text = templates.fill("${Random/UUID}", {}, secrets.randbelow)
    assert str(uuid.UUID(text)) == text
    assert uuid.UUID(text).version == 4
    assert uuid.UUID(text).variant == uuid.RFC_4122


def test_a_template_is_bounded() -> None:
    with pytest.raises(BadTemplate):
        templates.fill("${a}" * 100, {"a": "x" * 100}, no_chance)


@pytest.mark.parametrize(("text", "name"), [
    ("test-btrfs-4C4C4544-0042", "test-btrfs-4c4c4544-0042"),
    ("+check-sanitize!", "check-sanitize"),
    ("a_b", "a-b"),
    ("a  --  b", "a-b"),
    ("x" * 70, "x" * 58),
    ("a.b", "a.b"),
    ("!!!", ""),
    ("ä", ""),
    ("", ""),
])
def test_host_name(text: str, name: str) -> None:
    assert templates.host_name(text) == name


def test_a_label_may_have_underscores() -> None:
    assert templates.label("a_b C!") == "a_b-C"


@pytest.mark.parametrize(("template", "name"), [
    ("m-${System Information/Serial Number}", "m-sn-1"),
    ("", "m-00000000-0000-4000-8000-000000000000"),
    ("${nothing}", "m-00000000-0000-4000-8000-000000000000"),  # as the operator falls back
])
def test_machine_name(template: str, name: str) -> None:
    assert naming.machine_name(template, DATA, lambda _limit: 0) == name


@pytest.mark.parametrize("template", ["!!!", "${Random/Hex/99}", "${System Information/UUID}" * 400])
def test_no_machine_name(template: str) -> None:
    with pytest.raises(ValueError, match=r"name|neither|makes more"):
        naming.machine_name(template, DATA, lambda _limit: 0)


def test_marks() -> None:
    registration = Registration(
        "ns", "r", labels={"site": "${level1B}", "gone": "${nothing}", "drawn": "${Random/Hex/4}"},
        annotations={"who": "${level1A/level2A}"})

    def marks(before: dict[str, str], chance: Callable[[int], int]) -> tuple[dict[str, str], dict[str, str]]:
        return naming.marks(registration, before, {"old": "kept"}, {"mine": "${level1B} !"},
                            {"reg-version": "1\n<2>"}, DATA, chance)

    labels, annotations = marks({}, lambda _limit: 0)
    assert labels == {"elemental.cattle.io/mine": "level1BValue", "site": "level1BValue", "drawn": "0000"}
    assert annotations == {"old": "kept", "elemental.cattle.io/reg-version": "1&lt;2&gt;", "who": "level2AValue"}
    # What was drawn once stays.
    assert marks(labels, lambda limit: limit - 1)[0]["drawn"] == "0000"
