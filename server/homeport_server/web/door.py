"""The door: listening sockets, TLS, and how many may come in when.

Whoever connects waits in the lobby, which costs a descriptor, until he says something; then he is let in, and until he
has shown what he wants he is a stranger. Three things can go wrong, and each has its own rule:

* *Many idle ones.* When there is no room, a stranger goes who stalls, then the one who has waited for longest: hundreds
  of them cost a bounded amount of memory and keep nobody out.
* *Too many at once*, as when the power comes back. Nobody is let in while we are not through with those who are in:
  work that is begun is finished before its client gives up, instead of all of it being too late. Of those who wait
  the newest comes first then, for the oldest is about to give up.
* *One who says too much* is cut off, whatever the HTTP behind would take in.

Knows nothing of that HTTP; aiohttp's protocol does the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 1_024
# Longer than a registration may take: whoever has begun one is told so in the log, in the registration's own words.
STRANGER_SECONDS = 12.0
SWEEP_SECONDS = 0.5
# Those whom the kernel keeps for us; who finds no place there is not lost, his own kernel asks again.
BACKLOG = 512
# Seconds between two that come when one must go for each: to send people away must not become all that is done. The
# kernel's queue is through in 2 s then, before its last one gives up.
PACE_WHEN_FULL = 0.004
# So many are accepted before all others have their turn.
ACCEPTED_AT_ONCE = 16
# A turn of the event loop that takes so long, in seconds, says that there is enough to do already.
LONG_TURN = 0.03
# But so many may be in however slow this computer is; and who has said nothing for so many seconds is none of them, or
# those who stall would keep out the others.
FEW = 16
STALLED = 0.5
# With more than so many waiting it is the newest one's turn.
MANY = 64
# Seconds that a stranger may stall when there is no room: his own fault if we have time for him, ours if not.
GRACE, GRACE_WHEN_BUSY = 0.25, 5.0
ESTABLISHED = 1  # TCP_ESTABLISHED, the first byte of tcp_info
# asyncio gives each TLS connection a buffer of 256 KiB, before its greeting even: a quarter of a gigabyte for a full
# door. A TLS record has 16 KiB, so that this costs nothing but a few more reads of long messages.
TLS_BUFFER = 32 * 1024
# All that one connection may bring: a registration has 1 MiB, its frames and its head come on top. Counted here, too,
# for aiohttp refuses a message that is too large when it has all of it, or all of a frame, and pings it never counts.
MOST_BYTES = 1536 * 1024


@dataclass(eq=False)
class Visitor:
    """A connection, which came, or was let in, at `since`. `stranger` until somebody has called `Door.welcome` for it;
    `inside` once it was let in.
    """

    peer: str
    since: float
    socket: socket.socket
    last: float = 0.0  # when something came from it
    transport: asyncio.Transport | None = None
    inside: bool = False
    stranger: bool = True

    @property
    def gone(self) -> bool:
        return self.transport is not None and self.transport.is_closing()

    def has_given_up(self) -> bool:
        """Whether the other side has closed already, before we have looked at what it said."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != ESTABLISHED

    def throw_out(self) -> None:
        if self.transport is not None:
            # One with TLS that has ended meanwhile has nothing to abort any more.
            with contextlib.suppress(AttributeError):
                self.transport.abort()
        elif self.inside:
            # In the middle of its TLS greeting, so that asyncio has the descriptor: it closes it when it notices.
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
        else:
            asyncio.get_running_loop().remove_reader(self.socket.fileno())
            self.socket.close()


class Scales(asyncio.Protocol):
    """Weighs what comes before `inner` gets it; too much ends the connection."""

    def __init__(self, inner: asyncio.Protocol, visitor: Visitor, clock: Callable[[], float]) -> None:
        self.inner, self.visitor, self.clock = inner, visitor, clock
        self.left = MOST_BYTES
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.left -= len(data)
        self.visitor.last = self.clock()
        if self.left >= 0:
            self.inner.data_received(data)
        elif isinstance(self.transport, asyncio.Transport):
            if self.left + len(data) >= 0:  # once
                log.warning("%s: more than %d KiB in one connection; closed", self.visitor.peer, MOST_BYTES >> 10)
            self.transport.abort()

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self.inner.connection_lost(error)

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


class Door:
    """Accepts connections and hands them to protocols made by `make_protocol`.

    `could_serve` says whether so many as are in can be served in time, should all of them ask for something.
    """

    def __init__(self, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None,
                 most: int = MOST_CONNECTIONS, could_serve: Callable[[int], bool] = lambda guests: True) -> None:
        self.make_protocol = make_protocol
        self.tls = tls  # may be replaced at any time, for those who come then
        self.most = most
        self.could_serve = could_serve
        self.visitors: dict[Visitor, None] = {}  # in the order of their coming
        self._outside: dict[Visitor, None] = {}  # those of them who are not in yet
        self._lobby: dict[Visitor, None] = {}  # those of these who have said something
        self._inside: dict[Visitor, None] = {}  # the others
        self._called = asyncio.Event()
        self._turn = 0.0  # seconds that the last turn of the loop took
        self._by_transport: dict[asyncio.BaseTransport, Visitor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._crowded = -1e9
        sslproto.SSLProtocol.max_size = TLS_BUFFER

    def open(self, address: str, port: int) -> tuple[str, int]:
        """Listen; gives address and port. Raises OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, port), family=family, backlog=BACKLOG,
                                        dualstack_ipv6=family == socket.AF_INET6 and address == "::")
        listener.setblocking(False)
        self._sockets.append(listener)
        self._start(self._accept(listener))
        if len(self._sockets) == 1:
            self._start(self._sweep())
            self._start(self._let_in())
        host, bound = listener.getsockname()[:2]
        return str(host), int(bound)

    def close(self) -> None:
        """Let nobody in any more."""
        for task in self._tasks:
            task.cancel()
        for listener in self._sockets:
            listener.close()
        for visitor in [visitor for visitor in self.visitors if not visitor.inside]:
            self._throw_out(visitor)

    def welcome(self, transport: asyncio.BaseTransport | None) -> None:
        """This one has shown what it wants."""
        visitor = self._by_transport.get(transport) if transport is not None else None
        if visitor is not None:
            visitor.stranger = False

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for count in itertools.count(1):
            try:
                connection, peer = await loop.sock_accept(listener)
            except OSError as error:
                # No file descriptors left, or the peer has gone already: both pass.
                log.warning("Cannot accept a connection: %s; going on", error.strerror)
                await asyncio.sleep(0.1)
                continue
            if len(self.visitors) >= self.most:
                while not self._make_room():
                    await asyncio.sleep(0.02)
                await asyncio.sleep(PACE_WHEN_FULL)
            visitor = Visitor(str(peer[0]), loop.time(), connection)
            self.visitors[visitor] = self._outside[visitor] = None
            loop.add_reader(connection.fileno(), self._speaks, visitor)
            if count % ACCEPTED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _speaks(self, visitor: Visitor) -> None:
        asyncio.get_running_loop().remove_reader(visitor.socket.fileno())
        self._lobby[visitor] = None
        self._called.set()

    async def _let_in(self) -> None:
        """One after the other, as fast as we get done with them."""
        loop = asyncio.get_running_loop()
        while True:
            await self._called.wait()
            visitor = self._next()
            if visitor is None:
                continue
            visitor.inside, visitor.since, visitor.last = True, loop.time(), loop.time()
            self._outside.pop(visitor, None)
            self._inside[visitor] = None
            self._start(self._greet(visitor))
            while True:
                before = loop.time()
                await asyncio.sleep(0)
                self._turn = loop.time() - before
                if not self._overworked():
                    break
                await asyncio.sleep(LONG_TURN / 3)

    def _overworked(self) -> bool:
        """Whether those who are in, and go on, are enough for now."""
        latest = asyncio.get_running_loop().time() - STALLED
        lively = sum(visitor.last > latest for visitor in self._inside)
        return lively >= FEW and (self._turn > LONG_TURN or not self.could_serve(lively))

    def _next(self) -> Visitor | None:
        """Whose turn it is, None if it is nobody's."""
        many = len(self._lobby) > MANY
        visitor = next(reversed(self._lobby) if many else iter(self._lobby), None)
        if visitor is None:
            self._called.clear()
            return None
        del self._lobby[visitor]
        if many and visitor.has_given_up():
            self._throw_out(visitor)
            return None
        return visitor

    async def _greet(self, visitor: Visitor) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: Scales(self.make_protocol(), visitor, loop.time), visitor.socket, ssl=self.tls,
                ssl_handshake_timeout=STRANGER_SECONDS if self.tls else None)
        except (OSError, TimeoutError, ValueError) as error:
            # A port scanner, a machine without our CA: the machine's side says more than we can.
            log.debug("%s: no TLS: %s", visitor.peer, error)
            self._forget(visitor)
            return
        if visitor not in self.visitors:  # thrown out meanwhile
            transport.abort()
            return
        visitor.transport = transport
        self._by_transport[transport] = visitor

    def _make_room(self) -> bool:
        """Room for one more, at the cost of the one who has waited for longest if it must be.

        In a storm this is what is done most often: it must not take longer the more there are.
        """
        now = asyncio.get_running_loop().time()
        if now - self._crowded > 10:
            log.warning("%d connections are open: closing those that have not asked for anything", len(self.visitors))
            self._crowded = now
        oldest = next(iter(self._outside), None)
        if oldest is not None:
            self._throw_out(oldest)
            return True
        self._forget_gone()
        if len(self.visitors) < self.most:
            return True
        idle = self._stranger(now - (GRACE_WHEN_BUSY if self._overworked() else GRACE))
        if idle is not None:
            self._throw_out(idle)
        return idle is not None

    def _stranger(self, latest: float) -> Visitor | None:
        """One who was let in, and from whom nothing has come since then."""
        return next((one for one in self._inside if one.stranger and one.last < latest), None)

    async def _sweep(self) -> None:
        """Every now and then: forget who has gone, throw out who only stands there."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._forget_gone()
            now = asyncio.get_running_loop().time()
            # When there is no room they have less time.
            stalled = now - (GRACE_WHEN_BUSY if len(self.visitors) >= self.most else STRANGER_SECONDS)
            idle = [visitor for visitor in self.visitors if visitor.stranger and (
                visitor.since < now - STRANGER_SECONDS or (visitor.inside and visitor.last < stalled))]
            for visitor in idle:
                self._throw_out(visitor)
            if idle:
                log.info("closed %d connections that asked for nothing in %g s (%s)", len(idle), now - stalled,
                         ", ".join(sorted({visitor.peer for visitor in idle})[:5]))

    def _forget_gone(self) -> None:
        for visitor in [visitor for visitor in self.visitors if visitor.gone]:
            self._forget(visitor)

    def _throw_out(self, visitor: Visitor) -> None:
        visitor.throw_out()
        self._forget(visitor)

    def _forget(self, visitor: Visitor) -> None:
        for known in (self.visitors, self._outside, self._lobby, self._inside):
            known.pop(visitor, None)
        if visitor.transport is not None:
            self._by_transport.pop(visitor.transport, None)
