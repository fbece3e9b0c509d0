"""An answer that is no metadata says nothing: above all not that no network is wanted."""

from __future__ import annotations

import pytest

from homeport.core import platforms
from homeport.core.facts import Nic
from homeport.core.platforms.shape import Platform, Walk, Want, gather
from homeport.core.platforms.vmware import KARGS
from homeport.errors import DocumentError

ANSWERS = (b"<html><head><title>Log in</title></head></html>", b"{}", b"[]", b"", b"null", b"Not found\n",
           b'{"error": "no such machine"}', b'["no such machine"]', b"\xff\xfe", b"---\n")
# What these words mean something to. An empty file of NoCloud is as good as none (cloud-init, DataSourceNoCloud);
# guestinfo.metadata need not speak of networks; old versions of CloudStack write {}.
EMPTY = (b"", b"null", b"---\n")
MEANT = {"nocloud": EMPTY, "proxmoxve": EMPTY, "ibmcloud": EMPTY, "kubevirt": EMPTY, "cloudstack": (b"{}",),
         "vmware": (*EMPTY, b"{}", b'{"error": "no such machine"}')}
SITUATION = platforms.Situation((Nic("ens3", mac="00:00:5e:00:53:01", permanent_mac="00:00:5e:00:53:01"),))
WAYS = [(platform, way.wants) for platform in platforms.PLATFORMS for way in platform.ways]


def metadata(wants: Walk, answer: bytes) -> dict[str, bytes | None]:
    """All that there is is `answer`, to what is asked for first."""
    first: list[Want] = []

    def ask(want: Want) -> bytes | None:
        first.append(want)
        return answer if want == first[0] else None

    return dict(gather(wants, ask))


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("platform", "wants"), WAYS, ids=lambda each: getattr(each, "name", "way"))
def test_it_is_refused(platform: Platform, wants: Walk, answer: bytes) -> None:
    files = metadata(wants, answer)
    is_empty_drive = platform.name == "kubevirt" and "network-config" not in files and answer in EMPTY
    if answer in MEANT.get(platform.name, ()) and not is_empty_drive:
        assert platforms.make(platform, files, SITUATION).tree == {"configurator": "none"}
        return
    with pytest.raises(DocumentError) as refused:
        platforms.make(platform, files, SITUATION)
    assert all(complaint.found and complaint.wanted for complaint in refused.value.complaints)


def test_every_platform_that_is_asked_is_here() -> None:
    assert {platform.name for platform in platforms.PLATFORMS} - {platform.name for platform, _ in WAYS} == {"exoscale"}


@pytest.mark.parametrize("answer", [b"<html>Log in</html>", b"Not found", b"{}"])
def test_kernel_arguments_that_are_none(answer: bytes) -> None:
    vmware = platforms.find("vmware")
    assert vmware is not None
    with pytest.raises(DocumentError, match="network arguments"):
        platforms.make(vmware, {KARGS: answer}, SITUATION)


@pytest.mark.parametrize(("name", "path", "answer"), [
    ("hetzner", "hetzner/v1/metadata/private-networks", b"<html>"),
    ("hetzner", "hetzner/v1/metadata/network-config", b'{"network-config": null}'),
    ("nocloud", "network-config", b"version: 1\n"),
    ("digitalocean", "metadata/v1.json", b'{"interfaces": "none"}'),
    ("digitalocean", "metadata/v1.json", b'{"interfaces": {"public": [], "private": []}}'),
    ("upcloud", "metadata/v1.json", b'{"network": {"interfaces": []}}'),
    ("upcloud", "metadata/v1.json", b'{"network": "none"}'),
    ("vultr", "v1.json", b'{"interfaces": []}'),
    ("akamai", "v1/network", b'{"ipv4": "none"}'),
    ("scaleway", "conf", b'{"public_ips": "none"}'),
    ("gcp", "computeMetadata/v1/instance/network-interfaces/", b'{"networkInterfaces": []}'),
    ("azure", "metadata/instance/network", b'{"interface": []}'),
    ("packet", "metadata", b'{"network": []}'),
    ("openstack", "openstack/latest/network_data.json", b'{"links": "none"}'),
    ("nocloud", "network-config", b'{"network": "none"}'),
])
def test_a_part_that_is_none(name: str, path: str, answer: bytes) -> None:
    platform = platforms.find(name)
    assert platform is not None
    files = {"hetzner/v1/metadata/network-config": b"version: 1\nconfig: []\n", path: answer}
    if name != "hetzner":
        files = {path: answer}
    with pytest.raises(DocumentError):
        platforms.make(platform, files, SITUATION)


def test_an_entry_that_is_none_hides_no_other_fault() -> None:
    platform = platforms.find("openstack")
    assert platform is not None
    answer = b'{"links": ["x", {"id": "a", "ethernet_mac_address": "b"}], "networks": ["y"]}'
    with pytest.raises(DocumentError) as refused:
        platforms.make(platform, {"openstack/latest/network_data.json": answer}, SITUATION)
    assert [complaint.path.partition(": ")[2] for complaint in refused.value.complaints] == [
        "links[0]", "links[1].ethernet_mac_address", "networks[0]"]
