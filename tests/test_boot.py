"""The ladder: which rung is reached, and what the exit status says of the fall."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from homeport import boot
from homeport.core.complaint import Complaint
from homeport.core.facts import Stage
from homeport.errors import (
    ApplyError,
    DocumentError,
    HomeportError,
    NoAssignment,
    Pending,
    PersistError,
    ProofError,
    RefusedBySource,
    SettingsError,
    Unconfigured,
    Unreachable,
)
from homeport.host.store import Store
from homeport.machine import Machine
from homeport.prepared import Prepared
from homeport.report import Report
from homeport.settings import Settings

BAD = DocumentError([Complaint("interfaces[0].mtu", "12", "at least 68")])
NEVER = NoAssignment("nothing was ever proven on this machine")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, Settings(), Stage.HOST, Store(tmp_path), Report())


def holds(_: Machine) -> None:
    pass


def fails(error: HomeportError) -> Callable[[Machine], None]:
    def rung(_: Machine) -> None:
        raise error
    return rung


@pytest.mark.parametrize(("assigned", "kept", "rung", "status"), [
    (None, None, "assigned", os.EX_OK),
    # A source that gives nothing is no failure while what it once assigned is in force ...
    (Unreachable("no answer"), None, "last-known-good", os.EX_OK),
    (Pending("no address yet"), None, "last-known-good", os.EX_OK),
    (NoAssignment("404"), None, "last-known-good", os.EX_OK),
    # ... but one that refuses this machine, or sends what cannot be used, is.
    (RefusedBySource("403"), None, "last-known-good", os.EX_NOPERM),
    (BAD, None, "last-known-good", os.EX_DATAERR),
    (ApplyError("refused"), None, "last-known-good", os.EX_TEMPFAIL),
    (ProofError("gateway silent"), None, "last-known-good", os.EX_TEMPFAIL),
    # Nothing assigned is in force: the cause is the first failure.
    (Unreachable("no answer"), NEVER, "dhcp", os.EX_UNAVAILABLE),
    (NoAssignment("404"), NEVER, "dhcp", os.EX_UNAVAILABLE),
    (BAD, NEVER, "dhcp", os.EX_DATAERR),
    (ProofError("gateway silent"), NEVER, "dhcp", os.EX_TEMPFAIL),
    # Nobody told this machine anything.
    (Unconfigured("no source"), NEVER, "dhcp", os.EX_OK),
])
def test_rung_and_exit_status(
    assigned: HomeportError | None, kept: HomeportError | None, rung: str, status: int, machine: Machine,
) -> None:
    boot.climb(machine, (
        ("assigned", fails(assigned) if assigned else holds),
        ("last-known-good", fails(kept) if kept else holds),
        ("dhcp", holds)))
    boot.forgive(machine)
    assert (machine.report.rung, machine.report.exit) == (rung, status)


def test_not_persisted_is_still_in_force(machine: Machine) -> None:
    """The next rung would take away what was just proven."""
    boot.climb(machine, (("assigned", fails(PersistError("/etc is read-only"))), ("dhcp", holds)))
    assert (machine.report.rung, machine.report.exit) == ("assigned", os.EX_CANTCREAT)


@pytest.mark.parametrize(("assigned", "status"), [
    (None, os.EX_CONFIG),
    (ProofError("gateway silent"), os.EX_TEMPFAIL),  # the worse news
])
def test_settings_that_cannot_be_read_are_told_at_last(
    assigned: HomeportError | None, status: int, machine: Machine,
) -> None:
    machine.settings_fault = SettingsError("homeport.conf:1: 'soon' is not a value for deadline")
    boot.climb(machine, (("assigned", fails(assigned) if assigned else holds), ("dhcp", holds)))
    boot.remind(machine)
    assert machine.report.exit == status


def test_below_the_lowest_rung_the_network_is_left_alone(machine: Machine) -> None:
    boot.climb(machine, (("dhcp", fails(ApplyError("no lease"))),))
    assert (machine.report.rung, machine.report.exit) == ("left-as-found", os.EX_TEMPFAIL)


def test_bug_is_told_with_its_traceback_and_the_ladder_goes_on(
    machine: Machine, caplog: pytest.LogCaptureFixture,
) -> None:
    def buggy(_: Machine) -> None:
        raise KeyError("name")
    boot.climb(machine, (("assigned", buggy), ("dhcp", holds)))
    assert (machine.report.rung, machine.report.exit) == ("dhcp", os.EX_SOFTWARE)
    assert "Traceback" in caplog.text
    assert "KeyError: 'name'" in machine.report.reason


def test_each_fall_is_one_line_on_the_console(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    boot.climb(machine, (("assigned", fails(Unreachable("word " * 60))), ("dhcp", holds)))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("homeport: assigned: word")
    assert len(line) <= 100


def test_ladders_end_where_somebody_can_log_in() -> None:
    assert [name for name, _ in boot.LADDER] == ["assigned", "last-known-good", "seed", "left-as-found", "dhcp"]
    assert [name for name, _ in boot.LADDER_ON_DHCP] == ["dhcp"]
    assert "dhcp" not in dict(boot.LADDER_OF_REFRESH), "a refresh must not take a running network away"


@pytest.mark.parametrize(("before", "rung"), [
    ({"rung": "seed", "source": "file /usr/lib/homeport/seed.yaml", "revision": "sha256:1"}, "seed"),
    ({"rung": "seed", "boot_id": "another"}, "left-as-found"),
    ({"rung": "dhcp"}, "left-as-found"),
    (None, "left-as-found"),
])
def test_a_refresh_that_brings_nothing_leaves_a_seed_a_seed(
    before: dict[str, str] | None, rung: str, machine: Machine,
) -> None:
    """Monitoring would see the network of somebody else, and nothing waited for what is in force."""
    machine.report.boot_id = "this"
    machine.prepared = Prepared("seed", proven=True)
    if before is not None:
        machine.store.write_status({"boot_id": "this"} | before)
    boot.climb(machine, (("assigned", fails(Unconfigured("no source"))), *boot.LADDER_OF_REFRESH[2:3],
                         ("left-as-found", holds)))
    assert machine.report.rung == rung
    assert machine.on_prepared == (rung == "seed")  # which `settle` leaves where they are
    assert (machine.report.source == "file /usr/lib/homeport/seed.yaml") == (rung == "seed")
