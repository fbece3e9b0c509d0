"""Metadata services as strict as the real ones: what they want, and what they say to whoever doesn't give it.

What each wants is written down here from the platforms' documentation (spec/sources-and-initramfs.md, 1.5
and 2.3), not taken from the code under test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

CASES = Path(__file__).parents[2] / "data" / "platforms"


@dataclass(frozen=True)
class Manners:
    """What a service wants: headers, a query, a token (its path, what to ask with, its header)."""

    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    token: tuple[str, dict[str, str], str] | None = None


IMDS_V2 = ("/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "180"}, "X-aws-ec2-metadata-token")
MANNERS = {
    "akamai": Manners({"Accept": "application/json"}, token=(
        "/v1/token", {"Metadata-Token-Expiry-Seconds": "300"}, "Metadata-Token")),
    "aliyun": Manners(),
    "aws": Manners(token=IMDS_V2),
    "azure": Manners({"Metadata": "true"}, "api-version=2021-02-01&format=json"),
    "digitalocean": Manners(),
    "gcp": Manners({"Metadata-Flavor": "Google"}, "recursive=true&alt=json"),
    "hetzner": Manners(),
    "openstack": Manners(),
    "oraclecloud": Manners({"Authorization": "Bearer Oracle"}),
    "packet": Manners(),
    "scaleway": Manners(query="format=json"),
    "upcloud": Manners(),
    "vultr": Manners(),
}
TOKEN = "AQAEAtoken=="


@dataclass
class Service:
    """A metadata service that answers from a folder; `before` may answer in its stead, with a status, and `instead`."""

    folder: Path
    manners: Manners
    url: str = ""
    requests: list[str] = field(default_factory=list)
    before: Callable[[str], tuple[int, dict[str, str]] | None] = lambda path: None
    instead: bytes = b"instead"

    def answer(self, method: str, target: str, headers: Any) -> tuple[int, dict[str, str], bytes]:
        self.requests.append(f"{method} {target}")
        parts = urlsplit(target)
        if (instead := self.before(parts.path)) is not None:
            return (*instead, self.instead)
        if "X-Forwarded-For" in headers:  # as EC2 and GCP do with what came through a proxy
            return 403, {}, b""
        token = self.manners.token
        if method == "PUT":
            right = token and parts.path == token[0] and has(headers, token[1])
            return (200, {}, TOKEN.encode()) if right else (400, {}, b"")
        if token and headers.get(token[2]) != TOKEN:
            return 401, {}, b""
        if not has(headers, self.manners.headers) or parts.query != self.manners.query:
            return 403, {}, b""
        path = self.folder / parts.path.strip("/")
        if path.is_dir():
            names = (f"{entry.name}/" if entry.is_dir() else entry.name for entry in sorted(path.iterdir()))
            return 200, {}, "\n".join(names).encode()
        return (200, {}, path.read_bytes()) if path.is_file() else (404, {}, b"<html>not found</html>")


def has(headers: Any, wanted: dict[str, str]) -> bool:
    return all(headers.get(name) == value for name, value in wanted.items())


class _Handler(BaseHTTPRequestHandler):
    ours: Service

    def do_GET(self) -> None:
        status, headers, body = self.ours.answer(self.command, self.path, self.headers)
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET  # noqa: N815

    def log_message(self, *_args: Any) -> None:
        pass


def handler_for(service: Service) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"ours": service})


Start = Callable[..., Service]


@pytest.fixture
def serve() -> Iterator[Start]:
    """`serve("aws-two-nics-three-addresses")` is that case's metadata service, running."""
    running: list[ThreadingHTTPServer] = []

    def start(case: str, **more: Any) -> Service:
        service = Service(CASES / case / "metadata", MANNERS[case.partition("-")[0]], **more)
        httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(service))
        running.append(httpd)
        service.url = f"http://127.0.0.1:{httpd.server_port}"
        threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return service

    yield start
    for httpd in running:
        httpd.shutdown()
        httpd.server_close()
