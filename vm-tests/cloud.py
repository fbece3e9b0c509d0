"""A cloud around a machine: subnets with DHCP and routers, and a metadata service on its true address.

    with Cloud(world) as cloud:
        cloud.describe({MAC: Vnic(0, "10.0.1.0/24", ["10.0.1.10"])})     # what EC2's service says from now on
        cloud.stop(), cloud.start()                                        # the service alone

The service is as strict as the real one (tests/sources/platforms/conftest.py): IMDSv2, its token and headers.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from types import TracebackType

from tests.sources.platforms.conftest import IMDS_V2, Manners, Service, handler_for

from world import Lan, World

METADATA = "169.254.169.254"
OUTSIDE = "198.51.100.1"  # beyond the routers of all subnets
INSTANCE = "i-0123456789abcdef0"
MACS = "2021-01-03/meta-data/network/interfaces/macs"


@dataclass(frozen=True)
class Vnic:
    number: int
    subnet: str
    addresses: Sequence[str]


class Cloud:
    """See the head of this module."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.folder = world.folder / "metadata"
        self.service = Service(self.folder, Manners(token=IMDS_V2))
        self._server: ThreadingHTTPServer | None = None
        self._routers: list[tuple[Lan, str]] = []
        for address in (METADATA, OUTSIDE):
            world.namespace.ip("address", "replace", f"{address}/32", "dev", "lo")
        world.namespace.ip("link", "set", "lo", "up")

    def subnet(self, name: str, prefix: str) -> Lan:
        """A LAN `prefix`.0/24 with a router at .1 and DHCP for .10, the primary address of its one machine."""
        lan = self.world.add_lan(name, [f"{prefix}.1/24"])
        self._routers.append((lan, f"{prefix}.1/24"))
        lan.dhcp.start(first=f"{prefix}.10", last=f"{prefix}.10", router=f"{prefix}.1", dns="192.0.2.53")
        return lan

    def describe(self, vnics: Mapping[str, Vnic]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / MACS).mkdir(parents=True)
        (self.folder / "2021-01-03/meta-data/instance-id").write_text(INSTANCE)
        for mac, vnic in vnics.items():
            folder = self.folder / MACS / mac
            folder.mkdir(parents=True)
            (folder / "device-number").write_text(str(vnic.number))
            (folder / "subnet-ipv4-cidr-block").write_text(vnic.subnet)
            (folder / "local-ipv4s").write_text("\n".join(vnic.addresses))

    def start(self) -> None:
        server = ThreadingHTTPServer((METADATA, 80), handler_for(self.service), bind_and_activate=False)
        server.socket.close()
        server.socket = self.world.namespace.listen(METADATA, 80)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self._server = server

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Cloud:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        for lan, address in self._routers:  # the next cloud has the same subnets
            lan.dhcp.stop()
            lan.remove_address(address)
