"""Addresses of documents: filling in who the machine is, what may be shown, where a redirect may lead.

Pure text. Refuses to know how an address is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit, urlunsplit

from homeport.errors import SourceError

FIELD = re.compile(r"\{([^{}]*)\}")
WHAT_IT_IS: Mapping[str, str] = {
    "uuid": "SMBIOS UUID", "serial": "serial number", "mac": "MAC address", "hostname": "host name",
    "tpmhash": "TPM",
}
PORTS = {"http": 80, "https": 443}


class MissingFact(SourceError):
    """An address asks for something that this machine does not have, or that is junk on it."""


@dataclass(frozen=True)
class WebAddress:
    """Where to ask: `url` is without user name and password, which are in `authorization` ("" for none).

    The query is part of `url` and may be a secret: only `shown` is for people.
    """

    url: str
    authorization: str = ""

    @property
    def shown(self) -> str:
        return shown(self.url)

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """What credentials are for: scheme, host and port (RFC 6454, section 4)."""
        parts = urlsplit(self.url)
        return parts.scheme, parts.hostname or "", parts.port or PORTS.get(parts.scheme)


def is_url(location: str) -> bool:
    return "://" in location


def shown(location: str) -> str:
    """A location as people and logs may see it: no user name, password, query and fragment.

    And nothing that a terminal would obey: a redirect may name anything.
    """
    if not location.isprintable():
        location = "".join(char if char.isprintable() else "?" for char in location)
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def fill(template: str, fields: Mapping[str, str]) -> str:
    """`template` with each `{field}` replaced, percent-encoded (RFC 3986, 3.3).

    Raises MissingFact for a field that this machine has no value for.  ":" stays as it is: it is allowed
    where a field can stand, and people look for `52:54:00:…` in their server's log.
    """
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if not fields.get(name):
            raise MissingFact(
                f"Cannot ask {shown(template)}: this machine has no {WHAT_IT_IS.get(name, name)}",
                "`homeport identify` shows what it has; another field may do")
        encoded = quote(fields[name], safe=":")
        return {".": "%2E", "..": "%2E%2E"}.get(encoded, encoded)

    return FIELD.sub(value, template)


def web_address(url: str) -> WebAddress:
    """A URL, its user name and password taken out of it. Raises SourceError if it is none."""
    from base64 import b64encode
    parts = _split(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    bare = urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))
    token = b64encode(unquote(userinfo).encode()).decode()
    return WebAddress(bare, f"Basic {token}" if at else "")


def follow(asked: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads. Credentials stay with the origin they were meant for.

    Raises SourceError for what is not followed: no or another scheme, or from https back to http.
    """
    refused = f"{asked.shown} redirects to "
    target = _split(urljoin(asked.url, location.strip()), refused)
    if asked.url.startswith("https:") and target.scheme != "https":
        raise SourceError(f"{refused}{shown(target.geturl())}, which is not encrypted",
                          "correct the server, or configure the address that it means")
    found = web_address(target.geturl())
    # A redirect brings no credentials of its own: whoever sent it would choose what we send.
    kept = asked.authorization if found.origin == asked.origin else ""
    return WebAddress(found.url, kept)


def _split(url: str, intent: str = "Cannot ask ") -> SplitResult:
    """The parts of an http or https URL."""
    try:
        parts = urlsplit(url)
        port = parts.port if parts.port is not None else PORTS.get(parts.scheme)
        if parts.scheme in PORTS and parts.hostname and port:
            return parts
    except ValueError:  # a port that is no number, brackets that do not match
        pass
    raise SourceError(f"{intent}{shown(url) or 'nowhere'}: not an http or https address")
