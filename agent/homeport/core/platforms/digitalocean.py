"""DigitalOcean: droplets have no DHCP; everything is in one document, found by a link-local address."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms import networkdata
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Files, Node, described
from homeport.core.platforms.shape import Platform, Service, Sign, fixed

NAME = "metadata/v1.json"


def build(files: Files, network: Network) -> None:
    if NAME not in files:
        networkdata.build(files, network)
        return
    data = described(files, NAME, "interfaces")
    entries = [entry for group in ("public", "private") for entry in data["interfaces"][group].items()]
    if not entries:  # a droplet has at least one
        raise data["interfaces"].fault("at least one interface, public or private")
    network.each(entries, partial(_interface, network=network))
    network.serve(node.ip() for node in data["dns"]["nameservers"].items())


def _interface(entry: Node, network: Network) -> None:
    """Only public gateways lead anywhere; a private one routes between the droplets of one data centre."""
    link = network.card(entry["mac"].mac())
    for key, mask in (("ipv4", "netmask"), ("ipv6", "cidr"), ("anchor_ipv4", "netmask")):
        if entry[key]:
            link.add(entry[key]["ip_address"].interface(entry[key][mask]))
    for key in ("ipv4", "ipv6"):
        if entry["type"].value == "public" and entry[key]["gateway"]:
            network.default_route(link, entry[key]["gateway"].ip())


PLATFORM = Platform(
    name="digitalocean", title="DigitalOcean", build=build,
    signs=(Sign("manufacturer", ("DigitalOcean",)),),
    ways=(networkdata.DRIVE, Service("http://169.254.169.254", fixed(NAME), link_local=True)),
    reads="the config drive's `network_data.json` if there is one, else `/metadata/v1.json`",
    configures="public, anchor and private addresses, both default gateways, DNS",
    leaves="gateways of private networks; reserved (floating) addresses arrive by the anchor address",
)
