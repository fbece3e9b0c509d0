"""What systemd hears of the server, over its own socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport_server import supervisor


@pytest.fixture(params=["in the file system", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, dict[str, str]]]:
    """A socket that listens as systemd's does, and the environment that names it."""
    name = str(tmp_path / "notify") if request.param != "abstract" else f"@homeport-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(name.replace("@", "\0", 1))
        one.settimeout(60)
        yield one, {"NOTIFY_SOCKET": name}


def test_it_is_told(systemd: tuple[socket.socket, dict[str, str]]) -> None:
    one, environ = systemd
    supervisor.tell("READY=1", environ)
    assert one.recv(100) == b"READY=1"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_nobody_listens(environ: dict[str, str]) -> None:
    supervisor.tell("READY=1", environ)


@pytest.mark.parametrize(("environ", "seconds"), [
    ({}, 0.0),
    ({"WATCHDOG_USEC": "60000000"}, 60.0),
    ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
    ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, 0.0),  # meant for our parent
    ({"WATCHDOG_USEC": "-1"}, 0.0),
    ({"WATCHDOG_USEC": "soon"}, 0.0),
])
def test_watchdog(environ: dict[str, str], seconds: float) -> None:
    assert supervisor.watchdog_seconds(environ) == seconds


def test_it_goes_on_telling(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(supervisor, "tell", told.append)

    async def listen(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(supervisor.keep_telling(seconds), 2.0)

    asyncio.run(listen(0.03))
    assert len(told) >= 3
    assert set(told) == {"WATCHDOG=1"}
    told.clear()
    asyncio.run(listen(0.0))
    assert told == []
