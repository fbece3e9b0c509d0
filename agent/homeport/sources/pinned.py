"""The authorities that a registration server has named for itself: kept, for they may be replaced one day.

What is configured in an image is as old as the image. A server that gets a new authority tells the machines that
still trust the old one (rancher/elemental#1612); one that was asleep meanwhile finds it only because it was told
before. Knows one file. What is in it is believed of the server that said it and no other, and only said over TLS: in
plain HTTP anybody could.
"""

from __future__ import annotations

import logging
import os
from urllib.parse import urlsplit

from homeport.host.store import REGISTRATION_CA

log = logging.getLogger(__name__)

Where = str | os.PathLike[str]

LARGEST = 1 << 20  # bytes


def read(root: Where, url: str) -> str:
    """The authorities (PEM) that the server of `url` has named, "" if it has named none. Never raises."""
    said_by, _, pem = _file(root).partition("\n")
    return pem if said_by == _mark(url) else ""


def keep(root: Where, url: str, pem: str) -> None:
    """Remember what the server of `url` names. Never raises: without it the next time is as it was before."""
    from homeport.host.files import make_dir, write_atomic
    text = f"{_mark(url)}\n{pem}"
    if not pem or urlsplit(url).scheme != "https" or text == _file(root):
        return
    try:
        make_dir(root, os.path.dirname(REGISTRATION_CA), 0o700)
        write_atomic(root, REGISTRATION_CA, text.encode())
    except OSError as error:
        log.debug("cannot keep /%s: %s", REGISTRATION_CA, error.strerror)


def _mark(url: str) -> str:
    """The first line of the file: the server, without the path, whose end is a secret."""
    parts = urlsplit(url)
    return f"# {parts.scheme}://{(parts.hostname or '').lower()}"


def _file(root: Where) -> str:
    from homeport.host.files import read_file
    try:
        return (read_file(root, REGISTRATION_CA, LARGEST) or b"").decode("ascii", "ignore")
    except OSError as error:
        log.debug("cannot read /%s: %s", REGISTRATION_CA, error.strerror)
        return ""
