"""The documentation is compared with the program: commands, options, exit statuses, and the examples work."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

import pytest

from homeport_server.cli import EPILOG, build_parser
from homeport_server.manifests.sets import read_manifests

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", (DOCS / "pool.md").read_text(), re.DOTALL | re.MULTILINE)


def page() -> str:
    """The manual page without what is for the eye."""
    return re.sub(r"\\f[RBIP]|\\&", "", (DOCS / "homeport-server.8").read_text()).replace("\\-", "-")


def commands() -> dict[str, argparse.ArgumentParser]:
    actions = build_parser()._subparsers._group_actions  # type: ignore[union-attr]
    return {name: parser for action in actions for name, parser in action.choices.items()}  # type: ignore[union-attr]


@pytest.mark.parametrize("command", commands())
def test_every_command_and_its_flags_are_described(command: str) -> None:
    section = page().partition(".SH COMMANDS")[2].partition(".SH MANIFESTS")[0]
    described = re.search(rf"^{command}\b.*?(?=^(?:{'|'.join(commands())})\b|\Z)", section, re.DOTALL | re.MULTILINE)
    assert described is not None
    flags = {flag for action in commands()[command]._actions for flag in action.option_strings if flag.startswith("--")}
    assert {flag for flag in flags - {"--help", "--debug", "--state"} if flag not in described[0]} == set()


def test_no_command_or_flag_is_described_that_is_not_there() -> None:
    text = page()
    flags = {flag for parser in commands().values() for action in parser._actions for flag in action.option_strings}
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= flags
    section = text.partition(".SH COMMANDS")[2].partition(".SH MANIFESTS")[0]
    described = re.findall(r"^\.TP\n([a-z]+)\b", section, re.MULTILINE)
    assert described == list(commands())


def test_exit_statuses() -> None:
    section = page().partition(".SH EXIT STATUS")[2].partition(".SH FILES")[0]
    described = set(map(int, re.findall(r"^\.B (\d+)$", section, re.MULTILINE)))
    assert described == {0, *map(int, re.findall(r"\b(6\d|7\d)\b", EPILOG))}
    assert described == {0, os.EX_USAGE, os.EX_DATAERR, os.EX_NOINPUT, os.EX_UNAVAILABLE, os.EX_SOFTWARE,
                         os.EX_CANTCREAT, os.EX_CONFIG}


def test_the_examples_are_sound_together() -> None:
    assert len(EXAMPLES) == 2
    manifests, faults = read_manifests({f"{index}.yaml": text.encode() for index, text in enumerate(EXAMPLES)})
    assert [str(fault) for fault in faults] == []
    pool = manifests.pools["InClusterIPPool/default/bench-pool"]
    assert f"{pool.ranges.size} addresses, /{pool.prefix}, gateway {pool.gateway}" in (DOCS / "pool.md").read_text()
