"""The `url` source: a document behind an http or https address.

Knows what the answers of a web server mean for us, when to ask again and when to stop. One deadline
bounds everything; each attempt has its own limits. Several addresses are asked in turns.

What is an answer: a document, "unchanged" (304), "not ready" (202), "none for you" (404), "not you" (401,
403, 410). Whether "not ready" is worth waiting for depends on what this machine has to stand on, which is not
known here. What is asked again until the deadline: no connection, no answer in time, 408, 425, 429, 5xx.
The rest says that the address is wrong, and is final.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeport.core.complaint import Complaint
from homeport.errors import (
    DocumentError,
    NoAssignment,
    Pending,
    RefusedBySource,
    SourceError,
    Unreachable,
)
from homeport.sources.address import WebAddress, fill, follow, is_url, web_address
from homeport.sources.patience import SYSTEM_CLOCK, Clock, delays, parse_retry_after
from homeport.sources.reply import LARGEST, Reply, finality

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.settings import Settings
    from homeport.sources.http import Answer
    from homeport.sources.trust import Context

NAME = "url"
REDIRECTS = 5  # that are followed for one attempt
LAST_TRY = 1.0  # seconds before the deadline: later there is no time for an answer
WANTED = "application/yaml, application/json;q=0.9, text/yaml;q=0.9, */*;q=0.5"

OK, ACCEPTED, NO_CONTENT, NOT_MODIFIED = 200, 202, 204, 304
REDIRECT = (301, 302, 303, 307, 308)
REFUSED = {401: "it wants other credentials", 403: "it does not let this machine have it",
           410: "it is gone for good"}
ASK_AGAIN = (408, 425, 429)


@dataclass
class Target:
    """One address and how asking it went: attempts so far, why the last one failed, when it may be next.

    `not_before` is 0.0, or the monotonic time before which the server does not want to be asked.
    """

    address: WebAddress
    attempts: int = 0
    failure: SourceError | None = None
    not_before: float = 0.0


@dataclass(frozen=True)
class Asker:
    """What all attempts have in common."""

    settings: Settings
    context: Context
    deadline: float
    etag: str
    etag_url: str
    clock: Clock
    progress: Callable[[str], None]
    started: float

    def left(self) -> float:
        return self.deadline - self.clock.monotonic()


def locations(settings: Settings) -> Sequence[str]:
    """What of the settings is ours to ask."""
    return [location for location in settings.config if is_url(location)]


def fetch(settings: Settings, identity: Identity, *, root: str | os.PathLike[str] = "/", etag: str = "",
          etag_url: str = "", deadline: float, floor: float = 0.0, clock: Clock = SYSTEM_CLOCK,
          progress: Callable[[str], None] = lambda line: None) -> Reply:
    """The document, or that it is unchanged; asked for until `deadline` (of `clock.monotonic`).

    `etag` is the validator of an earlier Reply whose `url` was `etag_url`.  `floor` is an instant, in
    seconds since 1970, before which it cannot be (`trust.py`).  `progress` gets a line for each attempt
    that failed.  Raises SourceError or a subclass, and DocumentError for what is too large.
    """
    from homeport.sources.trust import make_context
    targets = _targets(locations(settings), identity)
    if settings.proxy.startswith("https:"):
        raise SourceError("Cannot ask through a proxy that is itself spoken to with https",
                          "set proxy= to an http:// address")
    context = make_context(settings.ca, root=root, now=clock.now(), floor=floor)
    asker = Asker(settings, context, deadline, etag, etag_url, clock, progress, clock.monotonic())
    return _ask_until_deadline(asker, targets)


def _targets(templates: Sequence[str], identity: Identity) -> list[Target]:
    """The addresses that can be asked; raises what is wrong with the last one if there are none."""
    targets: list[Target] = []
    wrong: SourceError = NoAssignment("No URL is configured")
    for template in templates:
        try:
            targets.append(Target(web_address(fill(template, identity.fields))))
        except SourceError as error:
            wrong = error
    if not targets:
        raise wrong
    return targets


def _ask_until_deadline(asker: Asker, targets: list[Target]) -> Reply:
    """Rounds of one attempt for each address, with growing pauses; the first document wins."""
    undecided = list(targets)
    for delay in delays(asker.clock.chance):
        for target in tuple(undecided):
            if target.not_before > asker.clock.monotonic():
                continue
            try:
                return _attempt(asker, target)
            except SourceError as error:
                target.failure = error
                if not isinstance(error, Unreachable) or isinstance(error, Hopeless):
                    undecided.remove(target)
                elif error.retry_after is not None:
                    target.not_before = asker.clock.monotonic() + error.retry_after
        if not undecided:
            break
        pause = _pause(asker, undecided, delay)
        for target in undecided:
            _tell(asker, target, pause)
        if pause is None:
            break
        asker.clock.sleep(pause)
    raise verdict(asker, targets)


def _pause(asker: Asker, undecided: Sequence[Target], delay: float) -> float | None:
    """Seconds until the next round, None if that would be too late."""
    left = asker.left()
    if left <= LAST_TRY:
        return None
    asked_to_wait = min(target.not_before for target in undecided) - asker.clock.monotonic()
    if asked_to_wait >= left:
        return None
    return max(asked_to_wait, min(delay, left - LAST_TRY))


def _tell(asker: Asker, target: Target, pause: float | None) -> None:
    assert target.failure is not None
    then = "giving up" if pause is None else f"asking again in {pause:.1f} s"
    asker.progress(f"{target.failure.message}; {then}")


class Hopeless(Unreachable):
    """No answer now, and none before the deadline either: something must be put right first."""


def verdict(asker: Asker, targets: Sequence[Target]) -> SourceError:
    """What to say in the end: none of several addresses may speak for one that did not answer."""
    failures = [target.failure for target in targets if target.failure is not None]
    if not failures:
        return Unreachable(f"No time was left to ask {targets[0].address.shown}")
    worst = min(failures, key=finality)
    if isinstance(worst, Unreachable) and not isinstance(worst, Hopeless):
        target = next(target for target in targets if target.failure is worst)
        seconds = asker.clock.monotonic() - asker.started
        tries = "1 attempt" if target.attempts == 1 else f"{target.attempts} attempts"
        return Unreachable(f"{worst.message} ({tries} in {seconds:.0f} s)", worst.hint, worst.retry_after)
    return worst


def _attempt(asker: Asker, target: Target) -> Reply:
    """Ask once, along redirects. Raises SourceError; what is Unreachable may be asked again."""
    target.attempts += 1
    address = target.address
    for _hop in range(REDIRECTS + 1):
        answer = _exchange(asker, target, address)
        if answer.status not in REDIRECT:
            return _judge(asker, target, answer)
        location = answer.headers.get("Location", "")
        if not location:
            raise SourceError(f"{address.shown} redirects to nowhere", "correct the server")
        address = follow(address, location)
    raise SourceError(f"{target.address.shown} redirects more than {REDIRECTS} times", "correct the server")


def _exchange(asker: Asker, target: Target, address: WebAddress) -> Answer:
    from homeport.sources import http
    from homeport.sources.wire import AttemptFailed, Limits
    settings, left = asker.settings, asker.left()
    if left <= 0:
        raise Unreachable(f"No document from {target.address.shown} before the deadline")
    limits = Limits(settings.connect_timeout, settings.header_timeout, settings.body_timeout, in_all=left)
    try:
        return http.get(address.url, _headers(asker, target, address), limits=limits,
                        context=asker.context, proxy=settings.proxy, largest=LARGEST)
    except AttemptFailed as failed:
        kind = Hopeless if failed.final else Unreachable
        raise kind(f"No document from {address.shown}: {failed.cause}", failed.hint) from None
    except http.TooLarge:
        raise DocumentError([Complaint(
            "", f"the document from {address.shown} is larger than {LARGEST >> 10} KiB",
            "an assignment is a few KiB; is this its address?")]) from None


def _headers(asker: Asker, target: Target, address: WebAddress) -> dict[str, str]:
    from homeport.version import VERSION
    headers = {"User-Agent": f"homeport/{VERSION}", "Accept": WANTED, "Accept-Encoding": "identity",
               "Connection": "close"}
    if address.authorization:
        headers["Authorization"] = address.authorization
    if asker.etag and asker.etag_url in ("", target.address.shown):
        # A validator is a quoted ETag, or the date of a server that has none (RFC 9110, 8.8).
        is_tag = asker.etag.startswith(('"', 'W/"'))
        headers["If-None-Match" if is_tag else "If-Modified-Since"] = asker.etag
    return headers


def _judge(asker: Asker, target: Target, answer: Answer) -> Reply:
    """What the answer means: a Reply, or the SourceError that it is."""
    url, status, headers = target.address.shown, answer.status, answer.headers
    again = parse_retry_after(headers.get("Retry-After", ""), headers.get("Date", ""), asker.clock.now())
    if status == OK:
        return Reply(
            answer.body, source=NAME, url=url, over_network=True,
            etag=headers.get("ETag", "") or headers.get("Last-Modified", ""),
            content_type=headers.get("Content-Type", ""))
    if status == NOT_MODIFIED and asker.etag:
        return Reply(b"", source=NAME, url=url, etag=asker.etag, over_network=True, not_modified=True)
    if status == ACCEPTED:
        raise Pending(f"{url} has no assignment for this machine yet", "it is asked again later", again)
    if status in (404, NO_CONTENT):
        raise NoAssignment(f"{url} has no assignment for this machine ({status})",
                           "assign it one on the server, or check the address and `homeport identify`")
    if status in REFUSED:
        raise RefusedBySource(f"{url} refuses: {REFUSED[status]} ({status})",
                              "check the address, its credentials and `homeport identify`")
    if status in ASK_AGAIN or status >= 500:
        raise Unreachable(f"No document from {url}: the server says {status}{_wish(again)}",
                          "see the server's own log", again)
    raise SourceError(f"No document from {url}: the server says {status}", "check the address")


def _wish(again: float | None) -> str:
    return "" if again is None else f", come back in {again:.0f} s"
