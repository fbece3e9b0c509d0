"""One run's workplace: what is opened once, and how long anything may take."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.initramfs import put

from homeport.core.facts import Facts, Stage
from homeport.host.store import Store
from homeport.machine import Machine
from homeport.report import Report
from homeport.settings import Settings


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    return Machine(tmp_path, Settings(), Stage.INITRD, Store(tmp_path), Report())


@pytest.mark.parametrize(("left", "asked", "given"), [
    (None, 30.0, 30.0),  # the real root: each thing has its own limit
    (100.0, 30.0, 30.0),
    (10.0, 30.0, 10.0),
    (-5.0, 30.0, 0.5),  # over, but never nothing: a device that is there must be found
])
def test_all_of_it_ends(machine: Machine, left: float | None, asked: float, given: float) -> None:
    machine.ends = None if left is None else time.monotonic() + left
    assert machine.patience(asked) == pytest.approx(given)


@pytest.mark.parametrize(("left", "given"), [(None, 30.0), (30.0, 10.0), (300.0, 30.0), (0.0, 0.5)])
def test_a_share_of_what_is_left(machine: Machine, left: float | None, given: float) -> None:
    machine.ends = None if left is None else time.monotonic() + left
    assert machine.patience(30.0, share=1 / 3) == pytest.approx(given)


@pytest.mark.parametrize(("left", "quick", "undoing"), [
    (None, 30.0, 90.0), (300.0, 30.0, 90.0), (20.0, 20.0, 20.0), (7.0, 7.0, 10.0), (-5.0, 5.0, 10.0)])
def test_what_nmstatectl_has_left(machine: Machine, left: float | None, quick: float, undoing: float) -> None:
    """The last question, and what has to be undone, have some seconds also when all is over."""
    machine.ends = None if left is None else time.monotonic() + left
    assert machine.quick == pytest.approx(quick)
    assert machine.undoing == pytest.approx(undoing)


def test_nothing_is_protected_where_the_root_is_local(machine: Machine) -> None:
    put(machine.root, "proc/self/mountinfo", "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    machine.facts = Facts(cmdline="root=UUID=12")
    assert machine.protected == frozenset()


@pytest.mark.parametrize(("stage", "protected"), [(Stage.INITRD, False), (Stage.HOST, True)])
def test_a_root_that_is_only_promised(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, stage: Stage, protected: bool
) -> None:
    """In the initramfs it is not mounted yet, and must be mounted over the assigned addresses."""
    monkeypatch.setattr("homeport.host.rootfs.cards_under", lambda where, root: frozenset({"enp1s0"}))
    machine.stage = stage
    machine.facts = Facts(cmdline="netroot=iscsi:192.0.2.7::::iqn.x")
    assert bool(machine.protected) is protected
