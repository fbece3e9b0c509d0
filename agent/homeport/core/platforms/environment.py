"""Values as an EnvironmentFile of systemd's, which shells can read as well.

Knows how both read such a file (systemd.exec(5), EnvironmentFile=; systemd's env-file.c) and how much the kernel takes.
Trusts no value and no name: a line that is none of ours would be a variable in every unit that reads the file,
`LD_PRELOAD` for one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Bytes of all lines: each program of a unit that reads them has them beside its own (execve(2): at most 128 KiB in one
# variable, and in all of them with the arguments a quarter of the stack, mostly 2 MiB).
LARGEST = 128 << 10
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+,%=-]*")


def environment_file(values: Mapping[str, str]) -> tuple[str, list[str]]:
    """The text, and the names that are not in it: those that are no names, of no line of text, beyond LARGEST."""
    lines, left_out, room = [], [], LARGEST
    for name, value in sorted(values.items()):
        line = f"{name}={_quoted(value)}\n"
        if _NAME.fullmatch(name) and value.isprintable() and len(line.encode()) <= room:
            lines.append(line)
            room -= len(line.encode())
        else:
            left_out.append(name)
    return "".join(lines), left_out


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    escaped = "".join(f"\\{character}" if character in '"\\`$' else character for character in value)
    return f'"{escaped}"'
