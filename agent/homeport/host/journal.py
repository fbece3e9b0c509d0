"""Where our words go: the journal, a terminal, the console; and what must never be among them.

Knows whether the journal is listening ($JOURNAL_STREAM, systemd.exec(5)) and speaks its priorities then;
on a terminal a line is just a line. Refuses to know what is worth saying.

Under our units stderr is the journal, and stdout the journal and the console: the log goes to stderr,
`console` lines and the result go to stdout. The result also goes to the journal as an entry of its own,
with a message id and fields, for monitoring (`entry.py`).
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from homeport.host.entry import NOTICE, RESULT_MESSAGE_ID, WARNING, send_result

if TYPE_CHECKING:
    from homeport.report import Report

__all__ = ["RESULT_MESSAGE_ID", "Lines", "console", "priority", "result", "result_fields", "scrub", "set_up"]

CONSOLE_WIDTH = 100  # characters; a serial console is 80 to 100 wide

# sd-daemon(3). INFO is the story; NOTICE (5) is what the result is.
PRIORITIES = {"debug": 7, "info": 6, "notice": 5, "warning": 4, "err": 3, "error": 3, "crit": 2, "alert": 1,
              "emerg": 0}
LEVELS = (logging.CRITICAL, logging.CRITICAL, logging.CRITICAL, logging.ERROR, logging.WARNING,
          logging.INFO, logging.INFO, logging.DEBUG)  # by priority

# User name and password, query and fragment of anything that looks like a URL; the value of a
# header or an option that carries a secret.
URL = re.compile(r"\b([a-z][a-z0-9+.-]*://)(?:[^\s/?#@'\"]*@)?([^\s?#'\"]*)(?:[?#][^\s'\",;)]*)?",
                 re.IGNORECASE)
SECRET = re.compile(
    r"((?:authorization|password|passwd|secret|token|psk|private-key)[\"']?\s*[:=]\s*[\"']?)"
    r"(?:(?:basic|bearer)\s+)?[^\s\"',;&]+", re.IGNORECASE)


def set_up(level: str = "info", *, environ: Mapping[str, str] = os.environ,
           stream: TextIO | None = None) -> None:
    """Send the log to `stream` (default: stderr), as the journal or as a person wants it.

    `level` is a name of our settings; $SYSTEMD_LOG_LEVEL wins, names and numbers (0 to 7), where it
    can be understood.
    """
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(with_priority=_is_journal(stream, environ)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    asked = environ.get("SYSTEMD_LOG_LEVEL", "").strip().lower()
    root.setLevel(_level(asked) or _level(level) or logging.INFO)


class Lines(logging.Formatter):
    """One record as lines without secrets, each with the journal's `<N>` before it where that is asked for.
    """

    def __init__(self, *, with_priority: bool) -> None:
        super().__init__("%(message)s")
        self.with_priority = with_priority

    def format(self, record: logging.LogRecord) -> str:
        text = scrub(super().format(record))
        prefix = f"<{priority(record.levelno)}>" if self.with_priority else ""
        # Without it on each line, the journal takes the rest of a traceback for INFO.
        return "\n".join(prefix + line for line in text.splitlines() or [""])


def scrub(text: str) -> str:
    """`text` without what looks like a secret: the last net below everyone's own care."""
    text = URL.sub(lambda match: match[1] + match[2], text)
    return SECRET.sub(lambda match: f"{match[1]}***", text)


def priority(level: int) -> int:
    """The journal's priority for a level of `logging`."""
    for name, least in (("crit", logging.CRITICAL), ("err", logging.ERROR), ("warning", logging.WARNING),
                        ("info", logging.INFO)):
        if level >= least:
            return PRIORITIES[name]
    return PRIORITIES["debug"]


def console(text: str, *, stream: TextIO | None = None) -> None:
    """One line for the person at the console: "homeport: …", at most CONSOLE_WIDTH characters."""
    stream = stream or sys.stdout
    line = " ".join(scrub(f"homeport: {text}").split())
    if len(line) > CONSOLE_WIDTH:
        line = line[:CONSOLE_WIDTH - 1] + "…"
    try:
        print(line, file=stream, flush=True)
    except UnicodeEncodeError:  # a console of the C locale
        print(line.encode("ascii", "replace").decode(), file=stream, flush=True)
    except OSError:  # nobody reads any more; the journal has it
        # What is still in the buffer would fail again when Python exits, and become our exit status.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), stream.fileno())
        logging.getLogger(__name__).debug("Cannot write to the console, going on without it")


def result(outcome: Report) -> None:
    """The result line: on the console, and in the journal with RESULT_MESSAGE_ID and its fields."""
    console(outcome.line())
    failed = send_result(
        f"homeport: {scrub(outcome.line())}", priority=NOTICE if outcome.exit == os.EX_OK else WARNING,
        fields=result_fields(outcome))
    if failed:
        logging.getLogger(__name__).debug("No entry of its own for the result: %s", failed)


def result_fields(outcome: Report) -> dict[str, str]:
    """What monitoring may want to know of a run, as fields of the journal."""
    who = outcome.identity
    return {
        "HOMEPORT_RUNG": outcome.rung,
        "HOMEPORT_REASON": scrub(outcome.reason),
        "HOMEPORT_EXIT": str(outcome.exit),
        "HOMEPORT_MODE": str(outcome.mode),
        "HOMEPORT_STAGE": str(outcome.stage),
        "HOMEPORT_SOURCE": scrub(outcome.source),
        "HOMEPORT_REVISION": outcome.revision,
        "HOMEPORT_IDENTITY": f"{who.get('kind', '')} {who.get('value', '')}".strip(),
    }


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is the connection to the journal that systemd made: "DEVICE:INODE" says so.

    Somebody may have redirected it since.
    """
    device, _, inode = environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # io.UnsupportedOperation is both
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino))


def _level(name: str) -> int | None:
    number = int(name) if name.isascii() and name.isdigit() else PRIORITIES.get(name, -1)
    return LEVELS[number] if 0 <= number < len(LEVELS) else None
