"""OpenStack and what speaks its format: KubeVirt and CloudStack by drive."""

from __future__ import annotations

from homeport.core.platforms import networkdata, nocloud
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, tree
from homeport.core.platforms.shape import Platform, Service, Sign

CLOUDS = ("OpenTelekomCloud", "SAP CCloud VM", "HUAWEICLOUD", "Samsung Cloud Platform")
NOVA = ("OpenStack Nova", "OpenStack Compute")


def build_kubevirt(files: Files, network: Network) -> None:
    """`cloudInitConfigDrive` or `cloudInitNoCloud`, whichever the virtual machine was given."""
    build = networkdata.build if networkdata.NAME in files else nocloud.build
    build(files, network)


def build_cloudstack(files: Files, network: Network) -> None:
    """Older versions write an empty `network_data.json` beside what they do say (ConfigDriveBuilder.java)."""
    if tree(files, networkdata.NAME).value == {}:
        network.note("this version of CloudStack says nothing of networks: DHCP stays")
    else:
        networkdata.build(files, network)


PLATFORM = Platform(
    name="openstack", title="OpenStack", build=networkdata.build,
    signs=(Sign("product", NOVA), Sign("chassis_asset_tag", (*CLOUDS, *NOVA))),
    ways=(networkdata.DRIVE, Service("http://169.254.169.254", networkdata.SERVED)),
    reads="config drive or `/openstack/latest/network_data.json`",
    configures="cards, bonds, VLANs; static, DHCP and SLAAC networks, routes with metric, MTU, DNS of all places",
    leaves="link types beyond those are taken for cards",
)
KUBEVIRT = Platform(
    name="kubevirt", title="KubeVirt", build=build_kubevirt,
    signs=(Sign("manufacturer", ("KubeVirt",)), Sign("family", ("KubeVirt",))),
    ways=(networkdata.DRIVE, nocloud.DRIVE),
    reads="config drive: `network_data.json`; or drive `cidata`: `network-config`",
    configures="as OpenStack; as NoCloud",
    leaves="nothing that those do not",
)
CLOUDSTACK = Platform(
    name="cloudstack", title="Apache CloudStack", build=build_cloudstack,
    signs=(Sign("product", ("CloudStack",), begins=True),), ways=(networkdata.DRIVE,),
    reads="config drive: `network_data.json`, which newer versions fill",
    configures="as OpenStack; without it DHCP stays",
    leaves="the metadata service of the virtual router: it says nothing of networks",
)
