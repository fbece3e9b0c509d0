"""Clouds and bare-metal providers: what their metadata say of networks, as an assignment like any other.

`PLATFORMS` is the table of contents, one small module for each.  To add one: write its module, list it here
and in `core/platformnames.py`, and put a folder with its metadata below tests/data/platforms/.
"""

from __future__ import annotations

from homeport.core.complaint import Complaint
from homeport.core.platformnames import find_name
from homeport.core.platforms import (
    akamai,
    aliyun,
    aws,
    azure,
    digitalocean,
    exoscale,
    gcp,
    hetzner,
    ibm,
    nocloud,
    openstack,
    oracle,
    packet,
    scaleway,
    upcloud,
    vmware,
    vultr,
)
from homeport.core.platforms.network import Network, Situation
from homeport.core.platforms.reading import Fault
from homeport.core.platforms.rendering import Made, render
from homeport.core.platforms.shape import Files, Platform
from homeport.core.platforms.sifting import sift
from homeport.errors import DocumentError

__all__ = ["PLATFORMS", "Made", "Platform", "Situation", "find", "make"]

PLATFORMS: tuple[Platform, ...] = (
    akamai.PLATFORM, aliyun.PLATFORM, aws.PLATFORM, azure.PLATFORM, openstack.CLOUDSTACK, digitalocean.PLATFORM,
    exoscale.PLATFORM, gcp.PLATFORM, hetzner.PLATFORM, ibm.VPC, ibm.CLASSIC, openstack.KUBEVIRT, nocloud.PLATFORM,
    openstack.PLATFORM, oracle.PLATFORM, packet.PLATFORM, ibm.POWERVS, nocloud.PROXMOX, scaleway.PLATFORM,
    upcloud.PLATFORM, vmware.PLATFORM, vultr.PLATFORM,
)


def find(name: str) -> Platform | None:
    """The platform of that name or alias."""
    wanted = find_name(name)
    return next((platform for platform in PLATFORMS if platform.name == wanted), None)


def make(platform: Platform, files: Files, situation: Situation) -> Made:
    """The assignment in a platform's metadata; raises DocumentError.

    Where NICs come and go while the machine runs, one that is described wrongly is left out; elsewhere
    the description is refused as a whole, as any document is.
    """
    network = Network(situation)
    try:
        platform.build(files, network)
    except Fault as fault:
        network.faults.append(fault.complaint)
    if platform.reconciles and not network.links and not network.faults:
        network.faults.append(Complaint("", "metadata without a network card", "one or more, as all machines there"))
    if platform.reconciles:
        sift(network)
    if network.faults and not (platform.reconciles and network.links):
        raise DocumentError(network.faults, f"this is what the metadata of {platform.title} say")
    return render(network)
