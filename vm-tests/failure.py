"""The report of a failed boot test: all that a person needs first, in the order in which it is needed.

Only reads and tells; a machine that does not answer any more is told of, too, and never ends the report.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from container import Machine
from vm.machine import Vm

# The real root's comes last and tells of the whole boot; before it is written there is only the other one.
_STATUS = (("/run/homeport/status.json", ""), ("/run/homeport/initrd-status.json", "in the initramfs: "))


class Scenario(Protocol):
    """What conftest.Scenario has."""

    @property
    def name(self) -> str: ...
    @property
    def machines(self) -> Sequence[Machine | Vm]: ...


def describe(scenario: Scenario, node: str) -> str:
    """Scenario, machines, and how to run the test `node` again and log in."""
    parts = [f"scenario: {scenario.name}"]
    for machine in scenario.machines:
        parts += _describe_machine(machine)
    virtual = any(isinstance(machine, Vm) for machine in scenario.machines)
    parts.append(f"run it again and stay logged in:\n  {again(node, virtual=virtual)}")
    return "\n".join(parts)


def again(node: str, *, virtual: bool) -> str:
    """The command that runs a test once more and leaves a person in its machine."""
    name = node.rpartition("::")[2].removeprefix("test_")
    # What stands between brackets is quoted where pytest's -k does not take it.
    if virtual and (known := re.match(r"[\w.-]+(\[[\w.-]+\]$)?", name)):
        return f"make vm-shell SCENARIO={shlex.quote(known[0])}"
    return f"{sys.executable} -m pytest --stay {shlex.quote(node)}"


def _describe_machine(machine: Machine | Vm) -> list[str]:
    show = attempt(lambda: machine.run(["nmstatectl", "show"]).stdout) if machine.running else "(it is off)"
    return [
        f"machine {machine.name}, boot {machine.boots}, {'running' if machine.running else 'off'}",
        f"last step reached: {attempt(lambda: last_step(machine))}",
        f"our journal:\n{attempt(lambda: machine.story(all_boots=True)) or '(nothing)'}",
        f"nmstatectl show:\n{show}",
        f"full journal: journalctl -D {machine.journal_folder}   console: {machine.folder}/console-*.log",
    ]


def last_step(machine: Machine | Vm) -> str:
    """By the status file, of whichever stage; where there is none, the last word in the journal of this boot."""
    for path, where in _STATUS:
        try:
            status = json.loads(machine.read(path))
        except (OSError, ValueError):
            continue
        steps = [str(step.get("name")) for step in status.get("steps", ())]
        what = f"exit {status.get('exit')}, rung {status.get('rung')}: {status.get('reason')}"
        return f"{where}{steps[-1] if steps else 'none'} ({what})"
    words = machine.story().splitlines()
    return f"no status file; the last word: {words[-1]}" if words else "none (no status file, nothing in our journal)"


def attempt(ask: Callable[[], str]) -> str:
    """A question that fails is answered by its failure."""
    try:
        return ask()
    except Exception as error:
        return f"({type(error).__name__}: {error})"
