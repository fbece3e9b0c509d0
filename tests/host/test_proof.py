"""host/proof: two network namespaces with a cable between them, `here` the machine, `there` the rest of the world."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from homeport.core.proof import Target
from homeport.errors import ProofError
from homeport.host.proof import Evidence, ProofFailed, dns, kernel, neighbours, probe_addresses, prove, prove_addresses
from homeport.host.proof.wanted import Gateway, Static, read_wanted
from homeport.host.proof.ways import find_way
from namespaces import NetworkNamespace, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for network namespaces")

MINE, GATEWAY, STRANGER = "192.0.2.10", "192.0.2.1", "192.0.2.66"
MINE6, GATEWAY6 = "2001:db8::10", "2001:db8::1"
FAR = "198.51.100.7"  # behind the gateway


@dataclass
class Lab:
    here: NetworkNamespace
    there: NetworkNamespace
    sockets: list[socket.socket] = field(default_factory=list)

    def prove(self, *targets: Target, desired: dict[str, Any] | None = None, seconds: float = 30.0,
              **options: Any) -> list[Evidence]:
        state = desired or document()
        return self.here.call(
            lambda: prove(targets, desired=state, deadline=time.monotonic() + seconds, **options))

    def probe(self, desired: dict[str, Any]) -> frozenset[str]:
        return self.here.call(lambda: probe_addresses(desired))

    def failing(self, *targets: Target, seconds: float = 1.0, **options: Any) -> ProofFailed:
        with pytest.raises(ProofFailed) as caught:
            self.prove(*targets, seconds=seconds, **options)
        return caught.value

    def serve(self, address: str, port: int, reply: bytes | None = None) -> None:
        """Accept connections there; answer each with `reply`."""
        listener = self.there.listen(address, port)
        self.sockets.append(listener)

        def work() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    with peer:
                        if reply is not None:
                            peer.recv(4096)
                            peer.sendall(reply)

        threading.Thread(target=work, daemon=True).start()

    def serve_dns(self, address: str, names: dict[str, str], code: int = 0, truncate: bool = False,
                  refused: int = 0) -> list[str]:
        """A name server there, that knows nothing of one type of records; the list of who asked."""
        def make() -> socket.socket:
            file = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            file.bind((address, 53))
            return file

        file, asked = self.there.call(make), []
        self.sockets.append(file)

        def work() -> None:
            with contextlib.suppress(OSError):
                while True:
                    question, peer = file.recvfrom(4096)
                    if not peer:  # shut down
                        return
                    asked.append(peer[0])
                    kind = struct.unpack_from("!H", question, len(question) - 4)[0]
                    file.sendto(dns_reply(question, names, 5 if kind == refused else code, truncate), peer)

        threading.Thread(target=work, daemon=True).start()
        return asked


def dns_reply(question: bytes, names: dict[str, str], code: int = 0, truncate: bool = False) -> bytes:
    labels, offset = [], 12
    while question[offset]:
        labels.append(question[offset + 1:offset + 1 + question[offset]].decode())
        offset += 1 + question[offset]
    ip = names.get(".".join(labels), "")
    wanted = struct.unpack_from("!H", question, offset + 1)[0] == (28 if ":" in ip else 1)
    data = kernel_pack(ip) if ip and wanted and not truncate else b""
    record = b"\xc0\x0c" + struct.pack("!HHIH", 28 if ":" in ip else 1, 1, 60, len(data)) + data if data else b""
    code = code or (0 if ip else 3)
    flags = 0x8180 | code | (0x200 if truncate else 0)
    return question[:2] + struct.pack("!HHHHH", flags, 1, bool(record), 0, 0) + question[12:] + record


def kernel_pack(ip: str) -> bytes:
    return socket.inet_pton(kernel.family_of(ip), ip)


def document(ipv4: str = MINE, ipv6: str = "", gateway: str = GATEWAY, servers: tuple[str, ...] = (),
             nic: str = "nic0") -> dict[str, Any]:
    interface: dict[str, Any] = {"name": nic, "type": "ethernet", "state": "up"}
    if ipv4:
        interface["ipv4"] = {"enabled": True, "address": [{"ip": ipv4, "prefix-length": 24}]}
    if ipv6:
        interface["ipv6"] = {"enabled": True, "address": [{"ip": ipv6, "prefix-length": 64}]}
    route = {"destination": "::/0" if ":" in gateway else "0.0.0.0/0", "next-hop-address": gateway,
             "next-hop-interface": nic}
    return {"interfaces": [interface], "dns-resolver": {"config": {"server": list(servers)}},
            "routes": {"config": [route] if gateway else []}}


def cable(here: NetworkNamespace, there: NetworkNamespace, near: str, far: str) -> None:
    here.ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", there.path)
    here.ip("link", "set", near, "up")
    there.ip("link", "set", far, "up")


def mac_of(namespace: NetworkNamespace, link: str) -> str:
    return namespace.ip("-o", "link", "show", link).partition("link/ether ")[2].split()[0]


@pytest.fixture
def lab() -> Iterator[Lab]:
    """`here` configured as document() wants it; `there` is its gateway, with FAR behind it."""
    with NetworkNamespace() as here, NetworkNamespace() as there:
        lab = Lab(here, there)
        cable(here, there, "nic0", "gw0")
        here.ip("addr", "add", f"{MINE}/24", "dev", "nic0")
        here.ip("route", "add", "default", "via", GATEWAY)
        there.ip("addr", "add", f"{GATEWAY}/24", "dev", "gw0")
        there.ip("addr", "add", f"{FAR}/32", "dev", "lo")
        try:
            yield lab
        finally:
            for file in lab.sockets:
                with contextlib.suppress(OSError):
                    file.shutdown(socket.SHUT_RDWR)
                file.close()


@pytest.fixture
def lab6(lab: Lab) -> Lab:
    """The same with IPv6, every address past its duplicate address detection."""
    lab.there.ip("-6", "addr", "add", f"{GATEWAY6}/64", "dev", "gw0", "nodad")
    lab.here.ip("-6", "addr", "add", f"{MINE6}/64", "dev", "nic0", "nodad")
    lab.here.ip("-6", "route", "add", "default", "via", GATEWAY6)
    wait_until(lambda: not any("tentative" in side.ip("-6", "addr") for side in (lab.here, lab.there)),
               what="link-local addresses")
    return lab


# -- gateways --

def test_the_default_is_that_the_gateway_answers(lab: Lab) -> None:
    address, gateway = lab.prove()
    mac = mac_of(lab.there, "gw0")
    assert (gateway.target, gateway.interface) == (f"gateway {GATEWAY}", "nic0")
    assert gateway.detail == f"answered by {mac}"
    assert gateway.seconds < 15  # with its answer, not with the deadline
    assert address.target == f"address {MINE}/24"


def test_a_gateway_that_drops_icmp_is_there_all_the_same(lab: Lab) -> None:
    lab.there.run(["sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1"])
    assert lab.prove(Target("gateway"))[-1].ok


def test_a_cached_neighbour_proves_nothing(lab: Lab) -> None:
    lab.prove()
    lab.here.ip("neigh", "replace", GATEWAY, "lladdr", "02:00:00:00:00:01", "dev", "nic0", "nud", "permanent")
    lab.there.ip("link", "set", "gw0", "arp", "off")
    assert "no answer to ARP" in str(lab.failing())


def test_a_silent_gateway(lab: Lab) -> None:
    lab.there.ip("addr", "del", f"{GATEWAY}/24", "dev", "gw0")
    error = lab.failing()
    assert isinstance(error, ProofError)
    assert str(error).startswith(f"Proof failed: gateway {GATEWAY} through nic0: no answer to ARP (0.")
    assert "wrong VLAN or switch port" in error.hint
    assert [item.ok for item in error.evidence] == [True, False]


def test_a_gateway_behind_a_pulled_cable(lab: Lab) -> None:
    lab.there.ip("link", "set", "gw0", "down")
    error = lab.failing(addresses_proven=True)
    assert error.hint == "no cable, or the other end is down"


def test_the_gateway_must_answer_on_the_interface_of_the_document(lab: Lab) -> None:
    """The same gateway is reachable through an old NIC; that must not count."""
    cable(lab.here, lab.there, "old0", "gw1")
    lab.here.ip("addr", "add", "192.0.2.20/24", "dev", "old0", "metric", "1")
    lab.there.ip("link", "set", "gw0", "arp", "off")
    lab.there.run(["sysctl", "-qw", "net.ipv4.conf.all.arp_ignore=0"])
    assert "through nic0" in str(lab.failing(addresses_proven=True))


def test_every_gateway_must_answer_and_they_are_asked_at_once(lab: Lab) -> None:
    desired = document()
    for last in range(200, 206):
        desired["routes"]["config"].append({
            "destination": "0.0.0.0/0", "next-hop-address": f"192.0.2.{last}", "next-hop-interface": "nic0",
            "metric": last})
    started = time.monotonic()
    error = lab.failing(desired=desired, seconds=3.0)
    assert sum(not item.ok for item in error.evidence) == 6
    assert "(and 5 more)" in str(error)
    assert time.monotonic() - started < 15  # one after the other would be 18


@pytest.mark.parametrize("gateway", [GATEWAY6, "link-local"])
def test_neighbour_discovery(lab6: Lab, gateway: str) -> None:
    if gateway == "link-local":
        line = lab6.there.ip("-6", "-o", "addr", "show", "dev", "gw0", "scope", "link")
        gateway = line.split()[3].partition("/")[0]
    evidence = lab6.prove(Target("gateway"), desired=document("", MINE6, gateway))
    found = next(item for item in evidence if item.target == f"gateway {gateway}")
    assert found.detail == f"answered by {mac_of(lab6.there, 'gw0')}"


def test_a_silent_ipv6_gateway(lab6: Lab) -> None:
    lab6.there.ip("-6", "addr", "del", f"{GATEWAY6}/64", "dev", "gw0")
    error = lab6.failing(Target("gateway"), desired=document("", MINE6, GATEWAY6))
    assert "no answer to neighbour discovery" in str(error)


def test_a_gateway_that_dhcp_gave(lab: Lab) -> None:
    desired = {"interfaces": [{"name": "nic0", "state": "up", "ipv4": {"enabled": True, "dhcp": True}}]}
    address, gateway = lab.prove(desired=desired)
    assert address.detail == MINE
    assert gateway.target == f"gateway {GATEWAY}"


def test_a_bridge_a_macvlan_and_a_gateway_outside_the_prefix(lab: Lab) -> None:
    here = lab.here
    here.ip("addr", "flush", "dev", "nic0")
    here.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0")
    here.ip("link", "set", "nic0", "master", "br0")
    here.ip("link", "set", "br0", "up")
    here.ip("link", "add", "mv0", "link", "br0", "type", "macvlan", "mode", "bridge")
    here.ip("link", "set", "mv0", "up")
    here.ip("addr", "add", "203.0.113.5/32", "dev", "mv0")
    here.ip("route", "add", "default", "via", GATEWAY, "dev", "mv0", "onlink")
    lab.there.ip("route", "add", "203.0.113.5/32", "dev", "gw0")
    wait_until(lambda: "state UP" in here.ip("link", "show", "mv0"), what="the macvlan")
    desired = document("", "", GATEWAY, nic="mv0")
    desired["interfaces"][0]["ipv4"] = {"address": [{"ip": "203.0.113.5", "prefix-length": 32}]}
    assert lab.prove(Target("gateway"), desired=desired)[-1].ok


# -- addresses --

def test_an_address_that_another_host_holds(lab: Lab) -> None:
    lab.there.ip("addr", "add", f"{MINE}/24", "dev", "gw0")
    mac = mac_of(lab.there, "gw0")
    started = time.monotonic()
    error = lab.failing(Target("none"), seconds=60)
    assert f"address {MINE} through nic0: another host holds it, {mac}" in str(error)
    assert time.monotonic() - started < 30
    # NetworkManager 1.52 takes it off the interface by itself; the reason is found all the same
    lab.here.ip("addr", "flush", "dev", "nic0")
    assert "another host holds it" in str(lab.failing(Target("none"), seconds=60))


def test_probed_ahead(lab: Lab) -> None:
    """Free before the apply is free after it; what is taken, or not there yet, is asked again."""
    desired = document(MINE, "", GATEWAY)
    assert lab.probe(desired) == {"nic0"}
    assert lab.probe(document(MINE, "", GATEWAY, nic="nic7")) == set()
    lab.there.ip("addr", "add", f"{MINE}/24", "dev", "gw0")
    assert lab.probe(desired) == set()


def test_the_machines_own_other_nic_is_not_another_host(lab: Lab) -> None:
    """Two NICs on one LAN: Linux answers ARP for every address of the machine on both."""
    lab.there.ip("link", "add", "lan", "type", "bridge", "forward_delay", "0")
    lab.there.ip("link", "set", "lan", "up")
    lab.there.ip("link", "set", "gw0", "master", "lan")
    cable(lab.here, lab.there, "nic1", "gw1")
    lab.there.ip("link", "set", "gw1", "master", "lan")
    assert lab.prove(Target("none"))[0].ok


def test_a_link_that_takes_no_frames_yet_is_waited_for(lab: Lab) -> None:
    """As a bond of LACP does while it chooses a port: what was not sent is no answer."""
    lab.there.ip("address", "add", f"{STRANGER}/24", "dev", "gw0")
    link = next(link for link in lab.here.call(kernel.read_network).links if link.name == "nic0")
    lab.here.ip("link", "set", "nic0", "down")
    threading.Timer(2.0, lab.here.ip, ("link", "set", "nic0", "up")).start()
    found = lab.here.call(lambda: neighbours.find_conflicts(link, [STRANGER], []))
    assert found == {STRANGER: mac_of(lab.there, "gw0")}


def test_a_link_that_never_takes_any(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bug and no conflict: whoever is to be reached isn't, and that proof says so."""
    monkeypatch.setattr(neighbours, "_SENDABLE", 0.2)
    link = next(link for link in lab.here.call(kernel.read_network).links if link.name == "nic0")
    lab.here.ip("link", "set", "nic0", "down")
    assert lab.here.call(lambda: neighbours.find_conflicts(link, [STRANGER], [])) == {}
    assert lab.here.call(lambda: neighbours.ask(link, MINE, GATEWAY, time.monotonic() + 0.3)) is None


def test_duplicate_address_detection_of_the_kernel(lab6: Lab) -> None:
    lab6.there.ip("-6", "addr", "add", "2001:db8::99/64", "dev", "gw0", "nodad")
    lab6.here.ip("-6", "addr", "add", "2001:db8::99/64", "dev", "nic0")
    error = lab6.failing(Target("none"), desired=document("", "2001:db8::99", ""), seconds=60)
    assert "address 2001:db8::99 through nic0: another host holds it" in str(error)


def test_who_holds_an_ipv6_address_that_networkmanager_has_taken_away(lab6: Lab) -> None:
    """It does so as soon as the kernel refuses one, and tries again: the answer names the other host."""
    lab6.there.ip("-6", "addr", "add", "2001:db8::99/64", "dev", "gw0", "nodad")
    error = lab6.failing(Target("none"), desired=document("", "2001:db8::99", ""), seconds=60)
    assert f"address 2001:db8::99 through nic0: another host holds it, {mac_of(lab6.there, 'gw0')}" in str(error)


def test_a_tentative_address_is_waited_for(lab6: Lab) -> None:
    lab6.here.run(["sysctl", "-qw", "net.ipv6.conf.nic0.dad_transmits=4"])  # seconds
    lab6.here.ip("-6", "addr", "add", "2001:db8::77/64", "dev", "nic0")
    (row,) = lab6.prove(Target("none"), desired=document("", "2001:db8::77", ""))
    assert row.ok and row.seconds > 0.3


def test_an_address_that_never_comes(lab: Lab) -> None:
    error = lab.failing(desired=document("192.0.2.11"))
    assert str(error).startswith("Proof failed: address 192.0.2.11 through nic0: not in force")


def test_an_address_that_comes_late(lab: Lab) -> None:
    lab.here.ip("addr", "flush", "dev", "nic0")
    threading.Timer(2.0, lab.here.ip, ("addr", "add", f"{MINE}/24", "dev", "nic0")).start()
    assert lab.prove(Target("none"))[0].seconds > 0.2


def test_one_unplugged_nic_of_two_is_passed_over_and_a_single_one_is_not(lab: Lab) -> None:
    cable(lab.here, lab.there, "nic1", "gw1")
    lab.there.ip("link", "set", "gw1", "down")
    two = document()
    two["interfaces"].append(document("203.0.113.9", nic="nic1")["interfaces"][0])
    rows = lab.prove(desired=two, seconds=4.0)
    assert [(row.interface, row.detail) for row in rows if "carrier" in row.detail] == [
        ("nic1", "no carrier, not checked")]
    error = lab.failing(desired={"interfaces": two["interfaces"][1:]})
    assert error.hint == "no cable, or the other end is down"


def test_no_dhcp_server(lab: Lab) -> None:
    lab.here.ip("addr", "flush", "dev", "nic0")
    desired = {"interfaces": [{"name": "nic0", "state": "up", "ipv4": {"enabled": True, "dhcp": True}}]}
    assert "no address from the network" in str(lab.failing(desired=desired))


def test_prove_addresses_alone(lab: Lab) -> None:
    rows = lab.here.call(lambda: prove_addresses(document(), deadline=time.monotonic() + 2))
    assert [str(row).partition(" (")[0] for row in rows] == [
        f"address {MINE}/24 through nic0: no other host holds it"]


# -- carrier, none --

def test_carrier_where_there_is_no_gateway(lab: Lab) -> None:
    assert lab.prove(desired=document(gateway=""))[-1].target == f"gateway {GATEWAY}"  # the kernel has one
    lab.here.ip("route", "del", "default")
    assert lab.prove(desired=document(gateway=""))[-1].target == "carrier"
    lab.there.ip("link", "set", "gw0", "down")
    error = lab.failing(desired=document("", gateway=""))
    assert "carrier through nic0: none" in str(error)


def test_a_document_without_interfaces_needs_nothing(lab: Lab) -> None:
    assert lab.prove(desired={"hostname": {"config": "a"}}) == []


# -- tcp, source --

def test_tcp_goes_out_of_the_new_interface_with_the_new_address(lab: Lab) -> None:
    """A NIC that the document does not name has a default route with a better metric."""
    cable(lab.here, lab.there, "old0", "gw1")
    lab.here.ip("addr", "add", "203.0.113.2/24", "dev", "old0")
    lab.there.ip("addr", "add", "203.0.113.1/24", "dev", "gw1")
    lab.here.ip("route", "del", "default")
    lab.here.ip("route", "add", "default", "via", "203.0.113.1", "metric", "10")
    lab.here.ip("route", "add", "default", "via", GATEWAY, "metric", "150")
    lab.serve(FAR, 8080)
    evidence = lab.prove(Target("tcp", f"{FAR}:8080"))[-1]
    assert (evidence.interface, evidence.detail) == ("nic0", f"connected to {FAR} from {MINE}")
    lab.there.ip("route", "add", "blackhole", f"{MINE}/32")  # no way back to the new address, one to the old
    error = lab.failing(Target("tcp", f"{FAR}:8080"), addresses_proven=True)
    assert f"tcp {FAR}:8080 through nic0: no answer" in str(error)
    assert "no way back to this address" in error.hint
    lab.there.ip("route", "del", "blackhole", f"{MINE}/32")
    # what goes out of nic0 is lost now; the same packet out of old0 would arrive
    lab.here.ip("neigh", "replace", GATEWAY, "lladdr", "02:00:00:00:00:01", "dev", "nic0", "nud", "permanent")
    assert "through nic0: no answer" in str(lab.failing(Target("tcp", f"{FAR}:8080"), addresses_proven=True))


def test_what_the_document_does_not_touch_may_carry_what_only_it_can_reach(lab: Lab) -> None:
    cable(lab.here, lab.there, "other0", "gw1")
    lab.here.ip("addr", "add", "203.0.113.2/24", "dev", "other0")
    lab.there.ip("addr", "add", "203.0.113.1/24", "dev", "gw1")
    lab.serve("203.0.113.1", 443)
    assert lab.prove(Target("tcp", "203.0.113.1:443"))[-1].interface == "other0"


@pytest.mark.parametrize(("target", "words", "hint"), [
    (Target("tcp", f"{FAR}:81"), "connection refused", "nothing listens on that port"),
    (Target("tcp", "10.9.9.9:81"), "no route to 10.9.9.9", "no route to it"),
    (Target("tcp", f"{STRANGER}:81"), "no answer", "firewall"),
])  # fmt: skip
def test_tcp_failures(lab: Lab, target: Target, words: str, hint: str) -> None:
    lab.here.ip("route", "del", "default")
    lab.here.ip("route", "add", FAR, "via", GATEWAY)
    error = lab.failing(target, addresses_proven=True, seconds=10 if "refused" in words else 1.0)
    assert words in str(error)
    assert hint in error.hint


def test_the_source_is_the_default_if_it_came_over_the_network(lab: Lab) -> None:
    lab.serve(FAR, 8000)
    evidence = lab.prove(source_url=f"http://user:pass@{FAR}:8000/{{uuid}}?token=1")[-1]
    assert evidence.target == f"source {FAR}:8000"
    lab.there.ip("addr", "del", f"{FAR}/32", "dev", "lo")
    error = lab.failing(source_url=f"https://{FAR}/x", addresses_proven=True)  # the gateway alone is not enough
    assert f"source {FAR}:443" in str(error)


def test_a_source_that_was_never_asked(lab: Lab) -> None:
    assert "did not come over the network" in str(lab.failing(Target("source")))


def test_a_source_on_this_machine(lab: Lab) -> None:
    listener = lab.here.listen("127.0.0.1", 8000)
    lab.sockets.append(listener)
    assert lab.prove(source_url="http://127.0.0.1:8000/")[-1].ok


def test_tcp_over_ipv6(lab6: Lab) -> None:
    lab6.serve(GATEWAY6, 443)
    evidence = lab6.prove(Target("tcp", f"[{GATEWAY6}]:443"), desired=document("", MINE6, ""))[-1]
    assert evidence.detail == f"connected to {GATEWAY6} from {MINE6}"


def test_a_service_that_comes_late(lab: Lab) -> None:
    threading.Timer(0.3, lab.serve, (FAR, 8000)).start()
    assert lab.prove(Target("tcp", f"{FAR}:8000"))[-1].ok


def test_targets_have_limits_of_their_own(lab: Lab) -> None:
    started = time.monotonic()
    lab.failing(Target("tcp", f"{STRANGER}:1", timeout=0.3), addresses_proven=True, seconds=60)
    assert time.monotonic() - started < 30


# -- http --

@pytest.mark.parametrize(("reply", "ok", "words"), [
    (b"HTTP/1.1 204 No Content\r\n\r\n", True, "answers 204"),
    (b"HTTP/1.0 302 Found\r\nLocation: http://198.51.100.9/\r\n\r\n", True, "answers 302"),  # not followed
    (b"HTTP/1.1 503 Busy\r\n\r\n", False, "answers 503"),
    (b"SSH-2.0-OpenSSH\r\n", False, "no HTTP answer: BadStatusLine"),
    (b"", False, "no HTTP answer"),
])
def test_http(lab: Lab, reply: bytes, ok: bool, words: str) -> None:
    lab.serve(FAR, 80, reply)
    target = Target("http", f"http://{FAR}/health?key=secret")
    if ok:
        evidence = lab.prove(target)[-1]
    else:
        evidence = lab.failing(target, addresses_proven=True, seconds=10).evidence[-1]
    assert evidence.ok is ok
    assert words in evidence.detail
    assert evidence.target == f"http http://{FAR}/health"


def test_an_answer_that_never_ends(lab: Lab) -> None:
    """A byte now and then resets the limit of a socket each time; the proof ends all the same."""
    listener = lab.there.listen(FAR, 80)
    lab.sockets.append(listener)

    def drip() -> None:
        with contextlib.suppress(OSError):
            peer, _ = listener.accept()
            peer.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
            while True:
                peer.sendall(b"a")
                time.sleep(0.1)

    threading.Thread(target=drip, daemon=True).start()
    started = time.monotonic()
    evidence = lab.failing(Target("http", f"http://{FAR}/?key=secret"), addresses_proven=True, seconds=3).evidence[-1]
    assert time.monotonic() - started < 40
    assert (evidence.target, evidence.detail) == (f"http http://{FAR}/", "its answer was not complete in time")


def test_https_to_something_else(lab: Lab) -> None:
    lab.serve(FAR, 443, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    error = lab.failing(Target("http", f"https://{FAR}/"), addresses_proven=True)
    assert "ssl" in str(error).lower()


# -- dns --

def test_names_are_asked_of_the_new_servers_over_the_new_interface(lab: Lab) -> None:
    asked = lab.serve_dns(FAR, {"ntp.example.com": "203.0.113.4"})
    lab.there.ip("addr", "add", f"{STRANGER}/24", "dev", "gw0")
    evidence = lab.prove(Target("dns", "ntp.example.com"), desired=document(servers=(STRANGER, FAR)))[-1]
    assert (evidence.interface, evidence.detail) == ("nic0", f"{FAR} says 203.0.113.4")
    assert set(asked) == {MINE}


@pytest.mark.parametrize(("names", "options", "words", "hint"), [
    ({}, {}, "does not know the name (NXDOMAIN)", "the name is wrong"),
    ({"ntp.example.com": "2001:db8::4"}, {}, "knows no address of it", "the name is wrong"),  # this NIC has IPv4 only
    ({}, {"code": 2}, "SERVFAIL", "cannot be reached"),
    ({}, {"code": 5}, "refuses us", "cannot be reached"),
    ({"ntp.example.com": "203.0.113.4"}, {"truncate": True}, "onnection refused", "cannot be reached"),  # no TCP
])
def test_dns_failures(lab: Lab, names: dict[str, str], options: dict[str, Any], words: str, hint: str) -> None:
    lab.serve_dns(FAR, names, **options)
    error = lab.failing(Target("dns", "ntp.example.com"), desired=document(servers=(FAR,)), addresses_proven=True)
    assert words in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(("refused", "knows"), [(dns.AAAA, "203.0.113.4"), (dns.A, "2001:db8::4")])
def test_dns_servers_that_refuse_one_type(lab: Lab, refused: int, knows: str) -> None:
    """Many do it with AAAA; the other answer is as good as ever."""
    lab.here.ip("address", "add", "2001:db8::2/64", "dev", "nic0", "nodad")
    lab.serve_dns(FAR, {"ntp.example.com": knows}, refused=refused)
    evidence = lab.prove(Target("dns", "ntp.example.com"), desired=document(ipv6="2001:db8::2", servers=(FAR,)),
                         addresses_proven=True)[-1]
    assert (evidence.ok, evidence.detail) == (True, f"{FAR} says {knows}")


def test_dns_servers_that_are_silent_or_none(lab: Lab) -> None:
    error = lab.failing(Target("dns", "a.example"), desired=document(servers=(STRANGER,)), addresses_proven=True)
    assert f"{STRANGER}: " in str(error)


def test_a_source_with_a_name(lab: Lab) -> None:
    lab.serve_dns(GATEWAY, {"cfg.example.com": FAR})
    lab.serve(FAR, 443)
    evidence = lab.prove(source_url="https://cfg.example.com/a", desired=document(servers=(GATEWAY,)))[-1]
    assert (evidence.target, evidence.ok) == ("source cfg.example.com:443", True)


def test_dns_over_ipv6(lab6: Lab) -> None:
    lab6.serve_dns(GATEWAY6, {"a.example": "2001:db8::4"})
    desired = document("", MINE6, "", servers=(GATEWAY6,))
    assert "2001:db8::4" in lab6.prove(Target("dns", "a.example"), desired=desired)[-1].detail


# -- pure parts --

@pytest.mark.parametrize("name", ["", ".", "a..b", "x" * 64 + ".example"])
def test_names_that_cannot_be_asked(name: str) -> None:
    with pytest.raises(ValueError):
        dns.make_query(name, dns.A, 1)


def test_a_question() -> None:
    assert dns.make_query("a.example.", dns.A, 0x1234) == (
        b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01")


@pytest.mark.parametrize("cut", range(12, 60))
def test_broken_answers_are_an_error_and_no_crash(cut: int) -> None:
    whole = dns_reply(dns.make_query("a.example", dns.A, 1), {"a.example": "192.0.2.1"})
    with contextlib.suppress(ValueError):
        assert dns.parse_answer(whole[:cut], dns.A) in ([], ["192.0.2.1"])
    assert dns.parse_answer(whole, dns.A) == ["192.0.2.1"]


def test_aliases_are_skipped() -> None:
    question = dns.make_query("a.example", dns.A, 1)
    alias = b"\xc0\x0c" + struct.pack("!HHIH", 5, 1, 60, 4) + b"\x01b\xc0\x0e"
    address = b"\x01b\xc0\x0e" + struct.pack("!HHIH", 1, 1, 60, 4) + b"\xc0\0\x02\x07"
    answer = question[:2] + struct.pack("!HHHHH", 0x8180, 1, 2, 0, 0) + question[12:] + alias + address
    assert dns.parse_answer(answer, dns.A) == ["192.0.2.7"]


def test_hosts_and_resolv_conf() -> None:
    hosts = "127.0.0.1 localhost\n# 192.0.2.9 cfg\n192.0.2.8\tcfg.example.com CFG # x\n\n"
    assert dns.in_hosts("cfg", hosts) == ["192.0.2.8"]
    assert dns.in_hosts("other", hosts) == []
    assert dns.servers_in("search a\nnameserver 192.0.2.1\nnameserver\noptions x\n") == ["192.0.2.1"]


def test_what_a_desired_state_says() -> None:
    wanted = read_wanted({
        "interfaces": [
            {"name": "a", "ipv4": {"enabled": True, "address": [
                {"ip": "192.0.2.1", "prefix-length": 24},
                {"ip": "192.0.2.2", "prefix-length": 24, "valid-life-time": "300sec"}]}},  # of a former lease
            {"name": "b", "state": "down", "ipv4": {"address": [{"ip": "192.0.2.3", "prefix-length": 24}]}},
            {"name": "c", "ipv6": {"enabled": True, "autoconf": True}},
            {"name": "d", "ipv4": {"enabled": False, "address": [{"ip": "192.0.2.4", "prefix-length": 24}]}},
            {"name": "e", "ipv6": {"enabled": True, "address": [{"ip": "2001:DB8::0:1", "prefix-length": 64}]}},
        ],
        "routes": {"config": [
            {"state": "absent", "destination": "0.0.0.0/0", "next-hop-address": "192.0.2.9",
             "next-hop-interface": "a"},
            {"destination": "0.0.0.0/0", "next-hop-address": "192.0.2.254", "next-hop-interface": "a"},
            {"destination": "10.0.0.0/8", "next-hop-address": "192.0.2.253", "next-hop-interface": "a"},
            {"destination": "::/0", "next-hop-address": "::", "next-hop-interface": "e"},  # on the link
        ]},
    })  # fmt: skip
    assert wanted.interfaces == ("a", "c", "d", "e")
    assert wanted.static == (Static("a", "192.0.2.1", 24), Static("e", "2001:db8::1", 64))
    assert wanted.dynamic == ("c",)
    assert wanted.gateways == (Gateway("a", "192.0.2.254"),)


@pytest.mark.parametrize("nothing", [{}, {"interfaces": None, "routes": None, "dns-resolver": None},
                                     {"routes": {"config": None}, "dns-resolver": {"config": None}}])
def test_empty_sections(nothing: dict[str, Any]) -> None:
    assert read_wanted(nothing).interfaces == ()


def test_policy_routing_and_several_next_hops(lab: Lab) -> None:
    cable(lab.here, lab.there, "nic1", "gw1")
    lab.here.ip("addr", "add", "203.0.113.2/24", "dev", "nic1")
    lab.here.ip("route", "add", "default", "via", "203.0.113.1", "dev", "nic1", "table", "200")
    lab.here.ip("route", "add", "10.0.0.0/8", "nexthop", "via", GATEWAY, "nexthop", "via", "203.0.113.1")
    network = lab.here.call(kernel.read_network)
    assert {(network.name(route.index), route.gateway) for route in network.routes if route.prefix == 8} == {
        ("nic0", GATEWAY), ("nic1", "203.0.113.1")}
    way = find_way("8.8.8.8", network, ["nic1"])  # its only way there is in another table
    assert way and (way.interface, way.source) == ("nic1", "203.0.113.2")
    way = find_way("8.8.8.8", network, ["nic0", "nic1"])
    assert way and way.interface == "nic0"
