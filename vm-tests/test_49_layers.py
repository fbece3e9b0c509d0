"""Interfaces upon interfaces, and a site that gives addresses by DHCPv6: traffic goes where it should."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from container import Machine, Nic
from mischief import patient_dhcp
from namespaces import NetworkNamespace
from outcome import Outcome
from seed import ADDRESS, NIC, default_routes
from world import Lan, World

LAYERS = """\
proof: [gateway]
config:
  interfaces:
  - {name: enp1s0, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}
  - {name: br0, type: linux-bridge, state: up, ipv6: {enabled: false},
     bridge: {options: {stp: {enabled: false}}, port: [{name: enp1s0}]},
     ipv4: {enabled: true, address: [{ip: 192.168.122.150, prefix-length: 24}]}}
  - {name: enp2s0, type: ethernet, state: up, ipv6: {enabled: false},
     ipv4: {enabled: true, address: [{ip: 10.49.0.10, prefix-length: 24}]}}
  - {name: mv0, type: mac-vlan, state: up, ipv6: {enabled: false},
     mac-vlan: {base-iface: enp2s0, mode: bridge, promiscuous: true},
     ipv4: {enabled: true, address: [{ip: 10.49.0.20, prefix-length: 24}]}}
  routes:
    config:
    - {destination: 0.0.0.0/0, next-hop-address: 192.168.122.1, next-hop-interface: br0, metric: 150}
  dns-resolver: {config: {server: [192.168.122.1]}}
"""


def test_bridge_and_macvlan(world: World, make_machine: Callable[..., Machine]) -> None:
    """A guest behind the bridge reaches the LAN; the macvlan answers with a MAC of its own. After a reboot, too."""
    other = world.add_lan("layers", ["10.49.0.1/24"])
    machine = make_machine(nics=(Nic("enp1s0"), Nic("enp2s0", lan=other)))
    # Linux would answer for any of its addresses on any of its cards.
    machine.write("/etc/sysctl.d/50-arp.conf", "net.ipv4.conf.all.arp_ignore=1\n")
    for _ in range(2):
        boot = machine.boot(credentials={"homeport.assignment": LAYERS})
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.addresses("br0") == [ADDRESS]
        assert boot.addresses("enp1s0") == []
        assert default_routes(boot) == [("192.168.122.1", "br0", 150, "main")]
        assert boot.failed_units == []
        assert_bridge_forwards(machine)
        macs = [answering_mac(world, address) for address in ("10.49.0.10", "10.49.0.20")]
        assert macs == [mac_inside(machine, nic) for nic in ("enp2s0", "mv0")]
        assert macs[0] != macs[1]
        machine.power_off()
    assert boot.status["steps"][0]["name"] == "fast path"


def assert_bridge_forwards(machine: Machine) -> None:
    """As a virtual machine on it would: one end of a cable in the bridge, the other in a namespace of its own."""
    assert machine.namespace
    with NetworkNamespace() as guest:
        plug_guest(machine.namespace, guest)
        guest.run(["ping", "-c", "1", "-W", "5", "192.168.122.2"])
        guest.run(["ping", "-c", "1", "-W", "5", "192.168.122.150"])
        machine.namespace.ip("link", "delete", "tap0")


def plug_guest(machine: NetworkNamespace, guest: NetworkNamespace) -> None:
    machine.ip("link", "add", "tap0", "type", "veth", "peer", "name", "eth0", "netns", guest.path)
    machine.ip("link", "set", "tap0", "master", "br0", "up")
    guest.ip("address", "add", "192.168.122.77/24", "dev", "eth0")
    guest.ip("link", "set", "eth0", "up")


def test_a_guest_stays_on_the_bridge(world: World, make_machine: Callable[..., Machine]) -> None:
    """libvirt's or a container's end of a cable in a bridge of ours: neither a refresh nor a change takes it out."""
    other = world.add_lan("layers", ["10.49.0.1/24"])
    machine = make_machine(nics=(Nic("enp1s0"), Nic("enp2s0", lan=other)))
    machine.boot(credentials={"homeport.assignment": LAYERS})
    assert machine.namespace
    with NetworkNamespace() as guest:
        plug_guest(machine.namespace, guest)
        machine.write("/etc/homeport/changed.yaml", LAYERS.replace("192.168.122.150", "192.168.122.151"))
        machine.run(["homeport", "refresh"])
        assert machine.look().status["changed"] is False
        machine.run(["homeport", "apply", "/etc/homeport/changed.yaml"])
        assert machine.look().addresses("br0") == ["192.168.122.151/24"]
        guest.run(["ping", "-c", "1", "-W", "5", "192.168.122.151"])
        guest.run(["ping", "-c", "1", "-W", "5", "192.168.122.2"])
        # The guest's is not ours to keep.
        assert "tap0" not in machine.sh("cat /etc/NetworkManager/system-connections/*").stdout
        machine.namespace.ip("link", "delete", "tap0")


def answering_mac(world: World, address: str) -> str:
    """Which card answers for the address."""
    world.namespace.run(["ping", "-c", "1", "-W", "10", address])
    return world.namespace.run(["ip", "neigh", "show", address]).split("lladdr ")[1].split()[0]


def mac_inside(machine: Machine, nic: str) -> str:
    return machine.read(f"/sys/class/net/{nic}/address").strip()


# DHCPv6

PREFIX = "2001:db8:49:"
BY_DHCPV6 = """\
proof: [source, gateway]
config:
  interfaces:
  - name: enp1s0
    type: ethernet
    state: up
    ipv4: {enabled: false}
    ipv6: {enabled: true, dhcp: true, autoconf: true, auto-dns: true, auto-gateway: true, auto-routes: true}
"""


@pytest.fixture
def managed(world: World) -> Lan:
    """A LAN without IPv4 whose router says that addresses come by DHCPv6, and only so."""
    lan = world.add_lan("managed", [f"{PREFIX}:{last}/64" for last in ("1", "2", "53")])
    lan.dhcp.start(dns="", router="", extra=[
        "--enable-ra", f"--dhcp-range={PREFIX}:100,{PREFIX}:120,64,120",
        f"--dhcp-option=option6:dns-server,[{PREFIX}:53]"])  # fmt: skip
    return lan


def test_dhcpv6(world: World, managed: Lan, make_machine: Callable[..., Machine]) -> None:
    """The first lease and the assigned one are IPv6's; the server has an IPv6 address; later nobody asks it."""
    server = world.serve(f"{PREFIX}:2")
    machine = make_machine(nics=(Nic(NIC, lan=managed),))
    config = f"homeport.config={server.put('/assign/six.yaml', BY_DHCPV6)}"
    patient_dhcp(machine)  # IPv4's is not waited for
    assert_leased(machine.boot(config))
    server.stop()
    machine.power_off()
    assert_leased(machine.boot(config))


def assert_leased(boot: Outcome) -> None:
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
    (address,) = boot.addresses(NIC, "inet6")
    assert address.startswith(f"{PREFIX}:1"), address
    assert address.endswith("/128")
    assert boot.addresses(NIC) == []
    assert boot.resolv == [f"{PREFIX}:53"]
    assert [route["protocol"] for route in boot.routes(family="inet6") if "gateway" in route] == ["ra"]
