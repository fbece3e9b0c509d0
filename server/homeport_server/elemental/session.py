"""One registration, from the first message to the last (spec/elemental.md, 1.5).

Machine and server take turns: a message, an acknowledgement. The order of messages is the machine's business, as
with the operator; what counts is who it is, proven first, and what it has said when it asks for its configuration.
Knows no sockets, only a channel of messages.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cryptography.x509 import Certificate

from homeport_server.admission import Request
from homeport_server.caller import LONGEST_ID, Caller, plain_caller, plain_fault, read_facts
from homeport_server.clerk import Busy, Clerk
from homeport_server.elemental import attestation, config, messages
from homeport_server.elemental.attestation import NotProven
from homeport_server.elemental.messages import NAMES, Type, Unacceptable
from homeport_server.manifests.registrations import Registration
from homeport_server.outcome import Assigned, Outcome, Refused, Waiting

PLAIN = "Bearer PLAIN"
# Annotations that begin so are for this server: what became of the assignment (`Registrar.hear`).
REPORT = "homeport."
NOT_FOUND = "MachineInventory not found"


class Channel(Protocol):
    """Binary messages both ways. Both raise `Gone` when the other side has left or broken the rules."""

    async def receive(self) -> bytes: ...

    async def send(self, message: bytes) -> None: ...


class Gone(Exception):
    """The channel has ended; the text says how."""


class Failed(Exception):
    """A registration that came to nothing: in which phase, and why."""

    def __init__(self, phase: str, reason: str) -> None:
        super().__init__(f"in phase '{phase}': {reason}")


@dataclass(frozen=True)
class Terms:
    """What one registration is about: its manifest, the URL and CA to tell, which TPM vendors are trusted."""

    registration: Registration
    url: str
    ca: str
    tpm_cas: Sequence[Certificate] = ()
    random: Callable[[int], bytes] = secrets.token_bytes
    # Seconds that a machine with this hash has to wait before it may be served again, 0 for none.
    pace: Callable[[str], float] = lambda digest: 0.0


@dataclass
class Session:
    """A conversation. `phase` and `caller` say how far it has come, for the log."""

    channel: Channel
    clerk: Clerk
    terms: Terms
    phase: str = "authentication"
    caller: Caller | None = None
    version: int = 0
    refusal: str = ""
    wait: float = 0.0  # seconds: it comes too often, and what costs the database work is for another time
    reported: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    async def run(self, authorization: str) -> Outcome | None:
        """All of it. Gives what the machine was told, None if it went without asking. Raises Failed."""
        try:
            self.caller = await self.authenticate(authorization)
            self.wait = self.terms.pace(self.caller.digest)
            await self.channel.send(messages.encode(Type.READY))
            self.phase = "version"
            return await self.converse(self.caller)
        except (NotProven, Unacceptable, Gone) as error:
            raise Failed(self.phase, str(error)) from None

    async def authenticate(self, authorization: str) -> Caller:
        """Who it is. A TPM has proven it then; a plain identity is what it says."""
        if authorization.startswith(attestation.SCHEME):
            shown = attestation.read_attestation(authorization, self.terms.tpm_cas)
            challenge = attestation.make_challenge(shown, self.terms.random)
            await self.channel.send(challenge.message)
            challenge.check(await self.channel.receive())
            return Caller("tpm", shown.digest)
        if not authorization.startswith(PLAIN):
            raise NotProven("no Authorization header" if not authorization else
                            "an Authorization header that is neither Bearer TPM nor Bearer PLAIN")
        identity = authorization.removeprefix(PLAIN)
        if not identity or len(identity) > LONGEST_ID:
            raise NotProven(f"a plain identity of {len(identity)} characters")
        if self.terms.registration.auth == "tpm":
            self.refusal = "this registration wants a TPM (auth: tpm)"
        elif fault := plain_fault(identity):
            self.refusal = f"this identity cannot name one machine: {fault}"
        return plain_caller(identity)

    async def converse(self, caller: Caller) -> Outcome | None:
        """Message by message, until Get."""
        for count in range(messages.MOST_MESSAGES):
            try:
                message = await self.channel.receive()
            except Gone:
                if count and self.reported:
                    return None  # it had only something to say
                raise
            kind, payload = messages.decode(message)
            try:
                if kind is Type.GET:
                    self.phase = "configuration"
                    return await self.answer(caller)
                reply = await self.take(caller, kind, payload)
            except Unacceptable as error:
                raise Unacceptable(f"{NAMES[kind]}: {error}") from None
            except Busy as busy:
                return await self.tell(Waiting("", str(busy), busy.retry_after))
            if isinstance(reply, Refused):
                return await self.tell(reply)
            await self.channel.send(reply)
            if self.phase == "version":
                self.phase = "data"
        raise Unacceptable(f"more than {messages.MOST_MESSAGES} messages without Get")

    async def take(self, caller: Caller, kind: Type, payload: bytes) -> bytes | Refused:
        """One message that is not Get; gives the reply."""
        if kind is Type.VERSION:
            self.version = messages.agreed_version(payload)
            return messages.encode(Type.VERSION, bytes((self.version,)))
        if kind is Type.UPDATE:
            if self.refusal:
                return Refused(self.refusal)
            if not await self.clerk.do(lambda registrar: registrar.known(caller)):
                return Refused(NOT_FOUND)
        elif kind in (Type.SMBIOS, Type.SYSTEM_DATA_V2):
            self.data |= messages.read_object(payload)
        elif kind is Type.SYSTEM_DATA:
            messages.read_object(payload)  # of clients before 1.6, for templates that nobody has any more
        elif kind is Type.LABELS:
            self.labels |= messages.read_texts(payload)
        elif kind is Type.ANNOTATIONS:
            annotations = messages.read_texts(payload)
            self.annotations |= {key: text for key, text in annotations.items() if not key.startswith(REPORT)}
            report = {key.removeprefix(REPORT): text for key, text in annotations.items() if key.startswith(REPORT)}
            if report and not self.refusal:
                self._pace()
                self.reported = True
                await self.clerk.do(lambda registrar: registrar.hear(caller, report))
        return messages.encode(Type.READY)

    async def answer(self, caller: Caller) -> Outcome:
        """What the machine gets."""
        if self.refusal:
            return await self.tell(Refused(self.refusal))
        self._pace()
        request = Request(caller, self.terms.registration, facts=read_facts(self.data), data=self.data,
                          labels=self.labels, annotations=self.annotations)
        return await self.tell(await self.clerk.do(lambda registrar: registrar.ask(request)))

    def _pace(self) -> None:
        """Raises Busy."""
        if self.wait:
            raise Busy(math.ceil(self.wait), "this machine asks too often")

    async def tell(self, outcome: Outcome) -> Outcome:
        """The last message."""
        if isinstance(outcome, Assigned):
            payload = config.render_config(
                self.terms.registration, self.terms.url, self.terms.ca, outcome, self.version)
            # Before there were types the configuration came without one.
            old = self.version < Type.CONFIG
            await self.channel.send(payload if old else messages.encode(Type.CONFIG, payload))
        elif self.version >= Type.ERROR:
            reason = outcome if isinstance(outcome, Waiting) else outcome.reason
            await self.channel.send(messages.encode(Type.ERROR, config.render_error(reason)))
        return outcome
