"""How often something may be asked: token buckets, one for each key, of a bounded number of keys.

Pure: time is an argument, in seconds, and only goes forward.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass
class Buckets:
    """`burst` at once, then `rate` a second, for each key. The keys that were not used for longest are forgotten."""

    rate: float
    burst: float
    most_keys: int = 10_000
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # key -> tokens, when

    def take(self, key: str, now: float, tokens: float = 1.0) -> float:
        """0 if it may be done now (and counts as done), else the seconds until then."""
        left = self._level(key, now)
        if left < tokens:
            return (tokens - left) / self.rate
        self._put(key, left - tokens, now)
        return 0.0

    def wait(self, key: str, now: float) -> float:
        """The same, without doing it."""
        return max(0.0, (1.0 - self._level(key, now)) / self.rate)

    def _level(self, key: str, now: float) -> float:
        left, when = self._left.get(key, (self.burst, now))
        return min(self.burst, left + (now - when) * self.rate)

    def _put(self, key: str, left: float, now: float) -> None:
        self._left[key] = left, now
        self._left.move_to_end(key)
        if len(self._left) > self.most_keys:
            self._left.popitem(last=False)
