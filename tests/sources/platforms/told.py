"""Services that are told of a boot, as strict as the real ones; written down from how they are documented
(spec: Azure's wire server, Scaleway's state, Packet's phone home), not from the code under test.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTAINER, INSTANCE = "7e1b8d0a-5a0e-4b2c-9f3e-0123456789ab", "a9f0c1d2e3b4.web-1"
GOAL_STATE = f"""<?xml version="1.0" encoding="utf-8"?>
<GoalState xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="goalstate10.xsd">
  <Version>2012-11-30</Version>
  <Incarnation>3</Incarnation>
  <Machine><ExpectedState>Started</ExpectedState></Machine>
  <Container>
    <ContainerId>{CONTAINER}</ContainerId>
    <RoleInstanceList><RoleInstance><InstanceId>{INSTANCE}</InstanceId><State>Started</State></RoleInstance>
    </RoleInstanceList>
  </Container>
</GoalState>"""
Answer = tuple[int, bytes]
HEALTH = (re.compile(r"<GoalStateIncarnation>3</GoalStateIncarnation>"),
          re.compile(rf"<ContainerId>{CONTAINER}</ContainerId>"),
          re.compile(rf"<InstanceId>{re.escape(INSTANCE)}</InstanceId>\s*<Health>\s*<State>Ready</State>"))


@dataclass
class Told:
    """What one service was told: `good` are the messages that it took; `before` may answer in its stead.

    `headers` are those of all its answers.
    """

    answer: Callable[[str, str, Any, bytes], Answer]
    requests: list[str] = field(default_factory=list)
    good: list[bytes] = field(default_factory=list)
    before: Callable[[str], int | None] = lambda request: None
    headers: Mapping[str, str] = field(default_factory=dict)

    def take(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        self.requests.append(f"{method} {target}")
        if (instead := self.before(self.requests[-1])) is not None:
            return instead, b""
        status, reply = self.answer(method, target, headers, body)
        if method != "GET" and status < 300:
            self.good.append(body)
        return status, reply


def azure(method: str, target: str, headers: Any, body: bytes) -> Answer:
    """The wire server: wants its version, and the words of its own goal state back."""
    if headers.get("x-ms-version") != "2012-11-30" or not headers.get("x-ms-agent-name"):
        return 400, b"<Error/>"
    if (method, target) == ("GET", "/machine/?comp=goalstate"):
        return 200, GOAL_STATE.encode()
    if (method, target) != ("POST", "/machine/?comp=health"):
        return 404, b""
    right = headers.get("Content-Type", "").startswith("text/xml") and all(
        pattern.search(body.decode()) for pattern in HEALTH)
    return (200, b"") if right else (400, b"")


def scaleway(method: str, target: str, headers: Any, body: bytes) -> Answer:
    if (method, target) != ("PATCH", "/state"):
        return 404, b""
    right = headers.get("Content-Type") == "application/json" and json.loads(body) == {"state_detail": "booted"}
    return (200, b"{}") if right else (400, b"")


def packet(document: bytes) -> Callable[[str, str, Any, bytes], Answer]:
    """Metadata and phone home of one instance; nobody wants anything in the POST."""
    def answer(method: str, target: str, headers: Any, body: bytes) -> Answer:
        if (method, target) == ("GET", "/metadata"):
            return 200, document
        return (200, b"") if (method, target) == ("POST", "/phone-home") else (404, b"")

    return answer


def tell(request: BaseHTTPRequestHandler, told: Told) -> None:
    """Answer one request as `told` does."""
    body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
    status, reply = told.take(request.command, request.path, request.headers, body)
    request.send_response_only(status)
    for name, value in {"Content-Length": str(len(reply)), **told.headers}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(reply)


def handler_for(told: Told) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            tell(self, told)

        do_GET = do_POST = do_PATCH = do_PUT = handle_any  # noqa: N815

        def log_message(self, *_args: Any) -> None:
            pass

    return Handler


def start(told: Told, address: str = "127.0.0.1") -> ThreadingHTTPServer:
    """Running on a port of its own; the caller ends it."""
    server = ThreadingHTTPServer((address, 0), handler_for(told))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server
