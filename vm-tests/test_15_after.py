"""After a good boot: what the machine says of itself, what is on its disk, what is not left behind.

One machine for all of it, and a file of its own: it holds the assigned address, and another machine that
was assigned the same would be right to refuse it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from container import Machine
from seed import ADDRESS, NIC, SEED, Seeded, seed_document
from world import World


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
    assert status["addresses"] == [f"{NIC} {ADDRESS}"]
    assert machine.run(["stat", "-c", "%a", "/run/homeport/status.json"]).stdout.strip() == "644"


def test_console_and_journal(seen: Seeded) -> None:
    """One result line with a fixed id, and nothing on the console that is wider than a screen."""
    results = [e for e in seen.machine.journal("homeport.service") if "MESSAGE_ID" in e
               and e.get("SYSLOG_IDENTIFIER", "").startswith("homeport")]  # fmt: skip
    assert len(results) == 1, results
    assert "assigned" in results[0]["MESSAGE"]
    seen.machine.says("homeport:", "assigned")
    ours = [line for line in seen.machine.console.splitlines() if "homeport:" in line]
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
