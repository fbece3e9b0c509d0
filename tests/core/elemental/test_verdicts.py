"""What a registration that went no further means for this machine."""

from __future__ import annotations

import pytest

from homeport.core.elemental.conversation import Phase
from homeport.core.elemental.messages import Reason
from homeport.core.elemental.verdicts import on_close, on_status, on_words
from homeport.errors import NoAssignment, Pending, RefusedBySource, SourceError, Unreachable

URL = "https://rancher.example/elemental/registration"


@pytest.mark.parametrize(("phase", "seconds", "kind", "words"), [
    (Phase.AUTHENTICATION, 0.1, Unreachable, "while it authenticated this machine (as the MAC x)"),
    (Phase.VERSION, 0.1, Unreachable, "when told our protocol version"),
    (Phase.SMBIOS, 0.1, Unreachable, "when sent the SMBIOS data"),
    (Phase.LABELS, 0.1, Unreachable, "when sent the labels"),
    (Phase.CONFIGURATION, 0.2, Unreachable, "instead of sending the configuration"),  # its log knows why
    (Phase.CONFIGURATION, 10.0, Pending, "has no network configuration for this machine yet"),  # its own deadline
    (Phase.AUTHENTICATION, 10.0, Unreachable, "while it authenticated"),
])
def test_a_silent_close_is_explained_by_its_phase(
        phase: Phase, seconds: float, kind: type[SourceError], words: str) -> None:
    verdict = on_close(phase, seconds, URL, "as the MAC x")
    assert type(verdict) is kind
    assert words in verdict.message
    assert verdict.hint


@pytest.mark.parametrize(("words", "kind"), [
    # What elemental-operator says (spec/elemental.md, 1.8).
    ("MachineInventory not found", NoAssignment),
    ("MachineInventory creation failed: failed to create machine inventory fleet-default/a: "
     'machineinventories.elemental.cattle.io "a" already exists', RefusedBySource),
    ("MachineInventory creation failed: machine inventory with TPM hash 'x' already present: a/b", RefusedBySource),
    ("MachineInventory update failed: failed to update machine inventory a/b: Operation cannot be fulfilled on "
     'machineinventories.elemental.cattle.io "b": the object has been modified; please apply your changes to the '
     "latest version and try again", Unreachable),
    ("NewtworkConfig not ready", Pending),  # sic
    ("machine registration is not ready", Unreachable),
    ("server-url is not set", Unreachable),
    ("failed to get service account: not found", Unreachable),
    ("", Unreachable),
])
def test_the_server_s_words(words: str, kind: type[SourceError]) -> None:
    verdict = on_words(Reason(words), Phase.CONFIGURATION, URL)
    assert type(verdict) is kind
    assert words in verdict.message


def test_what_homeport_server_says_when_a_pool_is_empty() -> None:
    verdict = on_words(Reason("not ready: the pool is exhausted", pending=True, retry_after=10.0), Phase.LABELS, URL)
    assert isinstance(verdict, Pending)
    assert verdict.retry_after == 10.0


def test_a_race_is_run_again_at_once() -> None:
    verdict = on_words(Reason("Operation cannot be fulfilled on x: the object has been modified"), Phase.LABELS, URL)
    assert isinstance(verdict, Unreachable)
    assert verdict.retry_after == 0.0


@pytest.mark.parametrize(("status", "body", "kind"), [
    (404, "failed to find machine registration with registration token t0ken", NoAssignment),
    (404, "", NoAssignment),
    (404, "MachineRegistration fleet-default/fire-nodes is not ready", Unreachable),
    (401, "", RefusedBySource),
    (403, "<html>", RefusedBySource),
    (429, "", Unreachable),
    (503, "t0ken " * 100, Unreachable),
    (200, "elemental:\n  registration: {url: https://x/t0ken}", SourceError),  # no websocket came of it
    (301, "", SourceError),
    (400, "unknwon api: x", SourceError),
])
def test_an_http_answer(status: int, body: str, kind: type[SourceError]) -> None:
    verdict = on_status(status, body, URL, "t0ken")
    assert type(verdict) is kind
    assert "t0ken" not in str(verdict)
