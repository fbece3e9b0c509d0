"""Servers that are slow on purpose: every phase of an attempt ends in its own time."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from homeport.errors import Unreachable
from homeport.sources import wire

LIMIT = 0.9
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"


def drip(connection: Any, data: bytes) -> None:
    """A byte now and then: never silent for long, and never done."""
    for byte in data * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def silent(connection: Any) -> None:
    connection.recv(65536)
    connection.recv(1)


def drip_status(connection: Any) -> None:
    connection.recv(65536)
    drip(connection, b"H")


def drip_header(connection: Any) -> None:
    connection.recv(65536)
    connection.sendall(HEAD)
    drip(connection, b"X-A: b\r\n")


def endless_continue(connection: Any) -> None:
    connection.recv(65536)
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.01)


def half_open(connection: Any) -> None:
    connection.recv(65536)
    connection.sendall(HEAD + b"\r\nhalf")
    connection.recv(1)


def drip_body(connection: Any) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    drip(connection, b"#")


def drip_chunks(connection: Any) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    drip(connection, b"1\r\n#\r\n")


def drip_handshake(connection: Any) -> None:
    """A record of TLS that announces more than comes."""
    drip(connection, b"\x16\x03\x03\x3f\xff" + b"\0" * 1000)


@pytest.mark.parametrize(("talk", "scheme", "said"), [
    (silent, "http", "no answer within 0.9 s"),
    (drip_status, "http", "no answer within 0.9 s"),
    (drip_header, "http", "no answer within 0.9 s"),
    (endless_continue, "http", "no answer within 0.9 s"),
    (half_open, "http", "the document was not complete within 0.9 s"),
    (drip_body, "http", "the document was not complete within 0.9 s"),
    (drip_chunks, "http", "the document was not complete within 0.9 s"),
    (silent, "https", "no connection within 0.9 s"),
    (drip_handshake, "https", "no connection within 0.9 s"),
])
def test_each_phase_has_its_limit(raw: Any, ask: Any, talk: Callable[[Any], None], scheme: str, said: str) -> None:
    url = raw(talk).replace("http:", f"{scheme}:")
    started = time.monotonic()
    with pytest.raises(Unreachable, match=said):
        # The fake clock stands still while the servers are slow, so one attempt is all there is time for.
        ask(f"{url}/a", within=0.99, connect_timeout=LIMIT, header_timeout=LIMIT, body_timeout=LIMIT)
    assert time.monotonic() - started < 30  # what drips goes on for minutes; this machine may be busy


def test_what_is_left_of_the_deadline_bounds_an_attempt(raw: Any, ask: Any) -> None:
    started = time.monotonic()
    with pytest.raises(Unreachable, match=r"no answer within 0\.\d+ s"):
        ask(f"{raw(silent)}/a", within=0.5, header_timeout=60.0)
    assert time.monotonic() - started < 40


def test_a_host_without_an_address(ask: Any) -> None:
    with pytest.raises(Unreachable, match=r"cannot look up cfg\.invalid|DNS has not answered for cfg\.invalid"):
        ask("http://cfg.invalid/a", within=0.9)


def test_a_resolver_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library's look-up cannot be bounded from outside: a stand-in for it that hangs."""
    numeric = socket.getaddrinfo

    def hang(*arguments: Any, **options: Any) -> Any:
        if options.get("flags"):
            return numeric(*arguments, **options)
        time.sleep(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    started = time.monotonic()
    with pytest.raises(wire.AttemptFailed, match=r"DNS has not answered for cfg\.example within 2 s"):
        wire.connect("cfg.example", 80, wire.Limits(2, 1, 1, 20))
    assert time.monotonic() - started < 9


def test_every_address_gets_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A black hole first (a full backlog that answers nothing), the server second."""
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = [socket.socket() for _ in range(3)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(full.getsockname())
    good = socket.create_server(("127.0.0.1", 0))
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", server.getsockname()) for server in (full, good)]
    monkeypatch.setattr(wire, "look_up", lambda *_arguments: addresses)
    try:
        with wire.connect("cfg.example", 80, wire.Limits(0.6, 1, 1, 10)) as connection:
            assert connection.getpeername() == good.getsockname()
    finally:
        for sock in (full, good, *fillers):
            sock.close()


def test_a_literal_ipv6_address(ask: Any) -> None:
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(Unreachable, match="connection refused"):
        ask(f"http://[::1]:{port}/a", within=0.5)
