"""Metadata read field by field, without trusting any; a fault says where it is.

Platforms write a netmask as a mask, a prefix length, a number or text, and leave out what does not apply:
this is where all those spellings end.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Any

from homeport.core.checks.reading import IPAddress, IPInterface
from homeport.core.complaint import Complaint
from homeport.core.mac import normalise_mac
from homeport.core.platforms.shape import Files, Unreadable
from homeport.core.showing import printable, show

MAX_NUMBER = 2**32 - 1
# netplan, src/parse.c, handle_generic_bool(); PyYAML, which cloud-init reads with, knows all but the letters.
YES, NO = ("true", "yes", "on", "y"), ("false", "no", "off", "n")


class Fault(Exception):
    """Something in the metadata is not as it must be."""

    def __init__(self, path: str, found: str, wanted: str) -> None:
        self.complaint = Complaint(printable(path, 200), found, wanted)
        super().__init__(str(self.complaint))


@dataclass(frozen=True)
class Node:
    """A value of the metadata and where it stands; what is not there is a node without value."""

    value: Any
    path: str

    def __getitem__(self, key: str) -> Node:
        """What a mapping has at `key`; nothing where nothing is. Raises Fault for what is no mapping."""
        if self and not isinstance(self.value, dict):
            raise self.fault("a mapping")
        return Node(self.value.get(key) if isinstance(self.value, dict) else None,
                    f"{self.path}{'' if self.path.endswith(': ') else '.'}{key}")

    def __bool__(self) -> bool:
        """Whether anything is there: an empty text or list is as good as nothing."""
        return self.value is not None and self.value != "" and self.value != [] and self.value != {}

    def fault(self, wanted: str) -> Fault:
        return Fault(self.path, "missing" if self.value is None else show(self.value), wanted)

    def items(self) -> list[Node]:
        """The items of a list; nothing is an empty list."""
        if not self:
            return []
        if not isinstance(self.value, list):
            raise self.fault("a list")
        return [Node(item, f"{self.path}[{index}]") for index, item in enumerate(self.value)]

    def some(self) -> list[Node]:
        """The items of a list that has some, as that of a machine's cards has. Raises Fault for any other."""
        found = self.items()
        if not found:
            raise self.fault("a list with at least one item")
        return found

    def entries(self) -> list[tuple[str, Node]]:
        """The entries of a mapping; nothing is an empty mapping."""
        if not self:
            return []
        if not isinstance(self.value, dict):
            raise self.fault("a mapping")
        return [(str(key), self[key]) for key in self.value]

    def words(self) -> list[Node]:
        """A list, or a text of words where a list could be: `search: example.com example.net`."""
        if isinstance(self.value, str):
            return [Node(word, self.path) for word in self.value.split()]
        return self.items() if isinstance(self.value, list) or not self else [self]

    def text(self, default: str | None = None) -> str:
        if isinstance(self.value, str) and self.value:
            return self.value
        if default is not None and not self:
            return default
        raise self.fault("text")

    def number(self, low: int = 0, high: int = MAX_NUMBER) -> int:
        """A whole number, also written as text."""
        value = self.value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
            value = int(value)
        if type(value) is not int or not low <= value <= high:
            raise self.fault(f"a number from {low} to {high}")
        return value

    def mtu(self) -> int | None:
        """An MTU; None if none is given."""
        return self.number(68, 65535) if self else None

    def flag(self, default: bool = False) -> bool:
        """A yes or no, also as YAML 1.1 writes it, by which cloud-init and netplan read."""
        if not self:
            return default
        text = str(self.value).lower()
        if text not in (*YES, *NO):
            raise self.fault("true or false")
        return text in YES

    def mac(self) -> str:
        try:
            return normalise_mac(self.text())
        except ValueError as wanted:
            raise self.fault(str(wanted)) from None

    def ip(self) -> IPAddress:
        """An address without a zone: that is the name of an interface on whatever machine wrote it."""
        try:
            found = ip_address(self.text().strip())
        except ValueError:
            raise self.fault("an IP address") from None
        return found if found.version == 4 else IPv6Address(int(found))

    def zone(self) -> str:
        """The interface that an address written with its zone is on: `eth0` of `fe80::1%eth0`."""
        return self.text().strip().partition("%")[2]

    def interface(self, netmask: Node | None = None, default: int | None = None) -> IPInterface:
        """An address with its prefix: its own, else that of `netmask` (mask or length), else `default`."""
        text = self.text().strip()
        if "/" not in text:
            ip = self.ip()
            length = netmask.prefix(ip.version) if netmask else default
            if length is None:
                raise (netmask or self).fault(f"the prefix length of {ip}, or its netmask")
            text = f"{ip}/{length}"
        try:
            found = ip_interface(text)
        except ValueError:
            raise self.fault("an address with its prefix length, such as 192.0.2.10/24") from None
        return found if found.version == 4 else IPv6Interface((int(found), found.network.prefixlen))

    def network(self, netmask: Node | None = None, default: int | None = None) -> IPInterface:
        """A network as the interface with its first address; host bits do not count. Without a prefix of any kind,
        and no `default`, it is one address.
        """
        if default is None:
            default = 32 if ":" not in self.text() else 128
        found = self.interface(netmask, default)
        return ip_interface(str(found.network))

    def prefix(self, version: int) -> int:
        """A prefix length, also written as a mask of either family."""
        longest = 32 if version == 4 else 128
        text = str(self.value).strip()
        if text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= longest:
            return int(text)
        try:
            mask = ip_address(text)
        except ValueError:
            mask = None
        if mask is not None and mask.version == version:
            bits = f"{int(mask):0{longest}b}"
            if "01" not in bits:
                return bits.count("1")
        raise self.fault(f"a netmask or a prefix length from 0 to {longest}")


def tree(files: Files, name: str) -> Node:
    """The JSON or YAML document `name`; without value if it isn't there. Raises Fault if it is neither."""
    data = files.get(name)
    path = f"{name}: "
    if data is None:
        return Node(None, path)
    text = decode(data, path)
    if text.lstrip()[:1] in ("{", "["):
        import json

        try:
            return Node(json.loads(text), path)
        except (ValueError, RecursionError):
            pass  # flow style of YAML begins so too
    from homeport.core.yamlsafe import read_yaml

    found = read_yaml(text)
    if found.complaints or not found.usable:
        first = found.complaints[0] if found.complaints else Complaint("", "not usable", "YAML or JSON")
        raise Fault(f"{path}{first.path}", first.found, first.wanted)
    return Node(found.value, path)


def described(files: Files, name: str, *keys: str) -> Node:
    """The document `name`, a mapping with at least one of `keys`. Raises Fault for anything else.

    Who answers may be another one: a portal with its page, a proxy with an empty answer. Read as metadata that have
    nothing to say of networks, that would take away the network that is in force.
    """
    found = tree(files, name)
    if not isinstance(found.value, dict) or not any(key in found.value for key in keys):
        named = "' or '".join(keys)
        raise found.fault(f"metadata, a mapping with '{named}'")
    return found


def line(files: Files, name: str) -> Node:
    """A file that holds one value."""
    data = files.get(name)
    return Node(None if data is None else decode(data, name).strip(), name)


def lines(files: Files, name: str) -> list[Node]:
    """A file that holds a value on each line."""
    data = files.get(name)
    text = "" if data is None else decode(data, name)
    return [Node(each.strip(), f"{name}: line {number}")
            for number, each in enumerate(text.splitlines(), 1) if each.strip()]


def cards(files: Files, name: str) -> list[Node]:
    """A list of folders, each named as a card's MAC, in whatever case and with a slash at the end: each card once."""
    found: dict[str, Node] = {}
    for node in lines(files, name):
        found.setdefault(node.text().rstrip("/").lower(), Node(node.text().rstrip("/"), node.path))
    return list(found.values())


def macs(files: Files, name: str) -> list[str]:
    """The MACs in such a list, as they are written: what a walk may ask for next.

    Total, and blind to all else: whoever reads the list says what is wrong with it.
    """
    found: list[str] = []
    with suppress(Fault):
        for each in cards(files, name):
            with suppress(Fault):
                each.mac()
                found.append(each.text())
    return found


def decode(data: bytes, path: str) -> str:
    if isinstance(data, Unreadable):
        raise Fault(path, data.decode("utf-8", "replace"), "an answer")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Fault(path, "bytes that are not UTF-8", "text") from None


def first_host(interface: IPInterface) -> IPAddress | None:
    """The first address of a network: where routers are when nobody says.

    None for a network of one address or two, where no place is left for a router.
    """
    network = interface.network
    return network.network_address + 1 if network.max_prefixlen - network.prefixlen >= 2 else None


__all__ = ["Fault", "Files", "IPAddress", "IPInterface", "Node", "cards", "decode", "described", "first_host", "line",
           "lines", "macs", "tree"]
