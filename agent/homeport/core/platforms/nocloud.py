"""NoCloud, the drive labelled `cidata`: any hypervisor's, and Proxmox VE's."""

from __future__ import annotations

from homeport.core.platforms import networkconfig
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, tree
from homeport.core.platforms.shape import Drive, Platform, Want, fixed

NAME = "network-config"
DRIVE = Drive(("cidata", "CIDATA"), fixed(Want(NAME, optional=True), Want("meta-data", optional=True)))


def build(files: Files, network: Network) -> None:
    """Without a network-config the platform means DHCP."""
    networkconfig.read(tree(files, NAME), network)


PLATFORM = Platform(
    name="nocloud", title="NoCloud", build=build, ways=(DRIVE,),
    reads="drive `cidata`, or the address in `ds=nocloud;s=http://…/`: `network-config`, version 1 or 2",
    configures="cards, bonds, bridges, VLANs; addresses, DHCP and SLAAC, routes, policy rules, DNS; DHCP overrides",
    leaves="`set-name`; options listed as left out in the journal; a `seedfrom` URL in `meta-data`",
)
PROXMOX = Platform(
    name="proxmoxve", title="Proxmox VE", build=build, ways=(DRIVE,),
    reads="drive `cidata`: `network-config`, version 1",
    configures="as NoCloud: all name servers and search domains, SLAAC, each address on the card that it is for",
    leaves="the names `eth0`, `eth1`, which are not the guest's",
)
