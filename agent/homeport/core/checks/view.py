"""A document as the checks look at it: entries with their paths, whatever is not of the right kind left out.

Knows where things stand in an nmstate document; judges nothing. What is of the wrong kind is the schema's
complaint already, so it is skipped here and no check has to expect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from homeport.core.checks.reading import IPInterface, Section, mappings, read_interface, section, strings, text
from homeport.core.complaint import Path
from homeport.core.schema.kinds import read_bool

FAMILIES = ("ipv4", "ipv6")
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


@dataclass(frozen=True)
class Reference:
    """A name of an interface somewhere in the document."""

    path: Path
    name: str


@dataclass(frozen=True)
class Family:
    """The `ipv4` or `ipv6` of an interface; `given` is false if the document says nothing of it."""

    path: Path
    data: Section
    given: bool
    version: int

    @cached_property
    def enabled(self) -> bool | None:
        return read_bool(self.data.get("enabled"))

    @cached_property
    def dynamic(self) -> bool:
        return read_bool(self.data.get("dhcp")) is True or (
            self.version == 6 and read_bool(self.data.get("autoconf")) is True)

    @cached_property
    def addresses(self) -> tuple[tuple[Path, IPInterface], ...]:
        """The static addresses that are sound; expiring ones are ignored by nmstate."""
        found = []
        for path, item in mappings(self.data.get("address"), (*self.path, "address")):
            address = read_interface(item.get("ip"), item.get("prefix-length"))
            if address is not None and address.version == self.version \
                    and item.get("valid-life-time", "forever") == "forever":
                found.append((path, address))
        return tuple(found)

    @property
    def may_have_address(self) -> bool:
        """Whether an address can come of it: given, dynamic, or kept from before."""
        if self.enabled is False:
            return False
        return self.dynamic or bool(self.addresses) or self.data.get("address") in (None, "")


@dataclass(frozen=True)
class Entry:
    """One interface of the document."""

    path: Path
    data: Section

    @cached_property
    def name(self) -> str:
        return text(self.data.get("name"))

    @cached_property
    def type(self) -> str:
        return text(self.data.get("type"))

    @cached_property
    def state(self) -> str:
        return text(self.data.get("state", "up"))

    @cached_property
    def up(self) -> bool:
        return self.state == "up"

    @cached_property
    def gone(self) -> bool:
        return self.state == "absent"

    @cached_property
    def user_space(self) -> bool:
        return self.type in USER_SPACE

    @cached_property
    def by_name(self) -> bool:
        """Whether `name` is the kernel's name of it, not just ours."""
        return self.data.get("identifier") not in ("mac-address", "pci-address")

    @cached_property
    def families(self) -> tuple[Family, ...]:
        return tuple(
            Family((*self.path, key), section(self.data.get(key)), isinstance(self.data.get(key), dict),
                   4 if key == "ipv4" else 6)
            for key in FAMILIES)

    def family(self, version: int) -> Family:
        return self.families[version == 6]

    def section(self, *names: str) -> tuple[Path, Section]:
        """The first of these sections that is there, with its path; an empty one otherwise."""
        for name in names:
            if isinstance(self.data.get(name), dict):
                return (*self.path, name), section(self.data[name])
        return (*self.path, names[0]), {}

    @cached_property
    def ports(self) -> tuple[Reference, ...]:
        return tuple(_ports(self))

    @cached_property
    def base(self) -> Reference | None:
        if self.type not in BASES:
            return None
        name, key = BASES[self.type]
        path, data = self.section(name)
        base = text(data.get(key))
        return Reference((*path, key), base) if base else None


@dataclass(frozen=True)
class View:
    """The whole document."""

    config: Section

    @cached_property
    def strings(self) -> tuple[tuple[Path, str], ...]:
        return tuple(strings(self.config))

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
    def routes(self) -> tuple[Entry, ...]:
        """Routes to be there."""
        return tuple(Entry(path, data) for path, data in self.all_routes if data.get("state") is None)

    @property
    def all_routes(self) -> Iterator[tuple[Path, Section]]:
        return mappings(section(self.config.get("routes")).get("config"), ("routes", "config"))

    @cached_property
    def rules(self) -> tuple[Entry, ...]:
        """Rules to be there."""
        rules = section(self.config.get("route-rules")).get("config")
        return tuple(Entry(path, data) for path, data in mappings(rules, ("route-rules", "config"))
                     if data.get("state") != "absent")

    def texts(self, *path: str) -> list[tuple[Path, str]]:
        """The texts of the list at `path`."""
        found: object = self.config
        for key in path:
            found = section(found).get(key)
        return [((*path, index), text(item)) for index, item in enumerate(found if isinstance(found, list) else [])
                if not isinstance(item, (dict, list))]


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
