"""`GET /assignments/ID` and `POST /reports/ID`: plain HTTP for homeport's `url` source and its reports.

200 with an ETag, 304, 202 for "not yet", 404 for "nothing for this one", 401 and 403, 429 with Retry-After. What a
machine is not to know it is not told: the reason is in the log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from homeport.core.showing import printable
from homeport.core.yamlwrite import render_yaml
from homeport_server import lookup
from homeport_server.caller import LONGEST_ID, clean_facts
from homeport_server.clerk import Busy
from homeport_server.lookup import Denied
from homeport_server.manifests.registrations import Registration
from homeport_server.outcome import Assigned, Outcome, Waiting
from homeport_server.registrar import Registrar
from homeport_server.store.database import StoreError
from homeport_server.web.site import SITE, Site, brought_token, check_tries, count_wrong_token, too_many

log = logging.getLogger(__name__)

Result = TypeVar("Result")
LARGEST_REPORT = 128 * 1024
BODY_SECONDS = 10.0
# What is kept of homeport's status file; the rest is on the machine.
_REPORT_KEYS = ("rung", "reason", "hint", "exit", "mode", "revision", "result", "source", "version", "event",
                "finished", "addresses", "proof")
_LONGEST_TEXT = 1_000


async def get_assignment(request: web.Request) -> web.Response:
    """What this machine is assigned, or why not."""
    site, machine = request.app[SITE], _id(request)
    registration = _admit(site, request, machine)
    query = request.query
    said = clean_facts(query.get("uuid", ""), query.get("serial", ""), query.getall("mac", []))
    outcome = await _do(site, lambda registrar: lookup.assignment_of(
        registrar, machine, registration, site.http == "any", said))
    if isinstance(outcome, Denied):
        raise _denied(site, request, machine, outcome)
    return _answer(request, machine, outcome)


async def post_report(request: web.Request) -> web.Response:
    """What came of it. 204."""
    site, machine = request.app[SITE], _id(request)
    registration = _admit(site, request, machine)
    report = _read_report(await _body(request))

    def keep(registrar: Registrar) -> Denied | None:
        found = lookup.find_machine(registrar, machine, registration, site.http == "any")
        if found is None:
            return Denied("unknown" if registration else "token", "no machine has this id")
        if isinstance(found, Denied):
            return found
        released = registrar.report(found, report)
        log.info("%s: %s reports %s%s", request.remote, found, report.get("rung") or report.get("event") or "nothing",
                 f"; released {', '.join(released)}" if released else "")
        return None

    denied = await _do(site, keep)
    if denied is not None:
        raise _denied(site, request, machine, denied)
    return web.Response(status=204)


def _id(request: web.Request) -> str:
    text = request.match_info["id"]
    if not text.isprintable() or len(text) > LONGEST_ID:
        raise web.HTTPNotFound(text="no such machine\n")
    return text


def _admit(site: Site, request: web.Request, machine: str) -> Registration | None:
    """The registration whose token was brought, None where there is none. Raises 429, 401, and 404 where HTTP is off.

    Before that nothing is taken from this connection, nor counted for the machine that it names: whoever has no token
    must not be able to keep out those who have one.
    """
    if site.http == "off":
        raise web.HTTPNotFound(text="this server assigns by registration only\n")
    check_tries(site, request)
    token = brought_token(request)
    registration = site.tokens.find(token) if token else None
    if registration is None and (token or site.tokens.by_token):
        raise _denied(site, request, machine, Denied(
            "token", "no registration has the token it came with" if token else "no token was given"))
    site.welcome(request)
    wait = site.per_machine.take(machine, time.monotonic())
    if wait:
        raise too_many(wait)
    return registration


async def _do(site: Site, function: Callable[[Registrar], Result]) -> Result:
    try:
        return await site.clerk.do(function)
    except Busy as busy:
        raise too_many(busy.retry_after) from None
    except StoreError as error:
        log.error("%s", error)
        raise web.HTTPServiceUnavailable(text="the server cannot answer now\n", headers={"Retry-After": "30"}) from None


def _answer(request: web.Request, machine: str, outcome: Outcome) -> web.Response:
    headers = {"Cache-Control": "private, no-cache"}
    if isinstance(outcome, Waiting):
        log.warning("%s: %s must wait: %s", request.remote, outcome.machine or machine, outcome.reason)
        return web.Response(status=202, text=f"not ready: {outcome.reason}\n",
                            headers={**headers, "Retry-After": str(outcome.retry_after)})
    if not isinstance(outcome, Assigned):
        log.warning("%s: %s is refused: %s", request.remote, machine, outcome.reason)
        raise web.HTTPForbidden(text=f"{outcome.reason}\n")
    if not outcome.network:
        raise web.HTTPNotFound(text="no network is configured for this machine (configurator: none)\n")
    tag = f'"{outcome.revision.rpartition(":")[2]}"'
    headers["ETag"] = tag
    if _matches(request.headers.get("If-None-Match", ""), tag):
        return web.Response(status=304, headers=headers)
    log.info("%s: %s is assigned %s", request.remote, outcome.machine,
             ", ".join(address.ip for address in outcome.addresses.values()) or "a network")
    if outcome.note:
        log.warning("%s: %s; going on with its addresses", outcome.machine, outcome.note)
    return web.Response(text=render_yaml(outcome.document), content_type="application/yaml", headers=headers)


def _matches(header: str, tag: str) -> bool:
    """RFC 9110, 13.1.2: any of a list, weak or not, or any at all."""
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in header.split(","))


def _denied(site: Site, request: web.Request, machine: str, denied: Denied) -> web.HTTPException:
    log.warning("%s asks for %s: %s", request.remote, printable(machine), denied.reason)
    if denied.kind == "unknown":
        return web.HTTPNotFound(text="no such machine\n")
    if denied.kind == "proof":
        return web.HTTPForbidden(text="this machine must register with its TPM\n")
    count_wrong_token(site, request)
    return web.HTTPUnauthorized(text="the token of a registration is needed\n",
                                headers={"WWW-Authenticate": 'Basic realm="homeport"'})


async def _body(request: web.Request) -> bytes:
    if (request.content_length or 0) > LARGEST_REPORT:
        raise web.HTTPRequestEntityTooLarge(LARGEST_REPORT, request.content_length or 0)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            # The application bounds what is read (client_max_size).
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text=f"no body within {BODY_SECONDS:g} s\n") from None


def _read_report(body: bytes) -> dict[str, Any]:
    """What is kept of a report: short plain values of known names."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise web.HTTPBadRequest(text="a report is a JSON object\n")
    return {key: _plain(value[key]) for key in _REPORT_KEYS if key in value}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_LONGEST_TEXT].encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_plain(item) for item in value[:20] if isinstance(item, str)]
    return value if isinstance(value, bool | int | float) and abs(value) < 1e15 else None
