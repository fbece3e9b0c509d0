"""How a machine was booted."""

from __future__ import annotations

import pytest

from homeport.core.facts import Mode
from homeport.core.mode import MARKERS, find_mode

PLAN = "/oem/reset-cloud-config.yaml"


@pytest.mark.parametrize(("setting", "cmdline", "markers", "mode", "reason"), [
    (None, "", [], "active", "nothing says otherwise"),
    ("auto", "quiet ro", [], "active", "nothing says otherwise"),
    # the setting wins over everything
    ("active", "elemental.mode=recovery", ["/run/elemental/recovery_mode"], "active", "homeport.mode=active"),
    ("reset", "", [], "reset", "homeport.mode=reset"),
    ("mad", "", [], "active", "nothing"),  # settings.py refuses it before
    # then markers, /run/elemental before /run/cos
    ("", "", ["/run/elemental/passive_mode"], "passive", "/run/elemental/passive_mode exists"),
    ("", "", ["/run/cos/passive_mode"], "passive", "/run/cos/passive_mode"),
    ("", "", ["/run/cos/recovery_mode", "/run/elemental/active_mode"], "active", "/run/elemental/active_mode"),
    ("", "elemental.mode=active", ["/run/elemental/recovery_mode"], "recovery", "/run/elemental/recovery_mode"),
    ("", "", ["/run/elemental/live_mode"], "live", "live_mode"),
    # of two, the one that puts less in force
    ("", "", ["/run/elemental/active_mode", "/run/elemental/recovery_mode"], "recovery", "recovery_mode"),
    # then kernel arguments
    ("", "elemental.mode=passive", [], "passive", "kernel argument elemental.mode=passive"),
    ("", "elemental.mode=fast elemental.mode=recovery", [], "recovery", "elemental.mode=recovery"),
    ("", "elemental.mode=reset", [], "active", "nothing"),  # Elemental has no such argument
    ("", "root=live:CDLABEL=COS_LIVE rd.live.dir=/", [], "live", "root=live:CDLABEL=COS_LIVE"),
    ("", "elemental.disable", [], "live", "kernel argument elemental.disable"),
    ("", "rd.cos.disable=1", [], "live", "rd.cos.disable=1"),
    # recovery with a plan to reset is reset; the plan alone is nothing
    ("", "", ["/run/elemental/recovery_mode", PLAN], "reset", f"recovery_mode exists and {PLAN} exists"),
    ("", "elemental.mode=recovery", [PLAN], "reset", PLAN),
    ("", "", [PLAN], "active", "nothing"),
    ("recovery", "", [PLAN], "recovery", "homeport.mode=recovery"),  # somebody wants to look, not to reset
])
def test_mode(setting: str | None, cmdline: str, markers: list[str], mode: str, reason: str) -> None:
    found, why = find_mode(setting, cmdline, markers)
    assert found == Mode(mode)
    assert reason in why


def test_only_the_listed_markers_are_asked_for() -> None:
    asked = set()

    class Markers:
        def __contains__(self, path: object) -> bool:
            asked.add(path)
            return path == "/run/cos/recovery_mode"

    find_mode("", "", Markers())
    assert PLAN in asked
    assert asked <= set(MARKERS)
