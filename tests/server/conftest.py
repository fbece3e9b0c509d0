"""The server as a process of its own, its folder of manifests, and a place for its state."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

TOP = Path(__file__).resolve().parents[2]
SEED = TOP / "tests" / "data" / "server" / "seed.yaml"
READY_SECONDS = 30.0


class Nursery:
    """Starts commands of `homeport-server`; see nursery.py."""

    def __init__(self) -> None:
        path = os.pathsep.join(str(TOP / part) for part in ("agent", "server"))
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True)
        self.lock = threading.Lock()

    def ask(self, **request: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with self.lock:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


@dataclass(frozen=True)
class Done:
    """A command that has ended, and what it printed."""

    status: int
    text: str


@dataclass
class Server:
    """`homeport-server serve` on a folder, on 127.0.0.1 and a port of its own choice."""

    nursery: Nursery
    folder: Path
    state: Path
    options: tuple[str, ...] = ("--no-tls",)
    log_name: str = "log"
    pid: int = 0
    port: int = 0
    ended: int | None = None
    _outputs: Iterator[int] = field(default_factory=itertools.count)

    def start(self) -> Server:
        """Raises `pytest.fail` with its log if it does not come up."""
        self.state.mkdir(exist_ok=True)
        before = self.log.count("listening at")
        self.ended = None
        self.pid = self.nursery.ask(
            start=["serve", str(self.folder), "--state", str(self.state), "--listen", f"127.0.0.1:{self.port}",
                   *self.options], output=str(self.log_path))
        self.wait_for(lambda: self.log.count("listening at") > before or self.has_ended(), READY_SECONDS)
        if self.has_ended():
            pytest.fail(f"the server did not start:\n{self.log}", pytrace=False)
        line = [line for line in self.log.splitlines() if "listening at" in line][-1]
        self.port = int(line.partition("port ")[2].split(";")[0])
        return self

    def has_ended(self) -> bool:
        if self.ended is None and self.pid:
            self.ended = self.nursery.ask(poll=self.pid)
        return self.ended is not None

    @property
    def log_path(self) -> Path:
        return self.state / self.log_name

    @property
    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def url(self) -> str:
        scheme = "http" if "--no-tls" in self.options else "https"
        return f"{scheme}://127.0.0.1:{self.port}"

    def registration(self, token: str = "fire-nodes") -> str:
        return f"{self.url}/elemental/registration/{token}"

    @property
    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.state / "ca.pem"))

    def get(self, path: str, **options: Any) -> requests.Response:
        verify = str(self.state / "ca.pem") if "--no-tls" not in self.options else True
        return requests.get(self.url + path, timeout=60, verify=verify, **options)

    def kill(self) -> None:
        """As a power cut would, for the process."""
        os.kill(self.pid, signal.SIGKILL)
        self.ended = self.nursery.ask(wait=self.pid)

    def stop(self) -> int:
        """Gives the exit status."""
        if self.pid and not self.has_ended():
            os.kill(self.pid, signal.SIGTERM)
            with contextlib.suppress(pytest.fail.Exception):
                self.wait_for(self.has_ended, 30)
            if not self.has_ended():
                self.kill()
        return self.ended or 0

    def rss(self) -> float:
        """MiB in memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def files(self) -> list[str]:
        """What its file descriptors are."""
        folder = f"/proc/{self.pid}/fd"
        found = []
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"{folder}/{name}"))
        return found

    def logs(self, text: str, seconds: float = 60.0) -> None:
        """Wait for `text` in the log."""
        self.wait_for(lambda: text in self.log, seconds, f"{text!r} in the log")

    def wait_for(self, condition: Callable[[], object], seconds: float, what: str = "it") -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {seconds:g} s for {what}:\n{self.log}", pytrace=False)
            time.sleep(0.02)

    def run(self, *arguments: str, status: int = 0) -> Done:
        """Another command on the same state, which must end with `status`."""
        self.state.mkdir(exist_ok=True)
        output = self.state / f"output-{next(self._outputs)}"
        state = () if arguments[0] == "check" else ("--state", str(self.state))
        pid = self.nursery.ask(start=[*arguments, *state], output=str(output))
        done = Done(self.nursery.ask(wait=pid), output.read_text())
        assert done.status == status, done.text
        return done


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    found = Nursery()
    yield found
    found.close()


@pytest.fixture
def seed() -> str:
    """The seed's pool and registration."""
    return SEED.read_text()


@pytest.fixture(scope="module")
def shared_server(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of a module that change nothing for each other: each has machines of its own.

    Beside the seed it has a registration that wants a TPM, with the token `only-tpm`.
    """
    folder = tmp_path_factory.mktemp("manifests")
    seed = SEED.read_text()
    (folder / "seed.yaml").write_text(seed)
    (folder / "tpm.yaml").write_text(
        seed.partition("---")[2].replace("fire-nodes", "only-tpm").replace(
            "    network:\n", "    elemental: {registration: {auth: tpm}}\n    network:\n"))
    server = Server(nursery, folder, tmp_path_factory.mktemp("state")).start()
    yield server
    server.stop()


@pytest.fixture
def make_server(nursery: Nursery, tmp_path: Path, seed: str) -> Iterator[Callable[..., Server]]:
    """Makes a server with the manifests given as files (name -> text; default: the seed); stops it in the end."""
    made: list[Server] = []

    def make(*options: str, files: dict[str, str] | None = None, tls: bool = False, start: bool = True) -> Server:
        folder = tmp_path / f"manifests{len(made)}"
        folder.mkdir()
        for name, text in (files or {"seed.yaml": seed}).items():
            (folder / name).write_text(textwrap.dedent(text))
        server = Server(nursery, folder, tmp_path / f"state{len(made)}", (*(() if tls else ("--no-tls",)), *options))
        made.append(server)
        return server.start() if start else server

    yield make
    for server in made:
        server.stop()
