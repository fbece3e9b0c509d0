"""Microsoft Azure: the instance metadata service tells all NICs in one answer."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address

from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import Fault, Files, IPInterface, Node, decode, described
from homeport.core.platforms.shape import CheckIn, Message, Platform, Service, Sign, Want, fixed
from homeport.core.platforms.vnics import Vnic, by_dhcp, configure

NAME = "metadata/instance/network"
# "Configure IPv6 for Linux", learn.microsoft.com: the same in every virtual network.
ROUTER = "fe80::1234:5678:9abc"
WANTS = fixed(Want(NAME, query="api-version=2021-02-01&format=json"))
# The wire server is another service, on an address that the DHCP lease may name.
GOAL_STATE = "machine/"
WIRE = {"x-ms-agent-name": "homeport", "x-ms-version": "2012-11-30"}
HEALTH = """<?xml version="1.0" encoding="utf-8"?>
<Health xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">
<GoalStateIncarnation>{}</GoalStateIncarnation>
<Container><ContainerId>{}</ContainerId><RoleInstanceList><Role><InstanceId>{}</InstanceId>
<Health><State>Ready</State></Health></Role></RoleInstanceList></Container>
</Health>
"""


def build(files: Files, network: Network) -> None:
    vnics: list[Vnic | None] = []
    network.each(described(files, NAME, "interface")["interface"].some(), partial(_vnic, vnics=vnics, network=network))
    configure(network, vnics)


def _vnic(entry: Node, vnics: list[Vnic | None], network: Network) -> None:
    """With accelerated networking a virtual function has the same MAC; which is meant is the resolver's to know."""
    vnics.append(None)
    addresses = _addresses(entry["ipv4"], 32) + _addresses(entry["ipv6"], 128)
    mac = entry["macAddress"].mac()
    router = network.situation.routers.get(mac) or ip_address(ROUTER)
    vnics[-1] = Vnic(mac, addresses, by_dhcp(addresses), {6: router})


def _addresses(family: Node, default: int) -> list[IPInterface]:
    prefix = next((subnet["prefix"] for subnet in family["subnet"].items()), None)
    return [address["privateIpAddress"].interface(prefix, default) for address in family["ipAddress"].items()]


def ready(files: Files) -> Message:
    """The goal state names whom this is about; "Ready" ends what Azure calls provisioning."""
    goal = decode(files[GOAL_STATE] or b"", GOAL_STATE)
    body = HEALTH.format(*(_element(goal, name) for name in ("Incarnation", "ContainerId", "InstanceId")))
    return Message("POST", "machine/?comp=health", body.encode(),
                   {**WIRE, "Content-Type": "text/xml; charset=utf-8"})


def _element(text: str, name: str) -> str:
    """The first <name> of the goal state. Not by a parser of XML: three plain words are wanted, and nothing else of
    what such parsers do.
    """
    _, found, rest = text.partition(f"<{name}>")
    value, end, _ = rest.partition(f"</{name}>")
    value = value.strip()
    if not (found and end and value and all(sign.isascii() and (sign.isalnum() or sign in "-_.") for sign in value)):
        raise Fault(GOAL_STATE, f"no <{name}>" if not found else "something else", f"a <{name}> of letters and digits")
    return value


PLATFORM = Platform(
    name="azure", title="Microsoft Azure", build=build, reconciles=True,
    signs=(Sign("chassis_asset_tag", ("7783-7084-3265-9085-8269-3286-77",)),),
    ways=(Service("http://169.254.169.254", WANTS, headers={"Metadata": "true"}),),
    check_in=CheckIn((Service("http://168.63.129.16", fixed(Want(GOAL_STATE, query="comp=goalstate")), headers=WIRE),),
                     ready, lease_option="private_245"),
    reads="`/metadata/instance/network`, version 2021-02-01",
    configures="every NIC by DHCP, IPv6 where it has some; secondary addresses and policy routing of both families",
    leaves="virtual functions of accelerated networking",
)
