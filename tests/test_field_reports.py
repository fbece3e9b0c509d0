"""docs/field-reports.md has a row for each report of the collection, and names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
# The collection itself is not part of this repository.
NUMBERS = [
    1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 26, 27, 28, 29, 30, 31, 32, 34, 35, 37,
    38, 39, 40, 41, 42, 44, 45, 47, 48, 49, 51, 52, 53, 55, 58, 59, 60,
]  # fmt: skip
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = ROW.findall((TOP / "docs/field-reports.md").read_text(encoding="utf-8"))


def test_each_report_has_its_row() -> None:
    assert sorted(int(number) for number, *_ in ROWS) == NUMBERS


@pytest.mark.parametrize(("number", "elsewhere", "here", "shown"), ROWS, ids=[row[0] for row in ROWS])
def test_each_row_names_a_test(number: str, elsewhere: str, here: str, shown: str) -> None:
    named = re.findall(r"`([^`]+)`", shown)
    assert named
    for name in named:
        path, _, function = name.partition("::")
        assert function in functions_in(path), f"row {number}: {name}"


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((TOP / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
