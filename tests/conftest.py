"""The real `nmstatectl` as a judge, and the documents that it is asked about.

Knows where the set-up leaves the binary (`NMSTATECTL` in the environment or in build/paths.env).
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# It finds faults, not busy machines. In CI the same examples every time: what fails there is what was changed, and not
# the one odd document in thousands that nobody drew before; those are looked for, and kept as @example, by whoever
# runs the tests at home. (hypothesis does this by itself where it knows the CI; not all of them are known to it.)
settings.register_profile("homeport", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("homeport-ci", settings.get_profile("homeport"), derandomize=True, database=None)
settings.load_profile("homeport-ci" if os.environ.get("CI") else "homeport")

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


# Values of the wrong and of the right kind, to put where something else stands.
_VALUES: list[object] = [
    None, True, False, 0, 1, -1, 255, 256, 65536, 2**32, 1.5, "", "yes", "no", "1", "0x10", "+5", "-5", " 5",
    "300", "foo", "up", "absent", "192.0.2.1", "2001:db8::1", "fe80::1%eth0", "01.2.3.4", "1_0", "٣", "Yes",
    [], {}, [1], {"a": 1}, [{}], [{"name": "a"}],
]


def _paths(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def mutant_of(tree: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """`tree` with one value changed, one key misspelt, added or taken away."""
    tree = copy.deepcopy(tree)
    *above, key = chance.choice(list(_paths(tree)))
    parent: Any = tree
    for step in above:
        parent = parent[step]
    what = chance.random()
    if what < 0.6 or not isinstance(parent, dict):
        parent[key] = copy.deepcopy(chance.choice(_VALUES))
    elif what < 0.7:
        del parent[key]
    elif what < 0.9:
        letters = list(str(key))
        letters[chance.randrange(len(letters))] = chance.choice("xab-_")
        parent["".join(letters)] = parent.pop(key)
    else:
        parent[chance.choice(["zz", "port", "ports", "bond", "enabled", "mtu", "bridge"])] = copy.deepcopy(
            chance.choice(_VALUES))
    return tree


@pytest.fixture(scope="session")
def mutants(documents: list[tuple[str, dict[str, Any]]]) -> Callable[[int, int], Iterator[tuple[str, dict[str, Any]]]]:
    """`count` documents with something wrong, the same for the same seed."""

    def make(seed: int, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
        chance = random.Random(seed)
        for _ in range(count):
            name, tree = chance.choice(documents)
            yield name, mutant_of(tree, chance)

    return make
