"""Whose entry it is: facts in any spelling, and never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.machines import choose, fitting_names, read_entries
from homeport.core.texts import Texts

MACHINE = {
    "uuid": ["4c4c4544-0042-3010-8051-b4c04f564432"], "serial": ["B00B5"],
    "mac": ["52:54:00:aa:bb:cc", "52:54:00:aa:bb:cd"], "hostname": ["node1"],
    "tpmhash": ["759d02b8"],  # facts are spelt as in URL templates, too
}


def fits(match: dict[str, Any]) -> bool:
    entries, complaints = read_entries([{"match": match, "config": {}}], Texts(""))
    assert not complaints
    return choose(entries, MACHINE)[0] is not None


@pytest.mark.parametrize("match", [
    {"uuid": "4C4C4544-0042-3010-8051-B4C04F564432"}, {"uuid": "4c4c4544004230108051b4c04f564432"},
    {"mac": "52-54-00-AA-BB-CC"}, {"mac": "5254.00aa.bbcd"}, {"mac": ["00:00:5e:00:53:01", "525400aabbcc"]},
    {"serial": "b00b5"}, {"serial": " B00B5 "}, {"hostname": "NODE1"}, {"tpmHash": "759D02B8"},
    {"tpmhash": "759d02b8"}, {"mac": "52:54:00:aa:bb:cc", "hostname": ["node9", "node1"]}, {},
])
def test_fits(match: dict[str, Any]) -> None:
    assert fits(match)


@pytest.mark.parametrize("match", [
    {"mac": "52:54:00:aa:bb:ce"}, {"serial": "B00B"}, {"serial": "B00B5", "hostname": "node9"},
    {"uuid": "4c4c4544-0042-3010-8051-b4c04f56443"}, {"serial": "node1"},  # a name is not a serial number
])
def test_fits_not(match: dict[str, Any]) -> None:
    assert not fits(match)


def test_an_unknown_fact_of_the_machine_is_no_fit() -> None:
    entries, _ = read_entries([{"match": {"serial": "X"}}], Texts(""))
    assert choose(entries, {}) == (None, [])


def test_numbers_are_the_text_that_stands_there() -> None:
    """`serial: 1e5` is what the maker printed on the board, and no 100000.0."""
    document = "machines: [{match: {serial: 1e5}}, {match: {serial: [0x10, 00012]}}]"
    tree = [{"match": {"serial": 100000.0}}, {"match": {"serial": [16, "00012"]}}]
    entries, complaints = read_entries(tree, Texts(document))
    assert not complaints
    for serial, index in (("1E5", 0), ("0x10", 1), ("00012", 1)):
        entry, _ = choose(entries, {"serial": [serial]})
        assert entry is not None and entry.index == index


def test_the_default_is_for_whom_nothing_else_fits() -> None:
    entries, _ = read_entries([{"match": {}}, {"match": {"serial": "B00B5"}}], Texts(""))
    chosen = [choose(entries, machine)[0] for machine in (MACHINE, {"serial": ["other"]}, {})]
    assert [entry.index if entry else None for entry in chosen] == [1, 0, 0]


def test_two_that_fit_are_a_complaint() -> None:
    entries, _ = read_entries([{"match": {"serial": "B00B5"}}, {"match": {"hostname": "node1"}}], Texts(""))
    entry, complaints = choose(entries, MACHINE)
    assert entry is None
    assert str(complaints[0]).startswith("machines[1].match: fits this machine, as machines[0].match does")


def test_a_folder_of_documents() -> None:
    names = ["node1.yaml", "52-54-00-AA-BB-CD.yml", "4C4C454400423010-8051B4C04F564432.json", "B00B5", "README.md",
             "node2.yaml", "default.yaml", ".yaml"]
    assert fitting_names(names, MACHINE) == names[:4]
