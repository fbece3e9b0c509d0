"""A machine boots, gets the network it was assigned, proves it, keeps it; and says so."""

from __future__ import annotations

from configserver import ConfigServer
from container import Machine
from seed import ADDRESS, NIC, SEED, assert_on_dhcp, assert_seed, default_routes, seed_document
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
