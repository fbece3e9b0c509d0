"""A value of a document in a few safe words, for a complaint.

Documents are hostile until checked: nothing here lets a control character, a terminal escape or a
page of text through to a console or the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homeport.core.complaint import Path, render_path

_LONGEST = 60
# Suggestions for that many unknown words in a document; each costs some 0.1 ms.
GUESSES = 50


def show(value: object, limit: int = _LONGEST) -> str:
    """`value` on one line of printable characters: text in quotes, containers by what they hold."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{printable(value, limit)}'"
    if isinstance(value, dict):
        return f"a mapping with {_keys(value)}" if value else "an empty mapping"
    if isinstance(value, Sequence):
        return f"a list of {len(value)}" if value else "an empty list"
    return printable(repr(value), limit)


def printable(text: str, limit: int = _LONGEST) -> str:
    """`text` with everything escaped that a terminal would not simply print, cut at `limit`."""
    # Cut first: escaping a whole 512 KiB scalar for sixty characters of it would be a waste.
    cut = text[:limit]
    safe = cut if cut.isprintable() else "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in cut)
    return safe if len(text) <= limit else safe + "…"


def safe_path(path: Path) -> str:
    """`path` as `render_path` gives it, its keys fit to be printed."""
    return render_path(tuple(printable(part) if isinstance(part, str) else part for part in path))


def listing(names: Iterable[object], limit: int = 8) -> str:
    """`a, b, c` for a message; what is beyond `limit` is counted."""
    shown = [printable(str(name)) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that `word` was most likely meant to be, "" if none is near."""
    import difflib  # only needed once something is wrong

    plain = {_plain(name): name for name in known}
    found = difflib.get_close_matches(_plain(word[:80]), list(plain), n=1, cutoff=0.6)
    return plain[found[0]] if found else ""


def meant(word: object, known: Sequence[str], guess: bool = True, limit: int = 8) -> str:
    """What would be right in place of an unknown `word`: the nearest known one, or all of them.

    Without `guess` only the latter: guessing takes long enough to count in a hostile document.
    """
    near = nearest(word, known) if guess and isinstance(word, str) else ""
    return f"did you mean '{near}'?" if near else f"one of {listing(known, limit)}"


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def _keys(mapping: dict[object, object]) -> str:
    return "key " + listing(mapping, 1) if len(mapping) == 1 else "keys " + listing(mapping, 4)
