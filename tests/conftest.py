"""The real `nmstatectl` as a judge, and the documents that it is asked about.

Knows where the set-up leaves the binary (`NMSTATECTL` in the environment or in build/paths.env).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[1]
DOCUMENTS = TOP / "tests" / "data" / "nmstate"

Judge = Callable[[str, object], tuple[bool, str]]


def find_nmstatectl() -> str:
    """Path of the binary, "" if there is none."""
    paths = TOP / "build" / "paths.env"
    lines = paths.read_text().splitlines() if paths.exists() else []
    told = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    named = os.environ.get("NMSTATECTL") or told.get("NMSTATECTL", "")
    return named if named and Path(named).exists() else shutil.which("nmstatectl") or ""


@pytest.fixture(scope="session")
def nmstatectl() -> Judge:
    """`nmstatectl VERB -` on a tree: whether it was accepted, and what it said."""
    binary = find_nmstatectl()
    if not binary:
        message = "no nmstatectl: run tools/setup, or set NMSTATECTL"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)

    def judge(verb: str, tree: object) -> tuple[bool, str]:
        # JSON is YAML, and spells every scalar unmistakably.
        result = subprocess.run(
            [binary, "-q", verb, "-"], input=json.dumps(tree).encode(), capture_output=True, check=False)
        return result.returncode == 0, (result.stderr or result.stdout).decode(errors="replace").strip()

    return judge


def corpus() -> Iterator[tuple[str, dict[str, Any]]]:
    """The documents in tests/data/nmstate, each with its description."""
    from homeport.core.yamlsafe import read_yaml

    for file in sorted(DOCUMENTS.glob("*.yaml")):
        for text in file.read_text().split("\n---\n"):
            tree = read_yaml(text).value
            yield f"{file.stem}: {tree['description']}", tree


@pytest.fixture(scope="session")
def documents() -> list[tuple[str, dict[str, Any]]]:
    return list(corpus())
