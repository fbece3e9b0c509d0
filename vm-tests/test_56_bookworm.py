"""The same product on Debian 12, whose NetworkManager is 1.42: systemd 252, Python 3.11, other traps.

In 1.42 the global DNS that nmstate sets is kept on disk at once, is outside of any checkpoint, and hides every
profile's own servers: what is left of it is a machine on DHCP that asks the name server of a network that it left.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from trees import prepared
from world import World

pytestmark = pytest.mark.skipif(
    "GUEST_bookworm" not in prepared(), reason="no Debian 12 to boot (run: tools/setup guest-bookworm)")
KEPT_BY_NETWORKMANAGER = "/var/lib/NetworkManager/NetworkManager-intern.conf"


@pytest.fixture
def machine(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine(tree="bookworm")


def assert_no_global_dns(machine: Machine) -> None:
    """Neither in the running NetworkManager, nor where the next one would read it."""
    assert "global-dns" not in machine.sh(f"cat {KEPT_BY_NETWORKMANAGER}", check=False).stdout
    asked = machine.run(["busctl", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                         "org.freedesktop.NetworkManager", "GlobalDnsConfiguration"])  # fmt: skip
    assert asked.stdout == "a{sv} 0\n"


def test_assigned_then_alone_then_on_dhcp_by_mode(
    world: World, server: ConfigServer, machine: Machine, falling: None
) -> None:
    """One machine's life: assigned by URL, again with nobody there, on a lease in recovery, forgotten by reset."""
    world.dhcp.start()
    seeded = Seeded(machine, server, server.put(SEED, seed_document()))
    assert "1.42" in machine.run(["NetworkManager", "--version"]).stdout
    assert (seeded.first.status["rung"], seeded.first.status["exit"]) == ("assigned", 0)
    assert_no_global_dns(machine)

    server.stop()
    world.dhcp.stop()
    boot = seeded.reboot()
    assert_seed(machine, boot)
    assert (boot.status["exit"], boot.status["fetched"], boot.status["changed"]) == (0, False, False)
    assert boot.failed_units == []

    world.dhcp.start()
    boot = seeded.reboot("homeport.mode=recovery")
    assert_by_mode(boot, "recovery", keyfiles=False)
    assert_no_global_dns(machine)

    # Straight into reset: what recovery left is an assignment still.
    boot = seeded.reboot("homeport.mode=reset")
    assert_by_mode(boot, "reset", keyfiles=True)
    assert_no_global_dns(machine)
    assert not machine.exists("/var/lib/homeport/assigned.yaml")


def assert_by_mode(boot: Outcome, mode: str, *, keyfiles: bool) -> None:
    """On a lease with the lease's route and name server, and nothing is wrong."""
    assert_on_dhcp(boot, keyfiles=keyfiles)
    assert (boot.status["exit"], boot.status["rung"], boot.status["mode"]) == (0, "dhcp", mode)
    assert boot.failed_units == []


def assert_taken_back(world: World, machine: Machine, boot: Outcome) -> None:
    """On the lease again, as if nothing had been: reachable from outside, nothing of ours on disk."""
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 75
    address = boot.addresses(NIC)[0].partition("/")[0]
    world.namespace.run(["ping", "-c", "1", "-W", "10", address])
    assert_no_global_dns(machine)
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    assert boot.failed_units == ["homeport.service"]


def test_gateway_silent(world: World, server: ConfigServer, machine: Machine, falling: None) -> None:
    """A configuration without a living gateway is taken back, the global DNS too, which no checkpoint covers."""
    world.dhcp.start()
    world.silence_gateway()
    url = server.put(SEED, seed_document(extra="    proof: [gateway]\n"))
    boot = machine.boot(f"homeport.config={url}", "homeport.proof-timeout=8s")
    assert_taken_back(world, machine, boot)
    assert "192.168.122.1" in boot.status["reason"] and NIC in boot.status["reason"]


def test_address_taken(world: World, server: ConfigServer, machine: Machine, falling: None) -> None:
    """Another host has the address: who it is stands in the reason, and it was not disturbed."""
    world.dhcp.start()
    world.host(ADDRESS.partition("/")[0], mac="52:54:00:aa:bb:cc")
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", "homeport.proof-timeout=8s")
    assert_taken_back(world, machine, boot)
    assert "192.168.122.150" in boot.status["reason"] and "52:54:00:aa:bb:cc" in boot.status["reason"]
    world.namespace.run(["ping", "-c", "1", "-W", "10", "192.168.122.150"])
    (neighbour,) = world.namespace.run(["ip", "neigh", "show", "192.168.122.150"]).splitlines()
    assert "52:54:00:aa:bb:cc" in neighbour


def test_refreshed_to_a_dead_gateway(
    world: World, server: ConfigServer, machine: Machine, falling: None
) -> None:
    """A running machine is given what does not work: it keeps what it has, and its own name server with it."""
    world.dhcp.start()
    seeded = Seeded(machine, server, server.put(SEED, seed_document()))
    dead = seed_document("192.168.122.151", extra="    proof: [gateway]\n")
    dead = dead.replace("address: 192.168.122.1\n", "address: 192.168.122.254\n")
    seeded.assign(dead.replace("            - 192.168.122.1\n", "            - 192.168.122.9\n"))
    done = machine.run(["homeport", "refresh", "--proof-timeout", "8s"], check=False)
    assert done.status == 75, done
    assert_seed(machine, machine.look())
    assert_no_global_dns(machine)
