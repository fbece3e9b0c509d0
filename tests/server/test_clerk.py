"""The queue before the registrar: in order, off the loop, and nobody waits in vain."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from homeport_server.clerk import LARGEST_BATCH, Busy, Clerk
from homeport_server.registrar import Registrar
from homeport_server.store.database import StoreError


class FakeDatabase:
    """Counts how often it would wait for the disk."""

    batches = 0
    fails = False

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        self.batches += 1
        yield
        if self.fails:
            raise StoreError("the disk is full")


class FakeRegistrar:
    """All that a clerk needs of one."""

    def __init__(self) -> None:
        self.database = FakeDatabase()


def make(longest_wait: float = 4.0) -> Clerk:
    return Clerk(cast(Registrar, FakeRegistrar()), longest_wait)


def test_one_after_the_other_and_not_here() -> None:
    clerk, done = make(), list[tuple[int, str]]()

    async def work() -> None:
        await asyncio.gather(*(clerk.do(lambda _registrar, n=n: done.append(  # type: ignore[misc]
            (n, threading.current_thread().name))) for n in range(20)))

    asyncio.run(work())
    clerk.close()
    assert [number for number, _ in done] == list(range(20))
    assert cast(FakeDatabase, clerk.registrar.database).batches == 2  # the first, and then all that came meanwhile
    assert all(name.startswith("registrar") for _, name in done)


def test_who_would_wait_too_long_is_sent_away() -> None:
    clerk = make(longest_wait=1.5 * 0.1)
    clerk.turn = 0.1

    async def work() -> list[Any]:
        return await asyncio.gather(*(clerk.do(lambda _registrar: time.sleep(0.001)) for _ in range(60)),
                                    return_exceptions=True)

    answers = asyncio.run(work())
    clerk.close()
    away = [answer for answer in answers if isinstance(answer, Busy)]
    # One batch is waited for, two are not.
    assert answers[:LARGEST_BATCH] == [None] * LARGEST_BATCH
    assert len(away) == 60 - LARGEST_BATCH - 1
    assert all(busy.retry_after == 1 for busy in away)


def test_a_small_batch_on_a_slow_disk_does_not_make_one_wait_for_ever() -> None:
    """What a batch costs is mostly the wait for the disk, and is the same for many."""
    clerk = make(longest_wait=4.0)

    async def work() -> list[Any]:
        for _ in range(8):
            await clerk.do(lambda _registrar: time.sleep(0.3))
        return await asyncio.gather(*(clerk.do(lambda _registrar: None) for _ in range(LARGEST_BATCH)),
                                    return_exceptions=True)

    assert asyncio.run(work()) == [None] * LARGEST_BATCH
    clerk.close()


def test_how_many_it_could_serve() -> None:
    """So that none of them waits for more than half of the longest time: two batches of a second here."""
    clerk = make(longest_wait=4.0)
    clerk.turn = 1.0
    assert clerk.could_serve(2 * LARGEST_BATCH)
    assert not clerk.could_serve(2 * LARGEST_BATCH + 1)
    clerk.close()


def test_who_is_sent_away_comes_back_one_after_the_other() -> None:
    clerk = make(longest_wait=-1)
    clerk.turn = 0.5 * LARGEST_BATCH

    async def work() -> list[Any]:
        return await asyncio.gather(*(clerk.do(lambda _registrar: None) for _ in range(8)), return_exceptions=True)

    away = asyncio.run(work())
    clerk.close()
    assert [busy.retry_after for busy in away] == sorted(busy.retry_after for busy in away)
    assert away[-1].retry_after in (3, 4)


def test_who_has_gone_does_not_stop_the_work() -> None:
    """A change that is begun is finished, whoever waits for it."""
    clerk, done, go_on = make(), list[str](), threading.Event()

    def slow(_registrar: Registrar) -> None:
        go_on.wait(60)
        done.append("done")

    async def work() -> None:
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.02):
                await clerk.do(slow)
        go_on.set()
        async with asyncio.timeout(60):
            while not done:
                await asyncio.sleep(0.01)

    asyncio.run(work())
    clerk.close()
    assert done == ["done"]


def test_faults_come_back() -> None:
    clerk = make()

    def fail(_registrar: Registrar) -> None:
        raise ValueError("ours")

    async def work() -> tuple[Any, Any, Any]:
        return await asyncio.gather(clerk.do(fail), clerk.do(lambda _registrar: 7), clerk.do(fail),
                                    return_exceptions=True)

    first, second, third = asyncio.run(work())
    assert isinstance(first, ValueError)
    assert isinstance(third, ValueError)
    assert second == 7
    assert clerk.waiting == 0
    clerk.close()


def test_what_is_not_on_disk_nobody_is_told() -> None:
    clerk = make()
    cast(FakeDatabase, clerk.registrar.database).fails = True
    with pytest.raises(StoreError, match="full"):
        asyncio.run(clerk.do(lambda _registrar: "an address"))
    clerk.close()
