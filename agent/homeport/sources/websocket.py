"""A websocket within limits, over our own connection: plain or TLS, through a proxy or not.

Knows RFC 6455 through `wsproto`, which has no sockets of its own; the only module that imports it. Messages are
whole (fragments are put together), bounded in size, and every read has only the time that is left. Refuses to
know what a message means.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from homeport.sources import wire
from homeport.sources.wire import AttemptFailed, Limits

if TYPE_CHECKING:
    from homeport.sources.trust import Context

CHUNK = 1 << 14
LARGEST_REFUSAL = 4096  # bytes of an HTTP answer that is kept; more of it is not read
LARGEST_HEAD = 8192  # bytes of what a proxy says
HTTPS = 443
NONSENSE = "what came is not a websocket"


class Closed(Exception):
    """The other side ended the connection."""


class NoUpgrade(Exception):
    """An HTTP answer came in place of a websocket."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class TooLarge(Exception):
    """A message is larger than anyone may send."""


class WebSocket:
    """One connection, upgraded. Raises AttemptFailed, Closed, NoUpgrade and TooLarge."""

    def __init__(self, url: str, headers: dict[str, str], *, limits: Limits, context: Context, proxy: str = "",
                 largest: int) -> None:
        """Connect to `url` (http or https, without user name) and upgrade; then the phase "header" has begun."""
        self._limits, self._largest = limits, largest
        self._events: deque[Event] = deque()
        self._protocol = WSConnection(ConnectionType.CLIENT)
        parts = urlsplit(url)
        self._sock = _connect(url, limits, context, proxy)
        try:
            limits.begin("header")
            self._send(Request(
                host=parts.netloc, target=parts.path or "/",
                extra_headers=[(name.encode(), value.encode()) for name, value in headers.items()]))
            self._expect_upgrade()
        except BaseException:
            self._sock.close()
            raise

    @property
    def local_address(self) -> str:
        """Where we speak from; IPv6 in brackets."""
        host = str(self._sock.getsockname()[0])
        return f"[{host}]" if ":" in host else host

    def send(self, data: bytes) -> None:
        """One binary message."""
        self._send(BytesMessage(data=data))

    def receive(self) -> tuple[bytes, bool]:
        """The next message, and whether it is binary."""
        data = bytearray()
        while True:
            event = self._next()
            if isinstance(event, CloseConnection):
                # The same event for a frame that is none; then the other side has closed nothing.
                raise AttemptFailed(NONSENSE) if self._protocol.state is ConnectionState.OPEN else Closed()
            if isinstance(event, Ping):
                self._send(event.response())
            if isinstance(event, BytesMessage | TextMessage):
                data += event.data if isinstance(event, BytesMessage) else event.data.encode()
                if len(data) > self._largest:
                    raise TooLarge
                if event.message_finished:
                    return bytes(data), isinstance(event, BytesMessage)

    def close(self) -> None:
        self._sock.close()

    def _expect_upgrade(self) -> None:
        event = self._next()
        if isinstance(event, AcceptConnection):
            return
        if not isinstance(event, RejectConnection):
            raise Closed
        status, body = event.status_code, b""
        finished = not event.has_body
        while not finished and len(body) < LARGEST_REFUSAL:
            try:
                event = self._next()
            except Closed:
                break
            if isinstance(event, RejectData):
                body, finished = body + event.data, event.body_finished
        raise NoUpgrade(status, body[:LARGEST_REFUSAL].decode("utf-8", "replace"))

    def _send(self, event: Event) -> None:
        try:
            data = self._protocol.send(event)
        except LocalProtocolError:  # it is over: the other side has said so, or broken the rules
            raise Closed from None
        _send_all(self._sock, data, self._limits)

    def _next(self) -> Event:
        while not self._events:
            data = _receive(self._sock, self._limits)
            try:
                self._protocol.receive_data(data or None)
                self._events.extend(self._protocol.events())
            except (RemoteProtocolError, LocalProtocolError):
                raise (AttemptFailed(NONSENSE) if data else Closed()) from None
            if not data and not self._events:
                raise Closed
        return self._events.popleft()


def _connect(url: str, limits: Limits, context: Context, proxy: str) -> wire.PlainSocket | ssl.SSLSocket:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (HTTPS if parts.scheme == "https" else 80)
    if not proxy:
        return _secured(wire.connect(host, port, limits), parts.scheme, host, limits, context)
    at = urlsplit(proxy)
    sock = wire.connect(at.hostname or "", at.port or 80, limits)
    try:
        _tunnel(sock, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", at.netloc.rpartition("@")[0], limits)
    except BaseException:
        sock.close()
        raise
    return _secured(sock, parts.scheme, host, limits, context)


def _secured(sock: wire.PlainSocket, scheme: str, host: str, limits: Limits,
             context: Context) -> wire.PlainSocket | ssl.SSLSocket:
    if scheme != "https":
        return sock
    context.limits, context.host = limits, host
    try:
        return context.wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise


def _tunnel(sock: wire.PlainSocket, target: str, userinfo: str, limits: Limits) -> None:
    """Ask an HTTP proxy for a way through (RFC 9110, 9.3.6)."""
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if userinfo:
        head += f"Proxy-Authorization: Basic {b64encode(unquote(userinfo).encode()).decode()}\r\n"
    _send_all(sock, f"{head}\r\n".encode(), limits)
    answer = b""
    # Nothing follows the head: the other end of the tunnel speaks only when it is spoken to.
    while b"\r\n\r\n" not in answer:
        data = _receive(sock, limits)
        answer += data
        if not data or len(answer) > LARGEST_HEAD:
            raise AttemptFailed("the proxy broke the connection", "check proxy=")
    status = answer.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(status) < 2 or not status[1].startswith(b"2"):
        words = b" ".join(status[1:]).decode("ascii", "replace")
        raise AttemptFailed(f"the proxy refuses: {words[:40]!r}", "check proxy= and what the proxy allows")


def _receive(sock: wire.PlainSocket | ssl.SSLSocket, limits: Limits) -> bytes:
    """What has come, b"" at the end; whoever is cut off in the middle of TLS has come to an end, too."""
    buffer = bytearray(CHUNK)
    limits.left()
    try:
        return bytes(buffer[:sock.recv_into(buffer)])
    except AttemptFailed:
        limits.left()  # raises if it was the time that ended it
        raise Closed from None


def _send_all(sock: wire.PlainSocket | ssl.SSLSocket, data: bytes, limits: Limits) -> None:
    sock.settimeout(limits.left())
    try:
        sock.sendall(data)
    except TimeoutError:
        raise limits.exceeded() from None
    except OSError:
        # The reason is what was said before; whoever reads on finds it.
        raise Closed from None
