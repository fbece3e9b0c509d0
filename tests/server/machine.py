"""A machine that registers: the protocol from its side, over a real socket, a step at a time.

Frames are wsproto's, which is not what the server speaks with, so that a mistake in either shows. Everything has a
deadline; `raw` sends what no library would.
"""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from tests.server.software_tpm import SoftwareTpm
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

READY, SMBIOS, LABELS, GET, VERSION, CONFIG, ERROR, ANNOTATIONS, UPDATE, SYSTEM_DATA = 1, 2, 3, 4, 5, 7, 8, 9, 10, 11


class Closed(Exception):
    """The server has closed the connection; `frame` is whether it said so with a Close frame."""

    def __init__(self, frame: bool) -> None:
        super().__init__("with a Close frame" if frame else "without a Close frame")
        self.frame = frame


class Rejected(Exception):
    """An HTTP answer in place of the upgrade."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Machine:
    """One connection to a registration URL."""

    def __init__(self, url: str, authorization: str = "", *, tls: ssl.SSLContext | None = None,
                 timeout: float = 15.0) -> None:
        parts = urlsplit(url)
        self.socket: socket.socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=parts.hostname)
        self.wire = WSConnection(ConnectionType.CLIENT)
        headers = [(b"Authorization", authorization.encode())] if authorization else []
        self.raw(self.wire.send(Request(host=parts.netloc, target=parts.path, extra_headers=headers)))
        self.messages: list[bytes] = []
        self.rejection: int | None = None
        self.body = b""
        self.accepted = False
        while not self.accepted:
            self.read()

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> None:
        """Take in what comes next. Raises Closed, Rejected."""
        try:
            data = self.socket.recv(65_536)
        except (ConnectionResetError, ssl.SSLEOFError):
            data = b""
        if not data:
            raise Closed(False)
        self.wire.receive_data(data)
        part = b""
        for event in self.wire.events():
            match event:
                case AcceptConnection():
                    self.accepted = True
                case RejectConnection(status_code=status):
                    self.rejection = status
                case RejectData(data=rejected, body_finished=finished):
                    self.body += bytes(rejected)
                    if finished:
                        raise Rejected(self.rejection or 0, self.body.decode())
                case BytesMessage(data=payload, message_finished=finished):
                    part += bytes(payload)
                    if finished:
                        self.messages.append(part)
                        part = b""
                case TextMessage():
                    raise AssertionError("a text frame from the server")
                case Ping():
                    self.raw(self.wire.send(event.response()))
                case CloseConnection():
                    raise Closed(True)

    def receive(self) -> bytes:
        """The next message. Raises Closed."""
        while not self.messages:
            self.read()
        return self.messages.pop(0)

    def send(self, message: bytes) -> None:
        self.raw(self.wire.send(BytesMessage(message)))

    def say(self, kind: int, payload: bytes | dict[str, Any] = b"") -> bytes:
        """A message, and the reply to it."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode() + b"\n"
        self.send(bytes((kind,)) + data)
        return self.receive()

    def prove(self, tpm: SoftwareTpm) -> None:
        """Authenticate by TPM; the connection was made with its `authorization`."""
        self.send(tpm.answer(self.receive()))

    def closes(self) -> Closed:
        """Wait for the server to close, and give how."""
        try:
            while True:
                self.receive()
        except Closed as closed:
            return closed


def register(url: str, identity: str | SoftwareTpm, *, tls: ssl.SSLContext | None = None, version: int = 12,
             update: bool = False, smbios: dict[str, Any] | None = None, system: dict[str, Any] | None = None,
             annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> tuple[int, bytes]:
    """A whole registration; the type of the last message and its payload."""
    authorization = f"Bearer PLAIN{identity}" if isinstance(identity, str) else identity.authorization
    with Machine(url, authorization, tls=tls) as machine:
        if isinstance(identity, SoftwareTpm):
            machine.prove(identity)
        assert machine.receive() == bytes((READY,))
        assert machine.say(VERSION, bytes((version,))) == bytes((VERSION, min(version, 12)))
        said = [(UPDATE, {} if update else None), (SMBIOS, smbios), (SYSTEM_DATA, system), (ANNOTATIONS, annotations),
                (LABELS, labels)]
        for kind, payload in said:
            if payload is None:
                continue
            reply = machine.say(kind, b"" if kind == UPDATE else payload)
            if reply != bytes((READY,)):
                return reply[0], reply[1:]
        last = machine.say(GET)
        assert not machine.closes().frame
        return last[0], last[1:]


def board(index: int, *, serial: str = "", uuid: str = "", mac: str = "") -> dict[str, Any]:
    """SMBIOS and system data of machine number `index`, as elemental-register sends them."""
    uuid = uuid or f"4c4c4544-0042-3010-8051-{index:012x}"
    return {
        "smbios": {"System Information": {"UUID": uuid, "Serial Number": serial or f"SN-{index:06}",
                                          "Manufacturer": "ACME Inc."}},
        "system": {"Network": {"TotalNICs": "1", "NICs": {"0": {
            "Name": "enp1s0", "MacAddress": mac or f"52:54:00:00:{index >> 8:02x}:{index & 255:02x}",
            "IsVirtual": "false"}}}},
    }
