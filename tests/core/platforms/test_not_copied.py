"""The faults of Afterburn, nm-cloud-setup and nm-configurator that must not be ours, each by what would show it.

What the golden folders hold as a whole is said here once more, fault by fault, so that nobody takes it for chance.
"""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from tests.core.platforms.test_cases import CASES, platform_of

from homeport.core import platforms
from homeport.core.facts import Nic
from homeport.core.nics import resolve
from homeport.errors import DocumentError
from homeport.sources.platforms import saved

FOLDER = {case.name: case for case in CASES}


def made(name: str, nics: Sequence[Nic] = (), servers: Sequence[str] = ()) -> dict[str, Any]:
    """The desired state of a golden case, on the machine that belongs to it."""
    case = FOLDER[name]
    platform = platforms.find(platform_of(case))
    assert platform is not None
    machine = [Nic(**nic) for nic in json.loads((case / "machine.json").read_text())["nics"]]
    situation = platforms.Situation(tuple(nics or machine), True, tuple(map(ip_address, servers)))
    tree = platforms.make(platform, saved.read(platform, case / "metadata"), situation).tree
    config: dict[str, Any] = tree.get("config", tree)
    return config


def routes(config: dict[str, Any]) -> list[tuple[str, str]]:
    found = config.get("routes", {}).get("config", [])
    return [(route["destination"], route.get("next-hop-address", "")) for route in found]


def link(config: dict[str, Any], mac: str) -> dict[str, Any]:
    (found,) = (each for each in config["interfaces"] if mac in json.dumps(each).lower())
    return dict(found)


def keyfiles(name: str) -> list[configparser.ConfigParser]:
    """Those of the golden folder (test_cases.py holds them to be what is made)."""
    found = []
    for file in (FOLDER[name] / "keyfiles").iterdir():
        found.append(configparser.ConfigParser(strict=False, delimiters=("=",), interpolation=None))
        found[-1].read(file)
    assert found
    return found


# Afterburn

def test_digitalocean_no_route_to_ones_own_network_by_its_gateway() -> None:
    config = made("digitalocean-public-and-private")
    assert sorted(routes(config)) == [("0.0.0.0/0", "198.51.100.1"), ("::/0", "2001:db8:1::1")]


def test_packet_dns_from_the_lease_not_from_networkds_state() -> None:
    config = made("packet-bond", servers=["192.0.2.53", "2001:db8::53"])
    assert config["dns-resolver"]["config"]["server"] == ["192.0.2.53", "2001:db8::53"]
    assert "dns-resolver" not in made("packet-bond")  # and none is no failure


def test_ibm_two_networks_on_one_link_are_one_interface_with_both() -> None:
    (interface,) = made("ibmcloud-classic-two-networks-on-one-link")["interfaces"]
    assert [address["ip"] for address in interface["ipv4"]["address"]] == ["10.60.0.9", "203.0.113.9"]


@pytest.mark.parametrize("name", ["aws-two-nics-three-addresses", "scaleway-flexible", "vultr-additional-and-private"])
def test_static_addresses_stay_beside_dhcp(name: str) -> None:
    both = [interface["ipv4"] for interface in made(name)["interfaces"]
            if interface["ipv4"].get("dhcp") and interface["ipv4"].get("address")]
    assert both


def test_a_route_stays_beside_dhcp() -> None:
    config = made("kubevirt-config-drive")
    assert link(config, "00:00:5e:00:53:01")["ipv4"]["dhcp"] is True
    assert ("198.51.100.0/24", "192.0.2.254") in routes(config)


@pytest.mark.parametrize("name", ["ibmcloud-classic-two-links", "aws-two-nics-three-addresses",
                                  "proxmoxve-static-and-slaac", "nocloud-version-2"])
def test_a_family_without_data_keeps_its_link_local_address(name: str) -> None:
    for interface in made(name)["interfaces"]:
        assert interface["ipv6"]["enabled"] is True
    methods = {keyfile.get("ipv6", "method") for keyfile in keyfiles(name)}
    assert "disabled" not in methods and "ignore" not in methods


@pytest.mark.parametrize("name", sorted(name for name, case in FOLDER.items() if (case / "keyfiles").exists()))
def test_every_profile_has_an_uuid_of_this_machine(name: str) -> None:
    uuids = [keyfile.get("connection", "uuid") for keyfile in keyfiles(name)]
    assert len(set(uuids)) == len(uuids) and all(len(uuid) == 36 for uuid in uuids)


def test_a_card_without_bond_is_not_touched() -> None:
    """"Unmanaged" is what is not in the document: a profile would be taken for it."""
    config = made("packet-bond")
    assert "00:00:5e:00:53:03" not in json.dumps(config).lower()
    assert not any("53:03" in str(dict(keyfile["ethernet"])).lower() for keyfile in keyfiles("packet-bond")
                   if keyfile.has_section("ethernet"))


def test_ports_are_not_waited_for() -> None:
    """Only the bond has IP; what waits for the network waits for it alone."""
    ports = [keyfile for keyfile in keyfiles("packet-bond") if keyfile.get("connection", "master", fallback="")
             or keyfile.get("connection", "controller", fallback="")]
    assert len(ports) == 2
    for port in ports:
        assert not port.has_option("ipv4", "method") or port.get("ipv4", "method") == "disabled"


# nm-cloud-setup

def test_one_faulty_answer_leaves_the_other_nics() -> None:
    """Its `get-config` fails as a whole; here what can be understood is configured, and the rest said."""
    (left,) = made("aws-one-faulty-nic")["interfaces"]
    assert left["ipv4"]["dhcp"] is True
    assert "00:00:5e:00:53:02" in (FOLDER["aws-one-faulty-nic"] / "notes.txt").read_text()


def test_an_ipv6_only_nic_of_ec2_is_a_nic() -> None:
    """404 to both IPv4 questions is an answer: it has none."""
    first, second = made("aws-ipv6-only-nic")["interfaces"]
    assert first["ipv4"]["dhcp"] is True and second["ipv4"] == {"enabled": False}
    assert second["ipv6"]["dhcp"] is True and [each["ip"] for each in second["ipv6"]["address"]] == ["2001:db8:7::21"]


def test_a_nic_without_forwarded_addresses_at_google_is_a_nic() -> None:
    config = made("gcp-forwarded")
    addresses = [interface["ipv4"].get("address", []) for interface in config["interfaces"]]
    assert len(addresses) > 1 and [] in addresses and any(addresses)


def test_a_failure_has_a_status() -> None:
    """nm-cloud-setup always exits with 0."""
    with pytest.raises(DocumentError) as caught:
        made("digitalocean-faults")
    assert caught.value.status == os.EX_DATAERR


# nm-configurator

def test_a_name_within_another_one_is_not_replaced() -> None:
    """It puts the kernel's names in by text, so that `eth1` is found in `eth10`, too."""
    cards = [Nic("ens3", 2, "00:00:5e:00:53:01", "00:00:5e:00:53:01"),
             Nic("ens4", 3, "00:00:5e:00:53:02", "00:00:5e:00:53:02")]
    interfaces = [{"name": name, "type": "ethernet", "state": "up", "identifier": "mac-address", "mac-address": nic.mac}
                  for name, nic in zip(("eth1", "eth10"), cards, strict=True)]
    vlan = {"name": "eth10.5", "type": "vlan", "state": "up", "vlan": {"base-iface": "eth10", "id": 5}}
    route = {"destination": "192.0.2.0/24", "next-hop-interface": "eth10", "description": "eth1 and eth10"}
    resolved = resolve({"interfaces": [*interfaces, vlan], "routes": {"config": [route]}}, cards)
    assert resolved.complaints == ()
    assert [interface["name"] for interface in resolved.config["interfaces"]] == ["ens3", "ens4", "eth10.5"]
    assert resolved.config["interfaces"][2]["vlan"]["base-iface"] == "ens4"
    assert resolved.config["routes"]["config"][0] == {**route, "next-hop-interface": "ens4"}


def test_none_is_forgotten() -> None:
    """Each test of this file is named in the guide, and the other way round."""
    page = (Path(__file__).parents[3] / "docs/coming-from.md").read_text(encoding="utf-8")
    ours = {name for name in globals() if name.startswith("test_") and name != "test_none_is_forgotten"}
    assert {name for name in ours if f"`{name}`" not in page} == set()
