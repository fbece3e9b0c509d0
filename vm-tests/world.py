"""The world around the machines: a network namespace with a bridge, a gateway, DHCP and DNS, other hosts.

    with World() as world:
        world.dhcp.start()                           # leases of an hour, DNS 192.168.122.53
        server = world.serve()                       # configserver.ConfigServer on http://192.168.122.2
        world.silence_gateway()                      # 192.168.122.1 no longer answers ARP
        neighbour = world.host("192.168.122.150")    # somebody already has this address

Everything happens inside a network namespace that this process makes and that vanishes with it; nothing
is sent anywhere else.  Knows nothing of how a machine is booted: `lan.plug` puts one end of a cable into
any namespace it is given.

    192.168.122.1    the gateway, also answers DNS        192.168.122.2   the configuration server
    192.168.122.53   the DNS server that DHCP hands out   192.168.122.100 to .120  DHCP
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from configserver import ConfigServer, Tls
from namespaces import NetworkNamespace, make_mounts_private, wait_until

GATEWAY = "192.168.122.1"
SERVER = "192.168.122.2"
DHCP_DNS = "192.168.122.53"

_numbers = itertools.count(1)


class Cable:
    """One veth pair between a LAN and a NIC in somebody's namespace."""

    def __init__(self, lan: Lan, namespace: NetworkNamespace, nic: str, mac: str = "") -> None:
        self.lan = lan
        self.namespace = namespace
        self.nic = nic
        self.port = f"port{next(_numbers)}"
        peer = ["peer", "name", nic, "netns", namespace.path]
        if mac:
            peer += ["address", mac]
        lan.namespace.ip("link", "add", self.port, "type", "veth", *peer)
        lan.namespace.ip("link", "set", self.port, "master", lan.bridge, "up")

    def unplug(self) -> None:
        """No carrier on the machine's side."""
        self.lan.namespace.ip("link", "set", self.port, "down")

    def plug(self) -> None:
        self.lan.namespace.ip("link", "set", self.port, "up")

    def remove(self) -> None:
        """The NIC itself is gone."""
        self.lan.namespace.ip("link", "delete", self.port, check=False)


class Dhcp:
    """dnsmasq on one LAN: DHCP and DNS; started and stopped at will."""

    def __init__(self, lan: Lan, folder: Path) -> None:
        self.lan = lan
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        *,
        first: str = "192.168.122.100",
        last: str = "192.168.122.120",
        lease: int = 3600,
        router: str = GATEWAY,
        dns: str = DHCP_DNS,
        extra: Sequence[str] = (),
    ) -> None:
        """Leases of `lease` seconds (dnsmasq's least is 120) from `first` to `last`, renewed after half of it.

        A server that is on already is started again with these.
        """
        self.stop()
        log = self.folder / f"dnsmasq-{self.lan.bridge}.log"
        argv = [
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=",
            "--user=root", "--no-resolv", "--no-hosts", "--no-ping", "--bind-interfaces",
            f"--interface={self.lan.bridge}", "--except-interface=lo",
            f"--dhcp-range={first},{last},{lease}", "--dhcp-authoritative",
            f"--dhcp-leasefile={self.folder}/leases-{self.lan.bridge}",
            f"--dhcp-option=option:router,{router}" if router else "--dhcp-option=option:router",
            f"--dhcp-option=option:dns-server,{dns}" if dns else "--dhcp-option=option:dns-server",
            f"--address=/server.test/{SERVER}", f"--log-facility={log}", "--log-dhcp",
            "--log-queries", *extra,
        ]  # fmt: skip
        started = log.stat().st_size if log.exists() else 0
        self._process = subprocess.Popen(
            self.lan.namespace.argv(argv), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

        def answers() -> bool:
            assert self._process
            if self._process.poll() is not None:
                assert self._process.stderr
                raise RuntimeError(f"dnsmasq did not start: {self._process.stderr.read().decode()}")
            return log.exists() and b"started" in log.read_bytes()[started:]

        wait_until(answers, what="dnsmasq to start")

    def stop(self) -> None:
        """Goes silent; the leases it gave are forgotten (a restarted server gives them again)."""
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stderr
            self._process.stderr.close()
            self._process = None
        (self.folder / f"leases-{self.lan.bridge}").unlink(missing_ok=True)

    @property
    def log(self) -> str:
        path = self.folder / f"dnsmasq-{self.lan.bridge}.log"
        return path.read_text(errors="replace") if path.exists() else ""


class Host:
    """Another host on the LAN, in a namespace of its own: it has an address and answers for it."""

    def __init__(self, lan: Lan, address: str, mac: str = "") -> None:
        self.address = address
        self.namespace = NetworkNamespace()
        self.cable = Cable(lan, self.namespace, "eth0", mac)
        self.namespace.ip("link", "set", "eth0", "up")
        self.namespace.ip("address", "add", f"{address}/{64 if ':' in address else 24}",
                          "dev", "eth0", "nodad" if ":" in address else "scope", *(
                              [] if ":" in address else ["global"]))  # fmt: skip

    def leave(self) -> None:
        self.cable.remove()
        self.namespace.close()


class Lan:
    """One bridge, with addresses of the world on it."""

    def __init__(self, world: World, bridge: str, addresses: Sequence[str]) -> None:
        self.namespace = world.namespace
        self.bridge = bridge
        self.namespace.ip("link", "add", bridge, "type", "bridge", "forward_delay", "0",
                          "stp_state", "0", "mcast_snooping", "0")  # fmt: skip
        self.namespace.ip("link", "set", bridge, "up")
        for address in addresses:
            self.add_address(address)
        self.dhcp = Dhcp(self, world.folder)

    def add_address(self, address: str) -> None:
        """`address` is "192.0.2.1/24" or "2001:db8::1/64"; nothing happens if it is there."""
        nodad = ["nodad"] if ":" in address else []
        self.namespace.ip("address", "replace", address, "dev", self.bridge, *nodad)

    def remove_address(self, address: str) -> None:
        self.namespace.ip("address", "delete", address, "dev", self.bridge)

    def plug(self, namespace: NetworkNamespace, nic: str, mac: str = "") -> Cable:
        """A new NIC called `nic` in `namespace`, its cable in this LAN."""
        return Cable(self, namespace, nic, mac)



def end_http(server: ThreadingHTTPServer | None) -> None:
    """What `World.serve_http` began; nothing if there is none."""
    if server is not None:
        server.shutdown()
        server.server_close()


class World:
    """See the head of this module.  Use it as a context manager."""

    def __init__(self, folder: Path | None = None) -> None:
        make_mounts_private()
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="homeport-world-"))
        self.namespace = NetworkNamespace()
        # Several addresses of one subnet: deleting the first must not delete the others with it.
        self.namespace.run(["sysctl", "-qw", "net.ipv4.conf.all.promote_secondaries=1"])
        self.namespace.run(["sysctl", "-qw", "net.ipv4.conf.default.promote_secondaries=1"])
        self.namespace.run(["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        self._hosts: list[Host] = []
        self._servers: list[ConfigServer] = []
        self._lans: list[Lan] = []
        self.lan = self.add_lan("lan", [f"{GATEWAY}/24", f"{SERVER}/24", f"{DHCP_DNS}/24"])
        self.dhcp = self.lan.dhcp

    def add_lan(self, bridge: str, addresses: Sequence[str]) -> Lan:
        lan = Lan(self, bridge, addresses)
        self._lans.append(lan)
        return lan

    def serve(self, address: str = SERVER, port: int = 80, *, tls: bool = False) -> ConfigServer:
        """A configuration server inside, already answering (404 until it is given documents)."""
        server = ConfigServer(
            lambda: self.namespace.listen(address, port), address, port,
            tls_folder=self.folder / "tls" if tls else None,
        )  # fmt: skip
        server.start()
        self._servers.append(server)
        return server

    def serve_http(self, address: str, port: int, handler: type[BaseHTTPRequestHandler],
                   tls: Tls | None = None) -> ThreadingHTTPServer:
        """Another server inside, of the test's own making, at work already; `end_http` ends it."""
        server = ThreadingHTTPServer((address, port), handler, bind_and_activate=False)
        server.socket.close()
        server.socket = self.namespace.listen(address, port)
        if tls:
            server.socket = tls.context().wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def host(self, address: str, *, mac: str = "", lan: Lan | None = None) -> Host:
        """Another host that holds `address`."""
        host = Host(lan or self.lan, address, mac)
        self._hosts.append(host)
        return host

    def silence_gateway(self) -> None:
        """The gateway answers nothing any more, not even ARP; server and DHCP stay."""
        self.lan.remove_address(f"{GATEWAY}/24")

    def wake_gateway(self) -> None:
        self.lan.add_address(f"{GATEWAY}/24")

    def cut_off(self, address: str) -> None:
        """TCP answers of this world no longer reach `address` (ARP and ICMP still do)."""
        self.namespace.ip("rule", "add", "to", address, "ipproto", "tcp", "blackhole")

    def calm_down(self) -> None:
        """Back to the start: no other hosts, no servers, no DHCP, all addresses answer."""
        for server in self._servers:
            server.stop()
        for host in self._hosts:
            host.leave()
        self._servers, self._hosts = [], []
        for lan in self._lans:
            lan.dhcp.stop()
        while self.namespace.ip("rule", "list").count("blackhole"):
            self.namespace.ip("rule", "delete", "blackhole")
        for address in (GATEWAY, SERVER, DHCP_DNS):
            self.lan.add_address(f"{address}/24")

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Afterwards the LANs that came meanwhile are gone, and the addresses of no LAN: Linux answers for any of its
        addresses on every bridge, and the next test's machine would find its own in use.
        """
        before = list(self._lans)
        try:
            yield
        finally:
            for lan in [lan for lan in self._lans if lan not in before]:
                lan.dhcp.stop()
                self.namespace.ip("link", "delete", lan.bridge)
                self._lans.remove(lan)
            for family in ("-4", "-6"):
                self.namespace.run(["ip", family, "address", "flush", "dev", "lo", "scope", "global"])

    def close(self) -> None:
        self.calm_down()
        self.namespace.close()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
