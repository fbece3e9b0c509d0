"""UpCloud: every address says whether DHCP brings it."""

from __future__ import annotations

from functools import partial

from homeport.core.platforms.network import Dhcp, Link, Network, host
from homeport.core.platforms.reading import Files, Node, described
from homeport.core.platforms.shape import Platform, Service, Sign, fixed

NAME = "metadata/v1.json"


def build(files: Files, network: Network) -> None:
    data = described(files, NAME, "network")["network"]
    network.each(data["interfaces"].some(), partial(_interface, network=network))
    network.serve(node.ip() for node in data["dns"].items())


def _interface(entry: Node, network: Network) -> None:
    link = network.card(entry["mac"].mac())
    is_public = entry["type"].value == "public"
    network.each(entry["ip_addresses"].items(), partial(_address, link=link, is_public=is_public, network=network))


def _address(entry: Node, link: Link, is_public: bool, network: Network) -> None:
    ip = entry["address"].ip()
    if entry["floating"].flag():
        link.add(host(ip))
        return
    if entry["dhcp"].flag():
        link.dhcp[ip.version] = Dhcp()
        return
    link.add(entry["address"].interface(Node(entry["network"].network().network.prefixlen, entry["network"].path)))
    if is_public:
        if entry["gateway"]:
            network.default_route(link, entry["gateway"].ip())
        network.serve([node.ip() for node in entry["dns"].items()], link=link.name)


PLATFORM = Platform(
    name="upcloud", title="UpCloud", build=build, signs=(Sign("manufacturer", ("UpCloud",)),),
    ways=(Service("http://169.254.169.254", fixed(NAME)),),
    reads="`/metadata/v1.json`",
    configures="DHCP where an address says so, else static with gateway and DNS; floating addresses as /32",
    leaves="nothing",
)
