"""Who comes in when: the door by itself, before a protocol that only writes down who speaks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from homeport_server.web import door as doors
from homeport_server.web.door import FEW, MANY, Door


class Bench:
    """A door on the loopback, who has been let in through it, and clients that say their number."""

    def __init__(self, most: int = 1_024, welcome: bool = False) -> None:
        self.let_in: list[int] = []
        self.room = True
        self.door = Door(lambda: Guest(self, welcome), None, most, lambda guests: self.room)
        self.clients: dict[int, socket.socket] = {}

    def open(self) -> None:
        self.address = self.door.open("127.0.0.1", 0)

    async def connect(self, *numbers: int, say: bool = True) -> None:
        for number in numbers:
            client = socket.socket()
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, self.address)
            if say:
                client.send(b"%d\n" % number)
            self.clients[number] = client
            await self.settle(lambda: len(self.door.visitors) > 0)

    async def settle(self, done: Callable[[], bool], seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not done():
                await asyncio.sleep(0.005)

    async def is_cut_off(self, number: int) -> bool:
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self.clients[number], 1), 60) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        for client in self.clients.values():
            client.close()
        self.door.close()


class Guest(asyncio.Protocol):
    def __init__(self, bench: Bench, welcome: bool) -> None:
        self.bench, self.welcome = bench, welcome

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.bench.let_in.append(int(data))
        if self.welcome:
            self.bench.door.welcome(self.transport)


@pytest.fixture(autouse=True)
def _nobody_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow this computer is."""
    monkeypatch.setattr(doors, "STALLED", 60.0)


def with_bench(bench: Bench, story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        bench.open()
        try:
            await story(bench)
        finally:
            bench.close()

    asyncio.run(run())


def test_who_comes_is_let_in_in_order() -> None:
    async def story(bench: Bench) -> None:
        await bench.connect(*range(40))
        await bench.settle(lambda: len(bench.let_in) == 40)
        assert bench.let_in == list(range(40))

    with_bench(Bench(), story)


def test_nobody_comes_in_while_there_is_enough_to_do() -> None:
    """Some do, for an address must not depend on how fast this computer is; the others wait outside, and then come."""
    async def story(bench: Bench) -> None:
        bench.room = False
        await bench.connect(*range(40))
        await bench.settle(lambda: len(bench.let_in) == FEW)
        await asyncio.sleep(0.1)
        assert bench.let_in == list(range(FEW))
        bench.room = True
        await bench.settle(lambda: len(bench.let_in) == 40)
        assert bench.let_in == list(range(40))

    with_bench(Bench(), story)


def test_who_stalls_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many have been let in and go no further, while there is enough to do."""
    monkeypatch.setattr(doors, "STALLED", 0.1)

    async def story(bench: Bench) -> None:
        bench.room = False
        await bench.connect(*range(FEW + 4))
        await bench.settle(lambda: len(bench.let_in) == FEW + 4)
        assert bench.let_in == list(range(FEW + 4))

    with_bench(Bench(), story)


def test_of_many_the_newest_comes_first() -> None:
    """The oldest is about to give up, and what is done for him is done for nothing."""
    async def story(bench: Bench) -> None:
        bench.room = False
        count = FEW + MANY + 10
        await bench.connect(*range(count))
        await asyncio.sleep(0.2)
        bench.room = True
        await bench.settle(lambda: len(bench.let_in) == count)
        assert bench.let_in[FEW:FEW + 9] == list(range(count - 1, count - 10, -1))
        assert sorted(bench.let_in) == list(range(count))

    with_bench(Bench(), story)


def test_for_who_has_given_up_nothing_is_done() -> None:
    async def story(bench: Bench) -> None:
        bench.room = False
        count = FEW + MANY + 10
        await bench.connect(*range(count))
        for number in range(count - 5, count):
            bench.clients[number].close()
        await asyncio.sleep(0.1)
        bench.room = True
        await bench.settle(lambda: len(bench.let_in) >= count - 5)
        await asyncio.sleep(0.1)
        assert sorted(bench.let_in) == list(range(count - 5))

    with_bench(Bench(), story)


def test_without_room_who_waits_longest_goes_and_not_who_is_in() -> None:
    async def story(bench: Bench) -> None:
        bench.room = False
        await bench.connect(*range(FEW + 4))
        await bench.settle(lambda: len(bench.let_in) == FEW)
        await bench.connect(100, 101)
        assert await bench.is_cut_off(FEW)
        assert await bench.is_cut_off(FEW + 1)
        bench.room = True
        await bench.settle(lambda: len(bench.let_in) == FEW + 4)
        assert sorted(bench.let_in) == [*range(FEW), FEW + 2, FEW + 3, 100, 101]

    with_bench(Bench(most=FEW + 4), story)


def test_the_silent_cost_nobody_anything() -> None:
    """They are not let in, so they keep nobody from being."""
    async def story(bench: Bench) -> None:
        await bench.connect(*range(1_000, 1_020), say=False)
        await bench.connect(7)
        await bench.settle(lambda: bench.let_in == [7])
        assert await bench.is_cut_off(1_000)

    with_bench(Bench(most=20), story)


def test_strangers_inside_make_room_and_who_was_welcomed_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "GRACE", 0.05)

    async def strangers(bench: Bench) -> None:
        await bench.connect(*range(8))
        await bench.settle(lambda: len(bench.let_in) == 8)
        await bench.connect(8)
        await bench.settle(lambda: len(bench.let_in) == 9)
        assert await bench.is_cut_off(0)

    async def welcomed(bench: Bench) -> None:
        await bench.connect(*range(8))
        await bench.settle(lambda: len(bench.let_in) == 8)
        await bench.connect(8)
        await asyncio.sleep(0.3)
        assert len(bench.let_in) == 8
        bench.clients[3].close()
        await bench.settle(lambda: len(bench.let_in) == 9)

    with_bench(Bench(most=8), strangers)
    with_bench(Bench(most=8, welcome=True), welcomed)
