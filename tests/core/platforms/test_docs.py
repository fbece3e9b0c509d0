"""docs/platforms.md says what the modules say."""

from __future__ import annotations

import importlib.util
import re
from itertools import takewhile
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


def rows(heading: str) -> list[str]:
    """The rows of the first table under a heading of docs/coming-from.md."""
    page = (TOP / "docs/coming-from.md").read_text(encoding="utf-8")
    lines = page.partition(f"{heading}\n")[2].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    return list(takewhile(lambda line: line.startswith("|"), lines[start + 1:]))


def named(row: str) -> list[str]:
    return re.findall(r"`([^`]+)`", row.rpartition(" | ")[2])


def exists(name: str, folder: str) -> bool:
    """Whether a test or a golden folder is there; one without a folder is where the one before it was."""
    path, _, function = (name if "/" in name else f"{folder}/{name}").partition("::")
    file = TOP / path
    return file.exists() and (not function or f"def {function}(" in file.read_text(encoding="utf-8"))


def test_what_holds_each_feature_is_there() -> None:
    for row in rows("## Feature by feature"):
        names = named(row)
        # Every feature of ours has a test: only what is out of scope has none.
        assert bool(names) != row.startswith("| SSH keys |"), row
        folder = ""
        for name in names:
            assert exists(name, folder), name
            folder = str(Path(name.partition("::")[0]).parent) if "/" in name else folder


def test_what_holds_each_fault_is_there() -> None:
    names = [name for row in rows("### Faults that are not ours") for name in named(row)]
    file = "tests/core/platforms/test_not_copied.py"
    assert len(names) == len(set(names)) == 14
    assert [name for name in names if not exists(f"{file}::{name}", "")] == []


def test_a_name_that_is_wrong_is_found() -> None:
    assert not exists("tests/core/platforms/test_docs.py::test_nothing", "")
    assert not exists("no-such-case", "tests/data/platforms")
    assert exists("packet-bond", "tests/data/platforms")
