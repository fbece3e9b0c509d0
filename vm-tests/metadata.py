"""Metadata services that answer as the real ones do, whoever asks: leaf by leaf, as a list, or whole.

    case = read_case("gcp")                     # vm-tests/clouds/gcp.yaml: what the platform says of one machine
    with Served(world, case) as served:         # on its true address, in the world's network namespace
        served.requests

`cloud.py` has the one service that homeport's own tests need and is as strict as homeport's walk of it.  Here
other programs ask too, each in its own way, so what counts is the service's documentation: tokens of any
permitted life, text or JSON, keys in either spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from configserver import Tls
from world import World, end_http

CASES = Path(__file__).parent / "clouds"
LINK_LOCAL = "169.254.169.254"
WIRE_SERVER = "168.63.129.16"  # Azure's
PACKET = "metadata.packet.net"
TOKEN = "AQAEAtoken=="


@dataclass(frozen=True)
class Case:
    """What a platform says of one machine. `drive` is the label of the drive that has it, or "".

    `platform` is homeport's name for it; `afterburn` and `nm_cloud_setup` those of the peers that know it, or "".
    """

    name: str
    platform: str
    afterburn: str
    nm_cloud_setup: str
    at: str
    manners: str
    drive: str
    files: Mapping[str, str]
    tree: Mapping[str, Any]
    wire_server: Mapping[str, str] = field(default_factory=dict)
    check_in: str = ""  # what a machine that has booted sends, as "POST /path?query"
    advertised: str = ""  # IPv6 prefix, /64, that a router tells the second card's subnet


def read_case(name: str) -> Case:
    found = yaml.safe_load((CASES / f"{name}.yaml").read_text())
    return Case(
        name, found.get("platform") or found["afterburn"], found.get("afterburn", ""), found.get("nm-cloud-setup", ""),
        found.get("at", LINK_LOCAL),
        found.get("manners", ""), found.get("drive", ""),
        {path: text(content) for path, content in found.get("files", {}).items()},
        found.get("tree", {}), found.get("wire-server", {}), found.get("check-in", ""),
        found.get("advertised", ""))


def cases() -> list[str]:
    return sorted(path.stem for path in CASES.glob("*.yaml"))


def text(content: Any) -> str:
    """A file's text: a document is JSON, which is YAML as well."""
    return content if isinstance(content, str) else json.dumps(content)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Any
    body: str = ""

    @property
    def line(self) -> str:
        query = "&".join(f"{name}={value[0]}" for name, value in self.query.items())
        return f"{self.method} {self.path}{'?' * bool(query)}{query}"

    def has(self, header: str, value: str) -> bool:
        return str(self.headers.get(header, "")).lower() == value.lower()


Answer = tuple[int, str]


def refusal(case: Case, request: Request) -> Answer | None:
    """What the service says to somebody who does not ask as it wants; None if it has no complaint."""
    if "X-Forwarded-For" in request.headers:  # as EC2 and GCP do with what came through a proxy
        return 403, ""
    return {"aws": _aws, "akamai": _akamai, "gcp": _gcp, "azure": _azure, "oraclecloud": _oracle,
            "scaleway": _scaleway}.get(case.manners, _anybody)(request)


def _anybody(request: Request) -> Answer | None:
    return None if request.method == "GET" else (405, "")


def _token(request: Request, path: str, life: str, longest: int, header: str) -> Answer | None:
    if request.method == "PUT":
        seconds = str(request.headers.get(life, ""))
        right = request.path == path and seconds.isdigit() and 1 <= int(seconds) <= longest
        return (200, TOKEN) if right else (400, "")
    return None if request.headers.get(header) == TOKEN else (401, "")


def _aws(request: Request) -> Answer | None:
    return _token(request, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", 21600,
                  "X-aws-ec2-metadata-token")


def _akamai(request: Request) -> Answer | None:
    return _token(request, "/v1/token", "Metadata-Token-Expiry-Seconds", 86400, "Metadata-Token")


def _gcp(request: Request) -> Answer | None:
    return None if request.has("Metadata-Flavor", "Google") else (403, "")


def _azure(request: Request) -> Answer | None:
    version = request.query.get("api-version", [""])[0]
    if not request.has("Metadata", "true") or not re.fullmatch(r"20\d\d-\d\d-\d\d", version):
        return 400, '{"error": "Bad request"}'
    return None


def _oracle(request: Request) -> Answer | None:
    return None if request.has("Authorization", "Bearer Oracle") else (401, "")


def _scaleway(request: Request) -> Answer | None:
    return None if request.method != "GET" or request.query.get("format") == ["json"] else (400, "")


def look_up(case: Case, request: Request) -> Answer:
    """What stands at a path: a file, a leaf, or what is below it."""
    path = request.path.strip("/")
    if path in case.files:
        return 200, case.files[path]
    for top, tree in case.tree.items():
        if path == top or path.startswith(f"{top}/"):
            node = descend(tree, path.removeprefix(top).strip("/"))
            return show(case, request, node) if node is not None else (404, "<html>not found</html>")
    return 404, "<html>not found</html>"


def descend(node: Any, path: str) -> Any:
    """GCP writes `network-interfaces` in paths and `networkInterfaces` in JSON."""
    for name in filter(None, path.split("/")):
        if isinstance(node, list):
            node = node[int(name)] if name.isdigit() and int(name) < len(node) else None
        elif isinstance(node, dict):
            camel = re.sub(r"-(\w)", lambda match: match[1].upper(), name)
            node = node.get(name, node.get(camel))
        else:
            return None
    return node


def show(case: Case, request: Request, node: Any) -> Answer:
    whole = {"gcp": request.query.get("recursive") == ["true"], "azure": request.query.get("format") != ["text"]}
    if whole.get(case.manners):
        return 200, json.dumps(node)
    if not isinstance(node, dict | list):
        return 200, str(node)
    entries = node.items() if isinstance(node, dict) else enumerate(node)
    return 200, "\n".join(f"{_kebab(case, key)}{'/' * isinstance(value, dict | list)}" for key, value in entries)


def _kebab(case: Case, key: Any) -> str:
    return re.sub(r"[A-Z]", lambda match: f"-{match[0].lower()}", str(key)) if case.manners == "gcp" else str(key)


class Served:
    """A case's services, running; use it as a context manager. With a drive there is none."""

    def __init__(self, world: World, case: Case) -> None:
        self.world, self.case = world, case
        self.requests: list[str] = []
        self.told: list[str] = []
        # Packet's alone has a certificate.
        self.tls = Tls(world.folder / "tls", PACKET) if case.name == "packet" else None
        self._servers: list[ThreadingHTTPServer] = []

    def answer(self, request: Request) -> Answer:
        self.requests.append(f"{request.method} {request.path}")
        if request.line == self.case.check_in:
            return self.hear(request)
        said = refusal(self.case, request)
        return look_up(self.case, request) if said is None else said

    def hear(self, request: Request) -> Answer:
        """A check-in: noted, with its type and with no space between words."""
        kind = str(request.headers.get("Content-Type", "")).partition(";")[0]
        self.told.append(f"{request.line} {kind} {''.join(request.body.split())}")
        return 200, ""

    def answer_as_wire_server(self, request: Request) -> Answer:
        if not request.headers.get("x-ms-version"):
            return 400, ""
        if request.line == self.case.check_in:
            return self.hear(request)
        return 200, self.case.wire_server[request.line.removeprefix("GET ")]

    def __enter__(self) -> Served:
        if not self.case.drive:
            self._serve(self.case.at, 80, self.answer)
        if self.case.wire_server:
            self._serve(WIRE_SERVER, 80, self.answer_as_wire_server)
        if self.tls:
            self._serve(self.case.at, 443, self.answer, self.tls)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for server in self._servers:
            end_http(server)

    def _serve(self, address: str, port: int, answer: Any, tls: Tls | None = None) -> None:
        self.world.namespace.ip("address", "replace", f"{address}/32", "dev", "lo")
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        self._servers.append(self.world.serve_http(address, port, handler, tls))


class _Handler(BaseHTTPRequestHandler):
    answer: Any

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length).decode(errors="replace")
        status, body = self.answer(Request(self.command, parts.path, parse_qs(parts.query), self.headers, sent))
        data = body.encode()
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(data)

    do_PUT = do_POST = do_PATCH = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        pass
