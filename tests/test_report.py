"""What a run says of itself, to programs and to people."""

from __future__ import annotations

import json
import os

import pytest

from homeport.core.complaint import Complaint
from homeport.errors import ApplyError, DocumentError, PersistError, Unreachable
from homeport.report import Report, shorten, show_status, show_table


def test_first_failure_is_the_cause() -> None:
    report = Report()
    report.fell("assigned", Unreachable("no answer", "check the cable"))
    report.fell("last-known-good", ApplyError("refused"))
    report.reached("dhcp")
    assert (report.exit, report.reason, report.hint) == (os.EX_UNAVAILABLE, "no answer", "check the cable")
    assert report.fallen == ["assigned: no answer", "last-known-good: refused"]
    assert report.line() == "on DHCP: no answer"


def test_complaints_of_all_rungs_once() -> None:
    report = Report()
    fault = Complaint("routes.config[0]", "no interface", "name one")
    report.fell("assigned", DocumentError([fault, Complaint("a", "b", "c")]))
    report.fell("last-known-good", DocumentError([fault]))
    assert len(report.complaints) == 2
    assert report.exit == os.EX_DATAERR


def test_blemish_keeps_the_rung() -> None:
    report = Report()
    report.blemish(PersistError("cannot be kept", "make room"))
    report.reached("assigned")
    assert (report.rung, report.exit) == ("assigned", os.EX_CANTCREAT)
    assert report.line() == "assigned configuration in force: cannot be kept"


def test_steps_are_timed_also_when_they_fail() -> None:
    report = Report()
    with pytest.raises(ApplyError), report.step("apply"):
        raise ApplyError("refused")
    assert [(step.name, step.note) for step in report.steps] == [("apply", "refused")]
    assert report.steps[0].seconds >= 0


def test_status_is_json_and_reads_back_as_a_table() -> None:
    report = Report(mode="active", identity={"kind": "mac", "value": "52:54:00:00:00:01", "provenance": "enp1s0"})
    report.fell("assigned", DocumentError([Complaint("interfaces[0].mtu", "12", "at least 68")]))
    with report.step("fetch") as notes:
        notes.append("12 bytes")
    report.reached("last-known-good")
    status = json.loads(json.dumps(report.as_json()))
    assert status["status_version"] == 1
    assert status["result"] == "failed"
    text = show_status(status)
    assert "NOT as it should (exit 65)" in text
    assert "mac 52:54:00:00:00:01 (enp1s0)" in text
    assert "fetch        12 bytes" in text
    assert "interfaces[0].mtu: 12; at least 68" in text


@pytest.mark.parametrize(("text", "width", "wanted"), [
    ("short", 10, "short"),
    ("two\nlines  and   blanks", 40, "two lines and blanks"),
    ("exactly ten", 11, "exactly ten"),
    ("cut at a word", 10, "cut at a…"),
    ("a" * 30, 10, "a" * 9 + "…"),  # no word to cut at
    ("full: /var/lib/homeport/assigned.yaml", 30, "full: /var/lib/homeport/assig…"),  # the space would say less
])
def test_shorten(text: str, width: int, wanted: str) -> None:
    assert shorten(text, width) == wanted


def test_result_line_fits_the_console() -> None:
    report = Report()
    report.fell("assigned", Unreachable("word " * 60))
    report.reached("left-as-found")
    assert len(f"homeport: {report.line()}") <= 100


def test_status_of_a_run_that_asked_for_no_identity() -> None:
    assert "identity" not in show_status({"rung": "dhcp", "exit": 0})


def test_table() -> None:
    assert show_table([("a", "b"), ("longer", "")]) == "a       b\nlonger"
