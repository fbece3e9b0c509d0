"""A machine boots, gets the network it was assigned, proves it, keeps it; and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from configserver import ConfigServer
from container import Machine
from seed import ADDRESS, NIC, SEED, Seeded, assert_on_dhcp, assert_seed, default_routes, seed_document
from world import World


def test_seed_by_url(world: World, server: ConfigServer, machine: Machine) -> None:
    """From a short DHCP lease to the seed case, before the network is said to be online."""
    world.dhcp.start(lease=120)
    url = server.put(SEED, seed_document())

    boot = machine.boot(f"homeport.config={url}")

    assert_seed(machine, boot)
    status = boot.status
    assert status["exit"] == 0
    assert status["rung"] == "assigned"
    assert status["mode"] == "active"
    assert status["fetched"] is True
    assert status["changed"] is True
    assert status["revision"].startswith("sha256:")
    assert "192.168.122.2" in status["source"]
    assert boot.failed_units == []
    names = [step["name"] for step in status["steps"]]
    order = ["facts", "identify", "fetch", "understand", "plan", "apply", "prove", "persist"]
    assert [n for n in names if n in order] == order
    assert all(step["seconds"] >= 0 for step in status["steps"])


@pytest.fixture(scope="module")
def seen(_the_world: World, _installed: None) -> Iterator[Seeded]:
    """One machine with the seed case, for all tests that only look at it."""
    _the_world.calm_down()
    _the_world.dhcp.start()
    server = _the_world.serve()
    with Machine(_the_world, "seen") as machine:
        yield Seeded(machine, server, server.put(SEED, seed_document()))


def test_machine_was_on_dhcp_first(seen: Seeded) -> None:
    """The lease was used to ask the server, and is gone from the NIC for good."""
    (asked,) = seen.server.asked(SEED)
    assert asked.client != ADDRESS.partition("/")[0]
    added = seen.machine.monitor.events(kind="ADDR", nic=NIC)
    assert any(asked.client in event.text and not event.deleted for event in added)
    assert any(asked.client in event.text and event.deleted for event in added)


def test_status_tells_a_person(seen: Seeded) -> None:
    """`homeport status` has what is asked for at three in the morning, and its exit status is the boot's."""
    machine = seen.machine
    table = machine.run(["homeport", "status"])
    for word in ("assigned", ADDRESS, "192.168.122.2", "sha256:", "homeport-", "fetch", "prove"):
        assert word in table.stdout, f"{word!r} is not in\n{table.stdout}"
    status = machine.run(["homeport", "status", "--json"]).json()
    assert status["rung"] == "assigned"
    identity = status["identity"]
    assert (identity["kind"], identity["value"]) == ("smbios-uuid", machine.firmware.uuid)
    assert "DMI" in identity["provenance"]
    assert any(ADDRESS.partition("/")[0] in address for address in status["addresses"])
    assert machine.run(["stat", "-c", "%a", "/run/homeport/status.json"]).stdout.strip() == "644"


def test_console_and_journal(seen: Seeded) -> None:
    """One result line with a fixed id, and nothing on the console that is wider than a screen."""
    results = [e for e in seen.machine.journal("homeport.service") if "MESSAGE_ID" in e
               and e.get("SYSLOG_IDENTIFIER", "").startswith("homeport")]  # fmt: skip
    assert len(results) == 1, results
    assert "assigned" in results[0]["MESSAGE"]
    ours = [line for line in seen.machine.console.splitlines() if "homeport:" in line]
    assert any("assigned" in line for line in ours), seen.machine.console[-2000:]
    assert all(len(line) <= 100 for line in ours)


def test_online_waits_for_us(seen: Seeded) -> None:
    """network-online.target is reached after homeport.service, and only then."""
    times = seen.machine.run(
        ["systemctl", "show", "--property=InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic",
         "homeport.service", "network-online.target"]).stdout.split()  # fmt: skip
    ours, target = (times[i : i + 2] for i in (0, 2))
    finished = max(int(line.partition("=")[2]) for line in ours)
    reached = max(int(line.partition("=")[2]) for line in target)
    assert 0 < finished <= reached


def test_nothing_is_left_behind(seen: Seeded) -> None:
    """No checkpoint pending, no global DNS, no profile of NetworkManager's own making, no secret readable."""
    machine = seen.machine
    checkpoints = machine.run(
        ["busctl", "get-property", "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
         "org.freedesktop.NetworkManager", "Checkpoints"]).stdout.split()  # fmt: skip
    assert checkpoints == ["ao", "0"]
    internal = machine.sh("cat /var/lib/NetworkManager/NetworkManager-intern.conf", check=False).stdout
    assert "global-dns" not in internal
    assert "Wired connection" not in machine.look().text("connections")
    assert machine.run(["stat", "-c", "%a %u", "/var/lib/homeport"]).stdout.split() == ["700", "0"]


def test_kept_on_disk(seen: Seeded) -> None:
    """The document that was proven, and a manifest that names each file we own and nothing else."""
    machine = seen.machine
    assert "192.168.122.150" in machine.read("/var/lib/homeport/assigned.yaml")
    manifest = json.loads(machine.read("/var/lib/homeport/manifest.json"))
    ours = [name for name in machine.look().keyfiles if name.startswith("homeport-")]
    text = json.dumps(manifest)
    assert all(f"etc/NetworkManager/system-connections/{name}" in text for name in ours)


def test_bare_nmstate_by_credential(world: World, machine: Machine) -> None:
    """A bare nmstate document handed over by whoever starts the machine: no server, no DHCP needed."""
    document = """\
interfaces:
- name: enp1s0
  type: ethernet
  state: up
  ipv4: {enabled: true, dhcp: false, address: [{ip: 192.168.122.150, prefix-length: 24}]}
  ipv6: {enabled: false}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.168.122.1, next-hop-interface: enp1s0, metric: 150}
dns-resolver: {config: {server: [192.168.122.1]}}
"""
    boot = machine.boot(credentials={"homeport.assignment": document})
    assert boot.status["exit"] == 0, boot.status
    assert boot.status["rung"] == "assigned"
    assert boot.addresses(NIC) == [ADDRESS]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    assert boot.resolv == ["192.168.122.1"]


def test_file_on_disk(world: World, machine: Machine) -> None:
    """The inventory as a file, named in the settings; DHCP is there and not used."""
    world.dhcp.start()
    machine.write("/etc/homeport/machine.yaml", seed_document(), 0o600)
    machine.write("/etc/homeport/homeport.conf", "[Homeport]\nConfig=/etc/homeport/machine.yaml\n")
    boot = machine.boot()
    assert boot.status["exit"] == 0, boot.status
    assert_seed(machine, boot)


def test_no_settings_at_all(world: World, machine: Machine, falling: None) -> None:
    """A freshly installed machine that nobody told anything is on DHCP, and says what it misses."""
    world.dhcp.start()
    boot = machine.boot()
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 0
    assert boot.failed_units == []
    assert "homeport.conf" in boot.status["hint"]
