"""Google Compute Engine: DHCP, and the addresses that load balancers forward here."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms.network import Dhcp, Network, host
from homeport.core.platforms.reading import Files, Node, tree
from homeport.core.platforms.shape import Platform, Service, Sign, Want, fixed
from homeport.core.platforms.vnics import METRIC_STEP

NAME = "computeMetadata/v1/instance/network-interfaces/"
WANTS = fixed(Want(NAME, query="recursive=true&alt=json"))


def build(files: Files, network: Network) -> None:
    """Also of a whole instance's metadata, as somebody may have saved it."""
    data = tree(files, NAME)
    entries = (data if isinstance(data.value, list) else data["networkInterfaces"]).some()
    network.each(enumerate(entries), partial(_interface, several=len(entries) > 1, network=network))


def _interface(place: tuple[int, Node], several: bool, network: Network) -> None:
    """A forwarded address is one of the machine's own, as /32: whoever listens on it hears it."""
    index, entry = place
    mac, mtu = entry["mac"].mac(), entry["mtu"].mtu()
    # An IPv6 one may be a range; its first address is what listens.
    addresses = [host(node.interface(default=128 if ":" in node.text() else 32).ip)
                 for key in ("forwardedIps", "targetInstanceIps", "forwardedIpv6s") for node in entry[key].items()]
    # Only now that all of it can be read: a card that is named has these addresses and no others.
    link = network.card(mac, mtu=mtu)
    for version in (4, 6) if entry["ipv6"] else (4,):
        link.dhcp.setdefault(version, Dhcp(dns=index == 0, metric=METRIC_STEP * (index + 1) if several else None))
    for address in addresses:
        link.add(address)


PLATFORM = Platform(
    name="gcp", title="Google Compute Engine", build=build, reconciles=True,
    signs=(Sign("product", ("Google Compute Engine",)), Sign("serial", ("GoogleCloud-",), begins=True)),
    ways=(Service("http://169.254.169.254", WANTS, headers={"Metadata-Flavor": "Google"}),),
    reads="`/computeMetadata/v1/instance/network-interfaces/?recursive=true`",
    configures="every NIC by DHCP, IPv6 where it has some, MTU; forwarded and target-instance addresses as /32",
    leaves="alias ranges, which are for containers; policy routing",
)
