"""The proof: a configuration that carries no traffic is taken back, and the machine can be reached."""

from __future__ import annotations

import pytest

from configserver import ConfigServer
from container import Machine
from namespaces import wait_until
from outcome import Outcome
from seed import NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

PROVE_GATEWAY = "    proof: [gateway]\n"


pytestmark = pytest.mark.usefixtures("falling")


def assert_taken_back(world: World, machine: Machine, boot: Outcome) -> None:
    """On the lease again, as if nothing had been: reachable from outside, nothing of ours on disk."""
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 75
    assert boot.status["rung"] in ("left-as-found", "dhcp")
    address = boot.addresses(NIC)[0].partition("/")[0]
    world.namespace.run(["ping", "-c", "1", "-W", "10", address])
    internal = machine.sh("cat /var/lib/NetworkManager/NetworkManager-intern.conf", check=False).stdout
    assert "global-dns" not in internal
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    assert boot.failed_units == ["homeport.service"]


def test_gateway_silent(world: World, server: ConfigServer, machine: Machine) -> None:
    """The gateway does not answer ARP: taken back; the reason names the gateway and the interface."""
    world.dhcp.start()
    world.silence_gateway()
    url = server.put(SEED, seed_document(extra=PROVE_GATEWAY))
    boot = machine.boot(f"homeport.config={url}", "homeport.proof-timeout=8s")
    assert_taken_back(world, machine, boot)
    assert "192.168.122.1" in boot.status["reason"]
    assert NIC in boot.status["reason"]


def test_gateway_answers(world: World, server: ConfigServer, machine: Machine) -> None:
    """The same document with a gateway that lives: the test above fails for its reason only."""
    world.dhcp.start()
    url = server.put(SEED, seed_document(extra=PROVE_GATEWAY))
    boot = machine.boot(f"homeport.config={url}")
    assert_seed(machine, boot)
    assert any("192.168.122.1" in line for line in boot.status["proof"])


def test_source_unreachable(world: World, server: ConfigServer, machine: Machine) -> None:
    """The server answers the leased address and not the assigned one: no leftover of the old may prove it."""
    world.dhcp.start()
    world.cut_off("192.168.122.150")
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", "homeport.proof-timeout=8s")
    assert_taken_back(world, machine, boot)
    assert "192.168.122.2" in boot.status["reason"]


def test_address_taken(world: World, server: ConfigServer, machine: Machine) -> None:
    """Another host has the address: found out, taken back, and the other host was not disturbed."""
    world.dhcp.start()
    world.host("192.168.122.150", mac="52:54:00:aa:bb:cc")
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", "homeport.proof-timeout=8s")
    assert_taken_back(world, machine, boot)
    assert "192.168.122.150" in boot.status["reason"]
    # Told apart from an address that merely did not come up: the reason says who has it.
    assert "52:54:00:aa:bb:cc" in boot.status["reason"]
    world.namespace.run(["ping", "-c", "1", "-W", "10", "192.168.122.150"])
    (neighbour,) = world.namespace.run(["ip", "neigh", "show", "192.168.122.150"]).splitlines()
    assert "52:54:00:aa:bb:cc" in neighbour


def test_refresh_to_a_dead_gateway(world: World, seeded: Seeded) -> None:
    """A machine with an assignment is given one that does not work: it keeps the one it has, on disk too."""
    machine = seeded.machine
    seeded.assign(
        seed_document("192.168.122.151", extra="    proof: [gateway]\n").replace(
            "next-hop-address: 192.168.122.1\n", "next-hop-address: 192.168.122.254\n"
        )
    )
    machine.write("/etc/homeport/homeport.conf", "ProofTimeout=4s\n")
    done = machine.run(["homeport", "refresh"], check=False)
    assert done.status == 75, done
    assert_seed(machine, machine.look())
    assert "192.168.122.151" not in machine.read("/var/lib/homeport/assigned.yaml")
    seeded.server.stop()
    world.dhcp.stop()
    assert_seed(machine, seeded.reboot())


def test_server_declares_what_must_be_reached(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """tcp, http and dns targets, all of them good."""
    world.dhcp.start()
    health = server.put("/health", "fine\n")
    proof = f"[source, gateway, {{tcp: '192.168.122.2:80'}}, {{http: '{health}'}}, {{dns: server.test}}]"
    url = server.put(SEED, seed_document(extra=f"    proof: {proof}\n"))
    boot = machine.boot(f"homeport.config={url}")
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert len(boot.status["proof"]) >= 5
    assert server.asked("/health")[-1].client == "192.168.122.150"


def test_networkmanager_restarted_in_the_window(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """NetworkManager is restarted while the new configuration is on trial: it does not stay unproven."""
    world.dhcp.start()
    # The proof hangs on this page until we have done our mischief.
    slow = server.put("/slow", half_open=True)
    url = server.put(SEED, seed_document(extra=f"    proof: [{{http: '{slow}'}}]\n"))
    machine.start(f"homeport.config={url}", "homeport.proof-timeout=15s")
    wait_until(lambda: server.asked("/slow"), what="the proof to begin")
    machine.run(["systemctl", "restart", "NetworkManager.service"])
    boot = machine.wait_online(90)
    assert "192.168.122.150/24" not in boot.addresses(NIC)
    assert boot.status["exit"] == 75
    assert not machine.exists("/var/lib/homeport/assigned.yaml")
    machine.power_off()
    server.put(SEED, status=404)
    assert_on_dhcp(machine.boot(f"homeport.config={url}"))
