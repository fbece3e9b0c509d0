"""Checks of an interface's IP: families, prefixes, duplicates, MTU, what a port may not have."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address

from homeport.core.checks.reading import IPInterface, complain, mappings, read_ip, text
from homeport.core.checks.view import Entry, Family, View
from homeport.core.complaint import Complaint, Path
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.showing import show

IPV6_MTU = 1280  # RFC 8200, 5
IPV4_MTU = 68  # RFC 791; the kernel takes IPv4 off below it
_LONGEST_MTU = 2**32 - 1


def address_families(view: View) -> Iterator[Complaint]:
    """Addresses in the wrong section, prefixes out of range, the address of nobody."""
    for entry in view.entries:
        for family in () if entry.gone else entry.families:
            for path, item in mappings(family.data.get("address"), (*family.path, "address")):
                ip, prefix = read_ip(item.get("ip")), read_number(item.get("prefix-length"))
                if ip is None:
                    continue
                if ip.version != family.version:
                    yield complain((*path, "ip"), f"{ip} in {family.path[-1]}", f"an IPv{family.version} address")
                elif ip.is_unspecified:
                    yield complain((*path, "ip"), f"{ip}", "the address of one machine")
                if prefix is not None and prefix > ip.max_prefixlen:
                    yield complain((*path, "prefix-length"), f"{prefix}", f"a number from 0 to {ip.max_prefixlen}")


def enabled_families(view: View) -> Iterator[Complaint]:
    """Addresses in a family that is off: nmstate drops them without a word."""
    for entry in view.entries:
        for family in entry.families if entry.up else ():
            wish = "addresses" if family.data.get("address") else "dhcp or autoconf" if family.dynamic else ""
            if wish and family.enabled is not True:
                state = "not given" if family.enabled is None else "false"
                yield complain((*family.path, "enabled"), f"{state}, although there are {wish}", "enabled: true")


def group_addresses(view: View) -> Iterator[Complaint]:
    """Addresses of groups: the kernel sets some of them, but nothing can be sent from there."""
    for entry in view.entries:
        for path, address in (pair for family in entry.families for pair in family.addresses):
            if entry.up and address.is_multicast:
                yield complain((*path, "ip"), f"{address.ip}, a multicast address", "the address of one machine")


def duplicate_addresses(view: View) -> Iterator[Complaint]:
    """One address on two interfaces.

    Not on loopback or dummy interfaces (anycast), not between VRFs, and not host addresses (/32, /128), which
    unnumbered links share.
    """
    seen: dict[tuple[str, IPInterface], Entry] = {}
    for entry in view.entries:
        if not entry.up or entry.type in ("loopback", "dummy"):
            continue
        vrf = view.controller_of.get(entry.name)
        for path, address in (pair for family in entry.families for pair in family.addresses):
            if address.network.prefixlen == address.max_prefixlen or address.is_link_local:
                continue
            key = (vrf.name if vrf is not None and vrf.type == "vrf" else "",
                   address)
            first = seen.setdefault(key, entry)
            if first is not entry:
                yield complain((*path, "ip"), f"{address.ip}, which {first.name} has too", "an address of its own")


def addresses_on_ports(view: View) -> Iterator[Complaint]:
    """The controller has the addresses; only VRF ports and Open vSwitch's own ports have some."""
    for entry in view.entries:
        controller = view.controller_of.get(entry.name)
        if not entry.up or controller is None or not controller.up or entry.type == "ovs-interface" \
                or controller.type == "vrf":
            continue
        for family in entry.families:
            if family.enabled:
                yield complain((*family.path, "enabled"), f"true on a port of {controller.name}",
                               f"false; the addresses belong to {controller.name}")


def mtus(view: View) -> Iterator[Complaint]:
    """Too small for IP, or larger than what the interface stands on."""
    for entry in view.entries:
        mtu = read_number(entry.data.get("mtu"))
        if mtu is None or not entry.up:
            continue
        path = (*entry.path, "mtu")
        if mtu > _LONGEST_MTU:
            yield complain(path, f"{mtu}", f"at most {_LONGEST_MTU}")
        elif entry.family(6).enabled and mtu < IPV6_MTU:
            yield complain(path, f"{mtu} with IPv6 enabled", f"at least {IPV6_MTU}")
        elif entry.family(4).enabled and 0 < mtu < IPV4_MTU:
            yield complain(path, f"{mtu} with IPv4 enabled", f"at least {IPV4_MTU}")
        yield from _mtu_of_base(view, entry, path, mtu)


def _mtu_of_base(view: View, entry: Entry, path: Path, mtu: int) -> Iterator[Complaint]:
    base = view.kernel.get(entry.base.name) if entry.base else None
    below = read_number(base.data.get("mtu")) if base is not None and base.up else None
    if base is not None and below and mtu > below and entry.type in ("vlan", "mac-vlan", "mac-vtap", "ipvlan"):
        yield complain(path, f"{mtu}, but {base.name}, on which it stands, has {below}", f"at most {below}")


def dynamic_settings(view: View) -> Iterator[Complaint]:
    """Settings of DHCP and autoconfiguration that nmstate refuses."""
    for entry in view.entries:
        for family in entry.families if entry.up else ():
            yield from _metrics(family)
        if entry.up:
            yield from _autoconf(entry.family(6))
            yield from _token(entry.family(6))


def _metrics(family: Family) -> Iterator[Complaint]:
    auto = read_number(family.data.get("auto-route-metric")) if family.dynamic else None
    prefix = read_number(family.data.get("prefix-route-metric"))
    for key, metric in (("auto-route-metric", auto), ("prefix-route-metric", prefix)):
        if family.enabled and metric is not None and not -1 <= metric < 2**32:
            yield complain((*family.path, key), f"{metric}", f"a number from -1 to {2**32 - 1}")
    if family.enabled and auto is not None and prefix is not None and -1 not in (auto, prefix) and auto != prefix:
        yield complain((*family.path, "prefix-route-metric"), f"{prefix}, but auto-route-metric is {auto}",
                       "the same: NetworkManager has one metric for both")


def _autoconf(family: Family) -> Iterator[Complaint]:
    if family.enabled and read_bool(family.data.get("autoconf")) and read_bool(family.data.get("dhcp")) is False:
        yield complain((*family.path, "dhcp"), "false, although autoconf is true",
                       "true: nmstate has no autoconf alone, and DHCPv6 happens only if the router says so")


def _token(family: Family) -> Iterator[Complaint]:
    token = family.data.get("token")
    if not isinstance(token, str) or token in ("", "::"):
        return
    path = (*family.path, "token")
    ip = read_ip(token)
    if not isinstance(ip, IPv6Address) or int(ip) >> 64:
        yield complain(path, show(token), "the last 64 bits of an IPv6 address, such as ::5")
    elif read_bool(family.data.get("autoconf")) is False:
        yield complain(path, f"{show(token)} without autoconf", "autoconf: true, or no token")


def waits_for_ip(view: View) -> Iterator[Complaint]:
    """Waiting for addresses of a family that is off."""
    for entry in view.entries:
        for version in (4, 6):
            if entry.up and f"ipv{version}" in text(entry.data.get("wait-ip")).split("+") \
                    and entry.family(version).enabled is False:
                yield complain((*entry.path, "wait-ip"), f"{entry.data['wait-ip']}, but IPv{version} is off",
                               "any, or a family that is enabled")


def mptcp_flags(view: View) -> Iterator[Complaint]:
    """Flags of MPTCP that exclude each other (mptcp.rs)."""
    for entry in view.entries:
        path, mptcp = entry.section("mptcp")
        wanted = mptcp.get("address-flags")
        if entry.up and isinstance(wanted, list) and "signal" in wanted and "fullmesh" in wanted:
            yield complain((*path, "address-flags"), "signal and fullmesh", "one of the two")


def loopback(view: View) -> Iterator[Complaint]:
    """The loopback interface always has its addresses, and nobody to ask for others."""
    for entry in view.entries:
        if entry.type != "loopback" or not entry.up:
            continue
        for family in entry.families:
            if family.enabled is False and family.version == 4:
                yield complain((*family.path, "enabled"), "false on the loopback interface", "true")
            elif family.enabled and family.dynamic:
                yield complain(family.path, "dhcp or autoconf on the loopback interface", "static addresses only")
