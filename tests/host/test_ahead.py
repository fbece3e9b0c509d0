"""Work begun ahead: its result, its failure, and that it really goes on meanwhile."""

from __future__ import annotations

import threading

import pytest

from homeport.errors import ApplyError
from homeport.host.ahead import Ahead


def test_it_goes_on_while_nobody_waits() -> None:
    gate, done = threading.Event(), threading.Event()

    def work() -> int:
        gate.wait(5)
        done.set()
        return 7

    ahead = Ahead(work)
    assert not done.is_set()
    gate.set()
    assert done.wait(5)
    assert ahead.result() == 7
    assert ahead.result() == 7


def test_its_failure_is_the_waiters() -> None:
    def work() -> int:
        raise ApplyError("refused")

    ahead = Ahead(work)
    with pytest.raises(ApplyError, match="refused"):
        ahead.result()
