"""The queue before the registrar: in order, off the loop, and nobody waits in vain."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, cast

import pytest

from homeport_server.clerk import Busy, Clerk
from homeport_server.registrar import Registrar


class FakeRegistrar:
    """All that a clerk needs of one."""

    @staticmethod
    def chance(limit: int) -> int:
        return limit - 1


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
    assert all(name.startswith("registrar") for _, name in done)


def test_who_would_wait_too_long_is_sent_away() -> None:
    clerk = make(longest_wait=0.05)

    async def work() -> list[Any]:
        return await asyncio.gather(*(clerk.do(lambda _registrar: time.sleep(0.01)) for _ in range(20)),
                                    return_exceptions=True)

    answers = asyncio.run(work())
    clerk.close()
    away = [answer for answer in answers if isinstance(answer, Busy)]
    assert 5 < len(away) < 20
    assert all(1 <= busy.retry_after <= 3 for busy in away)
    assert answers[:5] == [None] * 5


def test_who_has_gone_does_not_stop_the_work() -> None:
    """A change that is begun is finished, whoever waits for it."""
    clerk, done = make(), list[str]()

    def slow(_registrar: Registrar) -> None:
        time.sleep(0.1)
        done.append("done")

    async def work() -> None:
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.02):
                await clerk.do(slow)

    asyncio.run(work())
    clerk.close()
    assert done == ["done"]


def test_faults_come_back() -> None:
    clerk = make()

    def fail(_registrar: Registrar) -> None:
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        asyncio.run(clerk.do(fail))
    assert clerk.waiting == 0
    clerk.close()
