"""What went wrong elsewhere, where no other boot shows it; docs/field-reports.md has all of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from configserver import ConfigServer
from container import Machine, Nic
from seed import NIC, SEED, Seeded, assert_on_dhcp, assert_seed, seed_document
from world import World

POLICY = """\
capture:
  gateway: routes.running.destination == "0.0.0.0/0"
desired:
  interfaces:
  - name: '{{ capture.gateway.routes.running.0.next-hop-interface }}'
    type: ethernet
    state: up
    mtu: 1400
"""
OWN_DNS = """\
interfaces:
- {name: enp1s0, type: ethernet, state: up, ipv6: {enabled: false},
   ipv4: {enabled: true, dhcp: true, auto-dns: false}}
dns-resolver: {config: {server: [192.168.122.1], search: [berth.example]}}
"""
TWO_NICS = """\
interfaces:
- {name: enp1s0, type: ethernet, state: up, ipv6: {enabled: false},
   ipv4: {enabled: true, address: [{ip: 192.168.122.150, prefix-length: 24}]}}
- {name: enp2s0, type: ethernet, state: up, ipv6: {enabled: false},
   ipv4: {enabled: true, address: [{ip: 198.51.100.7, prefix-length: 24}]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.168.122.1, next-hop-interface: enp1s0}]}
dns-resolver: {config: {server: [%s]}}
"""
GLOBAL_DNS = "/var/lib/NetworkManager/NetworkManager-intern.conf"


def test_policy_waits_for_what_it_captures(world: World, machine: Machine) -> None:
    """The default route comes late, and being online is what the machine is not yet."""
    machine.start(credentials={"homeport.assignment": POLICY})
    machine.says("homeport: waiting 30 s at most: the policy captures a route with 'destination=0.0.0.0/0'")
    world.dhcp.start()
    boot = machine.wait_online()
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
    assert "mtu 1400" in machine.run(["ip", "link", "show", NIC]).stdout


def test_own_dns_beside_dhcp(world: World, server: ConfigServer, machine: Machine) -> None:
    """It is in the profile, on disk; a boot with the server gone has it, one in recovery mode has the lease's."""
    world.dhcp.start()
    config = f"homeport.config={server.put(SEED, OWN_DNS)}"
    for _ in range(2):
        boot = machine.boot(config)
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.resolv == ["192.168.122.1"]
        assert "search berth.example" in boot.text("resolv")
        assert "global-dns" not in machine.run(["cat", GLOBAL_DNS], check=False).stdout
        server.stop()
        machine.power_off()
    boot = machine.boot(config, "homeport.mode=recovery")
    assert_on_dhcp(boot, keyfiles=False)


def test_dns_of_one_nic_leaves_the_other_alone(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine]
) -> None:
    """Two static NICs and servers that change: nothing happens on the NIC that has no part in it."""
    world.dhcp.start()
    machine = make_machine(nics=(Nic(NIC), Nic("enp2s0")))
    config = f"homeport.config={server.put(SEED, TWO_NICS % '192.168.122.1')}"
    boot = machine.boot(config)
    assert boot.resolv == ["192.168.122.1"]
    before = len(machine.monitor.events())
    server.put(SEED, TWO_NICS % "192.168.122.53")
    machine.run(["homeport", "refresh"])
    now = machine.look()
    assert now.status["changed"], now.status
    assert now.resolv == ["192.168.122.53"]
    assert [str(event) for event in machine.monitor.events()[before:] if "enp2s0" in event.text] == []


def test_one_client_id_whatever_boots(world: World, seeded: Seeded) -> None:
    """First boot, recovery, another machine id (a reinstalled system): always the same lease."""
    mac = seeded.machine.run(["cat", f"/sys/class/net/{NIC}/address"]).stdout.strip()
    leases = {lease_of(world, mac)}
    for machine_id in ("", "0123456789abcdef0123456789abcdef"):
        seeded.machine.power_off()
        if machine_id:
            seeded.machine.write("/etc/machine-id", f"{machine_id}\n")
        assert_on_dhcp(seeded.machine.boot("homeport.mode=recovery"), keyfiles=False)
        leases.add(lease_of(world, mac))
    (lease,) = leases
    assert lease[1] == f"01:{mac}"


def lease_of(world: World, mac: str) -> tuple[str, str]:
    """The address and the client id that the DHCP server knows this card by."""
    rows = [line.split() for line in (world.folder / "leases-lan").read_text().splitlines()]
    (row,) = (row for row in rows if row[1] == mac)
    return row[2], row[4]


def test_switch_that_passes_nothing_for_a_while(world: World, server: ConfigServer, machine: Machine) -> None:
    """Carrier from the start and not one frame for 40 s, as with a bonded port: waited for, no reboot."""
    config = f"homeport.config={server.put(SEED, seed_document())}"
    machine.start(config)
    cable = machine.cables[NIC]
    cable.lan.namespace.ip("link", "set", cable.port, "nomaster")
    time.sleep(40)
    cable.lan.namespace.ip("link", "set", cable.port, "master", cable.lan.bridge)
    world.dhcp.start()
    boot = machine.wait_online(90)
    assert_seed(machine, boot)
    assert machine.boots == 1


def test_recovery_without_dhcp(world: World, seeded: Seeded, falling: None) -> None:
    """Nobody gives an address: said, within its time, and a person can log in; the next boot is as assigned."""
    world.dhcp.stop()
    seeded.server.stop()
    boot = seeded.reboot("homeport.mode=recovery", deadline=120)
    assert (boot.status["rung"], boot.status["exit"]) == ("left-as-found", 75)
    assert boot.addresses(NIC) == []
    seeded.machine.says("homeport: dhcp: no DHCP server answered within 30 s")
    assert_seed(seeded.machine, seeded.reboot())
