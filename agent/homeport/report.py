"""What a run did, as it happens and as it is told afterwards.

Knows steps, rungs and outcomes, the status file's shape, and how to show it to a person. Decides nothing.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from homeport.core.complaint import Complaint
from homeport.errors import DocumentError, HomeportError

log = logging.getLogger(__name__)

STATUS_VERSION = 1
RESET = "reset by command"  # a reason: until the next boot no refresh brings back what somebody took away
# A serial console is 80 to 100 characters wide, and the journal's prefix is not ours to shorten.
CONSOLE_WIDTH = 100
# A path or an address: a piece of it says more than the space that it would leave.
LONG_WORD = 20


@dataclass(frozen=True)
class Step:
    """One step of the story: its name, how long it took in seconds, and what came of it."""

    name: str
    seconds: float
    note: str = ""


@dataclass
class Report:
    """The outcome as far as it is known. `exit` is an exit status of design.md, section 4."""

    mode: str = ""
    mode_reason: str = ""
    stage: str = "host"
    rung: str = ""
    reason: str = ""
    hint: str = ""
    exit: int = os.EX_OK
    identity: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    revision: str = ""
    fetched: bool = False
    changed: bool = False
    persisted: bool = False
    volatile: bool = False
    steps: list[Step] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)
    proof: list[str] = field(default_factory=list)
    fallen: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    keyfiles: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    finished: float = 0.0
    boot_id: str = ""
    version: str = ""
    status_line: Callable[[str], None] = field(default=lambda text: None, repr=False)

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Time one step; what is appended to the yielded list becomes its note."""
        notes: list[str] = []
        self.status_line(f"{name} …")
        started = time.monotonic()
        try:
            yield notes
        except HomeportError as error:
            notes.append(error.message)
            raise
        finally:
            self.steps.append(Step(name, round(time.monotonic() - started, 3), "; ".join(notes)))
            log.debug("%s: %s", name, "; ".join(notes) or "done")

    def fell(self, rung: str, error: HomeportError) -> None:
        """A rung did not hold. The first one that failed is the cause that the exit status names; but a document that
        is wrong says more than that nobody told this machine where to ask.
        """
        if not self.fallen or (self.exit == os.EX_OK and isinstance(error, DocumentError)):
            self.exit, self.reason, self.hint = error.status, error.message, error.hint
        if isinstance(error, DocumentError):
            self.complaints += [item for item in error.complaints if item not in self.complaints]
        self.fallen.append(f"{rung}: {error.message}")

    def blemish(self, error: HomeportError) -> None:
        """The rung holds, but not all of it was done: that is the cause now."""
        self.exit, self.reason, self.hint = error.status, error.message, error.hint

    def reached(self, rung: str, reason: str = "") -> None:
        """`rung` is what this machine stands on now."""
        self.rung = rung
        if reason and not self.reason:
            self.reason = reason
        self.finished = time.time()

    def line(self) -> str:
        """The result line: the rung, and why it is not a higher one."""
        what = {
            "assigned": "assigned configuration in force",
            "last-known-good": "last-known-good configuration in force",
            "seed": "seed configuration in force",
            "left-as-found": "network left as found",
            "dhcp": "on DHCP",
        }.get(self.rung, self.rung)
        text = f"{what}: {self.reason}" if self.reason else what
        return shorten(text, CONSOLE_WIDTH - len("homeport: "))

    def as_json(self) -> dict[str, Any]:
        """The status file (stable; new keys may come, none changes its meaning)."""
        value = {key: item for key, item in self.__dict__.items() if key != "status_line"}
        return {
            "status_version": STATUS_VERSION,
            **value,
            "version": self.version,
            "result": "ok" if self.exit == os.EX_OK else "failed",
            "steps": [asdict(step) for step in self.steps],
            "complaints": [complaint.as_json() for complaint in self.complaints],
        }


def shorten(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters, cut at a word if one ends near there."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    whole, _, begun = text[: width - 1].rpartition(" ")
    return (whole if whole and len(begun) < LONG_WORD else text[: width - 1]) + "…"


def show_status(status: Mapping[str, Any]) -> str:
    """The status file as a person reads it: what stands, why, since when, and what to do next."""
    identity = status.get("identity") or {}
    rows = [
        ("network", "as it should be" if status.get("exit") == 0 else f"NOT as it should (exit {status.get('exit')})"),
        ("rung", status.get("rung", "")),
        ("reason", status.get("reason", "")),
        ("what to do", status.get("hint", "")),
        ("mode", _with(status.get("mode", ""), status.get("mode_reason", ""))),
        ("identity", _with(f"{identity.get('kind', '')} {identity.get('value', '')}".strip(),
                           identity.get("provenance", ""))),
        ("source", _with(status.get("source", ""), "asked in this boot" if status.get("fetched") else "not asked yet")),
        ("revision", status.get("revision", "")),
        ("kept", "in memory only: the next boot asks again" if status.get("volatile") else ""),
        ("addresses", "\n".join(status.get("addresses", []))),
        ("keyfiles", "\n".join(status.get("keyfiles", []))),
        ("proof", "\n".join(status.get("proof", []))),
        ("not reached", "\n".join(status.get("fallen", []))),
        ("when", _when(status)),
    ]
    text = "\n".join(_row(name, value) for name, value in rows if value)
    steps = status.get("steps", [])
    if steps:
        text += "\n\n" + "\n".join(
            f"{step['seconds']:>9.3f} s  {step['name']:<12} {step.get('note', '')}".rstrip() for step in steps)
    if early := status.get("initrd"):
        text += f"\n\nbefore, in the initramfs:\n{show_status(early)}"
    complaints = status.get("complaints", [])
    if complaints:
        text += "\n\ncomplaints about the document:\n" + "\n".join(
            f"  {Complaint(**item)}" for item in complaints)
    return text


def _row(name: str, value: str) -> str:
    first, *rest = str(value).splitlines()
    return "\n".join([f"{name + ':':<13}{first}", *(f"{'':<13}{line}" for line in rest)])


def _with(text: str, detail: str) -> str:
    return f"{text} ({detail})" if text and detail else text


def _when(status: Mapping[str, Any]) -> str:
    started = status.get("started")
    if not started:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(started)) + (
        f", took {max(0.0, status.get('finished', started) - started):.2f} s")


def show_table(rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, two spaces apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
