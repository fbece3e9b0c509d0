"""The nearest known word to a misspelt one, found in bounded time.

Knows edit distance and the words that people bring from other tools. Refuses to guess when nothing
is near, and stops guessing after `BUDGET` different words: a hostile document may hold thousands.
"""

from __future__ import annotations

from collections.abc import Iterable

BUDGET = 400
_LONGEST = 48

# What netplan, network_data.json, ifupdown or habit call it, where edit distance cannot see it.
_DEFAULT_ROUTE = "a route in routes.config with next-hop-address and destination "
_HABITS = {
    "gateway": _DEFAULT_ROUTE + "0.0.0.0/0 or ::/0",
    "gateway4": _DEFAULT_ROUTE + "0.0.0.0/0",
    "gateway6": _DEFAULT_ROUTE + "::/0",
    "nameservers": "dns-resolver.config.server",
    "dns": "dns-resolver.config.server",
    "dns-servers": "dns-resolver.config.server",
    "dhcp4": "ipv4.dhcp",
    "dhcp6": "ipv6.dhcp",
    "slaves": "port",
    "macaddress": "mac-address",
    "hwaddr": "mac-address",
    "via": "next-hop-address",
    "to": "destination",
    "dev": "next-hop-interface",
    "table": "table-id or route-table",
    "parent": "base-iface",
}


class Guesser:
    """Suggests; remembers what it was asked, so that the same mistake made often costs once."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._left = budget
        self._known: dict[tuple[str, int], str] = {}

    def nearest(self, word: str, among: Iterable[str]) -> str:
        """The one of `among` that `word` probably means, or what to use instead, or ""."""
        words = tuple(among)
        key = (word, hash(words))
        if key not in self._known:
            if self._left <= 0 or len(word) > _LONGEST:
                return ""
            self._left -= 1
            self._known[key] = _nearest(word, words)
        return self._known[key]


def _nearest(word: str, words: tuple[str, ...]) -> str:
    plain = _plain(word)
    for known in words:
        if _plain(known) == plain:
            return known
    best, best_distance = "", max(1, (len(plain) + 1) // 3) + 1
    for known in words:
        distance = _distance(plain, _plain(known), best_distance)
        if distance < best_distance:
            best, best_distance = known, distance
    if best:
        return best
    longer = [known for known in words if len(plain) >= 3 and known.startswith(word + "-")]
    return longer[0] if len(longer) == 1 else _HABITS.get(word.lower(), "")


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "").replace(" ", "")


def _distance(one: str, other: str, limit: int) -> int:
    """Damerau-Levenshtein (neighbours may swap); `limit` or more means "too far"."""
    if abs(len(one) - len(other)) >= limit:
        return limit
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row_before = before, row
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(row_before[j] + 1, row[j - 1] + 1, row_before[j - 1] + (a != b))
            if last and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) >= limit:
            return limit
        before = row_before
    return row[-1]
