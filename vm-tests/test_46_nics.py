"""NICs that are late, absent, renamed, swapped, doubled, or without a cable."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from configserver import ConfigServer
from container import Machine, Nic, mac_of
from mischief import NM, NM_OBJECT, no_refresh
from outcome import Outcome
from seed import (
    ADDRESS,
    NIC,
    SEED,
    Seeded,
    assert_on_dhcp,
    assert_seed,
    default_routes,
    seed_document,
    wait_for_seed,
)
from world import Lan, World

FIRST, SECOND = "52:54:00:aa:00:01", "52:54:00:aa:00:02"


@pytest.fixture(scope="module")
def other_lan(_the_world: World) -> Lan:
    """Where a second NIC is: without DHCP, one host that answers."""
    return _the_world.add_lan("other", ["10.46.0.1/24"])


def card(name: str, address: str, **more: Any) -> dict[str, Any]:
    """An Ethernet interface of a document, static."""
    return {"name": name, "type": "ethernet", "state": "up", "ipv6": {"enabled": False}, **more,
            "ipv4": {"enabled": True, "dhcp": False, "address": [{"ip": address, "prefix-length": 24}]}}


def by_mac(mac: str) -> dict[str, str]:
    return {"identifier": "mac-address", "mac-address": mac}


def document(*cards: dict[str, Any], uplink: str) -> str:
    """With the gateway through `uplink`; JSON is YAML."""
    route = {"destination": "0.0.0.0/0", "next-hop-address": "192.168.122.1", "next-hop-interface": uplink,
             "metric": 150}
    return json.dumps({"interfaces": cards, "routes": {"config": [route]},
                       "dns-resolver": {"config": {"server": ["192.168.122.1"]}}})  # fmt: skip


TWO = document(card(NIC, "192.168.122.150"), card("enp2s0", "10.46.0.150"), uplink=NIC)


def assert_uplink(boot: Outcome, nic: str) -> None:
    """The assigned address is on this NIC, and the way out leads through it."""
    assert boot.addresses(nic) == [ADDRESS]
    assert default_routes(boot) == [("192.168.122.1", nic, 150, "main")]
    assert boot.resolv == ["192.168.122.1"]
    assert boot.status["exit"] == 0


# Late and absent


def test_late(world: World, server: ConfigServer, machine: Machine, other_lan: Lan) -> None:
    """A card that its driver brings after the others: waited for, which the console says."""
    world.dhcp.start()
    machine.start(f"homeport.config={server.put(SEED, TWO)}")
    machine.says("waiting for enp2s0")
    machine.add_nic(Nic("enp2s0", lan=other_lan))
    boot = machine.wait_online()
    assert_uplink(boot, NIC)
    assert boot.addresses("enp2s0") == ["10.46.0.150/24"]


def test_never(world: World, server: ConfigServer, machine: Machine, falling: None) -> None:
    """It stays away: after the limit the complaint names it and those that are there, and the lease stays."""
    world.dhcp.start()
    boot = machine.boot(f"homeport.config={server.put(SEED, TWO)}", "homeport.nic-wait=2s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65
    assert "enp2s0" in boot.status["reason"]
    assert NIC in boot.status["reason"]  # as a candidate
    assert [step["name"] for step in boot.status["steps"]].count("apply") == 0


def test_absent_and_not_named(world: World, server: ConfigServer, make_machine: Callable[..., Machine]) -> None:
    """A card that no document names may be dead, and holds up nothing."""
    world.dhcp.start()
    machine = make_machine(nics=(Nic(NIC), Nic("enp2s0", plugged=False)))
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert_seed(machine, boot)
    assert boot.seconds < 60  # NetworkManager and nm-online wait as long for a card


# Names


def test_renamed_between_boots(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], allow: Callable[..., None]
) -> None:
    """The kernel calls the card something else: it is the same card, with nobody there to ask."""
    world.dhcp.start()
    machine = make_machine(nics=(Nic(NIC, mac=FIRST),))
    url = server.put(SEED, document(card("lan", "192.168.122.150", **by_mac(FIRST)), uplink="lan"))
    assert_uplink(machine.boot(f"homeport.config={url}"), NIC)
    machine.power_off()

    allow("falling back", "^homeport: last-known-good")
    server.stop()
    world.dhcp.stop()
    machine.nics = (Nic("ens5", mac=FIRST),)
    assert_uplink(machine.boot(f"homeport.config={url}", "homeport.deadline=2s"), "ens5")
    machine.power_off()
    # And now that it is known under this name, at once.
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=2s")
    assert_uplink(boot, "ens5")
    assert boot.status["changed"] is False
    assert [name for name in boot.keyfiles if name.startswith("homeport-")] == ["homeport-ens5.nmconnection"]


def test_swapped_by_the_document(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], other_lan: Lan
) -> None:
    """The document calls the one card what the kernel calls the other: its MACs count, in routes too."""
    world.dhcp.start()
    machine = make_machine(nics=(Nic("enp1s0", mac=FIRST), Nic("enp2s0", mac=SECOND, lan=other_lan)))
    url = server.put(SEED, document(
        card("enp2s0", "192.168.122.150", **by_mac(FIRST)), card("enp1s0", "10.46.0.150", **by_mac(SECOND)),
        uplink="enp2s0"))
    boot = machine.boot(f"homeport.config={url}")
    assert_uplink(boot, "enp1s0")
    assert boot.addresses("enp2s0") == ["10.46.0.150/24"]
    machine.power_off()

    server.stop()
    world.dhcp.stop()
    boot = machine.boot(f"homeport.config={url}")
    assert_uplink(boot, "enp1s0")
    assert boot.addresses("enp2s0") == ["10.46.0.150/24"]
    world.namespace.run(["ping", "-c", "1", "-W", "10", "10.46.0.150"])


def test_duplicate_macs(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], other_lan: Lan, falling: None
) -> None:
    """Two cards of one MAC: a document that means one of them is refused, and names both; by name all is well."""
    world.dhcp.start()
    other_lan.dhcp.start(first="10.46.0.100", last="10.46.0.120", router="", dns="")
    machine = make_machine(nics=(Nic("enp1s0", mac=FIRST), Nic("enp2s0", mac=FIRST, lan=other_lan)))
    no_refresh(machine)
    url = server.put(SEED, document(card("lan", "192.168.122.150", **by_mac(FIRST)), uplink="lan"))
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65
    complaint = json.dumps(boot.status["complaints"])
    assert "enp1s0" in complaint
    assert "enp2s0" in complaint

    server.put(SEED, TWO)
    machine.run(["homeport", "refresh"])
    assert_uplink(machine.look(), "enp1s0")
    assert machine.look().addresses("enp2s0") == ["10.46.0.150/24"]


# Cables


@pytest.mark.parametrize("seconds", [1, pytest.param(14, marks=pytest.mark.long("1 s shows the same"))])
def test_cable_later(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], seconds: int
) -> None:
    """A new machine is switched on before its cable is in: it gets there in the same boot.

    After NetworkManager's own patience with a card without carrier, which is 6 s.
    """
    world.dhcp.start()
    machine = make_machine(nics=(Nic(NIC, plugged=False),))
    machine.start(f"homeport.config={server.put(SEED, seed_document())}")
    machine.wait(f"busctl get-property {NM} {NM_OBJECT} {NM} Startup | grep -q false")
    time.sleep(seconds)
    machine.cables[NIC].plug()
    boot = machine.wait_online()
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


@pytest.mark.long("test_assigned_and_no_cable holds most of it")
def test_no_cable(world: World, server: ConfigServer, make_machine: Callable[..., Machine], falling: None) -> None:
    """It never comes: the limits hold, and the reason is one."""
    machine = make_machine(nics=(Nic(NIC, plugged=False),))
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", "homeport.deadline=3s", deadline=90)
    assert boot.status["exit"] == 69
    assert boot.addresses(NIC) == []


def test_assigned_and_no_cable(world: World, seeded: Seeded, falling: None) -> None:
    """A machine that is as assigned boots without its cable: no assignment is lost, and it is there with the cable."""
    machine = seeded.machine
    machine.power_off()
    machine.nics = (Nic(NIC, mac=mac_of(machine.name, NIC), plugged=False),)
    world.dhcp.stop()
    boot = machine.boot(f"homeport.config={seeded.url}", "homeport.deadline=1s", "homeport.proof-timeout=2s",
                        deadline=90)
    assert boot.seconds < 60
    assert boot.status["exit"] == 69
    assert any("no carrier" in line for line in boot.status["proof"])
    assert machine.exists("/var/lib/homeport/assigned.yaml")
    machine.cables[NIC].plug()
    assert_seed(machine, wait_for_seed(machine))
