"""Real servers on 127.0.0.1, a clock that sleeps without waiting, and certificates made for the run."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from homeport import sources
from homeport.core.identity import Identity
from homeport.settings import Settings
from homeport.sources import Clock, Reply

DOCUMENT = b"interfaces: []\n"
WHO = Identity("smbios-uuid", "11-22", "a test", (), {
    "uuid": "11-22", "serial": "S/N 7 ü", "mac": "52:54:00:ab:cd:ef"}, ("52:54:00:ab:cd:ef", "52:54:00:ab:cd:f0"))
NOW = 1_900_000_000.0  # 2030


class FakeClock:
    """Time passes when somebody sleeps, and otherwise not."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.clock = Clock(lambda: self.time, lambda: NOW, self.sleep, lambda: 0.5)  # no jitter

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.time += seconds


@dataclass
class Answer:
    """What a test server says to one request."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = DOCUMENT


@dataclass
class Server:
    """A web server that gives `answers` in turn, the last one for ever, and remembers what it was asked."""

    url: str
    answers: list[Answer] = field(default_factory=lambda: [Answer()])
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def says(self, *answers: Answer) -> None:
        self.answers[:] = answers

    def answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Handler(BaseHTTPRequestHandler):
    ours: Server

    def do_GET(self) -> None:
        self.ours.paths.append(self.path)
        self.ours.headers.append(dict(self.headers))
        answer = self.ours.answer()
        self.send_response_only(answer.status)  # no Date of its own
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the client may have had enough
            self.wfile.write(answer.body)

    def log_message(self, *_args: Any) -> None:
        pass


def serve(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    handler = type("Handler", (_Handler,), {})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.handle_error = lambda *_args: None  # type: ignore[method-assign]
    scheme = "http"
    if context is not None:
        scheme = "https"
        httpd.socket = context.wrap_socket(httpd.socket, server_side=True, do_handshake_on_connect=False)
    handler.ours = Server(f"{scheme}://127.0.0.1:{httpd.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield handler.ours  # type: ignore[attr-defined]
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from serve()


@pytest.fixture
def other() -> Iterator[Server]:
    yield from serve()


@pytest.fixture
def https() -> Iterator[Callable[[ssl.SSLContext], Server]]:
    """`https(context)` is a running server with that certificate."""
    with ExitStack() as stack:
        yield lambda context: stack.enter_context(contextmanager(serve)(context))


@pytest.fixture
def raw() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """`raw(talk)` is the URL of a server that does whatever `talk` does with each connection."""
    listeners: list[socket.socket] = []

    def start(talk: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def converse(connection: socket.socket) -> None:
            with connection, suppress(OSError):  # the client may have had enough
                talk(connection)

        def accept() -> None:
            while True:
                try:
                    connection, _peer = listener.accept()
                except OSError:
                    return
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@dataclass
class Asking:
    """Asks the url source the way a boot does, with a fake clock and short limits."""

    fake: FakeClock = field(default_factory=FakeClock)
    lines: list[str] = field(default_factory=list)

    def __call__(self, *locations: str, within: float = 120.0, identity: Identity = WHO, **more: Any) -> Reply:
        options = {name: more.pop(name) for name in ("etag", "etag_url", "floor", "root") if name in more}
        options.setdefault("root", "/nonexistent")
        values = {"config": locations, "connect_timeout": 5.0, "header_timeout": 5.0, "body_timeout": 5.0, **more}
        return sources.fetch(Settings(values), identity, deadline=self.fake.time + within, clock=self.fake.clock,
                             progress=self.lines.append, **options)


@pytest.fixture
def ask() -> Asking:
    return Asking()


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder, by way of openssl(1)."""

    folder: Path

    @property
    def pem(self) -> str:
        return str(self.folder / "ca.pem")

    @classmethod
    def make(cls, folder: Path, name: str = "Test CA") -> Authority:
        folder.mkdir()
        (folder / "index").write_text("")
        (folder / "openssl.cnf").write_text(OPENSSL_CONFIG.format(folder=folder))
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem", "-days", "25000", "-subj", f"/CN={name}",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        return cls(folder)

    def server(self, *, names: str = "IP:127.0.0.1", start: str = "", end: str = "") -> ssl.SSLContext:
        """A server whose certificate is for `names`; `start` and `end` as YYYYMMDDHHMMSSZ."""
        number = len(list(self.folder.glob("*.csr")))
        base = self.folder / f"leaf{number}"
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-keyout", f"{base}.key", "-out", f"{base}.csr", "-subj", f"/CN=leaf{number}")
        (self.folder / f"{base.name}.ext").write_text(f"subjectAltName={names}\n")
        dates = [*(["-startdate", start] if start else []), *(["-enddate", end] if end else ["-days", "30"])]
        _openssl("ca", "-batch", "-config", f"{self.folder}/openssl.cnf", "-in", f"{base}.csr", "-out", f"{base}.pem",
                 "-extfile", f"{base}.ext", "-notext", *dates)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{base}.pem", f"{base}.key")
        return context


OPENSSL_CONFIG = """
[ca]
default_ca = this
[this]
database = {folder}/index
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
"""


def _openssl(*arguments: str) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl(1) is not installed")
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("pki") / "one")


@pytest.fixture(scope="session")
def successor(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority of the same name: what a rotation looks like."""
    return Authority.make(tmp_path_factory.mktemp("pki") / "two")
