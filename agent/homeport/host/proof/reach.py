"""Reaching a target over the new configuration: TCP, HTTP, names, gateways, carrier.

Each check asks again until its deadline (a switch port may learn for 30 s before it forwards) and returns
Evidence, never raises. Every socket is tied to the way that `ways.find_way` gives.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from homeport.host.proof import dns, kernel
from homeport.host.proof.connections import PORTS, Refused, connect, get
from homeport.host.proof.evidence import Evidence
from homeport.host.proof.neighbours import ask
from homeport.host.proof.wanted import Gateway, Wanted
from homeport.host.proof.ways import Way, default_routes, find_way

_ATTEMPT = 5.0  # seconds for one connection; after a lost SYN the kernel itself asks again at 1 and 3 s
_PAUSE = 0.5
_REFUSALS = 3   # a refusal is an answer: the way works, and the service will hardly come up now
# NetworkManager's own list of servers comes first: resolv.conf may name a local cache only.
_RESOLV_CONF = ("/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf")

_HINTS = {
    errno.ECONNREFUSED: "the host is reached, but nothing listens on that port, or a firewall rejects it",
    errno.ENETUNREACH: "the document has no route to it: a default route, or a longer prefix?",
    errno.EHOSTUNREACH: "nobody answers on the last link: wrong address, prefix or VLAN",
}
_SILENT = "a firewall drops it, or the other side has no way back to this address"
_GATEWAY = "wrong VLAN or switch port, or the gateway's address is wrong"
_NO_CARRIER = "no cable, or the other end is down"


@dataclass(frozen=True)
class Scene:
    """What is proven: the desired state, and how long."""

    wanted: Wanted
    deadline: float
    ca_files: tuple[str, ...] = ()

    def way(self, ip: str) -> Way | None:
        static = {item.ip for item in self.wanted.static}
        return find_way(ip, kernel.read_network(), self.wanted.interfaces, static)

    def until(self, seconds: float) -> Scene:
        return Scene(self.wanted, min(self.deadline, time.monotonic() + seconds), self.ca_files)


def list_gateways(scene: Scene) -> list[Gateway]:
    """The gateways of the desired state's default routes, and those that its interfaces got by DHCP or RA."""
    network = kernel.read_network()
    learnt = [Gateway(network.name(route.index), route.gateway)
              for route in default_routes(network, scene.wanted.interfaces)]
    return list(dict.fromkeys([*scene.wanted.gateways, *learnt]))


def prove_gateway(gateway: Gateway, scene: Scene) -> Evidence:
    started = time.monotonic()
    network = kernel.read_network()
    link = network.link(gateway.interface)
    target = f"gateway {gateway.ip}"
    way = find_way(gateway.ip, network, (gateway.interface,), {item.ip for item in scene.wanted.static})
    source = way.source if way and way.interface == gateway.interface else ""
    if link is None:
        return Evidence(target, False, gateway.interface, "no such interface", 0.0, _GATEWAY)
    try:
        mac = ask(link, source, gateway.ip, scene.deadline)
    except OSError as error:
        mac, fault = None, error.strerror or str(error)
    else:
        fault = "no answer to " + ("neighbour discovery" if ":" in gateway.ip else "ARP")
    seconds = time.monotonic() - started
    if mac is not None:
        return Evidence(target, True, link.name, f"answered by {mac}" if mac else "answered", seconds)
    return Evidence(target, False, link.name, fault, seconds,
                    _NO_CARRIER if _is_dark(link.name) else _GATEWAY)


def prove_carrier(scene: Scene) -> Evidence:
    """At least one interface of the desired state has carrier."""
    started = time.monotonic()
    while True:
        network = kernel.read_network()
        up = [name for name in scene.wanted.interfaces if (link := network.link(name)) and link.carrier]
        seconds = time.monotonic() - started
        if up:
            return Evidence("carrier", True, ", ".join(up), "the link is up", seconds)
        if time.monotonic() >= scene.deadline:
            return Evidence("carrier", False, ", ".join(scene.wanted.interfaces), "none", seconds,
                            _NO_CARRIER)
        time.sleep(0.05)


def prove_tcp(host: str, port: int, scene: Scene, target: str = "") -> Evidence:
    def attempt(ip: str, way: Way, until: float) -> str:
        connect(ip, port, way, until).close()
        return f"connected to {ip} from {way.source or 'this machine'}"

    return _reach(target or f"tcp {_joined(host, port)}", host, scene, attempt)


def prove_http(url: str, scene: Scene) -> Evidence:
    """An answer below 400, under a certificate that holds if the URL is https; redirects are not followed."""
    parts = urlsplit(url)

    def attempt(ip: str, way: Way, until: float) -> str:
        return get(parts, ip, way, until, scene.ca_files)

    return _reach(f"http {shown_url(url)}", parts.hostname or "", scene, attempt)


def shown_url(url: str) -> str:
    """For people: the user may have a password, and the query may be a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def prove_source(url: str, scene: Scene) -> Evidence:
    """The server (or proxy) that the document came from accepts a connection. No TLS: its proof would be its
    certificate, which the fetch has checked, and a handshake costs more of the boot than all else here."""
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme, 443)
    host = parts.hostname or ""
    return prove_tcp(host, port, scene, f"source {_joined(host, port)}")


def prove_name(name: str, scene: Scene) -> Evidence:
    started = time.monotonic()
    try:
        found, server = dns.resolve(name, list_servers(scene.wanted), scene.way, scene.deadline,
                                    _types(scene))
    except (dns.NoAnswer, dns.NoSuchName) as error:
        return Evidence(f"dns {name}", False, "", str(error), time.monotonic() - started, _dns_hint(error))
    way = scene.way(server)
    return Evidence(f"dns {name}", True, way.interface if way else "", f"{server} says {' '.join(found)}",
                    time.monotonic() - started)


def list_servers(wanted: Wanted) -> list[str]:
    """The DNS servers of the desired state, else those that NetworkManager has put in force."""
    if wanted.servers:
        return list(wanted.servers)
    return next((servers for path in _RESOLV_CONF if (servers := dns.servers_in(_read(path)))), [])


def _reach(target: str, host: str, scene: Scene, attempt: Callable[[str, Way, float], str]) -> Evidence:
    """`attempt` each address of `host`, again until one succeeds or the scene's deadline has come."""
    started = time.monotonic()
    name, detail, hint, refusals = "", "no attempt was possible", "", 0
    while True:
        try:
            for ip in _addresses(host, scene):
                way = scene.way(ip)
                if way is None:
                    name, detail, hint = "", f"no route to {ip}", _HINTS[errno.ENETUNREACH]
                    continue
                name = way.interface
                until = min(scene.deadline, time.monotonic() + _ATTEMPT)
                detail = attempt(ip, way, max(until, time.monotonic() + 0.2))
                return Evidence(target, True, name, detail, time.monotonic() - started)
        except (dns.NoAnswer, dns.NoSuchName) as error:
            detail, hint = f"cannot find its address: {error}", _dns_hint(error)
        except Refused as error:
            detail, hint = str(error), "the way works; the server itself does not answer well"
            refusals += 1
        except OSError as error:
            detail, hint = _words(error), _HINTS.get(error.errno or 0, _SILENT)
            refusals += isinstance(error, ConnectionRefusedError)
        left = scene.deadline - time.monotonic()
        if left <= 0 or refusals >= _REFUSALS:
            hint = _NO_CARRIER if name and _is_dark(name) else hint
            return Evidence(target, False, name, detail, time.monotonic() - started, hint)
        time.sleep(min(_PAUSE, left))


def _addresses(host: str, scene: Scene) -> Sequence[str]:
    try:
        return [kernel.normal(host)]
    except ValueError:
        known = dns.in_hosts(host, _read("/etc/hosts"))
        return known or dns.resolve(host, list_servers(scene.wanted), scene.way, scene.deadline,
                                    _types(scene))[0]


def _types(scene: Scene) -> tuple[int, ...]:
    """The record types of the families that this machine has addresses of; both if it has none yet."""
    network = kernel.read_network()
    ips = [address.ip for name in scene.wanted.interfaces for address in network.on(name)
           if address.usable and not address.ip.startswith("fe80:")]
    types = [dns.A] * any(":" not in ip for ip in ips) + [dns.AAAA] * any(":" in ip for ip in ips)
    return tuple(types) or (dns.A, dns.AAAA)


def _is_dark(name: str) -> bool:
    link = kernel.read_network().link(name)
    return link is not None and link.carrier is False


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return (error.strerror or str(error)).lower()


def _dns_hint(error: Exception) -> str:
    if isinstance(error, dns.NoSuchName):
        return "the name is wrong, or the new configuration has the wrong DNS servers"
    return "the DNS servers of the new configuration cannot be reached from it"


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
