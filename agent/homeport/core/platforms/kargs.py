"""The initramfs's network arguments (dracut.cmdline(7)), for those who hand them over as metadata.

Knows what can stand on its own: `ip=` with an interface, `nameserver=`, `rd.route=`.  An `ip=` without an
interface means "whatever comes first", and is refused: with two cards it is the wrong one half of the time.
"""

from __future__ import annotations

from functools import partial

from homeport.core import cmdline
from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Node

_AUTOMATIC = {"dhcp": (4,), "on": (4,), "any": (4,), "dhcp6": (6,), "auto6": (6,), "auto": (4, 6)}
_KNOWN = ("ip", "nameserver", "rd.route", "rd.neednet")
_FIELDS = ("client", "peer", "gateway", "netmask", "hostname", "interface", "method", "mtu-or-dns", "mac-or-dns")


def read(arguments: Node, network: Network) -> None:
    """The network that they describe."""
    given = [(name, Node(value, f"{arguments.path}: {name}")) for name, value in cmdline.parse(arguments.text())]
    if not any(name in _KNOWN for name, _ in given):
        raise arguments.fault(f"network arguments of the initramfs: {', '.join(_KNOWN)}")
    network.each([node for name, node in given if name == "nameserver"],
                 lambda node: network.serve([_unbracketed(node).ip()]))
    network.each([node for name, node in given if name == "ip"], partial(_ip, network=network))
    network.each([node for name, node in given if name == "rd.route"], partial(_route, network=network))
    for name, node in given:
        if name not in _KNOWN:
            network.note(f"{node.path} is not known here, and left out")


def split(text: str) -> list[str]:
    """At colons that are not in brackets: `[2001:db8::1]::[2001:db8::2]:64`."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == ":" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip("[]") for part in parts]


def _ip(node: Node, network: Network) -> None:
    parts = split(node.text())
    if len(parts) <= 3 and len(parts) > 1 and parts[1] in (*_AUTOMATIC, "off", "none"):
        parts = ["", "", "", "", "", parts[0], parts[1], *parts[2:]]  # ip=INTERFACE:METHOD[:MTU]
    fields = {name: Node(part or None, f"{node.path}: {name}")
              for name, part in zip(_FIELDS, (*parts, *[""] * len(_FIELDS)), strict=False)}
    if not fields["interface"]:
        raise node.fault("an ip= that names its interface")
    name = fields["interface"].text()
    link = network.links.get(name) or network.add(Link(name))
    for version in _AUTOMATIC.get(fields["method"].text("none"), ()):
        link.dhcp[version] = Dhcp()
    if fields["client"]:
        link.add(fields["client"].interface(fields["netmask"]))
    if fields["gateway"]:
        network.default_route(link, fields["gateway"].ip())
    for key in ("mtu-or-dns", "mac-or-dns"):
        if fields[key]:
            if fields[key].text().isdigit():
                link.mtu = fields[key].mtu()
            else:
                network.serve([fields[key].ip()])


def _route(node: Node, network: Network) -> None:
    parts = split(node.text())
    if len(parts) < 2:
        raise node.fault("DESTINATION:GATEWAY, with the interface behind it if there are several")
    destination, gateway, *rest = (Node(part or None, node.path) for part in parts)
    name = rest[0].text() if rest else next(iter(network.links), "")
    if name not in network.links:
        raise node.fault("a route whose interface has an ip=")
    network.route(network.links[name], destination.network(), gateway.ip())


def _unbracketed(node: Node) -> Node:
    return Node(node.text().strip("[]"), node.path)
