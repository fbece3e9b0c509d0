"""Machines at providers that say once what network a machine has: by a drive, or by a service on its true address."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.sources.platforms.conftest import CASES

from container import Machine, Nic
from drives import Drives
from firmware import firmware_of
from namespaces import wait_until
from outcome import Outcome
from provider import Provider
from world import Lan, World

FIRST, SECOND, THIRD = "00:00:5e:00:53:01", "00:00:5e:00:53:02", "00:00:5e:00:53:03"  # those of tests/data/platforms
MakeMachine = Callable[..., Machine]
MakeLan = Callable[..., Lan]


@pytest.fixture
def lan(world: World) -> MakeLan:
    """lan("do-public", "198.51.100.1/24"): a LAN whose router has these addresses."""
    return lambda name, *routers: world.add_lan(name, routers)


def reaches(machine: Machine, *addresses: str) -> None:
    for address in addresses:
        machine.sh(f"ping -c 1 -W 10 -q {address}")


def case(name: str) -> dict[str, bytes]:
    """The metadata of a golden case: what is tested there as text, a machine gets here."""
    folder = CASES / name / "metadata"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def both(boot: Outcome, nic: str) -> set[str]:
    """Global addresses of both families."""
    return {*boot.addresses(nic), *boot.addresses(nic, "inet6")}


def assigned(boot: Outcome, platform: str) -> None:
    source = " ".join(str(boot.status["source"]).split()[:2])
    assert (boot.status["rung"], boot.status["exit"], source) == ("assigned", 0, f"platform {platform}"), boot.status


DROPLET: dict[str, Any] = {
    "droplet_id": 1001, "hostname": "web-1", "region": "fra1", "dns": {"nameservers": ["192.168.122.53"]},
    "interfaces": {
        "public": [{
            "mac": FIRST, "type": "public",
            "ipv4": {"ip_address": "198.51.100.10", "netmask": "255.255.255.0", "gateway": "198.51.100.1"},
            "ipv6": {"ip_address": "2001:DB8:1::10", "cidr": 64, "gateway": "2001:DB8:1::1"},
            "anchor_ipv4": {"ip_address": "10.19.0.5", "netmask": "255.255.0.0", "gateway": "10.19.0.1"}}],
        "private": [{
            "mac": SECOND, "type": "private",
            "ipv4": {"ip_address": "10.135.0.7", "netmask": "255.255.0.0", "gateway": "10.135.0.1"}}]}}


def test_a_droplet_without_dhcp(world: World, lan: MakeLan, make_machine: MakeMachine) -> None:
    """DigitalOcean's service is reached from a link-local address, which is there for that and then gone."""
    public = lan("do-public", "198.51.100.1/24", "10.19.0.1/16", "2001:db8:1::1/64", "169.254.0.1/16")
    private = lan("do-private", "10.135.0.1/16")
    machine = make_machine("droplet", nics=(Nic("ens3", FIRST, public), Nic("ens4", SECOND, private)),
                           firmware=firmware_of("droplet", manufacturer="DigitalOcean", product="Droplet"))
    with Provider(world, "digitalocean", {"metadata/v1.json": json.dumps(DROPLET)}) as provider:
        boot = machine.boot()
    assigned(boot, "digitalocean")
    assert both(boot, "ens3") == {"198.51.100.10/24", "10.19.0.5/16", "2001:db8:1::10/64"}
    assert boot.addresses("ens4") == ["10.135.0.7/16"]
    reaches(machine, "198.51.100.1", "2001:db8:1::1", "10.19.0.1", "10.135.0.1")
    added = machine.monitor.events(kind="ADDR", nic="ens3")
    assert any("169.254." in event.text for event in added) and "169.254." not in machine.sh("ip address").stdout
    assert provider.service.requests == ["GET /metadata/v1.json"] * len(provider.service.requests)


PROXMOX = f"""version: 1
config:
  - type: physical
    name: eth0
    mac_address: '{FIRST}'
    subnets:
    - {{type: static, address: 192.0.2.20, netmask: 255.255.255.0, gateway: 192.0.2.1}}
    - {{type: static6, address: '2001:db8:3::20/64', gateway: '2001:db8:3::1'}}
  - type: physical
    name: eth1
    mac_address: '{SECOND}'
    subnets: [{{type: dhcp4}}]
  - {{type: nameserver, address: [192.0.2.53], search: [example.test]}}
"""


def test_proxmox_with_a_drive(world: World, lan: MakeLan, drives: Drives, make_machine: MakeMachine) -> None:
    one, two = lan("pve-one", "192.0.2.1/24", "2001:db8:3::1/64"), lan("pve-two", "203.0.113.1/24")
    two.dhcp.start(first="203.0.113.7", last="203.0.113.7", router="203.0.113.1", dns="")
    drives.plug("cidata", {"network-config": PROXMOX, "meta-data": "instance-id: pve-1\n",
                           "user-data": "#cloud-config\nhostname: web-1\n"})
    machine = make_machine("proxmox", nics=(Nic("ens18", SECOND, two), Nic("ens19", FIRST, one)), drives=drives)
    boot = machine.boot("ignition.platform.id=proxmoxve")
    assigned(boot, "proxmoxve")
    # The order of the cards is not that of the metadata: only the MAC counts.
    assert both(boot, "ens19") == {"192.0.2.20/24", "2001:db8:3::20/64"}
    assert boot.addresses("ens18") == ["203.0.113.7/24"]
    assert boot.resolv == ["192.0.2.53"]
    reaches(machine, "192.0.2.1", "2001:db8:3::1", "203.0.113.1")
    # The drive is gone at the next boot, as after the first one at some providers: what was proven stands.
    drives.labels.joinpath("cidata").unlink()
    machine.power_off()
    again = machine.boot("ignition.platform.id=proxmoxve")
    assert (again.status["rung"], again.status["exit"]) == ("assigned", 0)
    assert both(again, "ens19") == {"192.0.2.20/24", "2001:db8:3::20/64"}


@dataclass(frozen=True)
class Card:
    """A card of the machine and what its cable leads to: `routers` there, and what `dhcp` gives, if anything."""

    name: str
    mac: str
    routers: Sequence[str]
    dhcp: str = ""
    router: str = ""


@dataclass(frozen=True)
class Story:
    """A machine at a provider, by a golden case: how it is known, and what it then has."""

    case: str
    cards: Sequence[Card]
    addresses: Mapping[str, set[str]]
    reached: Sequence[str]
    manufacturer: str = "Test bench"
    arguments: Sequence[str] = ()
    drive: str = ""
    kind: str = "iso9660"
    routes: Mapping[str, str] = field(default_factory=dict)  # destination -> gateway

    @property
    def platform(self) -> str:
        return "ibmcloud-classic" if self.case.startswith("ibmcloud-classic") else self.case.partition("-")[0]


STORIES = (
    Story("hetzner-public-and-private", (
        Card("ens3", FIRST, ("198.51.100.1/24", "fe80::1/64", "2001:db8:6::ffff/64"), "198.51.100.6"),
        Card("ens4", SECOND, ("10.0.0.1/16",))),
        {"ens3": {"198.51.100.6/24", "2001:db8:6::1/64"}, "ens4": {"10.0.1.2/32"}},
        ("198.51.100.1", "10.0.0.1", "2001:db8:6::ffff"), manufacturer="Hetzner",
        routes={"10.0.0.0/16": "10.0.0.1", "10.0.0.1": ""}),
    # With a token, by a PUT, or nothing is said.
    Story("akamai-extra-addresses", (
        Card("ens3", FIRST, ("198.51.100.1/24", "192.168.128.1/17"), "198.51.100.20"),),
        {"ens3": {"198.51.100.20/24", "198.51.100.21/32", "192.168.140.9/17", "203.0.113.7/32", "2001:db8:9::/64"}},
        ("198.51.100.1", "192.168.128.1"), manufacturer="Linode"),
    Story("vultr-additional-and-private", (
        Card("ens3", FIRST, ("198.51.100.1/23",), "198.51.100.50"), Card("ens4", SECOND, ("10.7.96.1/20",))),
        {"ens3": {"198.51.100.50/23", "198.51.100.51/23", "2001:db8:d::/64"}, "ens4": {"10.7.96.3/20"}},
        ("198.51.100.1", "10.7.96.1"), manufacturer="Vultr"),
    Story("upcloud-dhcp-static-floating", (
        Card("ens3", FIRST, ("198.51.100.1/22",), "198.51.100.40"), Card("ens4", SECOND, ("172.16.0.1/22",))),
        {"ens3": {"198.51.100.40/22", "203.0.113.9/32"}, "ens4": {"172.16.0.40/22"}},
        ("198.51.100.1", "172.16.0.1"), manufacturer="UpCloud"),
    Story("kubevirt-config-drive", (
        Card("enp1s0", FIRST, ("192.0.2.1/24", "192.0.2.254/24", "2001:db8:4::1/64"), "192.0.2.7", "192.0.2.1"),),
        {"enp1s0": {"192.0.2.7/24", "2001:db8:4::7/64"}}, ("192.0.2.1", "2001:db8:4::1"), manufacturer="KubeVirt",
        drive="config-2", routes={"198.51.100.0/24": "192.0.2.254"}),
    Story("ibmcloud-classic-two-networks-on-one-link", (
        Card("eth0", FIRST, ("10.60.0.1/26", "203.0.113.1/28")),),
        {"eth0": {"10.60.0.9/26", "203.0.113.9/28"}}, ("10.60.0.1", "203.0.113.1"), drive="config-2", kind="vfat",
        arguments=("ignition.platform.id=ibmcloud-classic",)),
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.platform)
def test_a_machine_at(world: World, lan: MakeLan, drives: Drives, make_machine: MakeMachine, story: Story) -> None:
    nics = []
    for number, card in enumerate(story.cards):
        cable = lan(f"at{number}", *card.routers)
        if card.dhcp:
            router = card.router or card.routers[0].partition("/")[0]
            cable.dhcp.start(first=card.dhcp, last=card.dhcp, router=router)
        nics.append(Nic(card.name, card.mac, cable))
    if story.drive:
        drives.plug(story.drive, case(story.case), kind=story.kind)
    machine = make_machine(story.platform, nics=tuple(nics), drives=drives,
                           firmware=firmware_of(story.case, manufacturer=story.manufacturer))
    with Provider(world, story.platform, {} if story.drive else case(story.case)) as provider:
        boot = machine.boot(*story.arguments)
    assigned(boot, story.platform)
    assert {name: both(boot, name) for name in story.addresses} == story.addresses
    for destination, gateway in story.routes.items():
        assert {route.get("gateway", "") for route in boot.routes(destination)} == {gateway}
    reaches(machine, *story.reached)
    assert bool(provider.service.requests) != bool(story.drive)  # what is on a drive is not asked for


# By way of a drive: late, absent, damaged.

OPENSTACK = {
    "links": [{"id": "l0", "type": "ovs", "ethernet_mac_address": FIRST, "mtu": 1400},
              {"id": "l1", "type": "vif", "ethernet_mac_address": SECOND, "mtu": None}],
    "networks": [
        {"id": "n0", "type": "ipv4", "link": "l0", "ip_address": "192.0.2.60/24", "gateway": "192.0.2.1",
         "services": [{"type": "dns", "address": "192.0.2.53"}]},
        {"id": "n1", "type": "ipv6", "link": "l0", "ip_address": "2001:db8:e::60", "netmask": "ffff:ffff:ffff:ffff::",
         "routes": [{"network": "::", "netmask": "::", "gateway": "2001:db8:e::1"}]},
        {"id": "n2", "type": "ipv4_dhcp", "link": "l1",
         "routes": [{"network": "203.0.113.128", "netmask": "255.255.255.128", "gateway": "203.0.113.1"}]}],
    "services": [{"type": "dns", "address": "192.0.2.54"}]}


def test_openstack_with_a_drive_that_comes_late(world: World, lan: MakeLan, drives: Drives,
                                                make_machine: MakeMachine) -> None:
    """udev is still at work on the drive when homeport looks; there is no metadata service at all."""
    one, two = lan("os-one", "192.0.2.1/24", "2001:db8:e::1/64"), lan("os-two", "203.0.113.1/25")
    two.dhcp.start(first="203.0.113.7", last="203.0.113.7", router="203.0.113.1", dns="")
    device = drives.plug("config-2", {"openstack/latest/network_data.json": json.dumps(OPENSTACK),
                                      "openstack/latest/meta_data.json": "{}"}, late=True)
    machine = make_machine("openstack", nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)), drives=drives,
                           firmware=firmware_of("openstack", product="OpenStack Nova"))
    machine.start()
    wait_until(lambda: "asking OpenStack" in machine.story(), what="homeport to look for the drive")
    drives.settle("config-2", device)
    boot = machine.wait_online()
    assigned(boot, "openstack")
    assert both(boot, "ens3") == {"192.0.2.60/24", "2001:db8:e::60/64"} and boot.addresses("ens4") == ["203.0.113.7/25"]
    assert machine.read("/sys/class/net/ens3/mtu").strip() == "1400"
    assert boot.resolv == ["192.0.2.53", "192.0.2.54"]
    assert [route["gateway"] for route in boot.routes("203.0.113.128/25")] == ["203.0.113.1"]
    reaches(machine, "192.0.2.1", "2001:db8:e::1", "203.0.113.1")


@pytest.mark.usefixtures("falling")
def test_a_hypervisor_without_a_drive(world: World, make_machine: MakeMachine) -> None:
    """Afterburn ends in the emergency shell there; here DHCP goes on, and no address is made up while it is slow."""
    machine = make_machine("driveless")
    machine.start("ignition.platform.id=proxmoxve")
    wait_until(lambda: "asking Proxmox" in machine.story(), what="homeport to look for the drive")
    world.dhcp.start()
    boot = machine.wait_online()
    assert (boot.status["rung"], boot.status["exit"]) == ("dhcp", 69)
    assert "no drive labelled cidata or CIDATA" in machine.story()
    machine.wait("ip -4 address show dev enp1s0 | grep -q 'inet 192.168.122'")
    assert not [event for event in machine.monitor.events(kind="ADDR") if "169.254." in event.text]


@pytest.mark.usefixtures("falling")
def test_a_drive_that_is_damaged(world: World, drives: Drives, make_machine: MakeMachine) -> None:
    world.dhcp.start()
    drives.plug("cidata", {"network-config": PROXMOX})
    image = drives.folder / "drive-0.img"
    with image.open("r+b") as file:
        file.seek(16 * 2048 + 158)  # where the root folder is, of the primary descriptor
        file.write(b"\xff" * 8)
        file.seek(17 * 2048 + 158)  # and of Joliet's
        file.write(b"\xff" * 8)
    machine = make_machine("damaged", drives=drives)
    boot = machine.boot()
    assert (boot.status["rung"], boot.status["exit"]) == ("dhcp", 65)
    assert "a sound drive" in machine.story() or "cut short" in machine.story()


# By way of a service: slow, wrong, absent; and NoCloud's, wherever somebody says that it is.

NETWORK_CONFIG = f"""version: 2
ethernets:
  any:
    match: {{macaddress: '{FIRST}'}}
    addresses: [192.0.2.30/24]
    routes: [{{to: default, via: 192.0.2.1}}]
    nameservers: {{addresses: [192.0.2.53]}}
"""


def bad_minutes(request: int) -> tuple[int, dict[str, str]] | None:
    """The first two are refused, the third is answered too late."""
    if request == 3:
        time.sleep(3)
    answers: dict[int, tuple[int, dict[str, str]]] = {1: (503, {}), 2: (429, {"Retry-After": "1"})}
    return answers.get(request)


@pytest.mark.parametrize("told_by", ["serial number", "kernel argument"])
def test_nocloud_at_an_address(world: World, lan: MakeLan, make_machine: MakeMachine, told_by: str) -> None:
    """`ds=nocloud;s=…` as cloud-init has it; the service has its bad minutes first."""
    subnet = lan("nocloud", "192.0.2.1/24")
    subnet.dhcp.start(first="192.0.2.7", last="192.0.2.7", router="192.0.2.1")
    seed = "ds=nocloud;s=http://198.51.100.80/seed/__dmi.system-product-name__/"
    by_serial = told_by == "serial number"
    machine = make_machine(f"nocloud-{by_serial}", nics=(Nic("ens3", FIRST, subnet),), firmware=firmware_of(
        "nocloud", product="Rack 7", **({"serial": seed} if by_serial else {})))
    files = {"seed/Rack%207/network-config": NETWORK_CONFIG, "seed/Rack%207/meta-data": "instance-id: i-1\n"}
    with Provider(world, "nocloud", files, address="198.51.100.80") as provider:
        provider.service.before = lambda path: bad_minutes(len(provider.service.requests))
        boot = machine.boot("homeport.header-timeout=1s", *([] if by_serial else [seed]))
    assigned(boot, "nocloud")
    assert boot.addresses("ens3") == ["192.0.2.30/24"] and boot.resolv == ["192.0.2.53"]
    assert all(request.startswith("GET /seed/Rack%207/") for request in provider.service.requests)
    assert [entry for entry in machine.story().splitlines() if "no answer within 1 s; asking again" in entry]


@pytest.mark.usefixtures("falling")
def test_a_service_that_says_nonsense_and_one_that_is_away(
        world: World, lan: MakeLan, make_machine: MakeMachine) -> None:
    """DHCP while there has never been anything better; then what was proven, whatever the service says or does not."""
    public = lan("hetzner-bad", "198.51.100.1/24", "fe80::1/64")
    public.dhcp.start(first="198.51.100.6", last="198.51.100.6", router="198.51.100.1")
    machine = make_machine("hetzner-bad", nics=(Nic("ens3", FIRST, public),),
                           firmware=firmware_of("hetzner", manufacturer="Hetzner"))
    name = "hetzner/v1/metadata/network-config"
    good = case("hetzner-public-and-private")[name]
    wrong = {name: good.replace(b"2001:db8:6::1/64", b"2001:db8:6::g/64")}
    both_families = {"198.51.100.6/24", "2001:db8:6::1/64"}
    with Provider(world, "hetzner", wrong) as provider:
        boot = machine.boot()
        assert (boot.status["rung"], boot.status["exit"]) == ("dhcp", 65)
        assert "config[0].subnets[1].address" in machine.story() and both(boot, "ens3") == {"198.51.100.6/24"}
        provider.say({name: good})
        machine.run(["homeport", "refresh"])
        assert both(machine.look(), "ens3") == both_families
        provider.say(wrong)
        machine.sh("homeport refresh", check=False)
        assert both(machine.look(), "ens3") == both_families
        provider.stop()
        machine.power_off()
        again = machine.boot()
        assert (again.status["rung"], again.status["exit"]) == ("assigned", 0)
        assert both(again, "ens3") == both_families


def test_vmware_by_its_tools(world: World, lan: MakeLan, make_machine: MakeMachine) -> None:
    """What the hypervisor says through open-vm-tools' program, packed, as people put it there."""
    subnet = lan("vmware", "192.0.2.1/24")
    machine = make_machine("vmware", nics=(Nic("ens192", FIRST, subnet),),
                           firmware=firmware_of("vmware", manufacturer="VMware, Inc."))
    metadata = "instance-id: i-1\nlocal-hostname: esx-7\nnetwork:\n" + "".join(
        f"  {line}\n" for line in NETWORK_CONFIG.splitlines())
    packed = base64.b64encode(gzip.compress(metadata.encode())).decode()
    machine.write("/usr/bin/vmware-rpctool", f"""#!/bin/sh
case "$1" in
    "info-get guestinfo.metadata") echo {packed} ;;
    "info-get guestinfo.metadata.encoding") echo gzip+base64 ;;
    *) echo "No value found"; exit 1 ;;
esac
""", 0o755)
    boot = machine.boot()
    assigned(boot, "vmware")
    assert boot.addresses("ens192") == ["192.0.2.30/24"] and boot.resolv == ["192.0.2.53"]
    reaches(machine, "192.0.2.1")
    # Its name is in the same place.
    machine.run(["rm", "-f", "/etc/hostname"])
    machine.run(["systemctl", "start", "homeport-hostname", "homeport-attributes"])
    assert machine.run(["uname", "-n"]).stdout == machine.read("/etc/hostname") == "esx-7\n"
    assert "AFTERBURN_CUSTOM_HOSTNAME=esx-7\n" in machine.read("/run/metadata/afterburn")
