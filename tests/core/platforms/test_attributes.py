"""Attributes by Afterburn's names, and host names that the kernel takes."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from homeport.core.platforms import PLATFORMS, find
from homeport.core.platforms.attributes import (
    ATTRIBUTES,
    HOSTNAMES,
    attributes,
    hostname,
    shortened,
    wants,
)
from homeport.core.platforms.shape import Files, Platform


def platform(name: str) -> Platform:
    found = find(name)
    assert found is not None
    return found


def of(name: str, files: dict[str, Any]) -> dict[str, str]:
    data: Files = {path: value.encode() if isinstance(value, str) else json.dumps(value).encode()
                   for path, value in files.items()}
    return {key.removeprefix("AFTERBURN_"): value for key, value in attributes(platform(name), data).items()}


EC2 = "2021-01-03/meta-data/"


def test_ec2() -> None:
    assert of("aws", {f"{EC2}hostname": "ip-10-0-1-10.ec2.internal\n", f"{EC2}local-ipv4": "10.0.1.10",
                      f"{EC2}public-ipv4": "203.0.113.5", f"{EC2}placement/region": "eu-central-1"}) == {
        "AWS_HOSTNAME": "ip-10-0-1-10.ec2.internal", "AWS_IPV4_LOCAL": "10.0.1.10", "AWS_IPV4_PUBLIC": "203.0.113.5",
        "AWS_REGION": "eu-central-1", "CUSTOM_HOSTNAME": "ip-10-0-1-10.ec2.internal",
        "CUSTOM_PRIVATE_IPV4": "10.0.1.10", "CUSTOM_PUBLIC_IPV4": "203.0.113.5"}


def test_lists_are_numbered() -> None:
    found = of("gcp", {"computeMetadata/v1/instance/network-interfaces/": [
        {"ip": "10.128.0.5", "accessConfigs": [{"externalIp": "203.0.113.5"}]}, {"ip": "10.129.0.5"}]})
    assert found == {"GCP_IP_LOCAL_0": "10.128.0.5", "GCP_IP_LOCAL_1": "10.129.0.5",
                     "GCP_IP_EXTERNAL_0": "203.0.113.5",
                     "CUSTOM_PRIVATE_IPV4": "10.128.0.5", "CUSTOM_PUBLIC_IPV4": "203.0.113.5"}


def test_packet_counts_by_kind() -> None:
    addresses = [{"address": "198.51.100.3", "gateway": "198.51.100.2", "public": True, "address_family": 4},
                 {"address": "10.99.0.3", "gateway": "10.99.0.2", "public": False, "address_family": 4},
                 {"address": "198.51.100.9", "gateway": "198.51.100.8", "public": True, "address_family": 4}]
    found = of("packet", {"metadata": {"hostname": "m", "plan": "c3", "network": {"addresses": addresses}}})
    assert found["PACKET_IPV4_PUBLIC_1"] == "198.51.100.9"
    assert found["PACKET_IPV4_PRIVATE_GATEWAY_0"] == "10.99.0.2"
    assert found["CUSTOM_PUBLIC_IPV4"] == "198.51.100.3"


@pytest.mark.parametrize(("family", "public"), [
    ("4=x\nLD_PRELOAD=/tmp/evil.so\nY", True), (5, True), (46, True), (None, True), (True, True), ([4], True),
    (4, "yes\nX=1"), (4, [])])
def test_packet_says_an_address_is_of_another_kind(family: object, public: object) -> None:
    """What becomes part of a name is one of the few things that it can be."""
    addresses = [{"address": "198.51.100.3", "public": public, "address_family": family},
                 {"address": "198.51.100.9", "public": True, "address_family": "4"}]
    private = {"PACKET_IPV4_PRIVATE_0": "198.51.100.3", "CUSTOM_PRIVATE_IPV4": "198.51.100.3"} if public == [] else {}
    assert of("packet", {"metadata": {"network": {"addresses": addresses}}}) == {
        "PACKET_IPV4_PUBLIC_0": "198.51.100.9", "CUSTOM_PUBLIC_IPV4": "198.51.100.9", **private}


def test_the_first_place_that_is_there() -> None:
    drive = {"openstack/latest/meta_data.json": {"hostname": "from-drive", "uuid": "u"}}
    assert of("kubevirt", drive)["KUBEVIRT_HOSTNAME"] == "from-drive"
    assert of("kubevirt", {"meta-data": "local-hostname: from-cidata\n"})["KUBEVIRT_HOSTNAME"] == "from-cidata"


def test_the_next_place_where_the_first_one_has_nothing() -> None:
    drive = {"openstack/latest/meta_data.json": {"hostname": "vs-1.example.test", "name": "vs-1"}}
    assert of("ibmcloud-classic", drive)["IBMCLOUD_CLASSIC_LOCAL_HOSTNAME"] == "vs-1"
    del drive["openstack/latest/meta_data.json"]["name"]
    assert of("ibmcloud-classic", drive)["IBMCLOUD_CLASSIC_LOCAL_HOSTNAME"] == "vs-1.example.test"


def test_addresses_of_the_network_itself() -> None:
    drive = {"meta-data": "local-hostname: vmi\n", "network-config": {"version": 1, "config": [
        {"type": "physical", "name": "eth0", "mac_address": "00:00:5e:00:53:01", "subnets": [{"type": "dhcp4"}]},
        {"type": "physical", "name": "eth1", "mac_address": "00:00:5e:00:53:02", "subnets": [
            {"type": "static", "address": "192.0.2.20/24"}, {"type": "static", "address": "192.0.2.21/24"},
            {"type": "static6", "address": "2001:DB8::20/64"}]}]}}
    for name in ("kubevirt", "proxmoxve"):
        found = of(name, drive)
        assert found[f"{name.upper()}_IPV4"] == "192.0.2.20"
        assert found[f"{name.upper()}_IPV6"] == "2001:db8::20"
    looked_for: Files = {"openstack/latest/network_data.json": None,
                         **{path: json.dumps(value).encode() for path, value in drive.items()}}
    assert attributes(platform("kubevirt"), looked_for)["AFTERBURN_KUBEVIRT_IPV4"] == "192.0.2.20"
    assert "KUBEVIRT_IPV4" not in of("kubevirt", {"meta-data": "local-hostname: vmi\n", "network-config": "[7]"})
    assert of("hetzner", {"hetzner/v1/metadata/network-config": drive["network-config"]}) == {
        "HETZNER_PUBLIC_IPV6": "2001:db8::20", "CUSTOM_PUBLIC_IPV6": "2001:db8::20"}


def test_addresses_for_everybody_have_no_prefix() -> None:
    found = of("akamai", {"v1/instance": {"tags": ["web", "blue"]}, "v1/network": {
        "ipv4": {"public": ["198.51.100.60/32"]}, "ipv6": {"slaac": "2001:db8:b::1/128"}}})
    assert found == {"AKAMAI_INSTANCE_TAGS": "web:blue", "AKAMAI_PUBLIC_IPV4_0": "198.51.100.60/32",
                     "AKAMAI_IPV6_SLAAC": "2001:db8:b::1/128", "CUSTOM_PUBLIC_IPV4": "198.51.100.60",
                     "CUSTOM_PUBLIC_IPV6": "2001:db8:b::1"}


@pytest.mark.parametrize("text", [
    "198.51.100.1 --listen", "$(reboot)", "2001:db8::1", "198.51.100.1%x", "198.51.100.256", "-v",
    "198.51.100.1/33", "web-1"])
def test_an_address_is_one_of_its_family(text: str) -> None:
    """Units put it on their command lines, where `$NAME` is several words if it has spaces."""
    assert of("aws", {f"{EC2}public-ipv4": text}) == {}
    assert of("aws", {f"{EC2}ipv6": "fe80::1%eth0 -x"}) == of("aws", {f"{EC2}ipv6": "198.51.100.1"}) == {}
    assert of("gcp", {"computeMetadata/v1/instance/network-interfaces/": [{"ip": "10.0.0.1 -x"}]}) == {}
    assert of("hetzner", {"hetzner/v1/metadata": f"public-ipv4: '{text}'\n"}) == {}


def test_addresses_are_as_everybody_writes_them() -> None:
    assert of("akamai", {"v1/network": {"ipv6": {"slaac": "2001:DB8:0:0::1/128", "ranges": ["2001:DB8:1::/56"]}}}) == {
        "AKAMAI_IPV6_SLAAC": "2001:db8::1/128", "AKAMAI_IPV6_RANGE_0": "2001:db8:1::/56",
        "CUSTOM_PUBLIC_IPV6": "2001:db8::1"}


def test_a_list_in_one_value_is_no_longer_than_others() -> None:
    """The kernel starts no program with more than 128 KiB in a variable."""
    assert len(of("akamai", {"v1/instance": {"tags": ["x" * 4000]}})["AKAMAI_INSTANCE_TAGS"]) == 4000
    assert of("akamai", {"v1/instance": {"id": 7, "tags": ["x" * 4000] * 2}}) == {"AKAMAI_INSTANCE_ID": "7"}


@pytest.mark.parametrize("data", ["", "{", "[]", "- a\n", "\xff", '{"hostname": {"a": 1}}', '{"hostname": "a\\nb"}',
                                  '{"hostname": null, "interfaces": {"public": 7}}'])
def test_what_is_not_as_it_should_be_is_no_attribute(data: str) -> None:
    files: Files = {"metadata/v1.json": data.encode("latin-1")}
    assert attributes(platform("digitalocean"), files) == {}
    assert hostname(platform("digitalocean"), files) == ""


@pytest.mark.parametrize(("name", "short"), [
    ("web-1", "web-1"),
    ("a" * 64, "a" * 64),
    ("web-1." + "a" * 58, "web-1." + "a" * 58),  # 64 bytes fit as they are, dots and all
    ("a" * 65, "a" * 64),
    ("gke-node.c." + "project" * 10 + ".internal", "gke-node"),
    ("ü" * 40, "ü" * 32),
])
def test_host_names_fit_the_kernel(name: str, short: str) -> None:
    assert shortened(name) == short


def test_azure_has_a_host_name_that_is_no_attribute_of_afterburns() -> None:
    files: Files = {"metadata/instance/compute": b'{"name": "vm-1", "vmSize": "D2"}'}
    assert hostname(platform("azure"), files) == "vm-1"
    assert attributes(platform("azure"), files) == {
        "AFTERBURN_AZURE_VMSIZE": "D2", "AFTERBURN_CUSTOM_HOSTNAME": "vm-1"}


@pytest.mark.parametrize("each", PLATFORMS, ids=lambda each: each.name)
def test_a_host_name_that_is_known_is_known_to_everybody(each: Platform) -> None:
    """Whatever way the platform has to tell it."""
    files = {want.path: b"{}" for want in wants(each)}
    places = [ATTRIBUTES[each.name].get("HOSTNAME") or ATTRIBUTES[each.name].get("LOCAL_HOSTNAME", "")]
    for place in (*places[0].split(" | "), HOSTNAMES.get(each.name, "")):
        path, inside, keys = place.partition("#")
        if path:
            files[path] = json.dumps({keys: "web-1"}).encode() if inside else b"web-1"
    if each.name == "vmware":
        files["guestinfo.metadata.encoding"] = b""
    named = hostname(each, files)
    assert attributes(each, files).get("AFTERBURN_CUSTOM_HOSTNAME", "") == named
    # Nobody's metadata there have a name.
    assert named == ("" if each.name == "akamai" else "web-1")


@pytest.mark.parametrize(("encoding", "pack"), [
    ("", bytes), ("base64", base64.b64encode), ("gzip+base64", lambda data: base64.b64encode(gzip.compress(data)))])
def test_vmware_says_it_in_packed_metadata(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    files = {"guestinfo.metadata": pack(b"local-hostname: web-1\ninstance-id: i-1\n"),
             "guestinfo.metadata.encoding": encoding.encode()}
    assert {want.path for want in wants(platform("vmware"))} == set(files)
    assert hostname(platform("vmware"), files) == "web-1"
    assert attributes(platform("vmware"), files) == {
        "AFTERBURN_VMWARE_HOSTNAME": "web-1", "AFTERBURN_VMWARE_INSTANCE_ID": "i-1",
        "AFTERBURN_CUSTOM_HOSTNAME": "web-1"}
    files["guestinfo.metadata.encoding"] = b"rot13"
    assert (hostname(platform("vmware"), files), attributes(platform("vmware"), files)) == ("", {})


def test_every_platform_that_can_say_something_is_in_the_table() -> None:
    assert {each.name for each in PLATFORMS} == set(ATTRIBUTES)
    assert set(HOSTNAMES) <= set(ATTRIBUTES)
    for each in PLATFORMS:
        assert all(want.optional for want in wants(each))
