"""Providers whose machines have what a container's kernel may lack: bonds and VLANs, by permanent MAC."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.sources.platforms import told

from cloud import OUTSIDE, Cloud
from configserver import Tls
from container import Nic
from drives import make_image
from provider import Provider
from tagged import Tagged
from test_62_providers import FIRST, SECOND, both, case
from test_64_clouds import azures
from test_80_vm import SLOW, MakeVm
from vm.hardware import Hardware
from world import Lan, World

PACKET = "metadata.packet.net"
METADATA = "198.51.100.99"


@pytest.fixture
def lan(world: World) -> Lan:
    """A rack whose routers are those of Packet's bond, and of the DHCP before it."""
    return world.add_lan("rack", ("198.51.100.2/31", "10.99.0.2/31", "2001:db8:2::2/127", "192.168.77.1/24"))


@pytest.mark.vm_full("a minute, for providers that are few; a bond is booted by URL in test_80_vm.py")
def test_packet(world: World, lan: Lan, make_vm: MakeVm) -> None:
    """The bond with all its addresses, of two cards; the third one is nobody's. Its boot is told once."""
    lan.dhcp.start(first="192.168.77.10", last="192.168.77.20", router="192.168.77.1", dns="192.168.77.1",
                   extra=(f"--address=/{PACKET}/{METADATA}",))
    document = json.loads(case("packet-bond")["metadata"])
    document["phone_home_url"] = f"https://{PACKET}/phone-home"
    tls = Tls(world.folder / "tls-packet", PACKET)
    machine = make_vm(nics=(Nic("enp1s0", SECOND, lan), Nic("enp2s0", FIRST, lan), Nic("enp3s0", "", lan)))
    shutil.copy(tls.ca, machine.on_disk("/etc/packet-ca.pem"))
    unit = machine.on_disk("/etc/systemd/system/multi-user.target.wants/homeport-check-in.service")
    unit.symlink_to("/usr/lib/systemd/system/homeport-check-in.service")
    arguments = ("ignition.platform.id=packet", "homeport.ca=/etc/packet-ca.pem", *SLOW)
    metadata = {"metadata": json.dumps(document)}
    with Provider(world, "packet", metadata, address=METADATA, port=443, tls=tls,
                  hears=told.packet(metadata["metadata"].encode())) as provider:
        boot = machine.boot(*arguments)
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
        assert boot.status["source"].startswith("platform packet")
        assert both(boot, "bond0") == {"198.51.100.3/31", "10.99.0.3/31", "2001:db8:2::3/127"}
        links = {link["ifname"]: link for link in boot.parsed("address")}
        assert {name for name, link in links.items() if link.get("master") == "bond0"} == {"enp1s0", "enp2s0"}
        # The switch expects the MAC of the first card of the metadata, which is the second one here.
        assert links["bond0"]["address"] == FIRST and links["enp1s0"].get("permaddr") == SECOND
        bonding = machine.sh("cd /sys/class/net/bond0/bonding; cat mode lacp_rate xmit_hash_policy miimon").stdout
        assert bonding.split() == ["802.3ad", "4", "fast", "1", "layer3+4", "1", "100"]
        assert [route["gateway"] for route in boot.routes("10.0.0.0/8")] == ["10.99.0.2"]
        assert boot.resolv[:1] == ["192.168.77.1"]  # as DHCP had it in the bootstrap stage: the metadata have none
        machine.sh("ping -c 2 -W 5 198.51.100.2 && ping -c 2 -W 5 10.99.0.2 && ping -c 2 -W 5 2001:db8:2::2")
        machine.wait("systemctl is-active -q homeport-check-in")
        assert len(provider.told.good) == 1
        machine.sh("systemctl restart homeport-check-in")
        assert len(provider.told.good) == 1 and "has heard of this machine before" in machine.story()


@pytest.mark.vm_full("two minutes for what tests of the resolver have without a kernel")
def test_azure_with_a_virtual_function(world: World, make_vm: MakeVm) -> None:
    """Accelerated networking: three interfaces with one MAC, of which the kernel carries two below the third.

    Only that one is to be configured, whether the function is there or not: the host takes it away to be serviced,
    and gives it back. No Hyper-V here: it is net_failover that carries, which does as hv_netvsc does.
    """
    with Cloud(world, "azure") as cloud:
        lan = cloud.subnet("a-vf", "10.0.1")
        cloud.tell({"metadata/instance/network": json.dumps({"interface": [azures(FIRST, 1, 10, 11, v6=False)]})})
        function = Nic("enp2s0", FIRST, lan, below="enp1s0")
        machine = make_vm(nics=(Nic("enp1s0", FIRST, lan), function))
        boot = machine.boot("ignition.platform.id=azure", *SLOW)

        def as_it_should_be(ports: set[str], through: str) -> None:
            links = {link["ifname"]: link for link in machine.look().parsed("address")}
            assert {name for name, link in links.items() if link.get("master") == "enp1s0"} == ports
            assert {link["address"] for name, link in links.items() if name != "lo"} == {FIRST}
            assert {name: machine.look().addresses(name) for name in sorted(links) if name != "lo"} == {
                "enp1s0": ["10.0.1.10/24", "10.0.1.11/24"], **{name: [] for name in ports}}
            before = len(machine.wire(through).ours)
            machine.sh(f"ping -c 20 -i 0.1 -W 5 -q -I 10.0.1.11 {OUTSIDE}")
            assert len(machine.wire(through).ours) - before >= 20

        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.failed_units == []
        as_it_should_be({"enp1s0nsby", "enp2s0"}, "enp2s0")
        machine.remove_nic("enp2s0")
        machine.run(["homeport", "refresh"])
        as_it_should_be({"enp1s0nsby"}, "enp1s0")
        machine.add_nic(function)
        machine.wait("test -e /sys/class/net/enp1s0/lower_enp2s0")
        machine.run(["homeport", "refresh"])
        as_it_should_be({"enp1s0nsby", "enp2s0"}, "enp2s0")


@pytest.mark.vm_full("a minute for what test_80_vm.py has by URL")
def test_openstack(world: World, lan: Lan, make_vm: MakeVm) -> None:
    """All that `network_data.json` can say: a bond of two cards, a VLAN on it with both families, a third card."""
    lan.dhcp.start(first="192.168.77.10", last="192.168.77.20", router="192.168.77.1", dns="")
    machine = make_vm(nics=(Nic("enp1s0", FIRST, lan), Nic("enp2s0", SECOND, lan),
                            Nic("enp3s0", "00:00:5e:00:53:03", lan)))
    content = machine.folder / "config-drive"
    for name, data in case("openstack-bond-vlan-dhcpv6").items():
        text = json.loads(data)
        for link in text["links"]:
            link["mtu"] = None  # of taps on one bridge
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_text(json.dumps(text))
    make_image(content, machine.folder / "config.iso", "config-2", "iso9660")
    machine.hardware = Hardware(drives={"config": machine.folder / "config.iso"})
    with Tagged(lan, 40, ["192.0.2.1", "2001:db8:e::1"]) as router:
        boot = machine.boot(*SLOW)
        machine.sh("ping -c 2 -W 5 192.0.2.1 && ping -c 2 -W 5 2001:db8:e::1")
    assert {"ARP 192.0.2.1", "ND 2001:db8:e::1"} <= set(router.asked)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert boot.status["source"].startswith("platform openstack")
    links = {link["ifname"]: link for link in boot.parsed("address")}
    assert {name for name, link in links.items() if link.get("master") == "bond0"} == {"enp1s0", "enp2s0"}
    assert links["bond0.40"]["address"] == "00:00:5e:00:53:aa"
    assert both(boot, "bond0.40") == {"192.0.2.60/24", "2001:db8:e::60/64"}
    assert [address.partition(".")[0] for address in boot.addresses("enp3s0")] == ["192"]
    assert boot.resolv == ["192.0.2.53", "2001:db8:e::53"]
