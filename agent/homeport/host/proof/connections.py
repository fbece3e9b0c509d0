"""Connections that are tied to a way: TCP, and one HTTP request over it."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from homeport.host.proof.kernel import family_of
from homeport.host.proof.ways import Way, bind, endpoint

if TYPE_CHECKING:
    import ssl

PORTS = {"http": 80, "https": 443}


class Refused(Exception):
    """An HTTP server answered, but not well; the text is what it said."""


def connect(ip: str, port: int, way: Way, until: float) -> socket.socket:
    """An open connection. Raises OSError, TimeoutError at `until`."""
    file = socket.socket(family_of(ip), socket.SOCK_STREAM)
    try:
        file.settimeout(max(0.1, until - time.monotonic()))
        bind(file, way)
        file.connect(endpoint(ip, port, way))
    except OSError:
        file.close()
        raise
    return file


def get(parts: SplitResult, ip: str, way: Way, until: float, ca_files: Sequence[str]) -> str:
    """What the server answers to a GET. Raises Refused for an answer of 400 and above, OSError for none."""
    from http.client import HTTPConnection, HTTPException

    port = parts.port or PORTS[parts.scheme]
    file = connect(ip, port, way, until)
    # the port in the Host header only where it is not the scheme's own (RFC 9110, 7.2)
    host = parts.netloc.rpartition("@")[2] if parts.port != PORTS[parts.scheme] else parts.hostname or ""
    connection = HTTPConnection(parts.hostname or "", port)
    try:
        if parts.scheme == "https":
            file = _tls(ca_files).wrap_socket(file, server_hostname=parts.hostname)
        connection.sock = file
        connection.putrequest("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                              skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        connection.putheader("User-Agent", "homeport")
        connection.endheaders()
        status = connection.getresponse().status
    except HTTPException as error:
        raise Refused(f"no HTTP answer: {type(error).__name__}") from error
    finally:
        connection.close()
        file.close()
    if status >= 400:
        raise Refused(f"{ip} answers {status}")
    return f"{ip} answers {status}"


def _tls(ca_files: Sequence[str]) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    for path in ca_files:
        context.load_verify_locations(path)
    return context
