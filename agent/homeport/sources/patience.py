"""How long to wait before asking again. Pure: clock and randomness are handed in.

The figures are design.md, section 6: a storm of machines after a power cut must not meet at the server
again at the same instant.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

FIRST, LONGEST, JITTER = 0.25, 5.0, 0.25  # seconds, seconds, share


def _chance() -> float:
    """A number in [0, 1). Not the `random` module: that would seed itself for one number."""
    return int.from_bytes(os.urandom(4), "big") / (1 << 32)


@dataclass(frozen=True)
class Clock:
    """Time as the sources see it: seconds of a clock that only advances, of the calendar, and chance."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = _chance


SYSTEM_CLOCK = Clock()


def delays(chance: Callable[[], float]) -> Iterator[float]:
    """Seconds between attempts, for ever: 0.25, 0.5, 1, 2, 4, 5, 5, ..., each up to 25 % off."""
    delay = FIRST
    while True:
        yield delay * (1 + JITTER * (2 * chance() - 1))
        delay = min(2 * delay, LONGEST)


def parse_retry_after(value: str, date: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3), None if there is none to heed.

    A point in time counts from the server's own `date` header where there is one: our clock (`now`) may
    be far off at boot.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])  # 31 years; more digits only serve to be infinite
    until, since = _parse_date(value), _parse_date(date)
    if until is None:
        return None
    return max(0.0, until - (now if since is None else since))


def _parse_date(text: str) -> float | None:
    from email.utils import parsedate_to_datetime
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
