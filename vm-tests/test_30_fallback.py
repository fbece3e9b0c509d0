"""When the server is dead, or says no, or says nonsense: the ladder, its reasons, and its deadlines."""

from __future__ import annotations

import pytest

from configserver import ConfigServer
from container import Machine
from mischief import no_refresh
from namespaces import wait_until
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

LEAST = ("left-as-found", "dhcp")

# Seconds: half of what asking for a configuration may take where nothing else is said.
LONG = 60

BAD = seed_document().replace("prefix-length: 24", "prefix-length: 99")


pytestmark = pytest.mark.usefixtures("falling")


def test_dead_server_on_a_new_machine(world: World, server: ConfigServer, machine: Machine) -> None:
    """Refused connections until the deadline; then DHCP, said on the console, and the boot goes on."""
    world.dhcp.start()
    server.stop()
    boot = machine.boot(f"homeport.config={server.url}{SEED}", "homeport.deadline=5s")
    assert seconds_of_fetch(boot) < LONG
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert boot.status["rung"] in LEAST
    assert "192.168.122.2" in boot.status["reason"]
    assert set(boot.failed_units) <= {"homeport.service"}
    machine.says("homeport:")


def test_silent_server(world: World, server: ConfigServer, machine: Machine) -> None:
    """It takes the connection and says nothing, for ever: the deadline is the deadline."""
    world.dhcp.start()
    no_refresh(machine)
    url = server.put(SEED, half_open=True)
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=6s", "homeport.header-timeout=2s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert 3 < seconds_of_fetch(boot) < LONG
    assert len(server.asked(SEED)) >= 2


def test_not_found(world: World, server: ConfigServer, machine: Machine) -> None:
    """404 is an answer: asked once, no waiting for the deadline."""
    world.dhcp.start()
    no_refresh(machine)
    boot = machine.boot(f"homeport.config={server.url}{SEED}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert len(server.asked(SEED)) == 1
    assert seconds_of_fetch(boot) < LONG


def test_overloaded_server_recovers(world: World, server: ConfigServer, machine: Machine) -> None:
    """503 with Retry-After is a reason to come again, not to give up, and not before it was said."""
    world.dhcp.start()
    url = server.put(SEED, status=503, retry_after=2)
    machine.start(f"homeport.config={url}")
    _wait_for_requests(server, 1)
    server.put(SEED, seed_document())
    boot = machine.wait_online()
    assert_seed(machine, boot)
    first, second = server.asked(SEED)[:2]
    assert (first.status, second.status) == (503, 200)
    assert second.at - first.at >= 2


def test_overloaded_for_ever(world: World, server: ConfigServer, machine: Machine) -> None:
    world.dhcp.start()
    no_refresh(machine)
    url = server.put(SEED, status=503)
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=10s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert "503" in boot.status["reason"]
    # Backed off from 0.25 s on, doubling: a handful, not a storm.
    assert 3 <= len(server.asked(SEED)) <= 8


def test_no_dhcp_and_no_server(world: World, server: ConfigServer, machine: Machine) -> None:
    """Nothing at all: we end in our time, and the boot goes on without emergency mode."""
    server.stop()
    # NetworkManager's own wait for somebody's DHCP is a minute more, and not ours.
    machine.write("/etc/systemd/system/NetworkManager-wait-online.service.d/off.conf",
                  "[Service]\nExecStart=\nExecStart=/bin/true\n")  # fmt: skip
    boot = machine.boot(f"homeport.config={server.url}{SEED}", "homeport.deadline=3s")
    assert boot.addresses(NIC) == []
    assert boot.status["exit"] == 69


def test_seed_document_on_the_medium(world: World, server: ConfigServer, machine: Machine) -> None:
    """No server, never an assignment: the document baked into the image, and it is not persisted."""
    server.stop()
    machine.write("/usr/lib/homeport/seed.yaml", seed_document("192.168.122.160"))
    boot = machine.boot(f"homeport.config={server.url}{SEED}", "homeport.deadline=3s")
    assert boot.addresses(NIC) == ["192.168.122.160/24"]
    assert boot.status["rung"] == "seed"
    assert boot.status["exit"] == 69
    assert not machine.exists("/var/lib/homeport/assigned.yaml")


def test_bad_document_on_a_new_machine(world: World, server: ConfigServer, machine: Machine) -> None:
    """Exit 65, each complaint with its path; the network is what it was."""
    world.dhcp.start()
    url = server.put(SEED, BAD)
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65
    assert boot.status["rung"] in LEAST
    complaint = boot.status["complaints"][0]
    assert complaint["path"] == "spec.network.config.interfaces[0].ipv4.address[0].prefix-length"
    assert "99" in complaint["found"]
    assert machine.run(["homeport", "status"], check=False).status == 65


def test_bad_document_later(seeded: Seeded) -> None:
    """A machine that has an assignment keeps it, untouched, whatever the server says."""
    machine = seeded.machine
    seeded.assign(BAD)
    mark = machine.monitor.mark()
    done = machine.run(["homeport", "refresh"], check=False)
    assert done.status == 65, done
    assert machine.monitor.events(since=mark, kind="ADDR", nic=NIC) == []
    outcome = machine.look()
    assert_seed(machine, outcome)
    assert "prefix-length: 99" not in machine.read("/var/lib/homeport/assigned.yaml")
    assert_seed(machine, seeded.reboot())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "an empty body is not an empty assignment"),
        ("<html><body>Please log in</body></html>", "a captive portal"),
        ("interfaces:\n- {name: enp1s0\n", "cut off in the middle"),
        ("a: 1\n---\nb: 2\n", "two documents"),
    ],
)
def test_nonsense(
    world: World, server: ConfigServer, machine: Machine, body: str, why: str
) -> None:
    """Whatever else arrives is not acceptable, and does no harm."""
    world.dhcp.start()
    url = server.put(SEED, body)
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65, why


def test_lost_assignment_comes_from_last_known_good(world: World, seeded: Seeded) -> None:
    """Somebody removed our keyfile: with the server dead the assignment is put in force again from disk."""
    machine = seeded.machine
    machine.power_off()
    for file in machine.on_disk("/etc/NetworkManager/system-connections").glob("homeport-*"):
        file.unlink()
    seeded.server.stop()
    boot = machine.boot(f"homeport.config={seeded.url}", "homeport.deadline=3s")
    assert_seed(machine, boot)
    assert boot.status["rung"] == "last-known-good"
    assert boot.status["exit"] == 0
    assert boot.addresses(NIC) == [ADDRESS]


def seconds_of_fetch(boot: Outcome) -> float:
    return float(sum(step["seconds"] for step in boot.status["steps"] if step["name"] == "fetch"))


def _wait_for_requests(server: ConfigServer, number: int) -> None:
    wait_until(lambda: len(server.requests) >= number, what="the machine to ask the server")
