"""The rest of what only whole machines show: other suites, shapes, sites, a root on the network, hardware that lies,
comes late or goes. An hour of boots without KVM; `make test-vm-full`.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from configserver import ConfigServer
from container import Nic
from firmware import Firmware
from image import make_image
from iscsi import Target
from outcome import Outcome
from provider import Provider
from seed import ADDRESS, NIC, SEED, assert_early, assert_on_dhcp, assert_seed, default_routes, seed_document
from tagged import Tagged
from test_80_vm import FIRST, NETWORK, SECOND, SLOW, MakeVm, in_initrd, static
from vm.disk import vfat_disk
from vm.hardware import Hardware
from vm.machine import base_disk
from world import World

pytestmark = pytest.mark.vm_full("an hour of boots without KVM")


# Suites


@pytest.mark.parametrize("own_units", [False, True], ids=["as-it-is", "networkmanagers-own-units"])
def test_forky(world: World, server: ConfigServer, make_vm: MakeVm, own_units: bool) -> None:
    """NetworkManager 1.58, dracut 112, Python 3.14; with dracut's units for NetworkManager and with its own."""
    world.dhcp.start()
    machine = make_vm(image=make_image("forky", own_units=own_units))
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", *NETWORK)
    assert_seed(machine, boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0)
    assert boot.failed_units == []
    assert_early(boot)
    machine.power_off()
    assert len(server.asked(SEED)) == 1


# Shapes


def test_vrf_bridge_and_dummy(world: World, make_vm: MakeVm, falling: None) -> None:
    """Without any network to be asked by: the document is a file of the firmware (fw_cfg). Then without it."""
    other = world.add_lan("behind", ["10.46.0.1/24"])
    nics = (Nic("enp1s0", FIRST), Nic("enp2s0", SECOND, lan=other))
    machine = make_vm(nics=nics)
    machine.hardware = Hardware(fw_cfg={"opt/io.homeport/assignment": shapes_document()})
    boot = machine.boot(*SLOW)
    assert_shapes(world, boot, "assigned")
    assert "fw" in boot.status["source"]
    assert machine.wire("enp1s0").dhcp() == machine.wire("enp2s0").dhcp() == []
    machine.power_off()

    machine.hardware = Hardware()
    boot = machine.boot(*SLOW)
    assert_shapes(world, boot, "last-known-good")


def shapes_document() -> str:
    off = {"ipv4": {"enabled": False}, "ipv6": {"enabled": False}}
    bridge = {"name": "br0", "type": "linux-bridge", "state": "up", "ipv4": static("192.168.122.150"),
              "ipv6": {"enabled": False},
              "bridge": {"options": {"stp": {"enabled": False}}, "port": [{"name": "enp1s0"}]}}
    vrf = {"name": "vrf7", "type": "vrf", "state": "up", "vrf": {"port": ["enp2s0"], "route-table-id": 107}}
    dummy = {"name": "dummy0", "type": "dummy", "state": "up", "ipv6": {"enabled": False},
             "ipv4": {"enabled": True, "dhcp": False, "address": [{"ip": "10.99.0.1", "prefix-length": 32}]}}
    port = {"name": "enp2s0", "type": "ethernet", "state": "up", "ipv4": static("10.46.0.150"),
            "ipv6": {"enabled": False}}
    routes = [{"destination": "0.0.0.0/0", "next-hop-address": "192.168.122.1", "next-hop-interface": "br0",
               "metric": 150},
              {"destination": "10.77.0.0/16", "next-hop-address": "10.46.0.1", "next-hop-interface": "enp2s0",
               "table-id": 107}]
    return json.dumps({"interfaces": [{"name": "enp1s0", "type": "ethernet", "state": "up", **off}, bridge, vrf, dummy,
                                      port],
                       "routes": {"config": routes}, "dns-resolver": {"config": {"server": ["192.168.122.1"]}}})


def assert_shapes(world: World, boot: Outcome, rung: str) -> None:
    assert (boot.status["rung"], boot.status["exit"]) == (rung, 0), boot.status
    assert boot.addresses("br0") == [ADDRESS]
    assert boot.addresses("dummy0") == ["10.99.0.1/32"]
    assert boot.addresses("enp2s0") == ["10.46.0.150/24"]
    links = {link["ifname"]: link for link in boot.parsed("address")}
    assert (links["enp1s0"]["master"], links["enp2s0"]["master"]) == ("br0", "vrf7")
    assert ("192.168.122.1", "br0", 150, "main") in default_routes(boot)
    assert [(r["gateway"], r["dev"]) for r in boot.routes("10.77.0.0/16")] == [("10.46.0.1", "enp2s0")]
    world.namespace.run(["ping", "-c", "1", "-W", "5", "10.46.0.150"])


# Sites

SIX = "2001:db8:122:"


def test_ipv6_alone(world: World, make_vm: MakeVm) -> None:
    """By router advertisement in the initramfs to a server that has only an IPv6 address; then static."""
    from test_49_shapes import IPV6_ONLY, assert_ipv6_only
    lan = world.add_lan("vmsix", [f"{SIX}:{last}/64" for last in ("1", "2", "53")])
    lan.dhcp.start(dns="", router="", extra=[
        "--enable-ra", f"--dhcp-range={SIX}:,ra-stateless,64,120", f"--dhcp-option=option6:dns-server,[{SIX}:53]"])
    server = world.serve(f"{SIX}:2")
    machine = make_vm(nics=(Nic(NIC, lan=lan),))
    boot = machine.boot(f"homeport.config={server.put('/six.yaml', IPV6_ONLY)}", *NETWORK)
    lan.dhcp.stop()
    assert_ipv6_only(boot)
    assert_early(boot)
    machine.power_off()
    assert len(server.asked("/six.yaml")) == 1


def test_clock_at_1970(world: World, make_vm: MakeVm) -> None:
    """No battery: to a clock at 1970 the server's certificate is of the future, and the machine gets there."""
    world.dhcp.start()
    server = world.serve(tls=True, port=443)
    assert server.tls
    machine = make_vm()
    machine.hardware = Hardware(clock="1970-01-01T00:00:10")
    machine.write_in_initrd("/etc/homeport/ca.pem", server.tls.ca.read_text())
    machine.write("/etc/homeport/ca.pem", server.tls.ca.read_text())
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", "homeport.ca=/etc/homeport/ca.pem",
                        *NETWORK)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert_early(boot)


@pytest.fixture
def target(world: World, make_vm: MakeVm) -> Iterator[Target]:
    image = make_image("netroot", modules=("iscsi",))
    base_disk(image)  # of the tree as it is before somebody runs in it
    with Target(world, image.root) as running:
        yield running


def test_root_over_iscsi(world: World, server: ConfigServer, make_vm: MakeVm, target: Target) -> None:
    """The root is mounted over the assigned address, which nobody takes down afterwards."""
    world.dhcp.start()
    machine = make_vm(image=make_image("netroot", modules=("iscsi",)))
    machine.disk.unmount()
    machine.remote = True
    target.offer(machine.disk.image)
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}", *NETWORK, *target.arguments)
    assert boot.status["exit"] == 0, boot.status
    assert boot.addresses(NIC) == [ADDRESS]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    assert_early(boot)
    assert "iscsi" in machine.sh("ls -l /dev/disk/by-path").stdout
    # From the assigned address and no other: a lease that the session stands on would be lost one day.
    assert re.findall(r"IP Address: (\S+)", target.sessions()) == [ADDRESS.partition("/")[0]]


# Hardware


def test_nic_plugged_in_late(world: World, server: ConfigServer, make_vm: MakeVm) -> None:
    """A card of the document that appears when the initramfs has been asking for it for a while."""
    world.dhcp.start()
    other = world.add_lan("late", ["10.46.0.1/24"])
    cards = [{"name": name, "type": "ethernet", "state": "up", "ipv4": static(address), "ipv6": {"enabled": False}}
             for name, address in (("enp1s0", "192.168.122.150"), ("enp2s0", "10.46.0.150"))]
    route = {"destination": "0.0.0.0/0", "next-hop-address": "192.168.122.1", "next-hop-interface": NIC, "metric": 150}
    document = json.dumps({"interfaces": cards, "routes": {"config": [route]}})
    machine = make_vm()
    machine.start(f"homeport.config={server.put(SEED, document)}", *NETWORK, "homeport.nic-wait=60s")
    machine.wait_for_agent("initrd")
    machine.wait("journalctl -b -u 'homeport*' | grep -q 'waiting for enp2s0'")
    time.sleep(3)
    machine.add_nic(Nic("enp2s0", SECOND, lan=other))
    boot = machine.wait_online()
    assert boot.addresses(NIC) == [ADDRESS]
    assert boot.addresses("enp2s0") == ["10.46.0.150/24"]
    assert boot.status["exit"] == 0
    assert_early(boot)


def test_drive_removed(world: World, make_vm: MakeVm, tmp_path: Path, falling: None) -> None:
    """What was taken from a drive once stays when the drive has gone."""
    machine = make_vm()
    drive = tmp_path / "drive.img"
    # By serial number: the file for this machine goes before the one for everybody.
    vfat_disk(drive, "HOMEPORT", {f"{machine.firmware.serial}.yaml": seed_document(),
                                  "homeport.yaml": seed_document("192.168.122.199")})
    machine.hardware = Hardware(drives={"stick": drive})
    assert_seed(machine, machine.boot(*SLOW))
    # The drive was read in the initramfs, so that NetworkManager starts with what is on it.
    assert machine.wire(NIC).dhcp() == []
    assert any("made ready for the real root" in line for line in in_initrd(machine))
    machine.power_off()
    machine.hardware = Hardware()
    boot = machine.boot(*SLOW)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert machine.wire(NIC).dhcp() == []


def test_seed_on_a_usb_stick(world: World, make_vm: MakeVm, tmp_path: Path, falling: None) -> None:
    """A first boot without a server: the kernel shows a stick a second after it was found, and yet not one DHCP packet
    leaves the machine.
    """
    machine = make_vm(image=make_image("metal"))
    stick = tmp_path / "stick.img"
    vfat_disk(stick, "HOMEPORT", {"seed.yaml": seed_document()})
    machine.hardware = Hardware(sticks={"stick": stick})
    boot = machine.boot(*NETWORK)
    assert boot.addresses(NIC) == [ADDRESS]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    assert (boot.status["rung"], boot.status["exit"], boot.status["persisted"]) == ("seed", 0, False)
    assert_early(boot, "seed", fetched=False)
    assert "HOMEPORT/seed.yaml" in boot.early["source"]
    assert machine.wire(NIC).dhcp() == []


def test_smbios_junk_and_a_credential_in_it(world: World, make_vm: MakeVm) -> None:
    """A UUID and a serial number that thousands share name nobody; the document is a type 11 string."""
    machine = make_vm(firmware=Firmware("03000200-0400-0500-0006-000700080009", "To be filled by O.E.M."))
    encoded = base64.b64encode(seed_document().encode()).decode()
    machine.hardware = Hardware(strings=[f"io.systemd.credential.binary:homeport.assignment={encoded}"])
    boot = machine.boot(*SLOW)
    assert_seed(machine, boot)
    identity = boot.status["identity"]
    assert (identity["kind"], identity["value"]) == ("mac", machine.mac(NIC))
    assert machine.wire(NIC).dhcp() == []


def test_seed_on_the_kernel_line(world: World, make_vm: MakeVm, falling: None) -> None:
    """Packed, it is in force without a server; cut off in the middle, it is loud, and the machine is on a lease. zstd's
    is unpacked in the initramfs, where its program is not.
    """
    packed = base64.b64encode(gzip.compress(seed_document().encode(), 9)).decode()
    by_zstd = subprocess.run(["zstd", "-19", "-c"], input=seed_document().encode(), capture_output=True, check=True)
    machine = make_vm()
    boot = machine.boot(f"homeport.seed={base64.b64encode(by_zstd.stdout).decode()}", *SLOW)
    assert boot.addresses(NIC) == [ADDRESS]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    # Proven, and not kept: a seed is where a machine starts.
    assert (boot.status["rung"], boot.status["exit"], boot.status["persisted"]) == ("seed", 0, False)
    assert not any(name.startswith("homeport-") for name in boot.keyfiles)
    assert machine.wire(NIC).dhcp() == []
    machine.power_off()

    world.dhcp.start()
    broken = make_vm()
    boot = broken.boot(f"homeport.seed={packed[:len(packed) // 2]}", *SLOW)
    assert_on_dhcp(boot)
    assert (boot.status["rung"], boot.status["exit"]) == ("dhcp", 65)
    lines = [line for line in broken.console.splitlines() if "homeport: " in line]
    assert any("homeport.seed" in line for line in lines), lines
    assert all(len(line.partition("homeport: ")[2]) <= 100 for line in lines), lines


# A cloud that is metal


def test_oracle_bare_metal_vlan(world: World, make_vm: MakeVm) -> None:
    """A second VNIC that is a VLAN of the one card, under a MAC of its own."""
    cloud = world.add_lan("oci", ["10.2.0.1/24"])
    cloud.dhcp.start(first="10.2.0.5", last="10.2.0.5", router="10.2.0.1", dns="192.0.2.53")
    second = "02:00:17:00:53:a1"
    vnics = [{"vnicId": "v0", "macAddr": FIRST, "privateIp": "10.2.0.5", "virtualRouterIp": "10.2.0.1",
              "subnetCidrBlock": "10.2.0.0/24", "vlanTag": 0, "nicIndex": 0},
             {"vnicId": "v1", "macAddr": second, "privateIp": "10.2.1.5", "virtualRouterIp": "10.2.1.1",
              "subnetCidrBlock": "10.2.1.0/24", "vlanTag": 2, "nicIndex": 0}]
    machine = make_vm(nics=(Nic(NIC, FIRST, lan=cloud),))
    with (Provider(world, "oraclecloud", {"opc/v2/vnics": json.dumps(vnics)}),
          Tagged(cloud, 2, ["10.2.1.1"]) as router):
        boot = machine.boot("ignition.platform.id=oraclecloud", *SLOW)
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        (vlan,) = (link["ifname"] for link in boot.parsed("address") if link.get("address") == second
                   and boot.addresses(link["ifname"]))
        assert boot.addresses(vlan) == ["10.2.1.5/24"]
        router.asked.clear()
        machine.sh("ping -c 1 -W 5 -I 10.2.1.5 10.2.1.1")
        assert router.asked == ["ARP 10.2.1.1"]
    cloud.dhcp.stop()
