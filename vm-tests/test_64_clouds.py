"""Machines at the other clouds whose addresses come and go: Google, Azure, Alibaba, Oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cloud import OUTSIDE, OUTSIDE_6, Cloud
from container import Machine, Nic
from outcome import Outcome
from test_60_platforms import FIRST, KERNELS, SECOND, leaves_by, on_disk, policy, rules
from world import World

MakeMachine = Callable[..., Machine]


class Google(Cloud):
    """Its service answers a question for a folder with all that is below it."""

    def forward(self, *forwarded: list[str]) -> None:
        nics = [{"mac": mac, "ip": f"10.0.{number}.10", "gateway": f"10.0.{number}.1", "mtu": 1460,
                 "subnetmask": "255.255.255.0", "forwardedIps": addresses}
                for number, (mac, addresses) in enumerate(zip((FIRST, SECOND), forwarded, strict=True), 1)]
        self.folder.joinpath("computeMetadata/v1/instance").mkdir(parents=True, exist_ok=True)
        self.folder.joinpath("computeMetadata/v1/instance/network-interfaces").write_text(json.dumps(nics))


def test_google_forwards_addresses(world: World, make_machine: MakeMachine) -> None:
    with Google(world, "gcp") as cloud:
        one, two = cloud.subnet("g-one", "10.0.1"), cloud.subnet("g-two", "10.0.2")
        cloud.forward(["203.0.113.80", "203.0.113.81"], [])
        machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
        boot = machine.boot("ignition.platform.id=gcp")
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert set(boot.addresses("ens3")) == {"10.0.1.10/24", "203.0.113.80/32", "203.0.113.81/32"}
        assert boot.addresses("ens4") == ["10.0.2.10/24"]  # one without any is fine
        assert "mtu 1460" in machine.sh("ip link show ens3").stdout
        assert rules(machine) == KERNELS
        # The first NIC is the way out, though both have DHCP.
        assert "dev ens3" in machine.sh(f"ip route get {OUTSIDE}").stdout
        # A load balancer delivers to the forwarded address itself.
        world.namespace.ip("route", "replace", "203.0.113.80/32", "via", "10.0.1.10")
        world.namespace.run(["ping", "-c", "1", "-W", "10", "-q", "203.0.113.80"])
        world.namespace.ip("route", "delete", "203.0.113.80/32")

        # After its restart NetworkManager doesn't know of what is still in the kernel. It has to, to take it away.
        machine.sh("systemctl restart NetworkManager && nm-online -s -q -t 60")
        assert set(machine.look().addresses("ens3")) == {"10.0.1.10/24", "203.0.113.80/32", "203.0.113.81/32"}
        cloud.forward(["203.0.113.81"], ["203.0.113.82"])
        machine.run(["homeport", "refresh"])
        after = machine.look()
        assert set(after.addresses("ens3")) == {"10.0.1.10/24", "203.0.113.81/32"}
        assert set(after.addresses("ens4")) == {"10.0.2.10/24", "203.0.113.82/32"}
        assert on_disk(machine) == []


def both(boot: Outcome, nic: str) -> set[str]:
    return {*boot.addresses(nic), *boot.addresses(nic, "inet6")}


def azures(mac: str, net: int, *hosts: int, v6: bool = True) -> dict[str, Any]:
    ipv6 = {"ipAddress": [{"privateIpAddress": f"2001:db8:{net}::10"}],
            "subnet": [{"address": f"2001:db8:{net}::", "prefix": "64"}]}
    return {"macAddress": mac.replace(":", "").upper(),
            "ipv4": {"ipAddress": [{"privateIpAddress": f"10.0.{net}.{host}", "publicIpAddress": ""} for host in hosts],
                     "subnet": [{"address": f"10.0.{net}.0", "prefix": "24"}]},
            "ipv6": ipv6 if v6 else {"ipAddress": []}}


def test_azure_in_both_families(world: World, make_machine: MakeMachine) -> None:
    with Cloud(world, "azure") as cloud:
        one = cloud.subnet("a-one", "10.0.1", prefix_6="2001:db8:1")
        two = cloud.subnet("a-two", "10.0.2", prefix_6="2001:db8:2")
        cloud.tell({"metadata/instance/network": json.dumps(
            {"interface": [azures(FIRST, 1, 10, 11), azures(SECOND, 2, 10)]})})
        machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
        boot = machine.boot("ignition.platform.id=azure")
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert {"10.0.1.10/24", "10.0.1.11/24"} <= both(boot, "ens3")
        assert rules(machine) == policy("0 10.0.1.10", "0 10.0.1.11", "1 10.0.2.10") | KERNELS
        assert policy("0 2001:db8:1::10", "1 2001:db8:2::10") <= rules(machine, "-6")
        for nic, net in (("ens3", 1), ("ens4", 2)):
            assert leaves_by(machine, f"10.0.{net}.10") == nic
            # IPv6 is taken away and put back by whatever NetworkManager reapplies, for a refresh that it has started.
            machine.wait("systemctl show --property ActiveState homeport-refresh.service | grep '=inactive' && "
                         f"ping -c 1 -W 1 -q -I 2001:db8:{net}::10 {OUTSIDE_6}")
            assert leaves_by(machine, f"2001:db8:{net}::10") == nic
        assert on_disk(machine) == []


def test_alibaba_with_its_gateway(world: World, make_machine: MakeMachine) -> None:
    """The gateway is not the first address of the subnet, and the prefix is not the VPC's."""
    top = "2016-01-01/meta-data/"
    with Cloud(world, "aliyun") as cloud:
        one = cloud.subnet("c-one", "10.0.1")
        one.add_address("10.0.1.253/24")
        keys = {"primary-ip-address": "10.0.1.10", "private-ipv4s": '["10.0.1.11","10.0.1.10"]',
                "vpc-cidr-block": "10.0.0.0/8", "netmask": "255.255.255.0", "gateway": "10.0.1.253"}
        cloud.tell({f"{top}mac": FIRST, **{
            f"{top}network/interfaces/macs/{FIRST}/{key}": text for key, text in keys.items()}})
        machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, plugged=False)))
        boot = machine.boot("ignition.platform.id=aliyun")
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert set(boot.addresses("ens3")) == {"10.0.1.10/24", "10.0.1.11/24"}
        assert rules(machine) == policy("0 10.0.1.10", "0 10.0.1.11") | KERNELS
        assert "via 10.0.1.253" in machine.sh(f"ip route get {OUTSIDE} from 10.0.1.11").stdout
        assert leaves_by(machine, "10.0.1.11") == "ens3"
        one.remove_address("10.0.1.253/24")


def vnic(mac: str, net: int, **more: Any) -> Mapping[str, Any]:
    return {"vnicId": mac, "macAddr": mac, "privateIp": f"10.0.{net}.10", "virtualRouterIp": f"10.0.{net}.1",
            "subnetCidrBlock": f"10.0.{net}.0/24", "vlanTag": 100 + net, **more}


def test_oracle_without_dhcp_on_the_second_card(world: World, make_machine: MakeMachine) -> None:
    with Cloud(world, "oraclecloud") as cloud:
        one, two = cloud.subnet("o-one", "10.0.1"), cloud.subnet("o-two", "10.0.2", dhcp=False)
        cloud.tell({"opc/v2/vnics": json.dumps([vnic(FIRST, 1), vnic(SECOND, 2)])})
        machine = make_machine(nics=(Nic("ens3", FIRST, one), Nic("ens4", SECOND, two)))
        boot = machine.boot("ignition.platform.id=oraclecloud", deadline=60)
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert (boot.addresses("ens3"), boot.addresses("ens4")) == (["10.0.1.10/24"], ["10.0.2.10/24"])
        assert "mtu 9000" in machine.sh("ip link show ens4").stdout
        assert rules(machine) == policy("0 10.0.1.10", "1 10.0.2.10") | KERNELS
        assert (leaves_by(machine, "10.0.1.10"), leaves_by(machine, "10.0.2.10")) == ("ens3", "ens4")
        assert on_disk(machine) == []


def test_nothing_on_disk_where_profiles_take_the_place_of_others(world: World, make_machine: MakeMachine) -> None:
    """PlatformPersist=no at a provider whose metadata are all of the configuration: as elsewhere, but in /run."""
    droplet = {"interfaces": {"public": [{"mac": FIRST, "type": "public", "ipv4": {
        "ip_address": "10.0.1.77", "netmask": "255.255.255.0", "gateway": "10.0.1.1"}}]},
        "dns": {"nameservers": ["192.0.2.53"]}}
    arguments = ("ignition.platform.id=digitalocean", "homeport.platform-persist=no", "homeport.deadline=5s")
    with Cloud(world, "digitalocean") as cloud:
        lan = cloud.subnet("d-one", "10.0.1")
        cloud.tell({"metadata/v1.json": json.dumps(droplet)})
        machine = make_machine(nics=(Nic("ens3", FIRST, lan),))
        boot = machine.boot(*arguments)
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.addresses("ens3") == ["10.0.1.77/24"]
        assert on_disk(machine) == []
        ours = "/run/NetworkManager/system-connections/homeport-ens3.nmconnection"
        assert "io.homeport.owned" in machine.read(ours)

        mark = machine.monitor.mark()
        machine.run(["homeport", "refresh", "--platform-persist", "no"])
        assert not machine.look().status["changed"]
        machine.sh("systemctl restart NetworkManager && nm-online -s -q -t 60")
        assert machine.look().addresses("ens3") == ["10.0.1.77/24"]
        assert not [event for event in machine.monitor.events(since=mark, kind="ADDR", nic="ens3")
                    if event.deleted or "10.0.1.77" in event.text]
        assert machine.sh("ls /run/NetworkManager/system-connections").stdout.split() == [
            "homeport-ens3.nmconnection", "lo.nmconnection"]

        machine.run(["homeport", "reset", "--yes"])
        assert machine.look().addresses("ens3") == ["10.0.1.10/24"]
        assert not machine.exists(ours)
