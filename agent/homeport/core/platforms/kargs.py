"""The initramfs's network arguments (dracut.cmdline(7)), for those who hand them over as metadata.

Knows what can stand on its own: `ip=` with an interface, `nameserver=`, `rd.route=`.  An `ip=` without an
interface means "whatever comes first", and is refused: with two cards it is the wrong one half of the time.
"""

from __future__ import annotations

from functools import partial

from homeport.core import cmdline
from homeport.core.checks.names import is_host_name
from homeport.core.platforms.network import Dhcp, Link, Network
from homeport.core.platforms.reading import Fault, Node

_METHODS: dict[str, tuple[int, ...]] = {
    "none": (), "off": (), "static": (), "link6": (), "link-local": (), "dhcp": (4,), "single-dhcp": (4,), "on": (4,),
    "any": (4,), "dhcp6": (6,), "auto6": (6,), "either6": (6,), "auto": (4, 6), "dhcp,dhcp6": (4, 6)}
_KNOWN = ("ip", "nameserver", "rd.route", "rd.neednet")
_FIELDS = ("client", "peer", "gateway", "netmask", "hostname", "interface", "method")


def read(arguments: Node, network: Network) -> None:
    """The network that they describe."""
    given = [(name, Node(value, f"{arguments.path}: {name}")) for name, value in cmdline.parse(arguments.text())]
    if not any(name in _KNOWN for name, _ in given):
        raise arguments.fault(f"network arguments of the initramfs: {', '.join(_KNOWN)}")
    servers = [Node(node.text().strip("[]"), node.path) for name, node in given if name == "nameserver"]
    network.each(servers, lambda node: network.serve([node.ip()], link=node.zone()))
    network.each([node for name, node in given if name == "ip"], partial(_ip, network=network))
    for node in servers:
        if node.zone() and node.zone() not in network.links:
            network.note(f"{node.path}: there is no ip= for {node.zone()}; {node.value} is left out")
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
    if len(parts) > 1 and parts[1] in _METHODS:
        parts = ["", "", "", "", "", parts[0], parts[1], *parts[2:]]  # ip=INTERFACE:METHOD[:MTU]
    fields = {name: Node(part or None, f"{node.path}: {name}")
              for name, part in zip(_FIELDS, (*parts, *[""] * len(_FIELDS)), strict=False)}
    if not fields["interface"]:
        raise node.fault("an ip= that names its interface")
    name, method = fields["interface"].text(), fields["method"].text("none")
    if method not in _METHODS:
        raise fields["method"].fault(f"one of {', '.join(_METHODS)}")
    link = network.links.get(name) or network.add(Link(name))
    for version in _METHODS[method]:
        link.dhcp[version] = Dhcp()
    if fields["peer"]:
        network.note(f"{fields['peer'].path}: the other end of the link is left out")
    if fields["hostname"] and is_host_name(fields["hostname"].text()):
        network.hostname = network.hostname or fields["hostname"].text()
    elif fields["hostname"]:
        network.note(f"{fields['hostname'].path}: {fields['hostname'].value} is no host name; left out")
    if fields["client"]:
        link.add(fields["client"].interface(fields["netmask"]))
    if fields["gateway"]:
        network.default_route(link, fields["gateway"].ip())
    _behind([Node(part or None, f"{node.path}: behind the method") for part in parts[len(_FIELDS):]], link, network)


def _behind(parts: list[Node], link: Link, network: Network) -> None:
    """What may follow the method: `MTU:MAC`, or `DNS:DNS:NTP`. A MAC comes with brackets or as six parts."""
    whole = Node(":".join(str(part.value or "") for part in parts[1:]) or None, parts[1].path if parts[1:] else "")
    if whole and _is_mac(whole):
        link.mac, parts = whole.mac(), parts[:1]
    for part in parts[2:]:
        if part:
            network.note(f"{part.path}: {part.value} is left out; at most two name servers are read")
    for part in filter(None, parts[:2]):
        if part is parts[0] and part.text().isdigit():
            link.mtu = part.mtu()
        else:
            network.serve([part.ip()])


def _is_mac(node: Node) -> bool:
    try:
        return bool(node.mac())
    except Fault:
        return False


def _route(node: Node, network: Network) -> None:
    parts = split(node.text())
    if len(parts) < 2:
        raise node.fault("DESTINATION:GATEWAY, with the interface behind it if there are several")
    destination, gateway, *rest = (Node(part or None, node.path) for part in parts)
    name = rest[0].text() if rest else next(iter(network.links), "")
    if name not in network.links:
        raise node.fault("a route whose interface has an ip=")
    network.route(network.links[name], destination.network(), gateway.ip())
