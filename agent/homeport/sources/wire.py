"""Connections that end when their time is over, whatever the other side does.

Knows DNS, TCP and TLS, and one rule: each `recv` gets only the time that is left of its phase, so a
server that sends a byte now and then runs into the same limit as a silent one. Refuses to know HTTP.

Whatever goes wrong is raised as `AttemptFailed`, in words made here: the texts of the libraries above
may hold whole URLs, with their secrets.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from typing import Any

Address = tuple[Any, ...]


# What the kernel says of a connection, and what that usually means.
HINTS = {
    errno.ECONNREFUSED: "nothing listens there: is the server running, and is this its address and port?",
    errno.ENETUNREACH: "this machine has no route there: is there a cable, and a DHCP server?",
    errno.EHOSTUNREACH: "no such host on that network, or a router refuses",
    errno.ETIMEDOUT: "a firewall drops it, or there is no such host",
}


class AttemptFailed(Exception):
    """One attempt gave no answer: `cause` and `hint` for people; `final` if asking again cannot help."""

    def __init__(self, cause: str, hint: str = "", *, final: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.hint, self.final = cause, hint, final


class Limits:
    """The time limits of one attempt, in seconds; the phases are connect, header and body.

    `in_all` bounds the whole attempt, whatever is left of a phase.
    """

    def __init__(self, connect: float, header: float, body: float, in_all: float) -> None:
        self.seconds = {"connect": connect, "header": header, "body": body}
        self.last = time.monotonic() + in_all
        self.begin("connect")

    def begin(self, phase: str) -> None:
        """Start the clock of `phase`."""
        now = time.monotonic()
        self.phase, self.limit = phase, max(0.0, min(self.seconds[phase], self.last - now))
        self.end = now + self.limit

    def left(self) -> float:
        """Seconds left of this phase; raises AttemptFailed if there are none."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.exceeded()
        return left

    def exceeded(self) -> AttemptFailed:
        what = {"connect": "no connection", "header": "no answer", "body": "the document was not complete"}
        return AttemptFailed(f"{what[self.phase]} within {self.limit:.3g} s")


class PlainSocket(socket.socket):
    """A TCP connection within limits."""

    limits: Limits

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.limits.left())
        try:
            return super().recv_into(*args, **kwargs)
        except OSError as error:
            raise failure(error, self.limits) from None


class TlsSocket(ssl.SSLSocket):
    """The same with TLS. OpenSSL's reads and handshake keep to the timeout as a whole."""

    @property
    def limits(self) -> Limits:
        limits: Limits = self.context.limits  # type: ignore[attr-defined]
        return limits

    def do_handshake(self, block: bool = False) -> None:
        from homeport.sources import trust
        self.settimeout(self.limits.left())
        try:
            super().do_handshake(block)
        except ssl.SSLError as error:
            raise trust.explain(error, self.server_hostname or "") from None
        except OSError as error:
            raise failure(error, self.limits) from None
        trust.check_dates(self)

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self.settimeout(self.limits.left())
        try:
            return super().recv_into(*args, **kwargs)
        except OSError as error:  # ssl.SSLError is one
            raise failure(error, self.limits) from None


def failure(error: OSError, limits: Limits) -> AttemptFailed:
    """An error of a socket as a failed attempt."""
    if isinstance(error, TimeoutError) and error.errno is None:  # ours, not the kernel's ETIMEDOUT
        return limits.exceeded()
    if isinstance(error, ssl.SSLError):
        return AttemptFailed(f"TLS: {(error.reason or 'connection broke').replace('_', ' ').lower()}")
    if not error.errno:
        return AttemptFailed("connection broke")
    return AttemptFailed(os.strerror(error.errno).lower(), HINTS.get(error.errno, ""))


def connect(host: str, port: int, limits: Limits) -> PlainSocket:
    """A TCP connection to the first address of `host` that answers. Raises AttemptFailed.

    Each address gets its share of the time that is left, so a dead IPv6 route does not use up IPv4's.
    """
    addresses = look_up(host, port, limits)
    failed = AttemptFailed(f"{host} has no address")
    for position, (family, kind, protocol, _name, address) in enumerate(addresses):
        share = limits.left() / (len(addresses) - position)
        sock = PlainSocket(family, kind, protocol)
        try:
            sock.settimeout(share)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failed = failure(error, limits)
            continue
        sock.limits = limits
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    raise failed


def look_up(host: str, port: int, limits: Limits) -> list[Address]:
    """The addresses of `host`, best first (RFC 6724). Raises AttemptFailed.

    The C library's resolver knows no deadline, so it is asked in a thread that we stop waiting for.
    """
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        pass
    import threading
    found: list[list[Address]] = []
    failed = [AttemptFailed(f"DNS has not answered for {host} within {limits.left():.3g} s")]

    def ask() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            words = error.strerror if isinstance(error, OSError) else "not a host name"
            failed.append(AttemptFailed(f"cannot look up {host}: {(words or 'no answer').lower()}",
                                        "does this network have a name server?"))

    thread = threading.Thread(target=ask, name="homeport-dns", daemon=True)
    thread.start()
    thread.join(limits.left())
    if found:
        return found[0]
    raise failed[-1]
