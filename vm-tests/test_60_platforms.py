"""Machines at Amazon: several NICs and addresses, each with its own way out; what changes, what fails, what is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cloud import INSTANCE, MACS, OUTSIDE, OUTSIDE_6, Cloud, Vnic
from conftest import Scenario
from container import Machine, Nic
from namespaces import wait_until
from outcome import Outcome
from test_76_network_root import went
from trees import prepared
from world import World

FIRST, SECOND = "52:54:00:00:01:10", "52:54:00:00:02:10"
ONE = Vnic(0, "10.0.1.0/24", ["10.0.1.10", "10.0.1.11", "10.0.1.12"])
TWO = Vnic(1, "10.0.2.0/24", ["10.0.2.10", "10.0.2.11"])
ONLY = Vnic(0, ONE.subnet, ONE.addresses[:1])
FOREIGN = "10.0.1.99/32"  # as keepalived would add it
AWS = "ignition.platform.id=aws"
MakeMachine = Callable[..., Machine]


@pytest.fixture
def cloud(world: World) -> Iterator[Cloud]:
    with Cloud(world) as cloud:
        yield cloud


def rules(machine: Machine, family: str = "-4") -> set[str]:
    lines = machine.sh(f"ip {family} rule").stdout.replace("\t", " ").splitlines()
    found = [line.replace(" proto static", "").strip() for line in lines]
    assert len(found) == len(set(found))
    return set(found)


def policy(*addresses: str) -> set[str]:
    """The rules for these addresses, by the number of their NIC: "0 10.0.1.10"."""
    found = {f"{base}{number}: from {address} lookup {base}{number}"
             for number, address in (each.split() for each in addresses) for base in ("3020", "3040")}
    return found | {"30350: from all lookup main suppress_prefixlength 0"}


KERNELS = {"0: from all lookup local", "32766: from all lookup main", "32767: from all lookup default"}
KERNELS_6 = {"0: from all lookup local", "32766: from all lookup main"}


def sent(machine: Machine, nic: str) -> int:
    return int(machine.sh(f"cat /sys/class/net/{nic}/statistics/tx_packets").stdout)


def leaves_by(machine: Machine, address: str) -> str:
    """The NIC through which pings from this address really go out, and their answers come back."""
    before = {nic: sent(machine, nic) for nic in ("ens3", "ens4")}
    # More than a refresh that is at work meanwhile could send.
    outside = OUTSIDE_6 if ":" in address else OUTSIDE
    machine.sh(f"ping -c 300 -i 0.002 -W 10 -q -I {address} {outside}")
    through = [nic for nic, count in before.items() if sent(machine, nic) - count >= 300]
    assert len(through) == 1
    return through[0]


def on_disk(machine: Machine) -> list[str]:
    return machine.sh("ls /etc/NetworkManager/system-connections /var/lib/homeport | grep -v :$ || :").stdout.split()


def switch_off(machine: Machine) -> None:
    """Not in the first milliseconds of a refresh that the dispatcher has just started."""
    machine.wait("systemctl show --property ActiveState homeport-refresh.service | grep '=inactive'")
    machine.power_off()


def asked(machine: Machine, *arguments: str) -> Outcome:
    machine.sh(f"homeport refresh {' '.join(arguments)}", check=False)
    return machine.look()


def test_an_instance_with_two_nics(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    one, two = cloud.subnet("one", "10.0.1"), cloud.subnet("two", "10.0.2")
    cloud.describe({SECOND: TWO, FIRST: ONE})
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    boot = machine.boot(AWS)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert set(boot.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert set(boot.addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    wanted = policy("0 10.0.1.10", "0 10.0.1.11", "0 10.0.1.12", "1 10.0.2.10", "1 10.0.2.11")
    assert rules(machine) == wanted | KERNELS
    for address in (*ONE.addresses, *TWO.addresses):
        assert leaves_by(machine, address) == ("ens3" if address in ONE.addresses else "ens4")

    machine.run(["homeport", "metadata", "--attributes", "/run/metadata/afterburn"])
    assert f"AFTERBURN_AWS_INSTANCE_ID={INSTANCE}\n" in machine.sh("cat /run/metadata/afterburn").stdout

    # A container network: its bridge, its rules, its address and route on our NIC.
    machine.sh("ip link add cni0 type bridge && ip address add 10.88.0.1/16 dev cni0 && ip link set cni0 up && "
               "ip rule add priority 1000 from 10.88.0.0/16 lookup main && "
               "ip rule add priority 30201 fwmark 7 lookup 7 && "
               f"ip address add {FOREIGN} dev ens3 && ip route add 10.42.0.0/16 dev ens3")
    strange = {"1000: from 10.88.0.0/16 lookup main", "30201: from all fwmark 0x7 lookup 7"}
    questions = len(cloud.service.requests)
    after = asked(machine)
    assert len(cloud.service.requests) > questions
    assert FOREIGN in after.addresses("ens3") and after.routes("10.42.0.0/16")
    assert after.addresses("cni0") == ["10.88.0.1/16"]
    assert rules(machine) == wanted | KERNELS | strange
    # From an address of the instance to a container: by the bridge, not by the router of the NIC.
    assert "dev cni0" in machine.sh("ip route get 10.88.0.7 from 10.0.1.11").stdout

    # One address less, and nothing of it is left; nothing else has felt it: not the foreign ones, not the other NIC.
    mark = machine.monitor.mark()
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:2]), SECOND: TWO})
    after = asked(machine)
    assert "10.0.1.12/24" not in after.addresses("ens3")
    wanted -= policy("0 10.0.1.12") - policy()
    assert rules(machine) == wanted | KERNELS | strange
    assert FOREIGN in after.addresses("ens3") and after.routes("10.42.0.0/16")
    felt = [str(event) for event in machine.monitor.events(since=mark) if event.kind in ("ADDR", "ROUTE")]
    assert not [event for event in felt if "ens4" in event or "10.0.1.99" in event or "10.42.0.0" in event]
    assert not [event for event in felt if "deleted" in event and ("10.0.1.10" in event or "10.0.1.11" in event)
                and "10.0.1.12" not in event and "fe80" not in event and "[ADDR]" in event]

    # The metadata service is away: nothing is torn down. Nor is anything on disk.
    cloud.stop()
    assert asked(machine, "--deadline", "2s").status["rung"] == "last-known-good"
    assert rules(machine) == wanted | KERNELS | strange
    assert on_disk(machine) == []


def test_a_nic_that_is_plugged_in_later(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    """NetworkManager's dispatcher asks; the card is not connected before it has its addresses."""
    one, two = cloud.subnet("three", "10.0.1"), cloud.subnet("four", "10.0.2")
    cloud.describe({FIRST: ONLY})
    machine = make_machine(nics=(Nic("ens3", FIRST, one),))
    boot = machine.boot(AWS)
    assert boot.addresses("ens3") == ["10.0.1.10/24"]
    assert rules(machine) == KERNELS  # one NIC, one address: nothing but DHCP
    assert not boot.status["changed"]
    cloud.describe({FIRST: ONLY, SECOND: TWO})
    machine.wait("systemctl is-active multi-user.target")
    machine.add_nic(Nic("ens4", SECOND, two))
    connected = "nmcli -g GENERAL.STATE device show ens4 | grep '^100 '"
    machine.wait(connected)
    assert set(machine.look().addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    of_one, of_two = policy("0 10.0.1.10"), policy("1 10.0.2.10", "1 10.0.2.11")
    assert rules(machine) == of_one | of_two | KERNELS
    assert leaves_by(machine, "10.0.2.11") == "ens4"

    # A profile that goes down takes its rules along, not the one that the other card needs; up again it has them.
    machine.sh("nmcli device disconnect ens4")
    assert rules(machine) == of_one | KERNELS
    machine.sh("nmcli device connect ens4")
    machine.wait(connected)
    assert rules(machine) == of_one | of_two | KERNELS

    # Reset: the profiles alone. And the dispatcher doesn't bring it back.
    machine.run(["homeport", "reset", "--yes"])
    assert rules(machine) == KERNELS
    assert machine.look().addresses("ens4") == ["10.0.2.10/24"]
    questions = len(cloud.service.requests)
    machine.sh("nmcli device disconnect ens4 && nmcli device connect ens4")
    assert len(cloud.service.requests) == questions
    assert rules(machine) == KERNELS


def test_a_nic_that_is_listed_later_still(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    """The card is there seconds before EC2 knows of it, and all that while it counts as not connected."""
    one, two = cloud.subnet("fifteen", "10.0.1"), cloud.subnet("sixteen", "10.0.2")
    cloud.describe({FIRST: ONLY})
    machine = make_machine(nics=(Nic("ens3", FIRST, one),))
    machine.boot(AWS)
    machine.wait("systemctl is-active multi-user.target")
    machine.wait("systemctl show --property ActiveState homeport-refresh.service | grep '=inactive'")
    before = len(cloud.service.requests)
    machine.add_nic(Nic("ens4", SECOND, two))
    # It was told three times that there is no such card.
    wait_until(lambda: cloud.service.requests[before:].count(f"GET /{MACS}/") >= 3,
               what="three questions for the list")
    assert not machine.sh("nmcli -g GENERAL.STATE device show ens4 | grep '^100 '", check=False).stdout
    cloud.describe({FIRST: ONLY, SECOND: TWO})
    machine.wait("nmcli -g GENERAL.STATE device show ens4 | grep '^100 '")
    assert set(machine.look().addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    assert rules(machine) == policy("0 10.0.1.10", "1 10.0.2.10", "1 10.0.2.11") | KERNELS


def test_kept_on_disk_if_so_wanted(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    one, two = cloud.subnet("five", "10.0.1"), cloud.subnet("six", "10.0.2")
    cloud.describe({FIRST: ONE, SECOND: TWO})
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    kept = (AWS, "homeport.platform-persist=yes")
    machine.boot(*kept)
    of_one = policy("0 10.0.1.10", "0 10.0.1.11", "0 10.0.1.12")
    of_two = policy("1 10.0.2.10", "1 10.0.2.11")
    for nic in ("ens3", "ens4"):  # nmstate gives the rule for all to one of them, another one from run to run
        assert "suppress-prefixlength" in machine.sh(
            "busctl call org.freedesktop.NetworkManager $(nmcli -g GENERAL.DBUS-PATH device show ens3) "
            "org.freedesktop.NetworkManager.Device GetAppliedConnection u 0".replace("ens3", nic)).stdout
    for nic, others in (("ens3", of_two), ("ens4", of_one)):
        machine.sh(f"nmcli device disconnect {nic}")
        assert rules(machine) == others | KERNELS
        # What is asked for it meanwhile may be activated in its place, and nmcli then says that it was not.
        machine.wait(f"nmcli device connect {nic}")
        wait_until(lambda: rules(machine) == of_one | of_two | KERNELS, what=f"the rules of {nic}")

    # The first card's part can't be read: the other one changes, and its profile stays.
    cloud.service.before = lambda path: (403, {}) if FIRST in path else None
    cloud.describe({FIRST: ONE, SECOND: Vnic(1, TWO.subnet, TWO.addresses[:1])})
    after = asked(machine)
    assert (after.status["rung"], after.status["exit"]) == ("assigned", 0), after.status
    assert set(after.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert after.addresses("ens4") == ["10.0.2.10/24"]
    assert rules(machine) == of_one | policy("1 10.0.2.10") | KERNELS
    assert {name for name in on_disk(machine) if "nmconn" in name} == {
        "homeport-ens3.nmconnection", "homeport-ens4.nmconnection"}
    cloud.service.before = lambda path: None
    cloud.describe({FIRST: ONE, SECOND: TWO})
    assert not asked(machine).status["fallen"]
    switch_off(machine)
    cloud.stop()
    again = machine.boot(*kept)
    assert again.status["exit"] == 0
    assert set(again.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert rules(machine) == of_one | of_two | KERNELS

    # And no more: what is on disk goes, what it brought stays.
    cloud.start()
    machine.write("/etc/homeport/homeport.conf", "PlatformPersist=no\n")
    switch_off(machine)
    machine.boot(AWS, deadline=90)
    assert on_disk(machine) == []
    assert rules(machine) == of_one | of_two | KERNELS
    switch_off(machine)
    cloud.describe({FIRST: ONLY})
    assert machine.boot(AWS).addresses("ens3") == ["10.0.1.10/24"]
    assert rules(machine) == KERNELS


def test_a_nic_that_is_plugged_in_later_and_kept(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    """Then the run that NetworkManager waits for makes it activate another profile, and so wait for the next run."""
    one, two = cloud.subnet("thirteen", "10.0.1"), cloud.subnet("fourteen", "10.0.2")
    cloud.describe({FIRST: ONLY})
    machine = make_machine(nics=(Nic("ens3", FIRST, one),))
    machine.boot(AWS, "homeport.platform-persist=yes")
    cloud.describe({FIRST: ONLY, SECOND: TWO})
    machine.wait("systemctl is-active multi-user.target")
    machine.add_nic(Nic("ens4", SECOND, two))
    machine.wait("nmcli -g GENERAL.STATE device show ens4 | grep '^100 ' && "
                 "nmcli -g GENERAL.CONNECTION device show ens4 | grep homeport-ens4")
    assert set(machine.look().addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    assert rules(machine) == policy("0 10.0.1.10", "1 10.0.2.10", "1 10.0.2.11") | KERNELS
    assert sorted(name for name in on_disk(machine) if "nmconn" in name) == [
        "homeport-ens3.nmconnection", "homeport-ens4.nmconnection"]


ADMINISTRATORS = """\
[connection]
id=theirs-{nic}
type=ethernet
interface-name={nic}
[ipv4]
method=auto
address1=192.0.2.{number}/24
dns=192.0.2.99;
route1=192.0.3.0/24,192.0.2.1
routing-rule1=priority 500 from 192.0.2.{number} table 500
[user]
{skip}
"""


def test_profiles_of_an_administrator(world: World, cloud: Cloud, make_machine: MakeMachine) -> None:
    """What they have stays, also through a change; a card whose profile says so is left alone."""
    one, two = cloud.subnet("seven", "10.0.1"), cloud.subnet("eight", "10.0.2")
    cloud.describe({FIRST: ONE, SECOND: TWO})
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    for nic, number, skip in (("ens3", 3, ""), ("ens4", 4, "org.freedesktop.nm-cloud-setup.skip=yes")):
        machine.write(f"/etc/NetworkManager/system-connections/{nic}.nmconnection",
                      ADMINISTRATORS.format(nic=nic, number=number, skip=skip), 0o600)
    boot = machine.boot(AWS)
    theirs = {f"500: from 192.0.2.{number} lookup 500" for number in (3, 4)}
    assert boot.status["exit"] == 0, boot.status
    assert set(boot.addresses("ens3")) == {"192.0.2.3/24", *(f"{each}/24" for each in ONE.addresses)}
    assert set(boot.addresses("ens4")) == {"192.0.2.4/24", "10.0.2.10/24"}
    assert rules(machine) == policy(*(f"0 {each}" for each in ONE.addresses)) | KERNELS | theirs
    assert "192.0.2.99" in machine.read("/etc/resolv.conf") and boot.routes("192.0.3.0/24")
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:2]), SECOND: TWO})
    after = asked(machine)
    assert set(after.addresses("ens3")) == {"192.0.2.3/24", "10.0.1.10/24", "10.0.1.11/24"}
    assert theirs <= rules(machine) and after.routes("192.0.3.0/24")
    assert set(on_disk(machine)) == {"ens3.nmconnection", "ens4.nmconnection"}

    # Kept on disk, ours takes the place of the first, and the second is left alone all the same.
    switch_off(machine)
    kept = machine.boot(AWS, "homeport.platform-persist=yes")
    assert kept.status["exit"] == 0, kept.status
    assert set(kept.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24"}
    assert set(kept.addresses("ens4")) == {"192.0.2.4/24", "10.0.2.10/24"}
    assert rules(machine) == policy("0 10.0.1.10", "0 10.0.1.11") | KERNELS | {"500: from 192.0.2.4 lookup 500"}


def test_one_card_fails(world: World, cloud: Cloud, make_machine: MakeMachine, scenario: Scenario) -> None:
    """Another host has an address of one, then metadata of it can't be had: the other card doesn't feel it."""
    one, two = cloud.subnet("nine", "10.0.1"), cloud.subnet("ten", "10.0.2")
    cloud.describe({FIRST: ONE, SECOND: TWO})
    intruder = world.host("10.0.2.11", lan=two)
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    scenario.allow("10.0.2.11", r"homeport\.service: Failed", "Failed to start homeport")
    boot = machine.boot(AWS)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 75), boot.status
    assert "10.0.2.11" in boot.status["reason"]
    of_one = policy(*(f"0 {each}" for each in ONE.addresses))
    assert set(boot.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert boot.addresses("ens4") == ["10.0.2.10/24"]
    assert rules(machine) == of_one | KERNELS

    intruder.leave()
    assert asked(machine).status["exit"] == 0
    both = of_one | policy("1 10.0.2.10", "1 10.0.2.11")
    assert rules(machine) == both | KERNELS
    # Not one request for the first card is answered, and the second one loses an address.
    cloud.service.before = lambda path: (500, {}) if FIRST in path else None
    cloud.describe({FIRST: ONE, SECOND: Vnic(1, TWO.subnet, TWO.addresses[:1])})
    after = asked(machine)
    assert set(after.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24", "10.0.1.12/24"}
    assert after.addresses("ens4") == ["10.0.2.10/24"]
    both -= policy("1 10.0.2.11") - policy()
    assert rules(machine) == both | KERNELS

    # It can be read again, and has lost an address by then: not a stranger's, though nobody could say so meanwhile.
    cloud.service.before = lambda path: None
    cloud.describe({FIRST: Vnic(0, ONE.subnet, ONE.addresses[:2]), SECOND: Vnic(1, TWO.subnet, TWO.addresses[:1])})
    after = asked(machine)
    assert set(after.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24"}
    both -= policy("0 10.0.1.12") - policy()
    assert rules(machine) == both | KERNELS

    # Refused, not only silent, and for the one card alone; `reset` knows of it all the same.
    cloud.service.before = lambda path: (403, {}) if FIRST in path else None
    assert set(asked(machine).addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24"}
    assert rules(machine) == both | KERNELS
    machine.run(["homeport", "reset", "--yes"])
    assert machine.look().addresses("ens3") == ["10.0.1.10/24"]
    assert rules(machine) == KERNELS


@pytest.mark.parametrize("persist", ["auto", "yes"])
def test_the_card_under_the_root_file_system_stays_as_it_is(
        world: World, cloud: Cloud, make_machine: MakeMachine, persist: str) -> None:
    """The other one comes, changes and goes all the same, beside its profile or by one of its own."""
    root = ("root=iscsi:@10.0.1.1::::iqn.2026-12.example:root", f"homeport.platform-persist={persist}")
    one, two = cloud.subnet(f"{persist}-1", "10.0.1"), cloud.subnet(f"{persist}-2", "10.0.2")
    cloud.describe({FIRST: ONE, SECOND: TWO})
    machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    boot = machine.boot(AWS, *root)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
    assert boot.addresses("ens3") == ["10.0.1.10/24"]
    assert set(boot.addresses("ens4")) == {"10.0.2.10/24", "10.0.2.11/24"}
    assert rules(machine) == policy("1 10.0.2.10", "1 10.0.2.11") | KERNELS
    cloud.describe({FIRST: ONE, SECOND: Vnic(1, TWO.subnet, TWO.addresses[:1])})
    after = asked(machine)
    assert (after.status["rung"], after.status["exit"]) == ("assigned", 0), after.status
    assert after.addresses("ens4") == ["10.0.2.10/24"]
    assert rules(machine) == policy("1 10.0.2.10") | KERNELS
    assert [name for name in on_disk(machine) if "nmconn" in name] == (
        ["homeport-ens4.nmconnection"] if persist == "yes" else [])
    assert machine.look().addresses("ens3") == ["10.0.1.10/24"]
    assert went(machine, "ens3") == []


@pytest.mark.parametrize("tree", ["trixie", pytest.param("bookworm", marks=pytest.mark.skipif(
    "GUEST_bookworm" not in prepared(), reason="no Debian 12 to boot (run: tools/setup guest-bookworm)"))])
def test_ipv6_leaves_by_its_own_nic_too(world: World, cloud: Cloud, make_machine: MakeMachine, tree: str) -> None:
    """Also with NetworkManager 1.42, which loses IPv6 when it is told to leave alone what others added."""
    one = cloud.subnet(f"{tree}-1", "10.0.1", prefix_6="2001:db8:1")
    two = cloud.subnet(f"{tree}-2", "10.0.2", prefix_6="2001:db8:2")
    second = Vnic(1, TWO.subnet, TWO.addresses[:1], ["2001:db8:2::10"], "2001:db8:2::/64")
    cloud.describe({
        FIRST: Vnic(0, ONLY.subnet, ONLY.addresses, ["2001:db8:1::10", "2001:db8:1::11"], "2001:db8:1::/64"),
        SECOND: second})
    machine = make_machine(tree=tree, nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
    boot = machine.boot(AWS)
    assert boot.status["exit"] == 0, boot.status
    held = {"2001:db8:1::10": "ens3", "2001:db8:1::11": "ens3", "2001:db8:2::10": "ens4"}
    # What is in force can be used: nothing can be sent from an address during duplicate address detection.
    at_once = machine.sh("ip -6 -oneline address show scope global -tentative").stdout
    assert all(f"{ip}/128" in at_once for ip in held), at_once
    # A change may start it anew.
    usable = " && ".join(f"ip -6 address show dev {nic} -tentative | grep {ip}/128" for ip, nic in held.items())
    machine.wait(usable)
    asked(machine)
    machine.wait(usable)
    wanted = policy("0 2001:db8:1::10", "0 2001:db8:1::11", "1 2001:db8:2::10")
    assert rules(machine, "-6") == wanted | KERNELS_6
    for address, nic in held.items():
        assert leaves_by(machine, address) == nic

    # NetworkManager starts IPv6 anew with a change: what others added is put back with the rest.
    machine.sh(f"ip address add 2001:db8:1::99/128 dev ens3 nodad && ip address add {FOREIGN} dev ens3 && "
               "ip route add 2001:db8:42::/48 via 2001:db8:1::1 dev ens3")
    cloud.describe({FIRST: Vnic(0, ONLY.subnet, ONLY.addresses, ["2001:db8:1::10"], "2001:db8:1::/64"), SECOND: second})
    after = asked(machine)
    assert "2001:db8:1::99/128" in after.addresses("ens3", "inet6") and FOREIGN in after.addresses("ens3")
    # Its gateway is in a network that is only advertised: as soon as that is there again.
    machine.wait("ip -6 route show 2001:db8:42::/48 | grep ens3")
    assert "2001:db8:1::11/128" not in after.addresses("ens3", "inet6")
    assert rules(machine, "-6") == (wanted - (policy("0 2001:db8:1::11") - policy())) | KERNELS_6
