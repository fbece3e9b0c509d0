"""Afterburn beside homeport on one machine, asked the same by the same services: each difference has a reason.

Run by name: `make test-peers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import peers
from container import Machine, Nic
from differences import Reason, Reasons, compare, meaning
from homeport.rendering import render
from metadata import PACKET, Served, cases, read_case
from trees import REPOSITORY, prepared
from world import World

pytestmark = [pytest.mark.peers, pytest.mark.skipif(
    not prepared().get("PEER_afterburn"), reason="Afterburn is not there (run: tools/setup peer-afterburn)")]

PHONE_HOME = "metadata.example.test"
NICS = {"00:00:5e:00:53:01": "ens3", "00:00:5e:00:53:02": "ens4", "00:00:5e:00:53:03": "ens5"}

# By the names of their rows in docs/peers.md; tight, so that what is new is seen.
REASONS = [
    Reason("names for everybody", r":  AFTERBURN_CUSTOM_"),
    Reason("names as documented", r"scaleway:  AFTERBURN_SCALEWAY_P\w+_IPV[46]: there nothing"),
    Reason("every address", r"gcp:  AFTERBURN_GCP_IP_LOCAL_1: there nothing"),
    Reason("public address", r"azure:  AFTERBURN_AZURE_IPV4_VIRTUAL: there nothing"),
    Reason("empty values", r"there , here nothing$"),
    Reason("host name", r"cloudstack-configdrive:  hostname: there , "),
    Reason("link-local", r"ipv6 method: there disabled, here link-local$"),
    Reason("priority", r"connection\.autoconnect-priority: there 9\d\d, here 130$"),
    Reason("patience", r"(dhcp-timeout: there nothing, here 45|ra-timeout: there nothing, here 45"
                       r"|may-fail: there nothing, here (true|false)|required-timeout: there nothing, here 5000)$"),
    Reason("one lease", r"ipv[46] (dhcp-client-id|dhcp-duid|dhcp-iaid|dhcp-send-hostname|addr-gen-mode): "
                        r"there nothing, here (mac|ll|true|0)$"),
    Reason("spelled out", r"ipv[46] (ignore-auto-routes|never-default): there nothing, here false$"),
    Reason("servers once", r"(ens4 ipv[46] dns: only there |ipv[46] dns-priority: there nothing, here [45]0$"
                           r"|(hetzner|kubevirt-config-drive|proxmoxve): ens\d ipv[46] ignore-auto-dns: there )"),
    Reason("own prefix", r"digitalocean: ens3 ipv[46] route: only there (198|10\.19|2001)"),
    Reason("private gateway", r"digitalocean: ens4 ipv4 route: only there 10\.135"),
    Reason("private networks", r"hetzner: ens4 "),
    Reason("two networks on one card", r"ibmcloud-classic: ens4 ipv4 (address|method|route): "),
    Reason("mtu", r"kubevirt-config-drive: ens3 ethernet\.mtu: there nothing"),
    Reason("routes beside dhcp", r"kubevirt-config-drive: ens3 ipv4 route: only here 198\.51\.100\.0/24 .* metric 50$"),
    Reason("overrides", r"kubevirt-nocloud: ens4 ipv4 (ignore-auto-dns|route-metric): there nothing"),
    Reason("vlans", r"kubevirt-nocloud: vlan40 "),
    Reason("search domains", r"dns-search: only here example\.test$"),
    Reason("slaac", r"proxmoxve: ens4 ipv6 method: there disabled, here auto$"),
    Reason("several name server entries", r"proxmoxve-two-nameservers: (Afterburn refuses|ens3|"
                                          r" AFTERBURN_PROXMOXVE_\w+: there nothing)"),
    Reason("check-in", r"packet:  check-in: only (there POST /phone-home application/json|here POST /phone-home ) ?$"),
    Reason("ports", r"packet: ens[34] ipv[46] method: there disabled, here nothing$"),
    Reason("other cards", r"packet: (ens5|pci-\*) \S+( method)?: there \S+, here nothing$"),
]


@pytest.fixture
def machine(_the_world: World, _installed: None, tmp_path: Path) -> Iterator[Machine]:
    """A machine on DHCP, with both programs."""
    world = _the_world
    world.calm_down()
    # Azure's wire server is told by DHCP.
    world.dhcp.start(lease=3600, extra=["--dhcp-option-force=245,168.63.129.16"])
    with Machine(world, "beside-afterburn", nics=[Nic(name, mac) for mac, name in NICS.items()]) as machine:
        peers.install_afterburn(machine)
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n169.254.169.254 {PACKET} {PHONE_HOME}\n")
        machine.boot("homeport.platform=off")
        yield machine
    world.calm_down()


def test_afterburn(machine: Machine) -> None:
    reasons = Reasons(REPOSITORY / "docs" / "peers.md", "Afterburn", REASONS)
    for name in cases():
        case = read_case(name)
        if not case.afterburn:
            continue
        peers.plug_in(machine, case)
        with Served(machine.world, case) as served:
            if served.tls:
                machine.write("/etc/peers-ca.pem", served.tls.ca.read_text())
            there, here = peers.afterburn(machine, case), peers.homeport(machine, case)
            document = peers.document(machine, case)
            if case.check_in:
                reasons.take(compare(
                    name, {"": peers.check_in(machine, served, peers.afterburns_check_in(case))},
                    {"": peers.check_in(machine, served, peers.homeports_check_in(case))}))
        reasons.take(f"{name}: {who} refuses {what}: {why.splitlines()[-1]}" for who, said in (
            ("Afterburn", there), ("homeport", here)) for what, why in said.refused.items())
        reasons.take(compare(name, {"": {**there.attributes, "hostname": there.hostname}},
                             {"": {**here.attributes, "hostname": here.hostname}}))
        rendered = render(document.encode(), root=Path("/"), addresses={},
                          macs={name: mac for mac, name in NICS.items()})
        keyfiles = {name: text for name, text in rendered.items() if name.endswith(".nmconnection")}
        if there.profiles:  # of most platforms Afterburn has no profiles
            reasons.take(compare(name, meaning(there.profiles, NICS), meaning(keyfiles, NICS)))
    if faults := reasons.faults():
        pytest.fail("\n".join(faults), pytrace=False)
