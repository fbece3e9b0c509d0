"""A pool and its registration under the hands of an operator, as a machine sees them: empty, edited, another kind of
configuration, a machine that moved.
"""

from __future__ import annotations

from typing import Any

from container import Machine
from elemental import make_elemental
from firmware import Firmware
from namespaces import wait_until
from outcome import Outcome
from poolserver import TOKEN, PoolServer, registration
from seed import ADDRESS, NIC, assert_seed, default_routes
from world import SERVER, World

UUID = "4c4c4544-0042-3010-8051-b4c04f564432"
KEYFILE = f"""\
[connection]
id=by hand
type=ethernet
interface-name={NIC}
[ipv4]
method=manual
address1={{inventory-ip}}/24
gateway=192.168.122.1
dns=192.168.122.1;
[ipv6]
method=disabled
"""


def refresh(machine: Machine) -> Outcome:
    machine.run(["homeport", "refresh"])
    return machine.look()


def test_an_exhausted_pool_is_waited_for(
    world: World, pool_server: PoolServer, machine: Machine, falling: None
) -> None:
    """Pending, with the server's own reason, until an address comes free."""
    world.dhcp.start()
    pool_server.ask("reserve", "52:54:00:ff:ff:ff", "inventory-ip=192.168.122.150")
    make_elemental(machine, pool_server.bootstrap())
    machine.start()
    wait_until(lambda: "not ready" in machine.story(), what="the machine to be told to wait")
    reason = "no address of InClusterIPPool/fleet-default/elemental-inventory-pool is free"
    assert reason in machine.story()
    assert reason in pool_server.log
    (waiting,) = pool_server.machines()
    assert reason in waiting["pending"]
    pool_server.ask("release", "52:54:00:ff:ff:ff", "--forget")
    assert_seed(machine, machine.wait_online(60))


def test_an_operator_edits_a_registration(world: World, pool_server: PoolServer, machine: Machine) -> None:
    """Each edit reaches the machine by `homeport refresh`, whatever configurator it says; none says nothing."""
    world.dhcp.start()
    make_elemental(machine, pool_server.bootstrap())
    assert_seed(machine, machine.boot())

    def metric(network: dict[str, Any]) -> None:
        network["config"]["routes"]["config"][0]["metric"] = 77

    pool_server.edit(1, registration("sys-uuid", metric))
    outcome = refresh(machine)
    assert outcome.status["changed"]
    assert default_routes(outcome) == [("192.168.122.1", NIC, 77, "main")]

    # nm-configurator's documents name a card by its MAC; their own program is not in this image.
    def nmc(network: dict[str, Any]) -> None:
        network["configurator"] = "nmc"
        (card,) = network["config"]["interfaces"]
        card |= {"name": "lan", "mac-address": mac(machine)}
        network["config"]["routes"]["config"][0]["next-hop-interface"] = "lan"

    pool_server.edit(1, registration("sys-uuid", nmc))
    assert "nmc" not in machine.run(["ls", "/usr/bin", "/usr/sbin", "/usr/local/bin"]).stdout.split()
    outcome = refresh(machine)
    assert_seed(machine, outcome)
    assert outcome.status["changed"]

    def keyfiles(network: dict[str, Any]) -> None:
        network |= {"configurator": "nmconnections", "config": {"by-hand": KEYFILE}}

    pool_server.edit(1, registration("sys-uuid", keyfiles))
    outcome = refresh(machine)
    assert outcome.addresses(NIC) == [ADDRESS]
    assert outcome.status["exit"] == 0
    (kept,) = (name for name in outcome.keyfiles if name.startswith("homeport-"))
    assert f"address1={ADDRESS}" in machine.read(f"/etc/NetworkManager/system-connections/{kept}")

    def none(network: dict[str, Any]) -> None:
        network |= {"configurator": "none", "config": {}, "ipAddresses": {}}

    pool_server.edit(1, registration("sys-uuid", none))
    machine.run(["homeport", "refresh"], check=False)
    assert machine.look().addresses(NIC) == [ADDRESS]


def mac(machine: Machine) -> str:
    return machine.run(["cat", f"/sys/class/net/{NIC}/address"]).stdout.strip()


def test_by_url_without_any_registration(world: World, pool_server: PoolServer, machine: Machine) -> None:
    """The pool serves the `url` source, too; a machine whose UUID has changed keeps its address, and is reported."""
    world.dhcp.start()
    pool_server.edit(1, registration(edit=lambda network: None).replace('"auth": "tpm"', '"auth": ""'))
    machine.write("/etc/homeport/ca.pem", (pool_server.folder / "state/ca.pem").read_text())
    # A veth has no permanent MAC to fill in.
    ask = f"https://{SERVER}/%s/{{uuid}}?token={TOKEN}&serial={{serial}}&mac=52:54:00:00:00:01"
    machine.write("/etc/homeport/homeport.conf", "[Homeport]\nCa=/etc/homeport/ca.pem\n"
                  f"Config={ask % 'assignments'}\nReport={ask % 'reports'}\n")
    assert_seed(machine, machine.boot())
    (known,) = pool_server.machines()
    assert known["report"]["rung"] == "assigned"

    machine.power_off()
    Firmware(UUID, machine.firmware.serial).write(machine.folder / "dmi")
    boot = machine.boot()
    assert_seed(machine, boot)
    refresh(machine)
    (known,) = pool_server.machines()
    assert known["uuid"] == UUID
    assert f"moved: it was {machine.firmware.uuid}, now it is {UUID}" in known["note"]
    assert "moved: it was" in pool_server.ask("list")
    assert "moved: it was" in pool_server.log
