"""The `elemental` source: register this machine with an Elemental server, and take the network it is given.

Knows when to try again and when to stop, and whom to believe. What is said is `core/elemental`, how it travels
`websocket.py`, the machine's half of an authentication `authentication.py`. One exchange has ten seconds, by the
server's clock (spec/elemental.md, 1.7), so all that takes long is done before.

The URL ends in a secret, the registration's token, and the answer holds others: neither is ever shown.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from homeport.core.elemental import verdicts
from homeport.core.elemental.config import Registration, annotations_message
from homeport.core.elemental.conversation import Conversation, Phase, ServerSays, Telling, Unexpected
from homeport.core.elemental.document import network_document, registration_ca
from homeport.core.elemental.messages import render_json
from homeport.errors import RefusedBySource, SourceError, Unconfigured, Unreachable
from homeport.host.elemental import (
    read_ca,
    read_local_labels,
    read_os_release,
    read_registered,
    read_registration,
)
from homeport.host.store import REGISTRATION_CA
from homeport.sources import pinned
from homeport.sources.patience import SYSTEM_CLOCK, Clock, delays
from homeport.sources.reply import LARGEST, Reply
from homeport.sources.wire import AttemptFailed, Limits

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.settings import Settings
    from homeport.sources.authentication import Credentials
    from homeport.sources.trust import Context

log = logging.getLogger(__name__)

NAME = "elemental"
Where = str | os.PathLike[str]

LAST_TRY = 1.0  # seconds before the deadline: later there is no time for an answer
# A server that does not believe a machine says nothing, just like one that stumbles: it is asked so often.
REFUSALS = 3
MISSING = "python3-wsproto (the package of the distribution) is needed, and not in this image"


@dataclass
class Asker:
    """What all attempts have in common."""

    settings: Settings
    registration: Registration
    credentials: Credentials
    context: Context
    root: Path
    deadline: float
    clock: Clock
    progress: Callable[[str], None]
    # A server from before version numbers closes the connection when it hears one.
    versioned: bool = True
    attempts: int = 0
    # What happened to this machine, if it is only told of ("reset").
    event: str = ""

    @property
    def shown(self) -> str:
        return shown(self.registration.url)


def registration_for(settings: Settings, root: Where = "/") -> Registration:
    """How this machine registers: what the settings say, and Elemental's own configuration for the rest."""
    found = read_registration(root)
    for note in found.notes:
        log.warning("%s, going on without it", note)
    if settings.registration and settings.registration != found.url:
        # Another server than Elemental's: its authority says nothing about this one.
        found = replace(found, url=settings.registration, ca="")
    labels = {**read_local_labels(root), **found.labels}
    return replace(found, auth=settings.registration_auth or found.auth, labels=labels)


def shown(url: str) -> str:
    """The URL for people: without user name, query, and the token that is its last part."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/').rpartition('/')[0]}"


def fetch(settings: Settings, identity: Identity, *, root: Where = "/", deadline: float, floor: float = 0.0,
          clock: Clock = SYSTEM_CLOCK, progress: Callable[[str], None] = lambda line: None) -> Reply:
    """Register, and take the configuration; asked for until `deadline` (of `clock.monotonic`).

    `floor` and `progress` are as for the url source. Raises SourceError or a subclass; Pending as soon as the
    server says so, for whoever knows what this machine stands on meanwhile; DocumentError for what is no
    configuration.
    """
    asker = _prepare(settings, identity, root=root, deadline=deadline, floor=floor, clock=clock, progress=progress)
    return _ask_until_deadline(asker)


def tell(settings: Settings, identity: Identity, *, root: Where = "/", event: str = "", within: float,
         clock: Clock = SYSTEM_CLOCK) -> None:
    """Say what became of the last assignment, once, within so many seconds, and take no new one.

    The annotations of Elemental's protocol have a place for it. Its own server keeps them only of a machine that
    then asks for its configuration, so that is done too, except for an `event`: after a "reset" no server shall
    give this machine an address. Raises as `fetch` does.
    """
    asker = _prepare(settings, identity, root=root, deadline=clock.monotonic() + within, floor=0.0, clock=clock,
                     progress=lambda line: None)
    asker.event = event
    try:
        _converse(asker)
    except _Refused as refused:
        raise refused.verdict from None


def _prepare(settings: Settings, identity: Identity, *, root: Where, deadline: float, floor: float, clock: Clock,
             progress: Callable[[str], None]) -> Asker:
    """All that can be known and made before the first connection."""
    from homeport.sources.trust import make_context
    registration = registration_for(settings, root)
    if not registration.url:
        raise Unconfigured("No registration is configured",
                           "set Registration=, or give the image Elemental's config.yaml")
    _check(registration)
    context = make_context(settings.ca, root=root, now=clock.now(), floor=floor)
    _trust(context, registration, root)
    from homeport.sources.authentication import credentials_for
    credentials = credentials_for(registration, identity, root=root, limit=settings.tpm_timeout)
    return Asker(settings, registration, credentials, context, Path(root), deadline, clock, progress)


def _check(registration: Registration) -> None:
    try:
        import wsproto  # noqa: F401
    except ImportError:
        raise SourceError(f"Cannot register: {MISSING}", "install it into the image") from None
    parts = urlsplit(registration.url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not registration.token:
        raise SourceError("Cannot register: the registration URL is none",
                          "it looks like https://rancher.example/elemental/registration/TOKEN")


def _trust(context: Context, registration: Registration, root: Where) -> None:
    """The registration's own authority, and the last one that the server told us of, beside all others."""
    for pem, what in ((read_ca(registration.ca, root), "ca-cert of the registration"),
                      (pinned.read(root, registration.url), f"/{REGISTRATION_CA}")):
        if not pem:
            continue
        try:
            context.load_verify_locations(cadata=pem)
        except (ssl.SSLError, ValueError):
            log.warning("Cannot use the %s: no certificate in it, going on without it", what)


def _ask_until_deadline(asker: Asker) -> Reply:
    started, refusals = asker.clock.monotonic(), 0
    failure: SourceError = Unreachable(f"No time was left to ask {asker.shown}")
    for delay in delays(asker.clock.chance):
        if asker.deadline - asker.clock.monotonic() <= 0:
            break
        asker.attempts += 1
        try:
            return _exchange(asker)
        except _Refused as refused:
            refusals += 1
            failure = refused.verdict
            if refusals >= REFUSALS:
                raise RefusedBySource(failure.message, failure.hint) from None
        except Unreachable as error:
            refusals, failure = 0, error
            if error.retry_after is not None:
                delay = min(delay, error.retry_after + 0.1)
        if asker.deadline - asker.clock.monotonic() - delay <= LAST_TRY:
            asker.progress(f"{failure.message}; giving up")
            break
        asker.progress(f"{failure.message}; asking again in {delay:.1f} s")
        asker.clock.sleep(delay)
    seconds = asker.clock.monotonic() - started
    tries = "1 attempt" if asker.attempts == 1 else f"{asker.attempts} attempts"
    raise Unreachable(f"{failure.message} ({tries} in {seconds:.0f} s)", failure.hint)


class _Refused(Exception):
    """The connection was closed where a machine that is not believed would find it closed."""

    def __init__(self, verdict: SourceError) -> None:
        super().__init__(verdict)
        self.verdict = verdict


def _exchange(asker: Asker) -> Reply:
    """Ask once. Raises SourceError; what is Unreachable may be asked again."""
    message = _converse(asker)
    document = network_document(message)
    pinned.keep(asker.root, asker.registration.url, registration_ca(message))
    return Reply(document, source=NAME, url=asker.shown, content_type="application/yaml", over_network=True)


def _converse(asker: Asker) -> bytes:
    """One conversation from dialling to its end; the configuration message, b"" if none was asked for."""
    from homeport.sources.websocket import Closed, NoUpgrade, TooLarge, WebSocket
    settings = asker.settings
    limits = Limits(settings.connect_timeout, verdicts.WINDOW, verdicts.WINDOW,
                    in_all=asker.deadline - asker.clock.monotonic())
    # Not in the window that the server gives: it takes a TPM seconds.
    token = asker.credentials.token()
    try:
        wire = WebSocket(asker.registration.url, {"Authorization": token}, limits=limits, context=asker.context,
                         proxy=settings.proxy, largest=LARGEST)
    except NoUpgrade as answer:
        raise verdicts.on_status(answer.status, answer.body, asker.shown, asker.registration.token) from None
    except AttemptFailed as failed:
        kind = SourceError if failed.final else Unreachable
        raise kind(f"Cannot register at {asker.shown}: {failed.cause}", failed.hint) from None
    except Closed:
        raise Unreachable(f"{asker.shown} closed the connection before it spoke", verdicts.OPERATOR) from None
    upgraded = time.monotonic()
    talk = Conversation(_telling(asker, wire.local_address), asker.credentials.open_challenge,
                        versioned=asker.versioned)
    try:
        while talk.document is None:
            data, binary = wire.receive()
            for message in talk.receive(data, binary=binary):
                wire.send(message)
    except Closed:
        raise _closed(asker, talk, time.monotonic() - upgraded) from None
    except AttemptFailed as failed:
        if talk.phase is Phase.CONFIGURATION and time.monotonic() - upgraded >= verdicts.ITS_LIMIT:
            raise _closed(asker, talk, time.monotonic() - upgraded) from None
        raise Unreachable(f"Registering at {asker.shown}: {failed.cause}, {talk.phase}", verdicts.OPERATOR) from None
    except TooLarge:
        raise SourceError(f"{asker.shown} sends more than {LARGEST >> 10} KiB, {talk.phase}",
                          "an assignment is a few KiB; is this a registration server?") from None
    except Unexpected as what:
        raise Unreachable(f"{asker.shown} does not keep to the protocol: {what}", verdicts.OPERATOR) from None
    except ServerSays as said:
        words = said.reason.words.replace(asker.registration.token, "<token>")
        raise verdicts.on_words(replace(said.reason, words=words), talk.phase, asker.shown) from None
    finally:
        wire.close()
    return talk.document


def _closed(asker: Asker, talk: Conversation, seconds: float) -> Exception:
    verdict = verdicts.on_close(talk.phase, seconds, asker.shown, asker.credentials.words)
    if talk.phase is Phase.VERSION:
        asker.versioned = False
    return _Refused(verdict) if talk.phase is Phase.AUTHENTICATION else verdict


def _telling(asker: Asker, address: str) -> Telling:
    """What this machine says of itself, as it is now."""
    from homeport.host.told import read_outcome, read_smbios_message, read_system_data
    from homeport.version import VERSION
    registration, root = asker.registration, asker.root
    annotations = annotations_message(registration, read_os_release(root), version=VERSION, address=address,
                                      outcome=read_outcome(root) | {"event": asker.event})
    if asker.event:
        return Telling(annotations=render_json(annotations), asks=False)
    return Telling(
        smbios=b"" if registration.no_smbios else render_json(read_smbios_message(root)),
        system_data=b"" if registration.no_smbios else render_json(read_system_data(root)),
        annotations=render_json(annotations),
        labels=render_json(registration.labels) if registration.labels else b"",
        registered=read_registered(root))
