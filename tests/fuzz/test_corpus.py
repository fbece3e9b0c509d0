"""What fuzzing found, and what covers the parsers best, as ordinary tests: no fuzzer is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from targets import TARGETS, load

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_cases(name: str) -> None:
    target = load(name)
    cases = {path.name: path.read_bytes() for path in sorted((CORPUS / name).iterdir())}
    seeds = {f"seed {number}": seed for number, seed in enumerate(target.seeds)}
    assert cases and seeds
    for case, data in (cases | seeds).items():
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"on {case} of {name}")
            raise


def test_every_folder_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    modules = {path.stem for path in (Path(__file__).parent / "targets").glob("*.py")} - {"__init__"}
    assert modules == set(TARGETS)
