"""The application: its routes, and that nobody is ever shown a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from homeport_server.web import assignments, registration
from homeport_server.web.site import SITE, Site

log = logging.getLogger(__name__)

# The Authorization header of a TPM with its certificate has some 8 KB in base64.
LARGEST_HEADER = 32 * 1024
KEEPALIVE_SECONDS = 15.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(site: Site) -> web.Application:
    app = web.Application(middlewares=[_explain], client_max_size=assignments.LARGEST_REPORT)
    app[SITE] = site
    app.on_response_prepare.append(_finish)
    app.add_routes([
        web.get("/{api:[^/]+}/registration/{token:.+}", registration.registration, allow_head=False),
        web.get("/assignments/{id}", assignments.get_assignment, allow_head=False),
        web.post("/reports/{id}", assignments.post_report),
        web.get("/healthz", _healthz),
    ])
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """The runner whose `server` makes protocols for the door."""
    return web.AppRunner(
        app, handle_signals=False, access_log=None, keepalive_timeout=KEEPALIVE_SECONDS,
        max_field_size=LARGEST_HEADER, lingering_time=1.0, logger=logging.getLogger("homeport_server.http"))


async def _healthz(request: web.Request) -> web.Response:
    request.app[SITE].welcome(request)
    return web.Response(text="ok\n")


async def _finish(_request: web.Request, response: web.StreamResponse) -> None:
    """Not which Python and which library: that is for attackers. And no connection stays open for nothing."""
    response.headers["Server"] = "homeport-server"
    if not isinstance(response, web.WebSocketResponse):
        response.force_close()


@web.middleware
async def _explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception:
        # Ours, and for us: the client learns no more than that.
        log.exception("a bug, while answering %s %s", request.method, request.match_info.route.resource)
        raise web.HTTPInternalServerError(text="the server failed\n") from None
