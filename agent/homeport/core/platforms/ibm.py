"""IBM Cloud: classic infrastructure, VPC, and Power Virtual Server, each with its own kind of drive."""

from __future__ import annotations

from homeport.core.platforms import networkdata, nocloud
from homeport.core.platforms.shape import Drive, Platform

CLASSIC = Platform(
    name="ibmcloud-classic", title="IBM Cloud classic", build=networkdata.build,
    # As vfat, which tells it from OpenStack's.
    ways=(Drive(networkdata.LABELS, networkdata.WANTS, kinds=("vfat",)),),
    reads="config drive (vfat): `network_data.json`",
    configures="addresses and routes of every network, grouped by card; DNS",
    leaves="nothing",
)
VPC = Platform(
    name="ibmcloud", title="IBM Cloud VPC", build=nocloud.build, ways=(nocloud.DRIVE,),
    reads="NoCloud drive", configures="what its `network-config` says; without one DHCP stays",
    leaves="secondary addresses: they are not in the metadata",
)
POWERVS = Platform(
    name="powervs", title="IBM Power Virtual Server", build=networkdata.build, ways=(networkdata.DRIVE,),
    reads="config drive: `network_data.json`", configures="as OpenStack", leaves="nothing",
)
