"""docs/platforms.md says what the modules say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

TOP = Path(__file__).resolve().parents[3]


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("platform_table", TOP / "tools/platform-table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_modules() -> None:
    page = (TOP / "docs/platforms.md").read_text(encoding="utf-8")
    assert tool().filled(page) == page, "run tools/platform-table.py"


def test_the_table_has_no_gaps() -> None:
    rows = tool().table().splitlines()[2:]
    assert all(cell.strip() for row in rows for cell in row.strip("|").split("|"))
