"""A cloud around a machine: subnets with DHCP and routers, and a metadata service on its true address.

    with Cloud(world) as cloud:
        cloud.describe({MAC: Vnic(0, "10.0.1.0/24", ["10.0.1.10"])})     # what EC2's service says from now on
        cloud.stop(), cloud.start()                                        # the service alone
    with Cloud(world, "azure") as cloud:
        cloud.tell({"metadata/instance/network": json.dumps(…)})           # what another one's says

The service is as strict as the real one (tests/sources/platforms/conftest.py): its headers, its token.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.sources.platforms.conftest import MANNERS, Service, handler_for

from world import Lan, World, end_http

METADATA = "169.254.169.254"
OF_ALIYUN = "100.100.100.200"
OUTSIDE, OUTSIDE_6 = "198.51.100.1", "2001:db8:ffff::1"  # beyond the routers of all subnets
INSTANCE = "i-0123456789abcdef0"
MACS = "2021-01-03/meta-data/network/interfaces/macs"


@dataclass(frozen=True)
class Vnic:
    number: int
    subnet: str
    addresses: Sequence[str]
    ipv6s: Sequence[str] = ()
    subnet_6: str = ""


class Cloud:
    """See the head of this module."""

    def __init__(self, world: World, platform: str = "aws") -> None:
        self.world = world
        self.folder = world.folder / "metadata"
        self.address = OF_ALIYUN if platform == "aliyun" else METADATA
        self.service = Service(self.folder, MANNERS[platform])
        self._server: ThreadingHTTPServer | None = None
        self._routers: list[tuple[Lan, str]] = []
        for address in (METADATA, OF_ALIYUN, OUTSIDE):
            world.namespace.ip("address", "replace", f"{address}/32", "dev", "lo")
        world.namespace.ip("address", "replace", f"{OUTSIDE_6}/128", "dev", "lo")
        world.namespace.run(["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"])
        world.namespace.ip("link", "set", "lo", "up")

    def subnet(self, name: str, prefix: str, *, prefix_6: str = "", dhcp: bool = True) -> Lan:
        """A LAN `prefix`.0/24 with a router at .1 and DHCP for .10, the primary address of its one machine.

        With `prefix_6` ("2001:db8:1") it is also `prefix_6`::/64, with advertisements, and DHCPv6 for ::10.
        """
        lan = self.world.add_lan(name, [f"{prefix}.1/24"])
        self._routers.append((lan, f"{prefix}.1/24"))
        extra = []
        if prefix_6:
            lan.add_address(f"{prefix_6}::1/64")
            self._routers.append((lan, f"{prefix_6}::1/64"))
            extra = ["--enable-ra", f"--dhcp-range={prefix_6}::10,{prefix_6}::10,64,3600", "--ra-param=*,5,120"]
        if dhcp:
            self.lease(lan, prefix, extra)
        return lan

    def lease(self, lan: Lan, prefix: str, extra: Sequence[str] = ()) -> None:
        """DHCP there, from now on (again)."""
        # Nothing is renewed while a test looks for what happens by itself.
        lan.dhcp.start(first=f"{prefix}.10", last=f"{prefix}.10", lease=3600, router=f"{prefix}.1", dns="192.0.2.53",
                       extra=extra)

    def describe(self, vnics: Mapping[str, Vnic]) -> None:
        """What EC2 says."""
        files = {"2021-01-03/meta-data/instance-id": INSTANCE}
        for mac, vnic in vnics.items():
            keys = {"device-number": str(vnic.number), "subnet-ipv4-cidr-block": vnic.subnet,
                    "local-ipv4s": "\n".join(vnic.addresses), "ipv6s": "\n".join(vnic.ipv6s),
                    "subnet-ipv6-cidr-blocks": vnic.subnet_6}
            files |= {f"{MACS}/{mac}/{key}": text for key, text in keys.items() if text}
        self.tell(files)

    def tell(self, files: Mapping[str, str]) -> None:
        """What the service says from now on, by path; below a path with more behind it, it lists that."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for path, text in files.items():
            file = self.folder / path.strip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def start(self) -> None:
        self._server = self.world.serve_http(self.address, 80, handler_for(self.service))

    def stop(self) -> None:
        end_http(self._server)
        self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        for lan, address in self._routers:  # the next cloud has the same subnets
            lan.dhcp.stop()
            lan.remove_address(address)
