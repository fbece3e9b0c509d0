"""A configuration server that can be slow, half-open, wrong or absent, and remembers who asked for what.

    server.put("/seed.yaml", text)                 # 200 with an ETag, 304 when it is asked for
    server.put("/seed.yaml", text, status=503, retry_after=2)
    server.put("/a", redirect="http://192.168.122.2/b")
    server.put("/slow", text, byte_delay=0.1)      # one byte at a time
    server.put("/held", text, header_delay=20)     # nothing at first
    server.put("/half", half_open=True)            # accepts, then says nothing, ever
    server.put("/cut", text, cut_after=10)         # promises all, closes after 10 bytes
    server.stop(); server.start()                  # connection refused, and back
    server.requests                                # what was asked, oldest first

Knows HTTP and TLS and nothing of networks: it is handed a function that gives it a listening socket.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """One request as it arrived; `at` is time.monotonic(), `status` what it was answered."""

    path: str
    headers: Mapping[str, str]
    status: int
    at: float
    client: str


@dataclass(frozen=True)
class Page:
    """How one path is answered."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/yaml"
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: bool = True
    header_delay: float = 0
    byte_delay: float = 0
    cut_after: int | None = None
    half_open: bool = False

    @property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'


class ConfigServer:
    """See the head of this module."""

    def __init__(
        self,
        listen: Callable[[], socket.socket],
        address: str,
        port: int,
        tls_folder: Path | None = None,
    ) -> None:
        self._listen = listen
        self.address = address
        self.port = port
        self.tls = Tls(tls_folder, address) if tls_folder else None
        self.requests: list[Request] = []
        self._pages: dict[str, Page] = {}
        self._listener: socket.socket | None = None
        self._stopped = threading.Event()
        self._connections: set[socket.socket] = set()

    @property
    def url(self) -> str:
        """The root, without a slash at its end."""
        scheme, usual = ("https", 443) if self.tls else ("http", 80)
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}" + ("" if self.port == usual else f":{self.port}")

    def put(
        self,
        path: str,
        body: str | bytes = b"",
        *,
        status: int = 200,
        retry_after: int | str | None = None,
        redirect: str = "",
        content_type: str = "application/yaml",
        etag: bool = True,
        header_delay: float = 0,
        byte_delay: float = 0,
        cut_after: int | None = None,
        half_open: bool = False,
    ) -> str:
        """Answer `path` so from now on; gives back its URL.  Delays in seconds.  "*" is every path."""
        headers: dict[str, str] = {}
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        if redirect:
            headers["Location"] = redirect
            status = status if status != 200 else 302
        self._pages[path] = Page(
            body.encode() if isinstance(body, str) else body,
            status, content_type, headers, etag, header_delay, byte_delay, cut_after, half_open,
        )  # fmt: skip
        return self.url + path

    def remove(self, path: str) -> None:
        """404 from now on."""
        self._pages.pop(path, None)

    def asked(self, path: str) -> list[Request]:
        """The requests for this path (with any query), oldest first."""
        return [r for r in self.requests if r.path.partition("?")[0] == path]

    def start(self) -> None:
        if self._listener:
            return
        self._stopped = threading.Event()
        self._listener = self._listen()
        threading.Thread(target=self._serve, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Connections are refused from now on, and those that are open are closed."""
        if not self._listener:
            return
        self._stopped.set()
        # Wakes the thread that is inside accept(); closing alone would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._listener = None
        for connection in list(self._connections):
            _close(connection)

    def _serve(self, listener: socket.socket) -> None:
        while not self._stopped.is_set():
            try:
                connection, peer = listener.accept()
            except OSError:
                return
            self._connections.add(connection)
            threading.Thread(target=self._talk, args=(connection, peer), daemon=True).start()

    def _talk(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        stream: socket.socket = connection
        try:
            if self.tls:
                connection.settimeout(10)
                stream = self.tls.context().wrap_socket(connection, server_side=True)
                stream.settimeout(None)
            _Handler(stream, peer, self)
        except OSError:
            pass  # The client went away, or does not like our certificate: its business, and its log.
        finally:
            self._connections.discard(connection)
            _close(stream)

    def answer(self, path: str) -> Page:
        plain = path.partition("?")[0]
        missing = Page(b"no such document\n", 404, "text/plain", etag=False)
        return self._pages.get(path) or self._pages.get(plain) or self._pages.get("*", missing)

    def wait(self, seconds: float) -> None:
        """Pause an answer; over at once when the server is stopped."""
        self._stopped.wait(seconds)


class _Handler(http.server.BaseHTTPRequestHandler):
    """One request, answered as its page says; the connection is closed after it."""

    def __init__(self, stream: socket.socket, peer: tuple[str, int], owner: ConfigServer) -> None:
        self.owner = owner
        super().__init__(stream, peer, owner)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        page = self.owner.answer(self.path)
        status = page.status
        if status == 200 and page.etag and self.headers.get("If-None-Match") == page.tag:
            status = 304
        self.owner.requests.append(
            Request(self.path, dict(self.headers), status, time.monotonic(), self.client_address[0])
        )
        if page.half_open:
            self.owner.wait(3600)
            return
        self.owner.wait(page.header_delay)
        body = b"" if status == 304 else page.body
        self.send_response(status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(body)))
        if page.etag and status in (200, 304):
            self.send_header("ETag", page.tag)
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self._send(body[: page.cut_after], page.byte_delay)

    def _send(self, body: bytes, byte_delay: float) -> None:
        if not byte_delay:
            self.wfile.write(body)
            return
        for position in range(len(body)):
            self.wfile.write(body[position : position + 1])
            self.owner.wait(byte_delay)

    def log_message(self, format: str, *arguments: object) -> None:
        pass  # `requests` is the log.


class Tls:
    """A certificate authority of our own and a certificate for one address or name, made by openssl."""

    def __init__(self, folder: Path, address: str, *, days: int = 30) -> None:
        self.folder = folder / address.replace(":", "-")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.address = address
        self.ca = self.folder / "ca.pem"
        self.certificate = self.folder / "server.pem"
        self.renew(days=days)

    def renew(self, *, days: int = 30) -> None:
        """A new authority and a new certificate, as after a rotation; `ca` is the new one's file."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self._openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", str(days),
                      "-subj", "/CN=Test bench authority", "-addext",
                      "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        self._openssl("req", *key, "-keyout", "server.key", "-out", "server.csr",
                      "-subj", "/CN=server.test")  # fmt: skip
        kind = "DNS" if self.address[-1].isalpha() and ":" not in self.address else "IP"
        (self.folder / "extensions").write_text(
            f"subjectAltName={kind}:{self.address},DNS:server.test\nbasicConstraints=CA:FALSE\n"
        )
        self._openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                      "-CAcreateserial", "-out", "server.pem", "-days", str(days),
                      "-extfile", "extensions")  # fmt: skip

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(
            ["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=30
        )

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.folder / "server.key")
        return context


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
