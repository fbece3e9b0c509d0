"""Machines at a cloud: several NICs and addresses, each with its own way out; what changes, and what is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cloud import INSTANCE, OUTSIDE, Cloud, Vnic
from container import Machine, Nic
from world import World

FIRST, SECOND = "52:54:00:00:01:10", "52:54:00:00:02:10"
ONE = Vnic(0, "10.0.1.0/24", ["10.0.1.10", "10.0.1.11", "10.0.1.12"])
TWO = Vnic(1, "10.0.2.0/24", ["10.0.2.10", "10.0.2.11"])
FOREIGN = "10.0.1.99/32"  # as keepalived would add it


@pytest.fixture
def cloud(world: World) -> Iterator[Cloud]:
    with Cloud(world) as cloud:
        yield cloud


def rules(machine: Machine) -> set[str]:
    lines = machine.sh("ip rule").stdout.replace("\t", " ").splitlines()
    return {line.replace(" proto static", "").strip() for line in lines}


def policy(*addresses: str) -> set[str]:
    """The rules for these addresses, by the number of their NIC: "0 10.0.1.10"."""
    found = {f"{base}{number}: from {address} lookup {base}{number}"
             for number, address in (each.split() for each in addresses) for base in ("3020", "3040")}
    return found | {"30350: from all lookup main suppress_prefixlength 0"}


KERNELS = {"0: from all lookup local", "32766: from all lookup main", "32767: from all lookup default"}


def sent(machine: Machine, nic: str) -> int:
    return int(machine.sh(f"cat /sys/class/net/{nic}/statistics/tx_packets").stdout)


def leaves_by(machine: Machine, address: str) -> str:
    """The NIC through which pings from this address really go out, and their answers come back."""
    before = {nic: sent(machine, nic) for nic in ("ens3", "ens4")}
    # More than a refresh that is at work meanwhile could send.
    machine.sh(f"ping -c 300 -i 0.002 -W 2 -q -I {address} {OUTSIDE}")
    through = [nic for nic, count in before.items() if sent(machine, nic) - count >= 300]
    assert len(through) == 1
    return through[0]


def test_an_instance_with_two_nics(world: World, cloud: Cloud, make_machine: Callable[..., Machine]) -> None:
    one, two = cloud.subnet("one", "10.0.1"), cloud.subnet("two", "10.0.2")
    cloud.describe({SECOND: TWO, FIRST: ONE})
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    boot = machine.boot("ignition.platform.id=aws")
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert set(boot.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert set(boot.addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    wanted = policy("0 10.0.1.10", "0 10.0.1.11", "0 10.0.1.12", "1 10.0.2.10", "1 10.0.2.11")
    assert rules(machine) == wanted | KERNELS
    for address in (*ONE.addresses, *TWO.addresses):
        assert leaves_by(machine, address) == ("ens3" if address in ONE.addresses else "ens4")

    machine.run(["homeport", "metadata", "--attributes", "/run/metadata/afterburn"])
    assert f"AFTERBURN_AWS_INSTANCE_ID={INSTANCE}\n" in machine.sh("cat /run/metadata/afterburn").stdout

    # A container network: its bridge, its rule, its address and route on our NIC.
    machine.sh("ip link add cni0 type bridge && ip address add 10.88.0.1/16 dev cni0 && ip link set cni0 up; "
               "ip rule add priority 1000 from 10.88.0.0/16 lookup main; "
               f"ip address add {FOREIGN} dev ens3; ip route add 10.42.0.0/16 dev ens3")
    strange = {"1000: from 10.88.0.0/16 lookup main"}
    asked = len(cloud.service.requests)
    machine.run(["homeport", "refresh"])
    assert len(cloud.service.requests) > asked
    after = machine.look()
    assert FOREIGN in after.addresses("ens3") and after.routes("10.42.0.0/16")
    assert after.addresses("cni0") == ["10.88.0.1/16"]
    assert rules(machine) == wanted | KERNELS | strange
    # From an address of the instance to a container: by the bridge, not by the router of the NIC.
    assert "dev cni0" in machine.sh("ip route get 10.88.0.7 from 10.0.1.11").stdout

    # One address less, and nothing of it is left; the other NIC has not felt it.
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:2]), SECOND: TWO})
    machine.run(["homeport", "refresh"])
    assert "10.0.1.12/24" not in machine.look().addresses("ens3")
    wanted -= policy("0 10.0.1.12") - policy()
    assert rules(machine) == wanted | KERNELS | strange

    # The metadata service is away: nothing is torn down. Nor is anything on disk.
    cloud.stop()
    machine.sh("homeport refresh --deadline 2s")
    assert rules(machine) == wanted | KERNELS | strange
    assert machine.sh("ls /etc/NetworkManager/system-connections /var/lib/homeport").stdout.split() == [
        "/etc/NetworkManager/system-connections:", "/var/lib/homeport:"]


def test_a_nic_that_is_plugged_in_later(world: World, cloud: Cloud, make_machine: Callable[..., Machine]) -> None:
    one, two = cloud.subnet("three", "10.0.1"), cloud.subnet("four", "10.0.2")
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:1])})
    machine = make_machine(nics=(Nic("ens3", FIRST, one),))
    boot = machine.boot("ignition.platform.id=aws")
    assert boot.addresses("ens3") == ["10.0.1.10/24"]
    assert rules(machine) == KERNELS  # one NIC, one address: nothing but DHCP
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:1]), SECOND: TWO})
    machine.wait("systemctl is-active multi-user.target")
    machine.add_nic(Nic("ens4", SECOND, two))
    # NetworkManager's dispatcher asks; the card is not connected before it has its addresses.
    machine.wait("nmcli -g GENERAL.STATE device show ens4 | grep '^100 '", timeout=30)
    assert set(machine.look().addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    assert rules(machine) == policy("0 10.0.1.10", "1 10.0.2.10", "1 10.0.2.11") | KERNELS
    assert leaves_by(machine, "10.0.2.11") == "ens4"
