"""Sites of other shapes: IPv6 alone, no DHCP at all, two uplinks, an overlay."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from container import Machine, Nic
from mischief import patient_dhcp
from namespaces import NetworkNamespace
from outcome import Outcome
from seed import NIC, assert_seed, seed_document
from world import Lan, World

SIX = "2001:db8:122:"
DOCUMENT = "/assign/shape.yaml"

IPV6_ONLY = f"""\
proof: [source, gateway]
config:
  interfaces:
  - name: enp1s0
    type: ethernet
    state: up
    ipv4: {{enabled: false}}
    ipv6: {{enabled: true, dhcp: false, autoconf: false, address: [{{ip: '{SIX}:150', prefix-length: 64}}]}}
  routes:
    config:
    - {{destination: '::/0', next-hop-address: '{SIX}:1', next-hop-interface: enp1s0, metric: 150}}
  dns-resolver: {{config: {{server: ['{SIX}:53']}}}}
"""


@pytest.fixture
def six(world: World) -> Lan:
    """A LAN without IPv4: a router that advertises the prefix, and a server."""
    lan = world.add_lan("six", [f"{SIX}:{last}/64" for last in ("1", "2", "53")])
    lan.dhcp.start(dns="", router="", extra=[
        "--enable-ra", f"--dhcp-range={SIX}:,ra-stateless,64,120", f"--dhcp-option=option6:dns-server,[{SIX}:53]"])
    return lan


def test_ipv6_alone(world: World, six: Lan, make_machine: Callable[..., Machine], falling: None) -> None:
    """By router advertisement to a server with an IPv6 address; then static; alone; and never to a dead gateway."""
    server = world.serve(f"{SIX}:2")
    url = server.put(DOCUMENT, IPV6_ONLY)
    assert url.startswith("http://[2001:db8:122::2]/")
    machine = make_machine(nics=(Nic(NIC, lan=six),))
    patient_dhcp(machine)  # IPv4's is not waited for
    boot = machine.boot(f"homeport.config={url}")
    assert_ipv6_only(boot)
    proof = " ".join(boot.status["proof"])
    assert f"{SIX}:1" in proof and f"{SIX}:2" in proof

    # The new gateway is not there: neighbour discovery says so, and all stays as it was.
    server.put(DOCUMENT, IPV6_ONLY.replace(f"{SIX}:1'", f"{SIX}:254'").replace(f"{SIX}:150", f"{SIX}:151"))
    done = machine.run(["homeport", "refresh", "--proof-timeout", "3s"], check=False)
    assert done.status == 75, done
    outcome = machine.look()
    assert f"{SIX}:254" in outcome.status["reason"] and NIC in outcome.status["reason"]
    assert f"{SIX}:150/64" in outcome.addresses(NIC, "inet6")
    assert f"{SIX}:151/64" not in outcome.addresses(NIC, "inet6")

    # Somebody else has the address: found by neighbour discovery, which tells who.
    world.host(f"{SIX}:152", mac="52:54:00:aa:bb:cc", lan=six)
    server.put(DOCUMENT, IPV6_ONLY.replace(f"{SIX}:150", f"{SIX}:152"))
    assert machine.run(["homeport", "refresh"], check=False).status == 75
    assert "52:54:00:aa:bb:cc" in machine.look().status["reason"]

    server.stop()
    six.dhcp.stop()
    machine.power_off()
    boot = machine.boot(f"homeport.config={url}")
    assert_ipv6_only(boot)
    assert boot.status["fetched"] is False


def assert_ipv6_only(boot: Outcome) -> None:
    """The static address and the static route alone: nothing of an advertisement, nothing of IPv4."""
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
    assert boot.addresses(NIC, "inet6") == [f"{SIX}:150/64"]
    assert boot.addresses(NIC) == []
    routes = [(route.get("gateway"), route["metric"]) for route in boot.routes(family="inet6") if "gateway" in route]
    assert routes == [(f"{SIX}:1", 150)]
    assert boot.resolv == [f"{SIX}:53"]


def test_no_dhcp_and_a_credential(world: World, machine: Machine) -> None:
    """A site where every address is static: nobody is waited for who is not there."""
    patient_dhcp(machine)
    boot = machine.boot(credentials={"homeport.assignment": seed_document()})
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert any("192.168.122.1" in line for line in boot.status["proof"])
    assert boot.failed_units == []


# Two uplinks

ELSEWHERE = "203.0.113.9"
UPLINKS = """\
proof: [gateway]
config:
  interfaces:
  - {name: enp1s0, type: ethernet, state: up, ipv6: {enabled: false},
     ipv4: {enabled: true, address: [{ip: 10.1.1.10, prefix-length: 24}]}}
  - {name: enp2s0, type: ethernet, state: up, ipv6: {enabled: false},
     ipv4: {enabled: true, address: [{ip: 10.1.2.10, prefix-length: 24}]}}
  routes:
    config:
    - {destination: 0.0.0.0/0, next-hop-address: 10.1.1.1, next-hop-interface: enp1s0, metric: 100}
    - {destination: 0.0.0.0/0, next-hop-address: 10.1.1.1, next-hop-interface: enp1s0, table-id: 101}
    - {destination: 0.0.0.0/0, next-hop-address: 10.1.2.1, next-hop-interface: enp2s0, table-id: 102}
  route-rules:
    config:
    - {ip-from: 10.1.1.10/32, route-table: 101, priority: 1001}
    - {ip-from: 10.1.2.10/32, route-table: 102, priority: 1002}
"""


def test_two_uplinks(world: World, make_machine: Callable[..., Machine]) -> None:
    """What comes from an address leaves by the uplink that it belongs to; after a reboot, too."""
    first, second = world.add_lan("uplink1", ["10.1.1.1/24"]), world.add_lan("uplink2", ["10.1.2.1/24"])
    world.namespace.ip("address", "replace", f"{ELSEWHERE}/32", "dev", "lo")
    machine = make_machine(nics=(Nic("enp1s0", lan=first), Nic("enp2s0", lan=second)))
    for _ in range(2):
        boot = machine.boot(credentials={"homeport.assignment": UPLINKS})
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert leaves_by(machine, "10.1.1.10") == "enp1s0"
        assert leaves_by(machine, "10.1.2.10") == "enp2s0"
        machine.power_off()
    assert boot.status["steps"][0]["name"] == "fast path"


def leaves_by(machine: Machine, address: str) -> str:
    """The NIC through which pings from this address really go out, and their answers come back."""
    before = {nic: sent(machine, nic) for nic in ("enp1s0", "enp2s0")}
    machine.sh(f"ping -c 20 -i 0.01 -W 10 -q -I {address} {ELSEWHERE}")
    (through,) = [nic for nic, count in before.items() if sent(machine, nic) - count >= 20]
    return through


def sent(machine: Machine, nic: str) -> int:
    return int(machine.read(f"/sys/class/net/{nic}/statistics/tx_packets"))


# An overlay

OVERLAY = """\
        - {name: vx42, type: vxlan, state: up, ipv6: {enabled: false},
           vxlan: {id: 42, base-iface: enp1s0, remote: 192.168.122.1, destination-port: 4789},
           ipv4: {enabled: true, address: [{ip: 10.42.0.10, prefix-length: 24}]}}
"""


@pytest.fixture
def far_end(world: World) -> Iterator[NetworkNamespace]:
    """The other end of a tunnel from 192.168.122.150; 10.42.0.1 in it."""
    try:
        world.namespace.ip("link", "add", "vx42", "type", "vxlan", "id", "42", "dstport", "4789",
                           "local", "192.168.122.1", "remote", "192.168.122.150", "dev", "lan")  # fmt: skip
    except RuntimeError as error:
        pytest.skip(f"this kernel has no VXLAN: {error}")
    world.namespace.ip("address", "add", "10.42.0.1/24", "dev", "vx42")
    world.namespace.ip("link", "set", "vx42", "up")
    yield world.namespace
    world.namespace.ip("link", "delete", "vx42")


def test_a_tunnel(world: World, far_end: NetworkNamespace, machine: Machine, falling: None) -> None:
    """VXLAN over the assigned address, proven by what only answers inside; another number is another network."""
    world.dhcp.start()
    inside = world.serve("10.42.0.1").put("/inside", "here\n")
    assignment = seed_document(extra=f"    proof: [gateway, {{http: '{inside}'}}]\n").replace(
        "      interfaces:\n", "      interfaces:\n" + OVERLAY)
    wrong = assignment.replace("id: 42,", "id: 43,")
    boot = machine.boot("homeport.proof-timeout=3s", credentials={"homeport.assignment": wrong})
    assert boot.status["exit"] == 75
    assert "10.42.0.1" in boot.status["reason"]
    assert "vx42" not in machine.run(["ip", "-br", "link"]).stdout
    machine.power_off()
    for _ in range(2):
        boot = machine.boot(credentials={"homeport.assignment": assignment})
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.addresses("vx42") == ["10.42.0.10/24"]
        machine.run(["ping", "-c", "1", "-W", "10", "-I", "vx42", "10.42.0.1"])
        machine.power_off()
