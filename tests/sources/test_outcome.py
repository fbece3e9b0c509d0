"""The report to the server, and that it is bounded."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from homeport.core.identity import Identity
from homeport.errors import SourceError, Unreachable
from homeport.settings import Settings
from homeport.sources import outcome

WHO = Identity("smbios-uuid", "11-22", "a test", (), {"uuid": "11-22"})


class Handler(BaseHTTPRequestHandler):
    status = 204
    got: list[tuple[str, str | None, object]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(self.status)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[int, type[Handler]]]:
    handler: type[Handler] = type("OneHandler", (Handler,), {"got": []})
    httpd = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield httpd.server_port, handler
    httpd.shutdown()
    httpd.server_close()


def test_report_is_posted_for_this_machine(server: tuple[int, type[Handler]]) -> None:
    port, handler = server
    settings = Settings({"report": f"http://agent:pw@127.0.0.1:{port}/reports/{{uuid}}"})
    outcome.post_report(settings, WHO, {"rung": "assigned", "exit": 0})
    assert handler.got == [("/reports/11-22", "Basic YWdlbnQ6cHc=", {"rung": "assigned", "exit": 0})]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_refused_report_says_where_without_the_password(status: int, server: tuple[int, type[Handler]]) -> None:
    port, handler = server
    handler.status = status
    settings = Settings({"report": f"http://agent:pw@127.0.0.1:{port}/reports?key=s3cret"})
    with pytest.raises(SourceError, match=rf"No report to http://127.0.0.1:{port}/reports: the server says {status}"):
        outcome.post_report(settings, WHO, {})


def test_silent_server_costs_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "LIMIT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Settings({"report": f"http://127.0.0.1:{silent.getsockname()[1]}/"})
        with pytest.raises(Unreachable, match="No report to"):
            outcome.post_report(settings, WHO, {})
