"""What a YAML parser's error usually means to the person who wrote the document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeport.core.showing import printable

if TYPE_CHECKING:
    import yaml

# A part of libyaml's or PyYAML's words, and what usually mends it.
_HINTS = (
    ("cannot start any token", "quotes around a value that starts with a special character"),
    ("mapping values are not allowed", "a value with ': ' in it quoted, and keys of one level "
                                       "indented alike"),
    ("did not find expected key", "keys of one level indented alike, and quotes closed"),
    ("expected ',' or", "brackets and braces closed, and commas between what they hold"),
    ("block end", "entries of one level indented alike"),
    ("unexpected end of stream", "the whole document; this looks cut off"),
)


def syntax_fault(error: yaml.YAMLError, text: str) -> tuple[str, str]:
    """What the parser found, and a word on what usually causes it."""
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
    if mark is not None and _indented_by_tab(text, mark.line):
        return f"{printable(problem, 120)}{where}", "spaces for indentation, not tabs"
    wanted = next((hint for sign, hint in _HINTS if sign in problem), "YAML (or JSON)")
    return f"{printable(problem, 120)}{where}", wanted


def _indented_by_tab(text: str, line: int) -> bool:
    lines = text.split("\n", line + 1)
    return line < len(lines) and "\t" in lines[line][: -len(lines[line].lstrip()) or None]
