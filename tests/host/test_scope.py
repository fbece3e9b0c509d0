"""Putting a process aside: what systemd is told on its private socket, and what becomes of a refusal."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from jeepney import new_error, new_method_return
from jeepney.low_level import Message, Parser

from homeport.host import scope


def systemd(path: Path, heard: list[Message], refuse: bool) -> threading.Thread:
    """One connection of a systemd that answers one call; it knows no Hello, as it is no bus."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def answer() -> None:
        line, _ = listener.accept()
        with listener, line:
            line.recv(4096)
            line.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
            data = b""
            while b"BEGIN\r\n" not in data:
                data += line.recv(4096)
            parser = Parser()
            found = parser.feed(data.partition(b"BEGIN\r\n")[2])
            while not found:
                found = parser.feed(line.recv(4096))
            heard.extend(found)
            reply = (new_error(found[0], "org.freedesktop.systemd1.No", "s", ("no such process",)) if refuse
                     else new_method_return(found[0], "o", ("/job/1",)))
            line.sendall(reply.serialise(7))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("refuse", [False, True])
def test_what_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuse: bool) -> None:
    heard: list[Message] = []
    thread = systemd(tmp_path / "private", heard, refuse)
    monkeypatch.setattr(scope, "SOCKET", str(tmp_path / "private"))
    if refuse:
        with pytest.raises(OSError, match="systemd refuses it: no such process"):
            scope.put_aside(4711, "x", "why")
    else:
        scope.put_aside(4711, "x", "why")
    thread.join(10)
    name, mode, properties, _ = heard[0].body
    assert (name, mode, dict(properties)["PIDs"]) == ("x.scope", "fail", ("au", [4711]))


def test_no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "SOCKET", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        scope.put_aside(1, "x", "why")
