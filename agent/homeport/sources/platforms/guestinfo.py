"""VMware's guestinfo, asked by the program of its tools.

Knows both programs that can (open-vm-tools: `vmware-rpctool`, `vmtoolsd --cmd`).  Speaks to the hypervisor
by no other way: its backdoor is an I/O port, which is not for a program of our kind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.core.platforms.shape import Files, Guestinfo, NotThere, Want, gather
from homeport.errors import DocumentError, SourceError
from homeport.host.process import MissingProgram, TimedOut, run
from homeport.sources.reply import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS: Sequence[tuple[str, ...]] = (("vmware-rpctool",), ("vmtoolsd", "--cmd"))
LIMIT = 5.0  # seconds for one key; the hypervisor answers in microseconds


class Session:
    """The hypervisor while this machine asks it."""

    place = "guestinfo"

    def __init__(self, way: Guestinfo, left: Callable[[], float]) -> None:
        self.way = way
        self.left = left

    def read(self) -> Files:
        """Everything that the platform wants; raises NotThere, also without a program that could ask."""
        return gather(self.way.wants, self._get)

    def _get(self, want: Want) -> bytes | None:
        """A key without a value ends the program with status 1 and "No value found". Raises DocumentError."""
        for program in PROGRAMS:
            try:
                done = run([*program, f"info-get {want.path}"], timeout=max(0.1, min(LIMIT, self.left())))
            except MissingProgram:
                continue
            except TimedOut as error:
                raise SourceError(f"Cannot read {want.path}: {error.message}") from error
            value = done.stdout.rstrip(b"\n")
            if len(value) > LARGEST:  # the beginning of a description may be a description, of something else
                raise DocumentError([Complaint(want.path, f"more than {LARGEST >> 10} KiB", "less")])
            return value if done.status == os.EX_OK else None
        raise NotThere(f"program to ask for {want.path}: {' or '.join(program[0] for program in PROGRAMS)}")
