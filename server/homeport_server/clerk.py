"""The registrar behind a queue: one thread does the database's work, and nobody waits in vain.

SQLite has one writer, so more threads would only wait for each other. What waits is done together and is on disk
together, so that a whole site which comes up at the same time waits for the disk a few times, not a few hundred; and
whoever would not be served before he has to give up is told at once when to come back, which costs nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from homeport_server.registrar import Registrar

Result = TypeVar("Result")
# Seconds that one may wait here: a registration has ten for all of it, and some are gone before.
LONGEST_WAIT = 5.0
# So many are done together at most: the first of them waits for the last.
LARGEST_BATCH = 40


class Busy(Exception):
    """Too many wait already; `retry_after` is in seconds."""

    def __init__(self, retry_after: int, reason: str = "too many machines ask at once") -> None:
        super().__init__(f"{reason}, come back in {retry_after} s")
        self.retry_after = retry_after


class Clerk:
    """Runs functions of a registrar, one after the other, off the event loop."""

    def __init__(self, registrar: Registrar, longest_wait: float = LONGEST_WAIT) -> None:
        self.registrar = registrar
        self.longest_wait = longest_wait
        self.turn = 0.1  # seconds that a batch takes, as of late
        self._jobs: deque[tuple[Callable[[Registrar], Any], asyncio.Future[Any]]] = deque()
        self._in_hand = 0
        self._next_appointment = 0.0
        self._thread = ThreadPoolExecutor(1, "registrar")

    @property
    def waiting(self) -> int:
        return len(self._jobs) + self._in_hand

    def could_serve(self, guests: int) -> bool:
        """Whether none of so many would have to wait for too long, should all of them ask now."""
        return self._wait(max(guests, self.waiting)) <= self.longest_wait / 2

    def _wait(self, guests: int) -> float:
        """Seconds until the last of so many is served: a batch costs the wait for the disk, however small it is."""
        return self.turn * math.ceil(guests / LARGEST_BATCH)

    async def do(self, function: Callable[[Registrar], Result], *, patient: bool = False) -> Result:
        """What `function` gives for the registrar. Raises Busy at once if it would be too long until then.

        Unless one is `patient`, as the server itself is.
        """
        wait = self._wait(self.waiting)
        if wait > self.longest_wait and not patient:
            raise Busy(self._appointment(wait))
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._jobs.append((function, answer))
        self._begin()
        # What is begun is finished, even if the one who asked has gone: a half-done change is none at all.
        return await asyncio.shield(answer)

    def _appointment(self, wait: float) -> int:
        """Seconds from now, a place for each: who is sent away together must not come back together."""
        now = time.monotonic()
        at = max(now + wait, self._next_appointment)
        self._next_appointment = at + self.turn / LARGEST_BATCH
        return math.ceil(at - now)

    def _begin(self) -> None:
        """Hand the thread what waits, if it has nothing in hand."""
        if self._in_hand or not self._jobs:
            return
        jobs = [self._jobs.popleft() for _ in range(min(len(self._jobs), LARGEST_BATCH))]
        self._in_hand = len(jobs)
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._work, [job for job, _ in jobs])
        work.add_done_callback(lambda done: self._deliver([answer for _, answer in jobs], done))

    def _work(self, functions: list[Callable[[Registrar], Any]]) -> list[tuple[Any, Exception | None]]:
        """All of them as one batch: what each gave or raised. Raises if they could not be put on disk."""
        started = time.monotonic()
        with self.registrar.database.batch():
            results = [self._try(function) for function in functions]
        self.turn += (time.monotonic() - started - self.turn) / 4
        return results

    def _try(self, function: Callable[[Registrar], Any]) -> tuple[Any, Exception | None]:
        try:
            return function(self.registrar), None
        except Exception as error:  # for whoever asked
            return None, error

    def _deliver(self, answers: list[asyncio.Future[Any]],
                 done: asyncio.Future[list[tuple[Any, Exception | None]]]) -> None:
        self._in_hand = 0
        failed = done.exception()
        results = [(None, failed)] * len(answers) if failed else done.result()
        for answer, (result, error) in zip(answers, results, strict=True):
            if answer.done():
                continue
            if error is not None:
                answer.set_exception(error)
                answer.exception()  # nobody may be there any more to hear it
            else:
                answer.set_result(result)
        self._begin()

    def close(self) -> None:
        """Wait for what is being done; nothing new is taken."""
        self._thread.shutdown(wait=True)
