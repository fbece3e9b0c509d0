"""The registrar behind a queue: one thread does the database's work, and nobody waits in vain.

SQLite has one writer, so more threads would only wait for each other. Whoever would not be served before he has to
give up is told at once when to come back, which costs nothing; that is what keeps a server usable when a whole site
comes up at the same time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from homeport_server.registrar import Registrar

Result = TypeVar("Result")
# Seconds that one may wait here: a registration has ten for all of it, and some are gone before.
LONGEST_WAIT = 4.0


class Busy(Exception):
    """Too many wait already; `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many machines ask at once, come back in {retry_after} s")
        self.retry_after = retry_after


class Clerk:
    """Runs functions of a registrar, one after the other, off the event loop."""

    def __init__(self, registrar: Registrar, longest_wait: float = LONGEST_WAIT) -> None:
        self.registrar = registrar
        self.longest_wait = longest_wait
        self.waiting = 0
        self.each = 0.01  # seconds that one takes, as of late
        self._thread = ThreadPoolExecutor(1, "registrar")

    async def do(self, function: Callable[[Registrar], Result], *, patient: bool = False) -> Result:
        """What `function` gives for the registrar. Raises Busy at once if it would be too long until then.

        Unless one is `patient`, as the server itself is.
        """
        wait = self.waiting * self.each
        if wait > self.longest_wait and not patient:
            # Spread by chance: who is sent away together must not come back together.
            spread = math.ceil(2 * wait)
            raise Busy(1 + spread // 2 + self.registrar.chance(spread))
        self.waiting += 1
        try:
            # What is begun is finished, even if the one who asked has gone: a half-done change is none at all.
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._time, function))
        finally:
            self.waiting -= 1

    def _time(self, function: Callable[[Registrar], Result]) -> Result:
        started = time.monotonic()
        try:
            return function(self.registrar)
        finally:
            self.each += (time.monotonic() - started - self.each) / 10

    def close(self) -> None:
        """Wait for what is being done; nothing new is taken."""
        self._thread.shutdown(wait=True)
