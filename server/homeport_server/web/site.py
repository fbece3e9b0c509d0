"""What all requests have in common: the registrar's clerk, the registrations by their tokens, the limits.

Compares secrets in constant time, and knows which of them a request has brought.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import web
from cryptography.x509 import Certificate

from homeport_server.clerk import Clerk
from homeport_server.manifests.registrations import Registration
from homeport_server.web.door import Door
from homeport_server.web.limits import Buckets

# Who may be served by plain HTTP: nobody; machines that never showed a TPM; anybody.
HttpPolicy = Literal["off", "plain", "any"]


@dataclass(frozen=True)
class Tokens:
    """Registrations by their tokens; replaced whole when the manifests change."""

    by_token: Mapping[str, Registration] = field(default_factory=dict)

    def find(self, token: str) -> Registration | None:
        """The registration with this token, in a time that does not depend on how much of it is right."""
        found = None
        given = token.encode("utf-8", "surrogateescape")
        for known, registration in self.by_token.items():
            if hmac.compare_digest(known.encode(), given):
                found = registration
        return found

    def of(self, registration: Registration) -> str:
        return next((token for token, one in self.by_token.items() if one is registration), "")


@dataclass
class Site:
    """What handlers need. `url` is "" where machines are told the address that they came by."""

    clerk: Clerk
    url: str = ""
    ca: str = ""
    tpm_cas: Sequence[Certificate] = ()
    http: HttpPolicy = "plain"
    tokens: Tokens = field(default_factory=Tokens)
    door: Door | None = None
    # A machine asks once a boot and once a refresh; ten at once are a person's tries.
    per_machine: Buckets = field(default_factory=lambda: Buckets(rate=0.5, burst=10))
    wrong_tokens: Buckets = field(default_factory=lambda: Buckets(rate=0.2, burst=20))

    def welcome(self, request: web.Request) -> None:
        if self.door is not None:
            self.door.welcome(request.transport)

    def url_of(self, request: web.Request, registration: Registration) -> str:
        """The registration URL to tell a machine."""
        base = self.url or f"{request.scheme}://{request.headers.get('Host') or _our_end(request)}"
        return f"{base}/elemental/registration/{self.tokens.of(registration)}"


def _our_end(request: web.Request) -> str:
    """The address that a request came to; aiohttp's `request.host` would ask DNS."""
    host, port = (request.get_extra_info("sockname") or ("", 0))[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


SITE: web.AppKey[Site] = web.AppKey("site", Site)


def too_many(seconds: float) -> web.HTTPTooManyRequests:
    """429, and when to come back."""
    after = max(1, int(seconds + 0.999))
    return web.HTTPTooManyRequests(text=f"too many requests, come back in {after} s\n",
                                   headers={"Retry-After": str(after)})


def check_tries(site: Site, request: web.Request) -> None:
    """Raises 429 for an address that has tried too many wrong tokens."""
    wait = site.wrong_tokens.wait(request.remote or "", time.monotonic())
    if wait:
        raise too_many(wait)


def count_wrong_token(site: Site, request: web.Request) -> None:
    site.wrong_tokens.take(request.remote or "", time.monotonic())


def brought_token(request: web.Request) -> str:
    """The token in a request: `?token=`, the password of Basic, or Bearer; "" for none."""
    if "token" in request.query:
        return request.query["token"]
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        user, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return password if colon and password else user
