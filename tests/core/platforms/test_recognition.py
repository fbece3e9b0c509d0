"""Where a machine is, by firmware strings as they are found in the field (cloud-init's ds-identify, Ignition)."""

from __future__ import annotations

import pytest

from homeport.core.facts import Smbios
from homeport.core.platforms import PLATFORMS, nocloud
from homeport.core.platforms.recognition import recognise
from homeport.core.platforms.shape import Service
from homeport.errors import SettingsError

AMAZON = {"manufacturer": "Amazon EC2"}
IGNITION = """akamai aliyun aws azure azurestack cloudstack digitalocean exoscale gcp hetzner ibmcloud kubevirt
    openstack oraclecloud packet powervs proxmoxve scaleway upcloud vmware vultr"""


def names(setting: str = "auto", cmdline: str = "", labels: tuple[str, ...] = (),
          smbios: dict[str, str] | None = None) -> list[str]:
    return [candidate.platform.name for candidate in recognise(setting, cmdline, Smbios(**smbios or {}), labels)]


@pytest.mark.parametrize(("expected", "smbios"), [
    ("akamai", {"manufacturer": "Linode"}),
    ("akamai", {"manufacturer": "Akamai"}),
    ("aliyun", {"product": "Alibaba Cloud ECS"}),
    ("aws", {"manufacturer": "Amazon EC2"}),
    ("aws", {"manufacturer": "Xen", "uuid": "ec2b1fa0-1111-2222-3333-444444444444",
             "serial": "EC2b1fa0-1111-2222-3333-444444444444"}),
    # The UUID of newer Xen instances, its first field in the other byte order.
    ("aws", {"manufacturer": "Xen", "uuid": "45e12aec-dcd1-b213-94ed-01234567890a",
             "serial": "ec2ae145-d1dc-13b2-94ed-01234567890a"}),
    ("azure", {"manufacturer": "Microsoft Corporation", "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}),
    ("cloudstack", {"product": "CloudStack KVM Hypervisor"}),
    ("digitalocean", {"manufacturer": "DigitalOcean", "product": "Droplet"}),
    ("exoscale", {"product": "Exoscale Compute Platform"}),
    ("gcp", {"manufacturer": "Google", "product": "Google Compute Engine"}),
    ("gcp", {"serial": "GoogleCloud-0123"}),
    ("hetzner", {"manufacturer": "Hetzner", "product": "vServer"}),
    ("kubevirt", {"manufacturer": "KubeVirt"}),
    ("openstack", {"product": "OpenStack Compute"}),
    ("openstack", {"chassis_asset_tag": "HUAWEICLOUD"}),
    ("oraclecloud", {"chassis_asset_tag": "OracleCloud.com"}),
    ("scaleway", {"manufacturer": "Scaleway"}),
    ("upcloud", {"manufacturer": "UpCloud"}),
    ("vmware", {"manufacturer": "VMware, Inc."}),
    ("vultr", {"manufacturer": "Vultr"}),
])
def test_by_smbios(expected: str, smbios: dict[str, str]) -> None:
    assert names(smbios=smbios) == [expected]


@pytest.mark.parametrize("smbios", [
    {"manufacturer": "QEMU", "product": "Standard PC (Q35 + ICH9, 2009)"},
    # One machine in 4096 has a UUID that begins so, and it is not at Amazon's.
    {"manufacturer": "Dell Inc.", "uuid": "ec2b1fa0-1111-2222-3333-444444444444", "serial": "7XYZ123"},
    {"manufacturer": "Microsoft Corporation", "product": "Virtual Machine"},  # Hyper-V on somebody's own server
    {"manufacturer": "Not Hetzner"},
    {"product": "Exosphere"},
    {},
])
def test_nowhere(smbios: dict[str, str]) -> None:
    assert names(smbios=smbios) == []


@pytest.mark.parametrize(("labels", "smbios", "expected"), [
    (("cidata",), {}, ["nocloud"]),
    (("CIDATA", "root"), {}, ["nocloud"]),
    (("config-2",), {}, ["openstack"]),
    (("config-2", "cidata"), {}, ["nocloud", "openstack"]),
    (("root", "EFI"), {}, []),
    # What firmware says comes first, and is not asked twice.
    (("config-2",), {"product": "OpenStack Nova"}, ["openstack"]),
    (("cidata",), {"manufacturer": "VMware, Inc."}, ["vmware", "nocloud"]),
    ((), {"serial": "ds=nocloud"}, ["nocloud"]),
])
def test_by_label(labels: tuple[str, ...], smbios: dict[str, str], expected: list[str]) -> None:
    assert names(labels=labels, smbios=smbios) == expected


def test_who_names_one_wants_no_other() -> None:
    assert names("gcp", "ignition.platform.id=aws", ("cidata",), AMAZON) == ["gcp"]
    assert names("auto", "ignition.platform.id=proxmoxve", ("cidata",), AMAZON) == ["proxmoxve"]
    assert names("auto", "ignition.platform.id= ignition.platform.id=ibmcloud-classic") == ["ibmcloud-classic"]


@pytest.mark.parametrize("cmdline", ["ignition.platform.id=metal", "ignition.platform.id=qemu", "ignition.platform.id"])
def test_what_is_no_platform_of_ours_says_nothing(cmdline: str) -> None:
    assert names("auto", cmdline, ("cidata",)) == ["nocloud"]


def test_a_setting_that_is_none() -> None:
    with pytest.raises(SettingsError, match="there is no platform 'azur'"):
        names("azur")


def test_all_names_of_ignition_are_understood() -> None:
    """Those that Ignition and Afterburn know and that describe networks or say that they don't."""
    for name in IGNITION.split():
        assert len(names("auto", f"ignition.platform.id={name}")) == 1, name


def test_platforms_without_a_sign_have_a_drive_or_need_a_name() -> None:
    unsigned = {platform.name for platform in PLATFORMS if not platform.signs}
    assert unsigned == {"ibmcloud", "ibmcloud-classic", "nocloud", "packet", "powervs", "proxmoxve"}


SEED = "http://192.0.2.7:8000/seed"


def ways(cmdline: str, serial: str = "", **smbios: str) -> list[tuple[str, bool, list[str]]]:
    """Name, whether somebody said so for sure, and where its metadata are."""
    found = recognise("auto", cmdline, Smbios(serial=serial, **smbios), ("config-2",))
    return [(candidate.platform.name, candidate.surely, [
        way.base if isinstance(way, Service) else "a drive" for way in candidate.platform.ways]) for candidate in found]


@pytest.mark.parametrize("argument", [
    f"ds=nocloud;s={SEED}/", f"ds=nocloud-net;s={SEED}", f'quiet "ds=nocloud;s={SEED}/" ro',
    f"ds=nocloud;h=web-1;i=42;seedfrom={SEED}/", f"ds=NoCloud;s={SEED}/",
])
def test_nocloud_at_an_address(argument: str) -> None:
    """As cloud-init writes it; whoever says so wants no other, not even the drive that is there."""
    assert ways(argument) == [("nocloud", True, [SEED])]


def test_nocloud_by_the_serial_number() -> None:
    openstack = ("openstack", False, ["a drive", "http://169.254.169.254"])
    assert ways("", f"ds=nocloud;s={SEED}/") == [("nocloud", False, [SEED]), openstack]
    assert ways("ds=nocloud", f"ds=nocloud;s={SEED}/") == [("nocloud", True, ["a drive"])]
    assert ways("ds=ec2", "ds=none") == ways("ds", "ds=") == ways("", "XDS=1") == [openstack]


@pytest.mark.parametrize("seed", ["/var/lib/seed/", "file:///var/lib/seed/", "ftp://192.0.2.7/", "", "http://",
                                  "http://[", "http://x:port/", "http:///seed/", "http://x:99999/", "http://[::1/"])
def test_a_seed_that_is_no_address_is_no_seed_here(seed: str) -> None:
    assert ways(f"ds=nocloud;s={seed}") == [("nocloud", True, ["a drive"])]


def test_a_seed_of_this_machine() -> None:
    """cloud-init's substitution; nothing of firmware's becomes another part of the address."""
    argument = f"ds=nocloud;s={SEED}/__dmi.chassis-serial-number__/__dmi.system-uuid__/"
    assert ways(argument, chassis_serial="A/7?x", uuid="0-1") == [("nocloud", True, [f"{SEED}/A%2F7%3Fx/0-1"])]
    for wrong in ("bios-vendor", "chassis-serial-number", "nonsense"):
        with pytest.raises(SettingsError, match=f"asks for __dmi.{wrong}__"):
            ways(f"ds=nocloud;s={SEED}/__dmi.{wrong}__/")


def test_nocloud_by_name_is_where_the_argument_says() -> None:
    found = recognise("nocloud", f"ds=nocloud;s={SEED}/", Smbios(), ())
    assert [(each.surely, each.platform.ways[0]) for each in found] == [(True, Service(SEED, nocloud.DRIVE.wants))]
    assert recognise("nocloud", "", Smbios(), ())[0].platform is nocloud.PLATFORM
    assert names("aws", f"ds=nocloud;s={SEED}/") == ["aws"]
