"""A provider around a machine: its metadata service on its true address, and what it is told.

    with Provider(world, "hetzner", {"hetzner/v1/metadata/network-config": text}) as provider:
        machine.boot(...)
        provider.service.requests                   # what was asked, in order
        provider.told.good                          # messages that it took (told.py)
        provider.stop(), provider.start()           # the service alone

As strict as the real ones: wrong headers, queries and tokens are refused (tests/sources/platforms/conftest.py),
and so is a message that is not as it must be.  Addresses are on the world's loopback, as a cloud's are on the host
of the machine: reached by whatever way the machine has, its gateway or a link-local address.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.sources.platforms.conftest import MANNERS, Manners, Service
from tests.sources.platforms.conftest import handler_for as reading_handler
from tests.sources.platforms.told import Answer, Told, tell

from configserver import Tls
from world import World, end_http

METADATA = "169.254.169.254"
TRUE = {"aliyun": "100.100.100.200", "scaleway": "169.254.42.42", "azure": "168.63.129.16"}


def deaf(method: str, target: str, headers: Any, body: bytes) -> Answer:
    return 405, b""


class Provider:
    """See the head of this module. `address` and `port` are the platform's own, unless a test says otherwise."""

    def __init__(self, world: World, name: str, files: Mapping[str, str | bytes], *, address: str = "",
                 port: int = 80, tls: Tls | None = None,
                 hears: Callable[[str, str, Any, bytes], Answer] = deaf) -> None:
        self.world = world
        self.address = address or TRUE.get(name, METADATA)
        self.port = port
        self.tls = tls
        self.folder = world.folder / f"provider-{self.address}"
        self.service = Service(self.folder, MANNERS.get(name, Manners()))
        self.told = Told(hears)
        self._server: ThreadingHTTPServer | None = None
        self.say(files)
        width = 128 if ":" in self.address else 32
        world.namespace.ip("address", "replace", f"{self.address}/{width}", "dev", "lo")
        world.namespace.ip("link", "set", "lo", "up")

    def say(self, files: Mapping[str, str | bytes]) -> None:
        """What the metadata are from now on."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, data in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.encode() if isinstance(data, str) else data)

    def start(self) -> None:
        handler = handler_for(self.service, self.told)
        self._server = self.world.serve_http(self.address, self.port, handler, self.tls)

    def stop(self) -> None:
        end_http(self._server)
        self._server = None

    def __enter__(self) -> Provider:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        width = 128 if ":" in self.address else 32
        self.world.namespace.ip("address", "delete", f"{self.address}/{width}", "dev", "lo", check=False)


def handler_for(service: Service, told: Told) -> type[BaseHTTPRequestHandler]:
    """GET and PUT ask, POST and PATCH tell; a service that hears answers questions of its own protocol, too."""

    class Handler(reading_handler(service)):  # type: ignore[misc]
        def hear(self) -> None:
            tell(self, told)

        do_POST = do_PATCH = hear  # noqa: N815

        def do_GET(self) -> None:  # noqa: N802
            if told.answer is not deaf and told.answer("GET", self.path, self.headers, b"")[0] != 404:
                self.hear()
            else:
                super().do_GET()

    return Handler
