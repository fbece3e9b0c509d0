"""Identities and facts: what names one machine, and what is junk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeport_server.caller import Facts, clean_facts, facts_of_id, plain_caller, plain_fault, read_facts

CASE = Path(__file__).parents[1] / "data" / "elemental" / "tpm"


@pytest.mark.parametrize(("value", "digest"), [  # spec/elemental.md, 2.2
    ("52:54:00:aa:bb:cc", "ce2fab7981d534866b8aa2c23205ee2a31096a2dd1361a8d210392b999b911ca"),
    ("4c4c4544-0042-3010-8051-b4c04f564432", "e6bc893ff1c7c2cb028e172879424d578495581397b9b37210436fcc6bd9c229"),
])
def test_machine_hash(value: str, digest: str) -> None:
    assert plain_caller(value).digest == digest


def test_facts_of_a_real_registration() -> None:
    data = json.loads((CASE / "08-C-SMBIOS").read_text()) | json.loads((CASE / "10-C-SystemDataV2").read_text())
    assert read_facts(data) == Facts(
        "4c4c4544-0042-3010-8051-000000000001", "SN-0001", frozenset({"52:54:00:aa:00:01"}))


@pytest.mark.parametrize("data", [
    {}, {"System Information": None}, {"System Information": []}, {"System Information": {"UUID": 7}}, {"Network": 1},
    {"Network": {"NICs": []}}, {"Network": {"NICs": {"0": 1, "1": {"MacAddress": 1}, "2": {"MacAddress": "xx"}}}},
    {"Network": {"NICs": {"0": {"MacAddress": "52:54:00:00:00:01", "IsVirtual": "true"}}}},
    {"System Information": {"UUID": "Not Settable", "Serial Number": "To Be Filled By O.E.M."}},
])
def test_nothing_is_known_of_it(data: dict[str, object]) -> None:
    assert read_facts(data) == Facts()


@pytest.mark.parametrize(("value", "facts"), [
    ("4C4C4544-0042-3010-8051-B4C04F564432", Facts(uuid="4c4c4544-0042-3010-8051-b4c04f564432")),
    ("52-54-00-AA-BB-CC", Facts(macs=frozenset({"52:54:00:aa:bb:cc"}))),
    ("SN-0001", Facts(serial="SN-0001")),
    ("Default string", Facts()),
])
def test_facts_of_an_id(value: str, facts: Facts) -> None:
    assert facts_of_id(value) == facts


@pytest.mark.parametrize("value", ["", "unknown", "Unknown ", "None", "03000200-0400-0500-0006-000700080009",
                                   "00:00:00:00:00:00", "01:00:5e:00:00:01", "x" * 300, "a\nb"])
def test_no_identity(value: str) -> None:
    assert plain_fault(value)


@pytest.mark.parametrize("value", ["SN-0001", "52:54:00:aa:bb:cc", "4c4c4544-0042-3010-8051-b4c04f564432", "rack 7"])
def test_an_identity(value: str) -> None:
    assert not plain_fault(value)


A, B, C = (f"52:54:00:00:00:0{n}" for n in (1, 2, 3))


@pytest.mark.parametrize(("one", "two", "same", "other"), [
    (clean_facts(serial="SN-1000", macs=[A, B]), clean_facts(serial="SN-1000", macs=[B, C]), True, False),
    (clean_facts(serial="SN-1000", macs=[A]), clean_facts(serial="SN-1000", macs=[B]), False, False),
    (clean_facts(serial="SN-1000", macs=[A]), clean_facts(serial="SN-2000", macs=[A]), False, False),
    (clean_facts(serial="SN-1000", macs=[A]), clean_facts(serial="SN-2000", macs=[B]), False, True),
    (clean_facts(serial="SN-1000", macs=[A]), clean_facts(macs=[B]), False, False),  # half of it is not known
    (Facts(), Facts(), False, False),
])
def test_boards(one: Facts, two: Facts, same: bool, other: bool) -> None:
    assert one.same_board(two) == two.same_board(one) == same
    assert one.other_board(two) == two.other_board(one) == other
