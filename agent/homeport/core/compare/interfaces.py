"""One interface of the desired state against the interface of that name in `show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.compare.addresses import family_differences
from homeport.core.compare.sections import ALIASES, difference, section_differences
from homeport.core.compare.values import plain_mac
from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.schema.kinds import read_bool, read_number

Entry = Mapping[str, object]

# Names, storage and queries: not what is in force, or checked by whoever resolved the names.
_NOT_COMPARED = frozenset({
    "name", "type", "state", "identifier", "profile-name", "description", "driver",
    "permanent-mac-address", "pci-address", "min-mtu", "max-mtu", "dispatch", "802.1x", "ovs-db",
    "mac-address", "copy-mac-from", "controller", "ipv4", "ipv6", "mtu", "alt-names", "wait-ip",
    "accept-all-mac-addresses",
})
_USER_SPACE = ("ovs-bridge", "ipsec")
# What is still there when its configuration is gone: hardware, and the kernel's own.
_NEVER_GONE = ("ethernet", "veth", "infiniband", "loopback", "unknown", "tun")


class Current:
    """The interfaces of `show`, found by name."""

    def __init__(self, entries: object) -> None:
        self.entries: list[Entry] = [
            entry for entry in entries if isinstance(entry, Mapping)
        ] if isinstance(entries, list) else []
        self._kernel = {str(e.get("name")): e for e in self.entries if not _is_user(e)}
        self._user = {(str(e.get("name")), str(e.get("type"))): e for e in self.entries if _is_user(e)}

    def find(self, desired: Entry) -> Entry | None:
        """The interface that `desired` is about: by name, or by the MAC that identifies it."""
        name = str(desired.get("name"))
        if _is_user(desired):
            return self._user.get((name, str(desired.get("type"))))
        if desired.get("identifier") == "mac-address" and "mac-address" in desired:
            mac = plain_mac(desired["mac-address"])
            by_mac = (e for key in ("permanent-mac-address", "mac-address") for e in self.entries
                      if plain_mac(e.get(key, "")) == mac and same_type(desired, e))
            return self._kernel.get(name) or next(by_mac, None)
        return self._kernel.get(name)

    def mac(self, name: str) -> str:
        entry = self._kernel.get(name, {})
        return plain_mac(entry.get("permanent-mac-address") or entry.get("mac-address") or "")

    def controller(self, name: str) -> str:
        """The name of the interface that has `name` among its ports, "" if none has."""
        for entry in self.entries:
            if name in port_names(entry):
                return str(entry.get("name"))
        return ""


def _is_user(entry: Entry) -> bool:
    return entry.get("type") in _USER_SPACE


def same_type(desired: Entry, current: Entry) -> bool:
    """Whether the types fit; nmstate takes ethernet and veth for one, and no type for any."""
    kinds = {str(entry.get("type", "unknown")) for entry in (desired, current)}
    return len(kinds) == 1 or kinds == {"ethernet", "veth"} or "unknown" in kinds


def port_names(entry: Entry) -> list[str]:
    """The ports in an entry's own section, whatever its type."""
    names: list[str] = []
    for key in ("link-aggregation", "bond", "bridge", "vrf", "hsr"):
        section = entry.get(key)
        if not isinstance(section, Mapping):
            continue
        ports = section.get("port", section.get("ports", section.get("ports-config")))
        for port in ports if isinstance(ports, list) else []:
            names += _names_of_port(port)
        names += [str(section[key]) for key in ("port1", "port2", "interlink") if section.get(key)]
    return names


def _names_of_port(port: object) -> list[str]:
    if not isinstance(port, Mapping):
        return [str(port)]
    bond = port.get("link-aggregation", port.get("bond"))
    below = bond.get("port", bond.get("ports")) if isinstance(bond, Mapping) else None
    if isinstance(below, list):
        return [str(item.get("name")) for item in below if isinstance(item, Mapping)]
    return [str(port.get("name"))]


def interface_differences(
        desired: Entry, current: Current, path: Path, *, thorough: bool) -> Iterator[Complaint]:
    """Where the machine's interface is not what `desired` says."""
    state = desired.get("state", "up")
    found = current.find(desired)
    if state in ("ignore", "unknown"):
        return
    if state in ("absent", "down"):
        yield from _gone_differences(desired, found, path, thorough)
        return
    if found is None:
        yield Complaint(render_path(path), f"no interface {desired.get('name')}", "the interface")
        return
    if not same_type(desired, found):
        yield difference((*path, "type"), found.get("type"), desired.get("type"))
        return
    if found.get("state") != "up":
        yield difference((*path, "state"), found.get("state"), "up")
    yield from _link_differences(desired, found, current, path)
    for family in ("ipv4", "ipv6"):
        if isinstance(desired.get(family), Mapping):
            yield from family_differences(
                desired[family], found.get(family), (*path, family), thorough=thorough)
    for key, value in desired.items():
        name = ALIASES.get(key, key)
        if name not in _NOT_COMPARED and value is not None and found.get(name) is not None:
            yield from section_differences(
                _without_negotiated(name, value), found[name], (*path, key),
                options=thorough or name != "link-aggregation")
        elif name in ("vlan", "vxlan", "vrf", "link-aggregation", "bridge") and value:
            yield difference((*path, key), None, value)


def _gone_differences(
        desired: Entry, found: Entry | None, path: Path, thorough: bool) -> Iterator[Complaint]:
    if found is None or found.get("state") not in ("up", None):
        return
    if found.get("type") not in _NEVER_GONE or thorough:
        yield difference((*path, "state"), "up", desired.get("state"))


def _link_differences(
        desired: Entry, found: Entry, current: Current, path: Path) -> Iterator[Complaint]:
    mtu = read_number(desired.get("mtu"))
    # 0 leaves the MTU to the kernel (NetworkManager's meaning of it).
    if mtu and read_number(found.get("mtu")) != mtu:
        yield difference((*path, "mtu"), found.get("mtu"), mtu)
    if "mac-address" in desired and desired.get("identifier") != "mac-address" \
            and not _mac_is_its_ports(desired):
        yield from section_differences(
            desired["mac-address"], found.get("mac-address"), (*path, "mac-address"))
    source = desired.get("copy-mac-from")
    if isinstance(source, str) and current.mac(source) \
            and plain_mac(found.get("mac-address", "")) != current.mac(source):
        yield difference(
            (*path, "copy-mac-from"), found.get("mac-address"), current.mac(source))
    if isinstance(desired.get("controller"), str) \
            and current.controller(str(desired.get("name"))) != desired["controller"]:
        yield difference((*path, "controller"),
                         current.controller(str(desired.get("name"))), desired["controller"])
    promiscuous = read_bool(desired.get("accept-all-mac-addresses"))
    if promiscuous is not None and promiscuous != bool(found.get("accept-all-mac-addresses")):
        yield difference((*path, "accept-all-mac-addresses"),
                         found.get("accept-all-mac-addresses"), promiscuous)
    yield from _alt_name_differences(desired, found, path)


def _mac_is_its_ports(desired: Entry) -> bool:
    """A VRF has no MAC of its own; a bond that fails over by MAC has its port's."""
    bond = desired.get("link-aggregation", desired.get("bond"))
    options = bond.get("options") if isinstance(bond, Mapping) else None
    return desired.get("type") == "vrf" or (
        isinstance(options, Mapping) and str(options.get("fail_over_mac")) in ("active", "1"))


def _alt_name_differences(desired: Entry, found: Entry, path: Path) -> Iterator[Complaint]:
    shown = found.get("alt-names")
    have = {str(item.get("name")) for item in shown if isinstance(item, Mapping)} \
        if isinstance(shown, list) else set()
    wanted = desired.get("alt-names")
    for index, item in enumerate(wanted if isinstance(wanted, list) else []):
        if isinstance(item, Mapping) and (item.get("state") != "absent") != (str(item.get("name")) in have):
            yield difference((*path, "alt-names", index), listed(have), item.get("name"))


def listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _without_negotiated(name: str, value: object) -> object:
    """Speed and duplex are not promised while they are negotiated (nmstate's own rule)."""
    if name == "ethernet" and isinstance(value, Mapping) \
            and read_bool(value.get("auto-negotiation")) is True:
        return {k: v for k, v in value.items() if k not in ("speed", "duplex")}
    if name == "ethtool" and isinstance(value, Mapping) and isinstance(value.get("fec"), Mapping) \
            and read_bool(value["fec"].get("auto")) is True:
        return {**value, "fec": {"auto": True}}
    return value
