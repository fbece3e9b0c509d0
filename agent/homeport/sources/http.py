"""One request over HTTP: within its limits, with nobody's cookies, proxies or passwords from the environment.

Knows `requests` and `urllib3` (1.26 and 2), and keeps them from what they would do by themselves: follow
redirects, retry, read netrc, trust certifi, decompress, and write URLs into errors and logs. Refuses to
know what an answer means; `url.py` does.
"""

from __future__ import annotations

import http.client
import logging
import os
import ssl
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any


def import_requests() -> Any:
    """`requests`, without its guessers of text encodings where it can do without: documents are bytes to us.

    They are a fifth of its import time. From 2.32 on it takes note of their absence and warns; older ones
    (Debian 12's) need one of them.
    """
    hidden: dict[str, Any] = {name: None for name in ("chardet", "charset_normalizer") if name not in sys.modules}
    sys.modules.update(hidden)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("requests")
    except ImportError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "requests"]:
            del sys.modules[name]
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
    return import_module("requests")


if TYPE_CHECKING:
    import requests

    from homeport.sources.trust import Context
else:
    requests = import_requests()

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, IncompleteRead, SystemTimeWarning

from homeport.core.showing import printable
from homeport.sources import wire
from homeport.sources.wire import AttemptFailed, Limits

# A clock that is far off is for trust.py to judge; this would be two lines in the journal, with a line of source.
warnings.simplefilter("ignore", SystemTimeWarning)
# Below CRITICAL they log whole URLs, at debug level and when a header is odd.
logging.getLogger("urllib3").setLevel(logging.CRITICAL + 1)

CHUNK = 1 << 16
TUNNEL = "Tunnel connection failed: "  # http.client, HTTPConnection._tunnel


class TooLarge(Exception):
    """The document is larger than asked for."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; header names in any case; `body` is empty unless `status` is 200."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def get(url: str, headers: Mapping[str, str], *, limits: Limits, context: Context, proxy: str = "",
        largest: int) -> Answer:
    """Ask once. Raises AttemptFailed, and TooLarge for a document of more than `largest` bytes.

    `url` is without user name and password; `proxy` an http URL or "".
    """
    return _ask("GET", url, headers, limits=limits, context=context, proxy=proxy, largest=largest)


def post(url: str, headers: Mapping[str, str], data: bytes, *, limits: Limits, context: Context,
         proxy: str = "", method: str = "POST") -> Answer:
    """Tell once; what the server has to say beside its status is not read. Raises AttemptFailed."""
    return _ask(method, url, headers, limits=limits, context=context, proxy=proxy, largest=0, data=data)


def put(url: str, headers: Mapping[str, str], *, limits: Limits, context: Context, largest: int) -> Answer:
    """Ask with PUT and nothing in it, as metadata services hand out tokens. Raises as `get` does."""
    return _ask("PUT", url, headers, limits=limits, context=context, proxy="", largest=largest)


def _ask(method: str, url: str, headers: Mapping[str, str], *, limits: Limits, context: Context, proxy: str,
         largest: int, data: bytes | None = None) -> Answer:
    context.limits = limits
    with requests.Session() as session:
        session.trust_env = False
        session.headers.clear()
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Adapter(limits, context))
        try:
            # `timeout` only fills in what the sockets below override at each read.
            response = session.request(
                method, url, data=data, headers=dict(headers), stream=True, allow_redirects=False,
                timeout=limits.left(),
                proxies={"http": proxy, "https": proxy} if proxy else None)
            limits.begin("body")
            wanted = largest and response.status_code == requests.codes.ok
            body = _read(response, largest) if wanted else b""
            return Answer(response.status_code, response.headers, body)
        # ValueError: a Location that is not UTF-8, which `requests` looks at although nobody follows it.
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            failed = _explain(error)
    raise failed  # outside of the handler: what it caught may hold the URL


def _read(response: requests.Response, largest: int) -> bytes:
    """The body, never more than `largest` bytes of it in memory."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise AttemptFailed(f"the answer is compressed ({printable(coding, 20)}), although we do not accept that",
                            "turn compression off for this file", final=True)
    announced = response.headers.get("Content-Length", "")
    length = int(announced) if announced.isascii() and announced.isdigit() else None
    if length is not None and length > largest:
        raise TooLarge
    body = bytearray()
    while chunk := response.raw.read(CHUNK, decode_content=False):
        body += chunk
        if len(body) > largest:
            raise TooLarge
    # urllib3 1.26 takes a connection that broke in the middle for the end of the document.
    if length is not None and "Transfer-Encoding" not in response.headers and len(body) < length:
        raise AttemptFailed(f"the connection broke after {len(body)} of {length} bytes")
    return bytes(body)


def _explain(error: BaseException) -> AttemptFailed:
    """What our sockets did not already put in words, told without the libraries' own texts."""
    if isinstance(error, requests.exceptions.InvalidURL):
        return AttemptFailed("not an address that can be asked", final=True)
    for cause in _causes(error):
        if isinstance(cause, IncompleteRead | http.client.IncompleteRead):
            return AttemptFailed("the connection broke in the middle of the document")
        if isinstance(cause, OSError) and str(cause).startswith(TUNNEL):
            return AttemptFailed(f"the proxy refuses: {printable(str(cause).removeprefix(TUNNEL), 40)}",
                                 "check proxy= and what the proxy allows")
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
            return AttemptFailed(os.strerror(cause.errno).lower())
    return AttemptFailed("the connection broke, or what came is not HTTP")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class _Adapter(HTTPAdapter):
    """Makes `requests` use our connections, through a proxy too."""

    def __init__(self, limits: Limits, context: Context) -> None:
        self.classes = {
            "http": partial(_pool, HTTPConnectionPool, partial(_Plain, limits)),
            "https": partial(_pool, HTTPSConnectionPool, partial(_Tls, limits, context)),
        }
        super().__init__(pool_connections=1, pool_maxsize=1, max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self.classes

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = self.classes
        return manager

    def cert_verify(self, *_args: Any, **_kwargs: Any) -> None:
        """Not here: `requests` would add certifi's bundle; see `_Tls.connect`."""


def _pool(kind: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
    pool = kind(*args, **kwargs)
    pool.ConnectionCls = connection
    return pool


class _Plain(HTTPConnection):
    def __init__(self, limits: Limits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = limits

    def _new_conn(self) -> wire.PlainSocket:
        return wire.connect(self.host, self.port or 80, self.limits)

    def connect(self) -> None:
        super().connect()
        self.limits.begin("header")


class _Tls(HTTPSConnection):
    def __init__(self, limits: Limits, context: Context, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits, self.trusted = limits, context

    def _new_conn(self) -> wire.PlainSocket:
        return wire.connect(self.host, self.port or 443, self.limits)

    def connect(self) -> None:
        # The one place where it is decided whom to believe, whatever the layers above prepared.
        self.trusted.host = getattr(self, "_tunnel_host", None) or self.host
        self.ssl_context, self.cert_reqs = self.trusted, ssl.CERT_REQUIRED
        self.ca_certs = self.ca_cert_dir = self.ca_cert_data = None
        self.assert_hostname = self.assert_fingerprint = None
        super().connect()
        self.limits.begin("header")
