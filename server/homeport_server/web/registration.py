"""`/elemental/registration/TOKEN`: a websocket for machines, a bootstrap file for people.

As the operator's server answers (spec/elemental.md, 1.1 and 1.2): 404 before the upgrade, everything else after it,
and the TCP connection closed at the end without a Close frame.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from aiohttp import WSMsgType, web

from homeport.core.showing import printable
from homeport_server.clerk import Busy
from homeport_server.elemental import config
from homeport_server.elemental.messages import LARGEST_MESSAGE, LARGEST_SESSION
from homeport_server.elemental.session import Failed, Gone, Session, Terms
from homeport_server.outcome import Assigned, Outcome, Waiting
from homeport_server.store.database import StoreError
from homeport_server.web.site import SITE, Site, check_tries, count_wrong_token

log = logging.getLogger(__name__)

SECONDS = 10.0  # for everything after the upgrade; RegistrationDeadlineSeconds, which the client has, too
FLUSH_SECONDS = 5.0
LARGEST_FRAME = LARGEST_MESSAGE + 1


class WebChannel:
    """The session's channel over aiohttp's websocket."""

    def __init__(self, socket: web.WebSocketResponse, site: Site, request: web.Request) -> None:
        self.socket = socket
        self.site = site
        self.request = request
        self.received = 0
        self.sent = 0

    async def receive(self) -> bytes:
        message = await self.socket.receive()
        if message.type is WSMsgType.BINARY:
            data: bytes = message.data
            self.received += len(data)
            if self.received > LARGEST_SESSION:
                raise Gone(f"more than {LARGEST_SESSION >> 20} MiB in one registration")
            return data
        if message.type is WSMsgType.TEXT:
            raise Gone("a text frame; all messages are binary")
        if message.type is WSMsgType.ERROR:
            raise Gone(f"broken frames: {printable(str(message.data), 200)}")
        raise Gone("the machine closed the connection")

    async def send(self, message: bytes) -> None:
        if self.sent:
            # Past the challenge, or with an identity: no stranger any more.
            self.site.welcome(self.request)
        self.sent += 1
        try:
            await self.socket.send_bytes(message)
        except (ConnectionError, RuntimeError):
            raise Gone("the machine closed the connection") from None


async def registration(request: web.Request) -> web.StreamResponse:
    """Both uses of a registration URL."""
    site = request.app[SITE]
    check_tries(site, request)
    token = request.match_info["token"].rpartition("/")[2]
    found = site.tokens.find(token)
    if found is None:
        count_wrong_token(site, request)
        log.warning("%s: no registration has the token it came with; 404", request.remote)
        raise web.HTTPNotFound(text="failed to find machine registration with registration token "
                                    f"{printable(token, 300)}\n")
    terms = Terms(found, site.url_of(request, found), site.ca, site.tpm_cas,
                  pace=lambda digest: site.per_machine.take(digest, time.monotonic()))
    if not _wants_websocket(request):
        site.welcome(request)
        return web.Response(text=config.render_bootstrap(found, terms.url, terms.ca))
    return await _converse(site, request, terms)


def _wants_websocket(request: web.Request) -> bool:
    return ("upgrade" in request.headers.get("Connection", "").lower()
            and request.headers.get("Upgrade", "").lower() == "websocket")


async def _converse(site: Site, request: web.Request, terms: Terms) -> web.StreamResponse:
    socket = web.WebSocketResponse(timeout=0.1, autoclose=False, compress=False, max_msg_size=LARGEST_FRAME)
    await socket.prepare(request)
    session = Session(WebChannel(socket, site, request), site.clerk, terms)
    try:
        async with asyncio.timeout(SECONDS):
            _tell(request, session, await session.run(request.headers.get("Authorization", "")))
    except TimeoutError:
        _warn(request, session, f"in phase '{session.phase}': not done in {SECONDS:g} s")
    except (Failed, Busy) as error:
        _warn(request, session, str(error))
    except StoreError as error:
        log.error("%s", error)
    _hang_up(request)
    return socket


def _hang_up(request: web.Request) -> None:
    """Close TCP once everything is sent, and without a Close frame, which the operator never sends either."""
    transport = request.transport
    if transport is not None:
        transport.close()
        asyncio.get_running_loop().call_later(FLUSH_SECONDS, _abort, transport)


def _abort(transport: asyncio.Transport) -> None:
    """For one that does not read what it asked for. A TLS transport that has ended cannot be aborted any more."""
    with contextlib.suppress(AttributeError):
        transport.abort()


def _tell(request: web.Request, session: Session, outcome: Outcome | None) -> None:
    who = f"{request.remote} ({session.caller}) at {session.terms.registration.key}"
    if isinstance(outcome, Assigned):
        given = ", ".join(f"{name} {address.ip}" for name, address in outcome.addresses.items())
        log.info("%s: %s registered: %s", who, outcome.machine, given or "no addresses")
        if outcome.note:
            log.warning("%s: %s; going on with its addresses", outcome.machine, outcome.note)
    elif isinstance(outcome, Waiting):
        log.warning("%s: %s must wait: %s", who, outcome.machine or "it", outcome.reason)
    elif outcome is not None:
        log.warning("%s: refused: %s", who, outcome.reason)
    else:
        log.info("%s: reported", who)


def _warn(request: web.Request, session: Session, reason: str) -> None:
    log.warning("%s (%s) at %s: registration failed %s; closed", request.remote, session.caller or "not known yet",
                session.terms.registration.key, printable(reason, 300))
