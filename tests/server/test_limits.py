"""Token buckets: how often is too often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport_server.web.limits import Buckets


def test_a_burst_and_then_the_rate() -> None:
    buckets = Buckets(rate=0.5, burst=3)
    assert [buckets.take("a", 0) for _ in range(4)] == [0, 0, 0, 2.0]
    assert buckets.take("a", 1.0) == 1.0
    assert buckets.take("a", 2.0) == 0
    assert buckets.take("b", 2.0) == 0


def test_looking_takes_nothing() -> None:
    buckets = Buckets(rate=1, burst=1)
    assert [buckets.wait("a", 0) for _ in range(3)] == [0, 0, 0]
    buckets.take("a", 0)
    assert buckets.wait("a", 0.25) == 0.75


@given(st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_never_more_than_burst_and_rate(pauses: list[float]) -> None:
    buckets = Buckets(rate=0.5, burst=4)
    now, taken = 0.0, 0
    for pause in pauses:
        now += pause
        taken += buckets.take("a", now) == 0
    assert taken <= 4 + now * 0.5 + 1e-6


def test_a_bounded_number_of_keys() -> None:
    buckets = Buckets(rate=1, burst=1, most_keys=10)
    for key in range(1000):
        buckets.take(str(key), 0)
    assert len(buckets._left) == 10
    assert buckets.take("999", 0) == pytest.approx(1)
