"""docs/platforms.md says what the modules say."""

from __future__ import annotations

import importlib.util
import re
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


def test_what_holds_each_feature_is_there() -> None:
    page = (TOP / "docs/coming-from.md").read_text(encoding="utf-8")
    table = page.partition("## Feature by feature")[2].partition("\n## ")[0]
    for row in table.strip().splitlines()[2:]:
        folder = ""
        for name in re.findall(r"`([^`]+)`", row.rpartition(" | ")[2]):
            path, _, function = (name if "/" in name else f"{folder}/{name}").partition("::")
            folder = str(Path(path).parent)  # of the names after it that are bare
            assert (TOP / path).exists(), name
            assert not function or f"def {function}(" in (TOP / path).read_text(encoding="utf-8"), name
