"""A root file system on the network: the card that it stands on is never taken down, whatever is assigned or asked for.

The container's root is not on the network; the kernel line says that it is, as it does on machines where it is.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine, Nic
from seed import ADDRESS, NIC, SEED, Seeded, seed_document
from world import SERVER, World

ROOT = f"root=nfs:{SERVER}:/root"
OTHER = "enp2s0"
# As nm-initrd-generator leaves them for the real root.
INITRDS = ("[connection]\nid={nic}\nuuid={uuid}\ntype=ethernet\ninterface-name={nic}\nautoconnect-priority=-100\n"
           "[ipv4]\nmethod=manual\naddress1=192.168.122.{host}/24\n[ipv6]\nmethod=disabled\n"
           "[user]\norg.freedesktop.NetworkManager.origin=nm-initrd-generator\n")  # fmt: skip


def from_the_initramfs(machine: Machine, nic: str = NIC, host: int = 90) -> None:
    machine.write(f"/etc/NetworkManager/system-connections/{nic}.nmconnection",
                  INITRDS.format(nic=nic, host=host, uuid=f"33333333-3333-4333-8333-3333333333{host}"), 0o600)


def went(machine: Machine, nic: str = NIC) -> list[str]:
    """What went wrong on this card once it had an address: that went away, or the card went down."""
    events = machine.monitor.events(nic=nic)
    first = next(number for number, event in enumerate(events) if event.kind == "ADDR" and "inet " in event.text)
    return [str(event) for event in events[first:]
            if (event.deleted and event.kind == "ADDR" and "inet " in event.text)
            or (event.kind == "LINK" and "state DOWN" in event.text)]


@pytest.mark.usefixtures("falling")
def test_left_as_found(world: World, server: ConfigServer, machine: Machine) -> None:
    """An assignment that names this card: nothing is touched, it is said why, and nothing has failed."""
    from_the_initramfs(machine)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", ROOT)
    assert boot.addresses(NIC) == ["192.168.122.90/24"]
    assert (boot.status["rung"], boot.status["exit"]) == ("left-as-found", 0)
    assert f"the root file system stands on {NIC}" in boot.status["reason"]
    assert boot.failed_units == []
    assert went(machine) == []
    assert not machine.exists("/var/lib/homeport/assigned.yaml")


def test_another_card_is_assigned_as_ever(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine]
) -> None:
    """A document that leaves the root's card out is put in force whole."""
    machine = make_machine(nics=(Nic(NIC), Nic(OTHER)))
    from_the_initramfs(machine)
    document = seed_document().replace(f"name: {NIC}", f"name: {OTHER}").replace(
        f"next-hop-interface: {NIC}", f"next-hop-interface: {OTHER}")  # fmt: skip
    boot = machine.boot(f"homeport.config={server.put(SEED, document)}", ROOT)
    assert boot.addresses(NIC) == ["192.168.122.90/24"]
    assert boot.addresses(OTHER) == [ADDRESS]
    assert (boot.status["rung"], boot.status["exit"], boot.status["persisted"]) == ("assigned", 0, True)
    assert went(machine) == []


def test_in_force_already(world: World, seeded: Seeded) -> None:
    """The initramfs's homeport has put it in force before the root was mounted: assigned, like anywhere."""
    boot = seeded.reboot(ROOT)
    assert boot.addresses(NIC) == [ADDRESS]
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert went(seeded.machine) == []


@pytest.mark.usefixtures("falling")
def test_a_change_waits_for_the_next_boot(world: World, seeded: Seeded) -> None:
    """It would move the address from under the root."""
    boot = seeded.reboot(ROOT)
    seeded.assign(seed_document("192.168.122.151"))
    done = seeded.machine.run(["homeport", "refresh"], check=False)
    assert done.status == 0, done
    assert seeded.machine.look().addresses(NIC) == [ADDRESS]
    assert boot.status["exit"] == 0
    assert went(seeded.machine) == []


@pytest.mark.parametrize("mode", ["recovery", "reset"])
def test_dhcp_by_mode(world: World, seeded: Seeded, mode: str) -> None:
    """The card stays up as it is; reset forgets all the same, for the next boot."""
    boot = seeded.reboot(ROOT, f"homeport.mode={mode}")
    assert boot.addresses(NIC) == [ADDRESS]
    assert went(seeded.machine) == []
    assert boot.status["exit"] == 0
    assert seeded.machine.exists("/var/lib/homeport/assigned.yaml") == (mode == "recovery")
    assert any(name.startswith("homeport-") for name in boot.keyfiles) == (mode == "recovery")
