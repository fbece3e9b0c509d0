"""Hetzner Cloud: the public network much as cloud-init's version 1, private networks in a list of their own."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms import networkconfig
from homeport.core.platforms.network import Network, host
from homeport.core.platforms.reading import Files, Node, described, tree
from homeport.core.platforms.shape import Platform, Service, Sign, Want, fixed

PUBLIC = "hetzner/v1/metadata/network-config"
PRIVATE = "hetzner/v1/metadata/private-networks"
PRIVATE_MTU = 1450  # "Networks", docs.hetzner.com: the tunnel takes 50 bytes


def build(files: Files, network: Network) -> None:
    public, private = described(files, PUBLIC, "network-config", "version", "config"), tree(files, PRIVATE)
    config = public["network-config"] if "network-config" in public.value else public
    if not config:
        raise config.fault("a network configuration")
    networkconfig.read(config, network)
    entries = private["private-networks"] if isinstance(private.value, dict) else private
    network.each(entries.items(), partial(_private, network=network))


def _private(entry: Node, network: Network) -> None:
    """Addresses are /32: even a neighbour is reached through the gateway."""
    link = network.card(entry["mac_address"].mac(), mtu=PRIVATE_MTU)
    for address in (entry["ip"], *entry["alias_ips"].items()):
        link.add(host(address.ip()))
    network.route(link, entry["network"].network(), entry["gateway"].ip())


PLATFORM = Platform(
    name="hetzner", title="Hetzner Cloud", build=build, signs=(Sign("manufacturer", ("Hetzner",)),),
    ways=(Service("http://169.254.169.254", fixed(PUBLIC, Want(PRIVATE, optional=True))),),
    reads="`/hetzner/v1/metadata/network-config` and `/private-networks`",
    configures="the public address by DHCP, IPv6, DNS; private networks with alias addresses and routes, MTU 1450",
    leaves="the name `eth0`; floating IPs, which are not in the metadata",
)
