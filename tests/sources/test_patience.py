from __future__ import annotations

from itertools import islice

import pytest

from homeport.sources.patience import SYSTEM_CLOCK, delays, parse_retry_after

MONDAY = "Mon, 30 Nov 2026 19:00:00 GMT"
AT_MONDAY = 1796065200.0


@pytest.mark.parametrize(("chance", "factor"), [(0.5, 1.0), (0.0, 0.75), (1.0, 1.25)])
def test_delays_double_up_to_five_seconds_and_scatter(chance: float, factor: float) -> None:
    wanted = [0.25, 0.5, 1, 2, 4, 5, 5, 5]
    assert list(islice(delays(lambda: chance), 8)) == pytest.approx([delay * factor for delay in wanted])


def test_chance_is_below_one_and_not_always_the_same() -> None:
    values = {SYSTEM_CLOCK.chance() for _ in range(20)}
    assert len(values) > 1 and all(0 <= value < 1 for value in values)


@pytest.mark.parametrize(("value", "date", "seconds"), [
    ("7", "", 7.0),
    (" 7 ", "", 7.0),
    ("0", "", 0.0),
    ("9" * 400, "", 999999999.0),  # would be infinite
    ("-1", "", None),
    ("1.5", "", None),
    ("٧", "", None),  # a digit for str.isdigit, not for RFC 9110
    ("", "", None),
    ("soon", "", None),
    ("Mon, 30 Nov 2026 19:00:30 GMT", "", 30.0),
    ("Mon, 30 Nov 2026 18:00:00 GMT", "", 0.0),  # already over
    # Our clock may say 1970: two times of the server's own are the better measure.
    ("Mon, 30 Nov 2026 19:00:30 GMT", "Mon, 30 Nov 2026 19:00:10 GMT", 20.0),
    ("Mon, 30 Nov 2026 19:00:30 GMT", "nonsense", 30.0),
    ("Mon, 99 Nov 2026 19:00:30 GMT", "", None),
])
def test_retry_after(value: str, date: str, seconds: float | None) -> None:
    assert parse_retry_after(value, date, AT_MONDAY) == seconds
