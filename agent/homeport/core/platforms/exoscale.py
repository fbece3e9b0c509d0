"""Exoscale: addresses come by DHCP and by advertisement, and the metadata say nothing more of networks."""

from __future__ import annotations

from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files
from homeport.core.platforms.shape import Platform, Service, Sign, fixed


def build(files: Files, network: Network) -> None:
    network.note("the metadata of this platform say nothing of networks: DHCP stays")


PLATFORM = Platform(
    name="exoscale", title="Exoscale", build=build, signs=(Sign("product", ("Exoscale",), begins=True),), ways=(),
    elsewhere=(Service("http://169.254.169.254", fixed()),),
    reads="nothing: it says nothing of networks",
    configures="nothing: DHCP stays",
    leaves="unmanaged private networks",
)
