"""journalctl, asked and read: here over a disk, or by the agent in the machine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

FIELDS = "MESSAGE,PRIORITY,_SYSTEMD_UNIT,UNIT,MESSAGE_ID,_COMM,SYSLOG_IDENTIFIER"


def entries(units: Sequence[str], boot: int, priority: int, all_boots: bool) -> str:
    """The arguments of journalctl, as a shell reads them."""
    words = ["--all", f"--output-fields={FIELDS}", f"--priority={priority}",
             *([] if all_boots else [f"--boot={boot}"]), *(f"--unit={unit}" for unit in units)]  # fmt: skip
    return shlex.join(words)


def read_journal(text: str) -> list[dict[str, str]]:
    return [_plain(json.loads(line)) for line in text.splitlines() if line.startswith("{")]


def story_of(found: Sequence[dict[str, str]]) -> str:
    return "\n".join(f"<{e.get('PRIORITY', '?')}> {e.get('MESSAGE', '')}" for e in found)


def _plain(entry: dict[str, Any]) -> dict[str, str]:
    """Bytes that are not UTF-8 come as a list of numbers, repeated fields as a list."""
    return {
        k: bytes(v).decode(errors="replace") if isinstance(v, list) and v and isinstance(v[0], int) else str(v)
        for k, v in entry.items()
    }
