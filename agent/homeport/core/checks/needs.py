"""What a document asks of the machine: kernel modules, plugins and programs, interfaces that must be there.

Each with its reason, so that whoever finds one missing can say why it matters. Without a module or a base
interface `nmstatectl` tries for two minutes; asking first takes milliseconds. Knows names only: whether they
are there is for the host side to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.core.checks.reading import section, text
from homeport.core.checks.view import Entry, View

# Kernel module by type of interface (what `modprobe` would load for `ip link add type …`).
_MODULES = {
    "bond": ("bonding",),
    "vlan": ("8021q",),
    "vxlan": ("vxlan",),
    "dummy": ("dummy",),
    "vrf": ("vrf",),
    "linux-bridge": ("bridge",),
    "mac-vlan": ("macvlan",),
    "mac-vtap": ("macvtap",),
    "ipvlan": ("ipvlan",),
    "macsec": ("macsec",),
    "hsr": ("hsr",),
    "ovs-bridge": ("openvswitch",),
    "ovs-interface": ("openvswitch",),
    "xfrm": ("xfrm_interface",),
}
_TUNNEL_MODULES = {"ipip": "ipip", "sit": "sit", "ip6ip6": "ip6_tunnel", "ipip6": "ip6_tunnel"}
# NetworkManager's shared objects beyond its core: device plugins and VPN plugins, by type.
_PLUGINS = {"ovs-bridge": "ovs", "ovs-interface": "ovs", "ipsec": "libreswan"}
# The first NetworkManager that knows the type (its NEWS).
_SINCE = {"hsr": (1, 46), "ipvlan": (1, 52), "loopback": (1, 42)}
# What `nmstatectl gc` writes without its own section: such profiles cannot be made offline.
_NOT_OFFLINE = ("hsr", "ipvlan")


@dataclass(frozen=True)
class Needs:
    """Names, each with the reason it is needed ("bond0 is a bond").

    `modules` of the kernel; `nm_plugins` of NetworkManager ("ovs", "libreswan"); `programs` on PATH or under
    /sbin; `bases`: interfaces that the document refers to without declaring them, so they must exist already;
    `networkmanager`: the least version. `not_offline`: interfaces whose profile `nmstatectl gc` writes without
    what they need, or not at all, so that only a running NetworkManager can be given them.
    """

    modules: Mapping[str, str]
    nm_plugins: Mapping[str, str]
    programs: Mapping[str, str]
    bases: Mapping[str, str]
    networkmanager: Mapping[tuple[int, int], str]
    not_offline: Mapping[str, str]


def needs(config: Mapping[str, object]) -> Needs:
    """What the machine must have for `config` to come into force; nothing for a policy."""
    view = View(config)
    modules: dict[str, str] = {}
    plugins: dict[str, str] = {}
    programs: dict[str, str] = {}
    versions: dict[tuple[int, int], str] = {}
    not_offline: dict[str, str] = {}
    for entry in view.entries:
        if not entry.up:
            continue
        why = f"{entry.name} is of type {entry.type}"
        for module in _modules(entry):
            modules.setdefault(module, why)
        if entry.type in _PLUGINS:
            plugins.setdefault(_PLUGINS[entry.type], why)
        if entry.type in _SINCE:
            versions.setdefault(_SINCE[entry.type], why)
        if entry.type in _NOT_OFFLINE:
            not_offline.setdefault(entry.name, why)
        if entry.data.get("copy-mac-from"):
            not_offline.setdefault(entry.name, f"{entry.name} copies a MAC that is only known on the machine")
        if section(entry.data.get("802.1x")):
            programs.setdefault("wpa_supplicant", f"{entry.name} authenticates itself by 802.1X")
    return Needs(modules, plugins, programs, _bases(view), versions, not_offline)


def _modules(entry: Entry) -> tuple[str, ...]:
    if entry.type == "ip-tunnel":
        mode = text(entry.section("ip-tunnel")[1].get("mode"))
        return (_TUNNEL_MODULES[mode],) if mode in _TUNNEL_MODULES else ()
    if entry.type == "infiniband":
        return ("ib_ipoib",)
    if entry.section("veth")[1]:
        return ("veth",)
    return _MODULES.get(entry.type, ())


def _bases(view: View) -> dict[str, str]:
    """Interfaces that are referred to and not declared, nor made on the way."""
    made = {text(entry.section("veth")[1].get("peer")) for entry in view.entries if entry.up}
    found: dict[str, str] = {}
    for name, why in _references(view):
        if name and name != "lo" and name not in view.kernel and name not in view.controllers and name not in made:
            found.setdefault(name, why)
    return found


def _references(view: View) -> Iterator[tuple[str, str]]:
    for entry in view.entries:
        if not entry.up:
            continue
        if entry.base is not None:
            yield entry.base.name, f"{entry.name} stands on it"
        # Open vSwitch makes a port of its own for a name that nobody has.
        for port in entry.ports if entry.type != "ovs-bridge" else ():
            yield port.name, f"{entry.name} has it as a port"
        yield text(entry.data.get("copy-mac-from")), f"{entry.name} copies its MAC"
        yield text(entry.data.get("controller")), f"{entry.name} is a port of it"
    for route in view.routes:
        yield text(route.data.get("vrf-name")), "a route is in its table"
