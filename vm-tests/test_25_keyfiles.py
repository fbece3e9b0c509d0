"""Assignments that are keyfiles (`configurator: nmconnections`): in force under a checkpoint, proven, kept, undone."""

from __future__ import annotations

import json

from configserver import ConfigServer
from container import Machine
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, assert_on_dhcp, default_routes
from world import World

KEYFILE = """\
[connection]
id=The office
type=ethernet
interface-name=enp1s0

[ethernet]
mtu={mtu}

[ipv4]
method=manual
address1={{inventory-ip}}/24,192.168.122.1
dns=192.168.122.1;

[ipv6]
method=disabled
"""


def document(revision: str = "1", *, mtu: int = 1400, proof: str = "source", address: str = "192.168.122.150") -> str:
    return json.dumps({
        "configurator": "nmconnections", "revision": revision, "ipAddresses": {"inventory-ip": address},
        "proof": [proof], "config": {"office": KEYFILE.format(mtu=mtu)}})


def assert_in_force(machine: Machine, boot: Outcome, mtu: int = 1400) -> None:
    assert boot.status["rung"] == "assigned", boot.status
    assert boot.addresses(NIC) == [ADDRESS]
    assert [route[:2] for route in default_routes(boot)] == [("192.168.122.1", NIC)]
    assert boot.resolv == ["192.168.122.1"]
    assert machine.read(f"/sys/class/net/{NIC}/mtu").strip() == str(mtu)
    (ours,) = [name for name in boot.keyfiles if name.startswith("homeport-")]
    text = machine.read(f"/etc/NetworkManager/system-connections/{ours}")
    assert "id=The office\n" in text
    assert "io.homeport.owned=" in text


def test_keyfiles_are_kept_and_changed(world: World, server: ConfigServer, machine: Machine) -> None:
    """First boot, a boot with nobody there, and a new revision that only NetworkManager can tell from the old."""
    world.dhcp.start()
    url = server.put(SEED, document())
    boot = machine.boot(f"homeport.config={url}")
    assert_in_force(machine, boot)

    machine.power_off()
    server.stop()
    world.dhcp.stop()
    boot = machine.boot(f"homeport.config={url}")
    assert_in_force(machine, boot)
    assert boot.status["fetched"] is False

    # The refresh after the boot is asking all the while.
    server.put(SEED, document("2", mtu=1300))
    server.start()
    machine.wait("grep -q '\"revision\": \"2\"' /run/homeport/status.json")
    assert_in_force(machine, machine.look(), mtu=1300)
    assert machine.run(["nmcli", "-g", "NAME", "connection"]).stdout.splitlines().count("The office") == 1


def test_keyfiles_that_are_not_proven_go(
    world: World, server: ConfigServer, machine: Machine, falling: None
) -> None:
    """Their gateway answers nobody: everything is as before, DHCP."""
    world.dhcp.start()
    world.silence_gateway()
    url = server.put(SEED, document(proof="gateway"))
    boot = machine.boot(f"homeport.config={url}", "homeport.proof-timeout=3s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 75
    assert "office" not in machine.run(["ls", "/run/NetworkManager/system-connections"]).stdout


def test_keyfiles_that_networkmanager_does_not_bring_up(
    world: World, server: ConfigServer, machine: Machine, falling: None
) -> None:
    """A VLAN on a card that is not there: refused, and undone."""
    world.dhcp.start()
    vlan = ("[connection]\nid=v\ntype=vlan\ninterface-name=v7\n[vlan]\nid=7\nparent=enp9s0\n"
            "[ipv4]\nmethod=manual\naddress1=192.0.2.7/24\n")
    url = server.put(SEED, json.dumps({"configurator": "nmconnections", "config": {"v": vlan}}))
    boot = machine.boot(f"homeport.config={url}", "homeport.apply-timeout=5s", "homeport.nic-wait=1s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] in (65, 75)
