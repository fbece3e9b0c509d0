"""A document as the checks look at it: entries with their paths, whatever is not of the right kind left out.

Knows where things stand in an nmstate document; judges nothing. What is of the wrong kind is the schema's
complaint already, so it is skipped here and no check has to expect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from homeport.core.checks.reading import IPInterface, Section, mappings, read_interface, section, strings, text
from homeport.core.complaint import Path
from homeport.core.schema.kinds import read_bool

# Not in the kernel: their names may be used again by an interface (nmstate keeps two lists).
USER_SPACE = ("ovs-bridge", "ipsec")
CONTROLLERS = ("bond", "linux-bridge", "ovs-bridge", "vrf", "hsr")
# The section of each type that stands upon another interface, and the key that names that one.
BASES = {
    "vlan": ("vlan", "base-iface"),
    "vxlan": ("vxlan", "base-iface"),
    "mac-vlan": ("mac-vlan", "base-iface"),
    "mac-vtap": ("mac-vtap", "base-iface"),
    "ipvlan": ("ipvlan", "base-iface"),
    "macsec": ("macsec", "base-iface"),
    "infiniband": ("infiniband", "base-iface"),
    "ip-tunnel": ("ip-tunnel", "base-iface"),
}


class Reference(NamedTuple):
    """A name of an interface somewhere in the document."""

    path: Path
    name: str


class Family:
    """The `ipv4` or `ipv6` of an interface; `given` is false if the document says nothing of it."""

    __slots__ = ("_addresses", "data", "dynamic", "enabled", "given", "path", "version")

    def __init__(self, path: Path, data: object, version: int) -> None:
        self.path = path
        self.given = isinstance(data, dict)
        self.data = section(data)
        self.version = version
        self.enabled = read_bool(self.data.get("enabled"))
        self.dynamic = read_bool(self.data.get("dhcp")) is True or (
            version == 6 and read_bool(self.data.get("autoconf")) is True)
        self._addresses: tuple[tuple[Path, IPInterface], ...] | None = None

    @property
    def addresses(self) -> tuple[tuple[Path, IPInterface], ...]:
        """The static addresses that are sound; expiring ones are ignored by nmstate."""
        if self._addresses is None:
            self._addresses = tuple(self._read_addresses())
        return self._addresses

    def _read_addresses(self) -> Iterator[tuple[Path, IPInterface]]:
        for path, item in mappings(self.data.get("address"), (*self.path, "address")):
            address = read_interface(item.get("ip"), item.get("prefix-length"))
            if address is not None and address.version == self.version \
                    and item.get("valid-life-time", "forever") == "forever":
                yield path, address

    @property
    def may_have_address(self) -> bool:
        """Whether an address can come of it: given, dynamic, or kept from before."""
        if self.enabled is False:
            return False
        return self.dynamic or bool(self.addresses) or self.data.get("address") in (None, "")


class Part(NamedTuple):
    """One route or rule of the document."""

    path: Path
    data: Section


class Entry:
    """One interface of the document.

    With slots instead of cached properties: there may be ten thousand, in 40 MiB with all else.
    """

    __slots__ = ("_base", "_families", "_ports", "data", "gone", "name", "path", "state", "type", "up", "user_space")

    def __init__(self, path: Path, data: Section) -> None:
        self.path = path
        self.data = data
        self.name = text(data.get("name"))
        self.type = text(data.get("type"))
        self.state = text(data.get("state", "up"))
        self.up = self.state == "up"
        self.gone = self.state == "absent"
        self.user_space = self.type in USER_SPACE
        self._families: tuple[Family, Family] | None = None
        self._ports: tuple[Reference, ...] | None = None
        self._base: Reference | None = None

    @property
    def by_name(self) -> bool:
        """Whether `name` is the kernel's name of it, not just ours."""
        return self.data.get("identifier") not in ("mac-address", "pci-address")

    @property
    def families(self) -> tuple[Family, Family]:
        if self._families is None:
            self._families = (Family((*self.path, "ipv4"), self.data.get("ipv4"), 4),
                              Family((*self.path, "ipv6"), self.data.get("ipv6"), 6))
        return self._families

    def family(self, version: int) -> Family:
        return self.families[version == 6]

    def section(self, *names: str) -> tuple[Path, Section]:
        """The first of these sections that is there, with its path; an empty one otherwise."""
        for name in names:
            if isinstance(self.data.get(name), dict):
                return (*self.path, name), section(self.data[name])
        return (*self.path, names[0]), {}

    @property
    def ports(self) -> tuple[Reference, ...]:
        if self._ports is None:
            self._ports = tuple(_ports(self))
        return self._ports

    @property
    def base(self) -> Reference | None:
        if self._base is None and self.type in BASES:
            name, key = BASES[self.type]
            path, data = self.section(name)
            base = text(data.get(key))
            self._base = Reference((*path, key), base) if base else None
        return self._base


@dataclass(frozen=True)
class View:
    """The whole document."""

    config: Section

    @property
    def strings(self) -> Iterator[tuple[Path, str]]:
        return strings(self.config)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(path, data) for path, data in mappings(self.config.get("interfaces"), ("interfaces",))
                     if data.get("state") not in ("ignore", "unknown"))

    @cached_property
    def ignored(self) -> frozenset[str]:
        return frozenset(text(data.get("name")) for _, data in mappings(self.config.get("interfaces"), ())
                         if data.get("state") == "ignore")

    @cached_property
    def kernel(self) -> dict[str, Entry]:
        """Declared interfaces of the kernel by any name that refers to them: own, profile's, alternative."""
        names: dict[str, Entry] = {}
        for entry in self.entries:
            if not entry.user_space:
                for name in (text(entry.data.get("profile-name")), *_alt_names(entry)):
                    names.setdefault(name, entry)
        names.update((entry.name, entry) for entry in self.entries if not entry.user_space)
        names.pop("", None)
        return names

    @cached_property
    def controllers(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.entries if entry.type in CONTROLLERS and entry.name}

    @cached_property
    def controller_of(self) -> dict[str, Entry]:
        """The controller of each port, by any name of the port; the port's own `controller` counts too."""
        found = {port.name: entry for entry in self.entries if entry.up for port in entry.ports}
        for entry in self.entries:
            named = self.controllers.get(text(entry.data.get("controller")))
            own = found.get(text(entry.data.get("profile-name"))) or named
            if own is not None:
                found.setdefault(entry.name, own)
        return found

    @cached_property
    def routes(self) -> tuple[Part, ...]:
        """Routes to be there."""
        return tuple(Part(path, data) for path, data in self.all_routes if data.get("state") is None)

    @property
    def all_routes(self) -> Iterator[tuple[Path, Section]]:
        return mappings(section(self.config.get("routes")).get("config"), ("routes", "config"))

    @cached_property
    def rules(self) -> tuple[Part, ...]:
        """Rules to be there."""
        rules = section(self.config.get("route-rules")).get("config")
        return tuple(Part(path, data) for path, data in mappings(rules, ("route-rules", "config"))
                     if data.get("state") != "absent")

    def texts(self, *path: str) -> Iterator[tuple[Path, str]]:
        """The texts of the list at `path`."""
        found: object = self.config
        for key in path:
            found = section(found).get(key)
        for index, item in enumerate(found if isinstance(found, list) else []):
            if not isinstance(item, (dict, list)):
                yield (*path, index), text(item)


def _ports(entry: Entry) -> Iterator[Reference]:
    if entry.type == "hsr":
        path, data = entry.section("hsr")
        for key in ("port1", "port2", "interlink"):
            if text(data.get(key)):
                yield Reference((*path, key), text(data[key]))
    path, listed = _port_list(entry)
    for index, port in enumerate(listed or []):
        yield from _port_names(port, (*path, index))


def _port_list(entry: Entry) -> tuple[Path, list[object] | None]:
    """Where the list of ports stands, and the list; None if the document gives none."""
    if entry.type not in CONTROLLERS or entry.gone:
        return entry.path, None
    path, data = entry.section("link-aggregation", "bond") if entry.type == "bond" else entry.section(
        "vrf" if entry.type == "vrf" else "bridge")
    key = next((k for k in ("port", "ports", "ports-config") if isinstance(data.get(k), list)), "port")
    listed = data.get(key)
    return (*path, key), listed if isinstance(listed, list) else None


def has_list(controller: Entry) -> bool:
    """Whether the document says which ports the controller has (it may be: none)."""
    return bool(controller.ports) or _port_list(controller)[1] is not None


def _port_names(port: object, path: Path) -> Iterator[Reference]:
    if not isinstance(port, dict):
        if text(port):
            yield Reference(path, text(port))
        return
    for key in ("link-aggregation", "bond"):
        below = section(port.get(key))
        for name in ("port", "ports"):
            for at, item in mappings(below.get(name), (*path, key, name)):
                yield Reference((*at, "name"), text(item.get("name")))
            if isinstance(below.get(name), list):
                return
    if text(port.get("name")):
        yield Reference((*path, "name"), text(port["name"]))


def _alt_names(entry: Entry) -> Iterator[str]:
    for _, item in mappings(entry.data.get("alt-names"), ()):
        if item.get("state") != "absent":
            yield text(item.get("name"))
