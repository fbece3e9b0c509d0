"""Complaints for people and programs: a table on a terminal, one a line in a journal, or JSON.

Whatever a complaint quotes, no more than printable characters on one line come out of here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from homeport.core.complaint import Complaint
from homeport.core.showing import printable

_TITLES = ("where", "what stands there", "what would be right")
_WHOLE = "(the whole document)"
_GAP = "  "
_NARROWEST = 12
_LONGEST_FIELD = 1_000


def as_lines(complaints: Iterable[Complaint]) -> list[str]:
    """One line a complaint: `path: found; wanted`."""
    return [str(Complaint(*_fields(complaint))) for complaint in complaints]


def as_json(complaints: Iterable[Complaint]) -> str:
    """A list of objects with `path`, `found` and `wanted`; the same for the same complaints."""
    import json

    return json.dumps([complaint.as_json() for complaint in complaints], indent=1)


def as_table(complaints: Sequence[Complaint], width: int = 100) -> str:
    """A table of `width` columns at most, as far as three narrow columns fit into it.

    Paths are never broken where they fit, since a person copies them.
    """
    rows = [_fields(complaint) for complaint in complaints]
    rows = [(path or _WHOLE, found, wanted) for path, found, wanted in rows]
    widths = _widths([_TITLES, *rows], width)
    lines = [*_row(_TITLES, widths), _GAP.join("-" * column for column in widths)]
    for row in rows:
        lines += _row(row, widths)
    return "\n".join(lines)


def _fields(complaint: Complaint) -> tuple[str, str, str]:
    return (printable(complaint.path, _LONGEST_FIELD), printable(complaint.found, _LONGEST_FIELD),
            printable(complaint.wanted, _LONGEST_FIELD))


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Columns as wide as their text, shrunk from the widest until the table fits."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
    spare = width - len(_GAP) * (len(widths) - 1)
    # The path gives way last: half of the table is its by right, if that leaves enough.
    widths[0] = min(widths[0], max(min(spare // 2, spare - 2 * _NARROWEST), _NARROWEST))
    while sum(widths) > spare and max(widths[1:]) > _NARROWEST:
        widest = max(range(1, len(widths)), key=lambda column: widths[column])
        widths[widest] -= 1
    return widths


def _row(fields: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [textwrap.wrap(text, width, break_on_hyphens=False) or [""]
               for text, width in zip(fields, widths, strict=True)]
    height = max(len(column) for column in wrapped)
    return [_GAP.join(
        (column[line] if line < len(column) else "").ljust(width)
        for column, width in zip(wrapped, widths, strict=True)).rstrip() for line in range(height)]
