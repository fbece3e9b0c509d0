"""The life of a server: open the database, read the manifests, open the door, watch, close.

This is the only module that puts the parts together.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from sqlalchemy import Connection

from homeport.errors import HomeportError
from homeport_server import supervisor, tls
from homeport_server.admission import Moved
from homeport_server.clerk import Clerk
from homeport_server.registrar import Registrar
from homeport_server.store.database import Database
from homeport_server.store.tokens import remember
from homeport_server.tls import Tls
from homeport_server.watch import Watch
from homeport_server.web.app import make_app, make_runner
from homeport_server.web.door import MOST_CONNECTIONS, Door
from homeport_server.web.site import HttpPolicy, Site

log = logging.getLogger(__name__)

RENEWAL_SECONDS = 12 * 3600.0


class CannotListen(HomeportError):
    """The address is taken, or not this machine's."""

    status = os.EX_UNAVAILABLE


@dataclass(frozen=True)
class Serving:
    """How to serve; each is an option of `homeport-server serve`."""

    folder: Path
    state: Path
    listen: tuple[tuple[str, int], ...]
    url: str = ""
    plain_http: bool = False
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    tpm_cas: tuple[Path, ...] = ()
    http: HttpPolicy = "plain"
    moved: Moved = "same"
    check_config: bool = True
    most_connections: int = MOST_CONNECTIONS
    ready: Callable[[list[tuple[str, int]]], None] | None = None


def run(serving: Serving) -> None:
    """Serve until SIGTERM or SIGINT. Raises HomeportError, BadManifests."""
    asyncio.run(_serve(serving))


async def _serve(serving: Serving) -> None:
    database = Database(serving.state / "state.sqlite")
    clerk = Clerk(Registrar(database, time.time, secrets.randbelow, serving.moved))
    certificate = _certificate(serving)
    site = Site(clerk, serving.url, certificate.ca if certificate else "", _tpm_cas(serving.tpm_cas), serving.http)
    watch = Watch(serving.folder, serving.state / "last-good.json", site, check_config=serving.check_config)
    runner = make_runner(make_app(site))
    try:
        await watch.start()
        await runner.setup()
        assert runner.server is not None
        door = site.door = Door(runner.server, certificate.context() if certificate else None,
                                serving.most_connections, clerk.could_serve)
        bound = [_open(door, address, port) for address, port in serving.listen]
        url = site.url or _some_url(bound, tls=certificate is not None)
        await clerk.do(lambda registrar: _remember_us(registrar, url, site.ca))
        log.info("listening at %s; machines come to %s", ", ".join(f"{host} port {port}" for host, port in bound), url)
        if serving.ready is not None:
            serving.ready(bound)
        supervisor.tell("READY=1")
        await _until_told(watch, serving, door)
        door.close()
    finally:
        await runner.cleanup()
        clerk.close()
        database.close()


async def _until_told(watch: Watch, serving: Serving, door: Door) -> None:
    """Serve; reload on SIGHUP and when the folder changes; give back on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, watch.look_now)
    tasks = [asyncio.create_task(watch.keep_watching()), asyncio.create_task(_renew(serving, door)),
             asyncio.create_task(supervisor.keep_telling(supervisor.watchdog_seconds()))]
    await stop.wait()
    supervisor.tell("STOPPING=1")
    log.info("stopping")
    for task in tasks:
        task.cancel()


async def _renew(serving: Serving, door: Door) -> None:
    """A new certificate of our own before the old one ends, or the operator's new files, for who comes then."""
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        try:
            certificate = _certificate(serving)
            door.tls = certificate.context() if certificate else None
        except HomeportError as error:
            log.error("%s; going on with the old certificate", error)


def _open(door: Door, address: str, port: int) -> tuple[str, int]:
    try:
        return door.open(address, port)
    except OSError as error:
        raise CannotListen(f"Cannot listen at {address} port {port}: {error.strerror or error}",
                           "name an address and port with --listen") from None


def _certificate(serving: Serving) -> Tls | None:
    if serving.plain_http:
        return None
    if serving.certificate and serving.key:
        return tls.given(serving.certificate, serving.key, serving.ca)
    return tls.own(serving.state, _names(serving))


def _names(serving: Serving) -> list[str]:
    """Every name and address that machines may know us by."""
    host = urlsplit(serving.url).hostname if serving.url else None
    listening = [address for address, _ in serving.listen if address not in ("0.0.0.0", "::")]
    return list(dict.fromkeys(
        [*([host] if host else []), *serving.names, *listening, socket.gethostname(), "localhost", "127.0.0.1", "::1"]))


def _tpm_cas(paths: tuple[Path, ...]) -> list[x509.Certificate]:
    found: list[x509.Certificate] = []
    for path in paths:
        try:
            found += x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            raise tls.TlsError(f"Cannot read the certificates of TPM vendors in {path}: {error}",
                               "--tpm-ca takes PEM") from None
    return found


def _some_url(bound: list[tuple[str, int]], *, tls: bool) -> str:
    """Where we are, for people; machines that come by another name are told that one."""
    host, port = bound[0]
    host = socket.gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    usual = 443 if tls else 80
    return f"http{'s' if tls else ''}://{host}" + (f":{port}" if port != usual else "")


def _remember_us(registrar: Registrar, url: str, ca: str) -> None:
    """For `homeport-server show`, which is another process."""
    def change(connection: Connection) -> None:
        remember(connection, "url", url)
        remember(connection, "ca", ca)

    registrar.database.change(change)
