"""What a web server says, byte for byte: heads, bodies, redirects, `Retry-After`.

The bytes are in a socket before they are asked for, as from a server that is done; TCP and names are left out.
"""

from __future__ import annotations

import socket
import ssl
import time

from homeport.core.identity import Identity
from homeport.errors import DocumentError, SourceError
from homeport.settings import Settings
from homeport.sources import url, wire
from homeport.sources.address import web_address
from homeport.sources.patience import Clock, parse_retry_after
from homeport.sources.reply import LARGEST, Reply
from homeport.sources.trust import Context

WORDS = (
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.0 404 ", "HTTP/1.1 302 Found\r\n", "429", "503",
    "Location: ", "Retry-After: ", "Date: ", "Sun, 06 Nov 1994 08:49:37 GMT", "Content-Length: ", "ETag: \"a\"",
    "Content-Encoding: gzip", "Transfer-Encoding: chunked", "Content-Type: ", "Set-Cookie: a=b", "Last-Modified: ",
    "\r\n\r\n", "http://", "https://", "//", "@", "0\r\n\r\n", "ffff\r\n", "Connection: keep-alive", "[::1]", "\0",
)
SEEDS = tuple(text.replace("\n", "\r\n").encode() for text in (
    "HTTP/1.1 200 OK\nContent-Type: application/yaml\nETag: \"7\"\nContent-Length: 15\n\ninterfaces: []\n",
    "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nabcde\n0\n\n",
    "HTTP/1.1 302 Found\nLocation: //other.example:8080/b?c=d#e\nContent-Length: 0\n\n",
    "HTTP/1.1 429 Too Many\nRetry-After: 7\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
    "HTTP/1.1 503 Busy\nRetry-After: Sun, 06 Nov 1994 08:49:57 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n\n",
    "HTTP/1.1 100 Continue\n\nHTTP/1.0 404 Not Found\nServer: x\n\n", "7", "Sun, 06 Nov 1994 08:49:37 GMT",
))
# Neither may come out again, whatever the server makes us say.
PASSWORD, TOKEN = "pass-4711", "token-0815"
NOW = 1_900_000_000.0


def check(data: bytes) -> None:
    text = data.decode("latin-1")
    wait = parse_retry_after(text, "", NOW)
    assert wait is None or 0 <= wait < float("inf")
    connect, wire.connect = wire.connect, lambda host, port, limits: _connection(data, limits)
    try:
        reply = _ask()
    except DocumentError as error:
        said = "".join(map(str, error.complaints))
    except SourceError as error:
        said = f"{error.message}{error.hint}"
    else:
        assert len(reply.data) <= LARGEST
        said = reply.url
    finally:
        wire.connect = connect
    assert said.isprintable(), ascii(said)
    if PASSWORD not in text and TOKEN not in text:
        assert PASSWORD not in said and TOKEN not in said, said


def _ask() -> Reply:
    address = web_address(f"http://me:{PASSWORD}@cfg.example/a.yaml?t={TOKEN}")
    clock = Clock(now=lambda: NOW)
    asker = url.Asker(Settings(), Context(ssl.PROTOCOL_TLS_CLIENT), time.monotonic() + 5, '"etag"', "", clock,
                      lambda line: None, time.monotonic())
    return url._attempt(asker, url.Target(address))


def _connection(data: bytes, limits: wire.Limits) -> wire.PlainSocket:
    """One end of a pair; the other one has said `data` and listens no more."""
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    theirs.setblocking(False)
    theirs.send(data)
    theirs.shutdown(socket.SHUT_WR)
    connection = wire.PlainSocket(fileno=ours.detach())
    connection.limits = limits
    _keep[:] = [theirs]  # or our request would break the connection
    return connection


_keep: list[socket.socket] = []
_who = Identity("none", "", "", (), {})
