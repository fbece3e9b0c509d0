from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.host import notify

# python3-systemd's `daemon.notify`, as far as we use it: one datagram to the socket of the environment.
LIBRARY_NAMES = ("systemd", "systemd.daemon")
LIBRARY = """
import os, socket
def notify(message):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect(os.environ["NOTIFY_SOCKET"])
        sock.send(message.encode())
"""


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """systemd's end of the socket; the real library if it is installed, else a stand-in."""
    try:
        import systemd.daemon  # noqa: F401
    except ImportError:
        (tmp_path / "systemd").mkdir()
        (tmp_path / "systemd/__init__.py").write_text("")
        (tmp_path / "systemd/daemon.py").write_text(LIBRARY)
        monkeypatch.syspath_prepend(tmp_path)
        for name in LIBRARY_NAMES:
            monkeypatch.setitem(sys.modules, name, sys)  # so that what is imported now goes with this test
            del sys.modules[name]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield sock


def test_what_systemd_is_told(manager: socket.socket) -> None:
    notify.status("fetching\nfrom  https://cfg.example")
    assert manager.recv(999) == b"STATUS=fetching from https://cfg.example"  # a second line would be a command
    notify.ready()
    assert manager.recv(999) == b"READY=1"
    notify.extend_timeout(1.5)
    assert manager.recv(999) == b"EXTEND_TIMEOUT_USEC=1500000"


def test_nobody_listens(manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    manager.close()
    notify.ready()  # systemd has gone: no reason to fail
    monkeypatch.delenv("NOTIFY_SOCKET")
    for name in LIBRARY_NAMES:
        monkeypatch.setitem(sys.modules, name, None)
    notify.ready()


def test_without_the_library(manager: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARY_NAMES:
        monkeypatch.setitem(sys.modules, name, None)
    notify.ready()
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        manager.recv(999)
