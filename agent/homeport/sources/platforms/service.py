"""Metadata services: one attempt at everything that a platform wants from one, with its headers and token.

Strict: no proxy, no redirect, no older protocol without a token.  What has come stays when an attempt fails
later on, so that the next one asks for the rest only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.core.platforms.shape import Files, Message, Service, Unreadable, Want, gather
from homeport.errors import DocumentError, RefusedBySource, SourceError, Unreachable
from homeport.sources.address import shown, web_address
from homeport.sources.patience import Clock, parse_retry_after
from homeport.sources.reply import LARGEST

if TYPE_CHECKING:
    from homeport.settings import Settings
    from homeport.sources.http import Answer
    from homeport.sources.trust import Context

PIECE_PATIENCE = 10.0  # seconds, as nm-cloud-setup's for each card
LARGEST_TOKEN = 4096  # bytes
OK, UNAUTHORIZED, NOT_FOUND = 200, 401, 404
# 410 is Azure's "not yet", for up to 70 s (Azure Instance Metadata Service, "Errors and debugging"); from nobody is it
# known to mean anything else.
ASK_AGAIN = (408, 410, 425, 429)
REDIRECT = range(300, 400)


class Session:
    """A service while this machine asks it. `left` gives the seconds until the deadline of all of it."""

    def __init__(self, service: Service, settings: Settings, clock: Clock, left: Callable[[], float], *,
                 root: str | os.PathLike[str] = "/", floor: float = 0.0) -> None:
        self.service = service
        self.settings = settings
        self.clock = clock
        self.left = left
        self.root = root
        self.floor = floor
        self.context = _context(service.base, settings, root, clock, floor)
        self.token = ""
        self.came: dict[str, bytes | None] = {}
        self.optional: set[str] = set()
        self.given_up: dict[str, SourceError | DocumentError] = {}
        self.failing_since: float | None = None

    @property
    def place(self) -> str:
        return self.service.base

    def read(self) -> Files:
        """Everything that the platform wants; raises NotThere, or a SourceError (Unreachable: ask again).

        One card's piece that is refused, redirected or too large, or can't be had for `PIECE_PATIENCE` seconds in which
        nothing else came, is given up while others can be had: it doesn't stop the other cards.  Where the service
        isn't `by_piece`, all of it is asked for until the deadline.
        """
        files = gather(self.service.wants, self._once)
        if self.given_up and not any(self.came[path] is not None for path in self.optional - self.given_up.keys()):
            for path in self.given_up:  # the service as a whole is away: all of it is asked again
                del self.came[path]
            error = next(iter(self.given_up.values()))
            self.given_up, self.failing_since = {}, None
            raise error
        return files

    def read_again(self) -> Files:
        """The same once more, but for what is of single cards and was said before. Raises as `read`."""
        self.came = {path: data for path, data in self.came.items() if path in self.optional}
        return self.read()

    def send(self, message: Message) -> None:
        """Tell it something; raises a SourceError if it does not take that (2xx; Unreachable: tell it again)."""
        url = f"{self.service.base}/{message.place}"
        if "://" in message.place:
            url = web_address(message.place).url
            self.context = _context(url, self.settings, self.root, self.clock, self.floor)
        headers = {**self._headers(), **(message.headers or {})}
        answer = self._exchange(message.method, url, headers, 0, message.body)
        status = answer.status
        if status in ASK_AGAIN or status >= 500:
            raise Unreachable(f"Cannot tell {shown(url)}: it says {status}", "", _when(answer, self.clock))
        if not 200 <= status < 300:
            raise RefusedBySource(f"Cannot tell {shown(url)}: it says {status}", "is this machine on that platform?")

    def _once(self, want: Want) -> bytes | None:
        if want.path in self.came:
            return self.came[want.path]
        if want.optional:
            self.optional.add(want.path)
        is_of_one = want.optional and self.service.by_piece
        token = self._token()  # outside of what follows: without one no piece can be had
        try:
            self.came[want.path] = self._get(want, token)
            self.failing_since = None
        except Unreachable as error:
            now = self.clock.monotonic()
            self.failing_since = self.failing_since or now
            if not is_of_one or now - self.failing_since < PIECE_PATIENCE:
                raise
            self._give_up(want, error, error.message)
        except (SourceError, DocumentError) as error:
            if not is_of_one:
                raise
            self._give_up(want, error, error.complaints[0].found if isinstance(error, DocumentError) else error.message)
        return self.came[want.path]

    def _give_up(self, want: Want, error: SourceError | DocumentError, why: str) -> None:
        self.came[want.path] = Unreadable(why.encode())
        self.given_up[want.path] = error

    def _get(self, want: Want, token: str) -> bytes | None:
        url = f"{self.service.base}/{want.path}" + (f"?{want.query}" if want.query else "")
        headers = {**self._headers(), **(self.service.headers or {})}
        if self.service.token:
            headers[self.service.token.header] = token
        answer = self._exchange("GET", url, headers, LARGEST)
        if answer.status == UNAUTHORIZED and self.service.token:
            self.token = ""  # it has run out; the next attempt begins with another one
            raise Unreachable(f"{shown(url)} does not take our token any more")
        return None if answer.status == NOT_FOUND else _body(url, answer, self.clock)

    def _token(self) -> str:
        token = self.service.token
        if token and not self.token:
            url = f"{self.service.base}/{token.path}"
            answer = self._exchange("PUT", url, {**self._headers(), **token.ask}, LARGEST_TOKEN)
            text = _body(url, answer, self.clock).decode("ascii", "replace").strip()
            if not text.isprintable() or not text.isascii() or not text:
                raise SourceError(f"{shown(url)} gives no token that could be a header")
            self.token = text
        return self.token

    def _headers(self) -> dict[str, str]:
        from homeport.version import VERSION
        return {"User-Agent": f"homeport/{VERSION}", "Accept": "*/*", "Accept-Encoding": "identity",
                "Connection": "close"}

    def _exchange(self, method: str, url: str, headers: dict[str, str], largest: int, data: bytes = b"") -> Answer:
        from homeport.sources import http
        from homeport.sources.wire import AttemptFailed, Limits
        settings, left = self.settings, self.left()
        if left <= 0:
            raise Unreachable(f"No answer from {shown(url)} before the deadline")
        limits = Limits(settings.connect_timeout, settings.header_timeout, settings.body_timeout, in_all=left)
        try:
            if method not in ("GET", "PUT"):
                return http.post(url, headers, data, limits=limits, context=self.context, method=method)
            ask = http.put if method == "PUT" else http.get
            return ask(url, headers, limits=limits, context=self.context, largest=largest)
        except AttemptFailed as failed:
            intent = "No metadata from" if method in ("GET", "PUT") else "Cannot tell"
            kind = SourceError if failed.final else Unreachable
            raise kind(f"{intent} {shown(url)}: {failed.cause}", failed.hint) from None
        except http.TooLarge:
            raise DocumentError([Complaint("", f"the metadata at {shown(url)} are larger than {largest >> 10} KiB",
                                           "a few KiB; is this the platform's own service?")]) from None


def _body(url: str, answer: Answer, clock: Clock) -> bytes:
    """What a service answered with; raises what any other status means."""
    status = answer.status
    if status == OK:
        return answer.body
    if status in ASK_AGAIN or status >= 500:
        raise Unreachable(f"No metadata from {shown(url)}: it says {status}", "", _when(answer, clock))
    if status in REDIRECT:
        raise SourceError(f"{shown(url)} redirects, which a metadata service does not",
                          "is this machine on that platform?")
    raise RefusedBySource(f"{shown(url)} refuses ({status})",
                          "is the metadata service switched on for this machine, and is it on that platform?")


def _when(answer: Answer, clock: Clock) -> float | None:
    """In how many seconds to come again, where the service says so."""
    return parse_retry_after(answer.headers.get("Retry-After", ""), answer.headers.get("Date", ""), clock.now())


def _context(base: str, settings: Settings, root: str | os.PathLike[str], clock: Clock, floor: float) -> Context:
    from homeport.sources.trust import Context, make_context
    if base.startswith("https:"):
        return make_context(settings.ca, root=root, now=clock.now(), floor=floor)
    import ssl
    return Context(ssl.PROTOCOL_TLS_CLIENT)  # never used; loading authorities would take 30 ms
