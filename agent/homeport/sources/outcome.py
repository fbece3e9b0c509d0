"""Telling a server what became of its assignment: one POST, bounded, and never a reason to fail.

Knows the setting `report=` and the trust of the `url` source. Refuses to know what is in a report: it is the
status file, which has no secrets.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from homeport.errors import SourceError, Unreachable

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.settings import Settings

# Seconds for all of it: the boot waits for this, and the network is in force already.
LIMIT = 5.0


def post_report(settings: Settings, identity: Identity, outcome: Mapping[str, Any], *,
                root: str | os.PathLike[str] = "/") -> None:
    """POST `outcome` as JSON to `settings.report`, its fields filled as in `config=`.

    Raises SourceError if the server does not take it (2xx) within `LIMIT` seconds.
    """
    from homeport.sources import http
    from homeport.sources.address import fill, web_address
    from homeport.sources.trust import make_context
    from homeport.sources.wire import AttemptFailed, Limits
    address = web_address(fill(settings.report, identity.fields))
    context = make_context(settings.ca, root=root, now=time.time(), floor=0.0)
    headers = {"Content-Type": "application/json", "Connection": "close"}
    if address.authorization:
        headers["Authorization"] = address.authorization
    try:
        answer = http.post(address.url, headers, json.dumps(outcome).encode(), context=context, proxy=settings.proxy,
                           limits=Limits(LIMIT, LIMIT, LIMIT, in_all=LIMIT))
    except AttemptFailed as failed:
        raise Unreachable(f"No report to {address.shown}: {failed.cause}", failed.hint) from None
    if not 200 <= answer.status < 300:
        raise SourceError(f"No report to {address.shown}: the server says {answer.status}", "see the server's own log")
