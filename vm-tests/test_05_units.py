"""The units as this systemd understands them: nothing unknown, the order kept, the sandbox in the way of nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from namespaces import wait_until
from seed import NIC, SEED, assert_seed, seed_document
from trees import prepared
from world import World

UNITS = ("homeport.service", "homeport-refresh.service", "homeport-refresh.timer", "homeport-attributes.service",
         "homeport-check-in.service", "homeport-hostname.service")
TREES = [tree for tree in ("trixie", "bookworm") if tree == "trixie" or f"GUEST_{tree}" in prepared()]
WAIT_ONLINE = "NetworkManager-wait-online.service"
STARTED, ENDED = "ExecMainStartTimestampMonotonic", "ExecMainExitTimestampMonotonic"


@pytest.mark.parametrize("tree", TREES)
def test_units_in_a_boot(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], tree: str
) -> None:
    """The seed case again, for what systemd has to say of it."""
    world.dhcp.start(lease=120)
    machine = make_machine(f"units-{tree}", tree=tree)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert_seed(machine, boot)

    # systemd's own verdict, with all units of a real system around ours. (The pages are not in every guest.)
    verdict = machine.run(["systemd-analyze", "verify", "--man=no", *UNITS])
    assert verdict.stdout + verdict.stderr == ""

    # Whether NetworkManager must be waited for is decided when homeport is done; with the assigned network in force,
    # it need not.
    ended, decided = when(machine, "homeport.service", ENDED), when(machine, WAIT_ONLINE, "ConditionTimestampMonotonic")
    assert 0 < ended <= decided
    assert when(machine, WAIT_ONLINE, STARTED) == 0

    # The refresh runs after the boot, which does not wait for it, and finds the same machine.
    wait_until(lambda: when(machine, "homeport-refresh.service", ENDED) > 0, what="the refresh")
    assert machine.sh("systemctl show -P Result homeport-refresh.service").stdout.strip() == "success"
    assert when(machine, "homeport-refresh.service", STARTED) >= when(
        machine, "multi-user.target", "ActiveEnterTimestampMonotonic")

    # On, on, and off until the site wants them.
    states = machine.sh(f"systemctl is-enabled {' '.join(UNITS)}", check=False).stdout.split()
    assert states == ["enabled", "enabled", *["disabled"] * 4]


def test_sandbox_lets_nmstate_do_all_that_documents_ask_for(
    world: World, server: ConfigServer, machine: Machine
) -> None:
    """The running hostname (sethostname) and alternative names (a file of udev's): not by NetworkManager."""
    world.dhcp.start(lease=120)
    document = seed_document().replace("      interfaces:\n", (
        "      hostname:\n        running: port-of-call\n      interfaces:\n"))
    document = document.replace("          state: up\n", (
        "          state: up\n          alt-names:\n          - name: uplink0\n"
        "          dispatch:\n            post-activation: 'true'\n"))
    boot = machine.boot(f"homeport.config={server.put(SEED, document)}", "homeport.allow-dispatch=yes")
    assert boot.status["exit"] == 0
    assert machine.run(["uname", "-n"]).stdout.strip() == "port-of-call"
    assert "uplink0" in machine.run(["ip", "link", "show", NIC]).stdout
    link, scripts = f"/etc/systemd/network/98-nmstate-{NIC}.link", "/etc/NetworkManager/dispatcher.d"
    assert machine.exists(link) and machine.exists(f"{scripts}/nmstate-{NIC}-up.sh")

    # They are forgotten with the assignment; those of others stay, even by such a name.
    theirs = {"/etc/systemd/network/98-nmstate-eth7.link": "[Link]\n",
              f"{scripts}/nmstate-{NIC}-down.sh": "#!/bin/sh\n"}
    for path, text in theirs.items():
        machine.write(path, text, 0o644)
    machine.run(["homeport", "reset", "--yes"])
    assert not machine.exists(link) and not machine.exists(f"{scripts}/nmstate-{NIC}-up.sh")
    assert {path: machine.read(path) for path in theirs} == theirs


def when(machine: Machine, unit: str, event: str) -> int:
    """Microseconds since the kernel started; 0 if it has not happened."""
    return int(machine.run(["systemctl", "show", "--property", event, "--value", unit]).stdout or 0)
