"""One registration from the upgrade to the configuration, without a wire: message in, messages out.

    talk = Conversation(telling, open_challenge=…)
    for message in wire: send(talk.receive(message))     until talk.document is not None

Knows the order (spec/elemental.md, 1.5) and which message needs which protocol version. The server enforces
nearly none of it; this side takes nothing out of order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from homeport.core.elemental.messages import (
    FIRST_WITH_VERSIONS,
    LATEST,
    Kind,
    Reason,
    message,
    name_of,
    parse_error,
)


class Phase(StrEnum):
    """What is being waited for; the words end the sentence "the server closed the connection …"."""

    AUTHENTICATION = "while it authenticated this machine"
    VERSION = "when told our protocol version"
    UPDATE = "when told that this machine is registered already"
    SMBIOS = "when sent the SMBIOS data"
    SYSTEM_DATA = "when sent the system data"
    ANNOTATIONS = "when sent the annotations"
    LABELS = "when sent the labels"
    CONFIGURATION = "instead of sending the configuration"
    DONE = "after all was said"


class Unexpected(Exception):
    """The server says something that it may not say now; the text is for people."""


class ServerSays(Exception):
    """The server goes no further, and says why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.words)
        self.reason = reason


@dataclass(frozen=True)
class Telling:
    """What this machine tells: the payloads, b"" for what is not to be sent.

    `registered` is whether the server should know this machine already: then it does not make a new inventory.
    With `asks` false nothing is asked for: all is told, and that is all.
    """

    smbios: bytes = b""
    system_data: bytes = b""
    annotations: bytes = b""
    labels: bytes = b""
    registered: bool = False
    asks: bool = True


class Conversation:
    """See the head of this module.

    `open_challenge` turns the server's TPM challenge into our answer; without it (PLAIN) there is none. With
    `versioned` false no version is negotiated, for servers that know none.
    """

    def __init__(self, telling: Telling, open_challenge: Callable[[bytes], bytes] | None = None, *,
                 versioned: bool = True) -> None:
        self.phase = Phase.AUTHENTICATION
        self.version = 0
        self.document: bytes | None = None
        self._telling = telling
        self._open_challenge = open_challenge
        self._versioned = versioned
        self._to_say: deque[tuple[Phase, bytes]] = deque()

    def receive(self, data: bytes, *, binary: bool = True) -> list[bytes]:
        """What to send next, now that this whole message has come. Raises Unexpected and ServerSays.

        What `open_challenge` raises goes through.
        """
        if not binary:
            raise Unexpected("a text message, and there are only binary ones")
        if self.phase is Phase.AUTHENTICATION and self._open_challenge is not None:
            answer, self._open_challenge = self._open_challenge(data), None
            return [answer]
        if self.phase is Phase.CONFIGURATION and self.version < Kind.CONFIG:
            return self._finish(data)  # bare YAML, with no byte in front of it
        if data[:1] == bytes([Kind.ERROR]):
            raise ServerSays(parse_error(data[1:]))
        if self.phase is Phase.VERSION:
            return self._agree(data)
        if self.phase is Phase.CONFIGURATION:
            if data[:1] != bytes([Kind.CONFIG]):
                raise self._unexpected(data)
            return self._finish(data[1:])
        if self.phase is Phase.DONE or data[:1] != bytes([Kind.READY]):
            raise self._unexpected(data)
        if self.phase is Phase.AUTHENTICATION:
            return self._begin()
        return self._go_on()

    def _begin(self) -> list[bytes]:
        if self._versioned:
            self.phase = Phase.VERSION
            return [message(Kind.VERSION, bytes([LATEST]))]
        self._plan()
        return self._go_on()

    def _agree(self, data: bytes) -> list[bytes]:
        if len(data) != 2 or data[0] != Kind.VERSION or data[1] < FIRST_WITH_VERSIONS:
            raise self._unexpected(data)
        self.version = min(data[1], LATEST)
        self._plan()
        return self._go_on()

    def _plan(self) -> None:
        """All that is said from here on, each part if there is something to say and the server understands it."""
        telling = self._telling
        parts = (
            (Phase.UPDATE, Kind.UPDATE, Kind.UPDATE, b"", telling.registered),
            (Phase.SMBIOS, Kind.SMBIOS, 0, telling.smbios, bool(telling.smbios)),
            (Phase.SYSTEM_DATA, Kind.SYSTEM_DATA_V2, Kind.SYSTEM_DATA_V2, telling.system_data,
             bool(telling.system_data)),
            (Phase.ANNOTATIONS, Kind.ANNOTATIONS, Kind.ANNOTATIONS, telling.annotations, bool(telling.annotations)),
            (Phase.LABELS, Kind.LABELS, 0, telling.labels, bool(telling.labels)),
            (Phase.CONFIGURATION, Kind.GET, 0, b"", telling.asks),
        )
        self._to_say.extend((phase, message(kind, payload)) for phase, kind, since, payload, wanted in parts
                            if wanted and self.version >= since)

    def _go_on(self) -> list[bytes]:
        if not self._to_say:
            return self._finish(b"")
        self.phase, data = self._to_say.popleft()
        return [data]

    def _finish(self, document: bytes) -> list[bytes]:
        self.phase, self.document = Phase.DONE, document
        return []

    def _unexpected(self, data: bytes) -> Unexpected:
        return Unexpected(f"{name_of(data)} came {self.phase}")
