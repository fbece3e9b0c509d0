"""The registrar behind a queue: one thread does the database's work, and the queue has an end.

SQLite has one writer, so more threads would only wait for each other. Whoever finds the queue full is told when to
come back, which costs nothing; that is what keeps a server usable when a whole site comes up at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from homeport_server.registrar import Registrar

Result = TypeVar("Result")
LONGEST_QUEUE = 2_000


class Busy(Exception):
    """Too many wait already; `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many requests wait already, come back in {retry_after} s")
        self.retry_after = retry_after


class Clerk:
    """Runs functions of a registrar, one after the other, off the event loop."""

    def __init__(self, registrar: Registrar, longest_queue: int = LONGEST_QUEUE) -> None:
        self.registrar = registrar
        self.longest_queue = longest_queue
        self.waiting = 0
        self._thread = ThreadPoolExecutor(1, "registrar")

    async def do(self, function: Callable[[Registrar], Result]) -> Result:
        """What `function` gives for the registrar. Raises Busy at once if the queue is full."""
        if self.waiting >= self.longest_queue:
            # Spread by chance: who is sent away together must not come back together.
            raise Busy(5 + self.registrar.chance(25))
        self.waiting += 1
        try:
            # What is begun is finished, even if the one who asked has gone: a half-done change is none at all.
            work = asyncio.get_running_loop().run_in_executor(self._thread, function, self.registrar)
            return await asyncio.shield(work)
        finally:
            self.waiting -= 1

    def close(self) -> None:
        """Wait for what is being done; nothing new is taken."""
        self._thread.shutdown(wait=True)
