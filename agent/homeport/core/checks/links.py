"""Checks of links that stand on others or join others: VLAN, VXLAN, VRF, MACsec, bridges, SR-IOV, …"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.core.checks.reading import Section, complain, mappings, read_ip, section, text
from homeport.core.checks.view import Entry, View
from homeport.core.complaint import Complaint, Path
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.showing import show

_LAST_VLAN = 4094  # 4095 is reserved (IEEE 802.1Q); the kernel answers ERANGE
_LAST_VNI = 2**24 - 1
_LAST_PRIORITY = 7


def vlans(view: View) -> Iterator[Complaint]:
    """VLAN ids, and one interface for each."""
    seen: dict[tuple[object, ...], Entry] = {}
    for entry in view.entries:
        if entry.type != "vlan" or not entry.up:
            continue
        path, vlan = entry.section("vlan")
        number, base = read_number(vlan.get("id")), text(vlan.get("base-iface"))
        if vlan and not base:
            yield complain((*path, "base-iface"), "missing", "the name of the interface below")
        if number is not None and not 0 <= number <= _LAST_VLAN:
            yield complain((*path, "id"), f"{number}", f"a number from 1 to {_LAST_VLAN}")
        key = (base, number, text(vlan.get("protocol")) or "802.1q")
        if base and number is not None:
            first = seen.setdefault(key, entry)
            if first is not entry:
                yield complain((*path, "id"), f"{number} on {base}, which {first.name} is already", "another id")
        for key_, side in (("ingress-qos-map", "from"), ("egress-qos-map", "to")):
            for at, item in mappings(vlan.get(key_), (*path, key_)):
                if (read_number(item.get(side)) or 0) > _LAST_PRIORITY:
                    yield complain((*at, side), show(item.get(side)), f"a priority from 0 to {_LAST_PRIORITY}")


def tunnels(view: View) -> Iterator[Complaint]:
    """VXLAN and IP tunnels: numbers and the families of their two ends."""
    for entry in view.entries:
        if entry.type not in ("vxlan", "ip-tunnel") or not entry.up:
            continue
        path, data = entry.section(entry.type)
        number = read_number(data.get("id"))
        if entry.type == "vxlan" and number is not None and number > _LAST_VNI:
            yield complain((*path, "id"), f"{number}", f"a number from 0 to {_LAST_VNI}")
        local, remote = read_ip(data.get("local")), read_ip(data.get("remote"))
        if local is not None and remote is not None and local.version != remote.version:
            yield complain((*path, "local"), f"{local}, but remote is {remote}", "both ends of one family")
        if (read_number(data.get("flow-label")) or 0) > 0xFFFFF:
            yield complain((*path, "flow-label"), f"{data['flow-label']}", f"at most {0xFFFFF}")


def vrfs(view: View) -> Iterator[Complaint]:
    """A VRF is a routing table."""
    for entry in view.entries:
        if entry.type == "vrf" and entry.up:
            path, vrf = entry.section("vrf")
            if vrf and not read_number(vrf.get("route-table-id")):
                yield complain((*path, "route-table-id"), show(vrf.get("route-table-id")),
                               "the number of the VRF's routing table")


def macsec(view: View) -> Iterator[Complaint]:
    """Keys of MACsec: both or none, and of their length."""
    for entry in view.entries:
        if entry.type != "macsec" or not entry.up:
            continue
        path, data = entry.section("macsec")
        cak, ckn = text(data.get("mka-cak")), text(data.get("mka-ckn"))
        if bool(cak) != bool(ckn):
            yield complain((*path, "mka-ckn" if cak else "mka-cak"), "missing", "both keys, or none")
        # Secrets: what was found is not shown.
        if cak and len(cak) != 32:
            yield complain((*path, "mka-cak"), f"{len(cak)} characters", "32 hexadecimal digits")
        if ckn and (not 2 <= len(ckn) <= 64 or len(ckn) % 2):
            yield complain((*path, "mka-ckn"), f"{len(ckn)} characters", "2 to 64 hexadecimal digits, an even number")


def flags(view: View) -> Iterator[Complaint]:
    """Flags of macvlan, ipvlan and HSR that exclude each other."""
    for entry in view.entries:
        if not entry.up:
            continue
        if entry.type in ("mac-vlan", "mac-vtap"):
            path, data = entry.section(entry.type)
            promiscuous = read_bool(data.get("promiscuous", data.get("accept-all-mac")))
            if promiscuous is False and data.get("mode") != "passthru" and entry.type == "mac-vlan":
                yield complain((*path, "promiscuous"), f"false in mode {data.get('mode')}", "mode passthru, or true")
        path, data = entry.section("ipvlan")
        if read_bool(data.get("private")) and read_bool(data.get("vepa")):
            yield complain((*path, "vepa"), "true, and private too", "one of the two")
        path, data = entry.section("hsr")
        if data.get("protocol") == "prp" and data.get("interlink"):
            yield complain((*path, "interlink"), show(data["interlink"]), "no interlink with protocol prp")


def bridges(view: View) -> Iterator[Complaint]:
    """Options and ports of Linux bridges, VLAN filtering of both kinds of bridge."""
    for entry in view.entries:
        if entry.type not in ("linux-bridge", "ovs-bridge") or not entry.up:
            continue
        path, bridge = entry.section("bridge")
        filtering = False
        for key in ("port", "ports"):
            for at, port in mappings(bridge.get(key), (*path, key)):
                filtering = filtering or bool(section(port.get("vlan")))
                yield from _port_vlan(section(port.get("vlan")), (*at, "vlan"))
                if entry.type == "linux-bridge":
                    yield from _ranges(port, at, {"stp-priority": (0, 63), "stp-path-cost": (0, 65535)})
        if entry.type == "linux-bridge":
            yield from _bridge_options(section(bridge.get("options")), (*path, "options"), filtering)


def _bridge_options(options: Section, path: Path, filtering: bool) -> Iterator[Complaint]:
    masks = [read_number(options.get(key)) for key in ("group-forward-mask", "group-fwd-mask")]
    if None not in masks and masks[0] != masks[1]:
        yield complain((*path, "group-fwd-mask"), f"{masks[1]}, but group-forward-mask is {masks[0]}",
                       "one of the two: they are the same option")
    for key, mask in zip(("group-forward-mask", "group-fwd-mask"), masks, strict=True):
        # STP, pause frames and LACP are never forwarded (BR_GROUPFWD_RESTRICTED, net/bridge/br_private.h).
        if mask is not None and mask & 7:
            yield complain((*path, key), f"{mask}", "a mask without its lowest three bits")
    pvid = read_number(options.get("vlan-default-pvid"))
    if pvid is not None and pvid != 1 and not filtering:
        yield complain((*path, "vlan-default-pvid"), f"{pvid} without VLAN filtering", "a vlan section on a port")
    yield from _ranges(section(options.get("stp")), (*path, "stp"), {
        "hello-time": (1, 10), "max-age": (6, 40), "forward-delay": (2, 30)})


def _ranges(data: Section, path: Path, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Complaint]:
    for key, (low, high) in ranges.items():
        value = read_number(data.get(key))
        if value is not None and not low <= value <= high:
            yield complain((*path, key), f"{value}", f"a number from {low} to {high}")


def _port_vlan(vlan: Section, path: Path) -> Iterator[Complaint]:
    mode, native, tags = vlan.get("mode"), read_bool(vlan.get("enable-native")), vlan.get("trunk-tags")
    tag = read_number(vlan.get("tag"))
    if tag is not None and not 0 <= tag <= _LAST_VLAN:
        yield complain((*path, "tag"), f"{tag}", f"a number from 0 to {_LAST_VLAN}")
    if mode == "trunk" and tag and not native:
        yield complain((*path, "tag"), f"{tag} on a trunk without a native VLAN", "enable-native: true")
    if mode == "trunk" and tags is None:
        yield complain((*path, "trunk-tags"), "missing", "the VLANs of the trunk")
    if mode == "access" and native:
        yield complain((*path, "enable-native"), "true in access mode", "mode trunk")
    if mode == "access" and tags:
        yield complain((*path, "trunk-tags"), "VLANs in access mode", "mode trunk, or tag")
    yield from _trunk_tags(tags, (*path, "trunk-tags"))


def _trunk_tags(tags: object, path: Path) -> Iterator[Complaint]:
    taken = bytearray(_LAST_VLAN + 1)
    for at, item in mappings(tags, path):
        bounds = section(item.get("id-range"))
        low = read_number(item.get("id", bounds.get("min")))
        high = read_number(item.get("id", bounds.get("max")))
        if low is None or high is None:
            continue
        if not 0 <= low <= high <= _LAST_VLAN:
            yield complain(at, f"{low} to {high}" if low != high else f"{low}",
                           f"VLANs from 0 to {_LAST_VLAN}, the lower one first")
        elif any(taken[low:high + 1]):
            yield complain(at, f"{low} to {high}, some of them again" if low != high else f"{low} again",
                           "each VLAN once")
        else:
            taken[low:high + 1] = b"\1" * (high + 1 - low)


def open_vswitch(view: View) -> Iterator[Complaint]:
    """Interfaces of Open vSwitch: what a patch cannot have, sizes of DPDK queues (ifaces/ovs.rs)."""
    for entry in view.entries:
        if entry.type != "ovs-interface" or not entry.up:
            continue
        path, dpdk = entry.section("dpdk")
        for key in ("n_rxq_desc", "n_txq_desc"):
            size = read_number(dpdk.get(key))
            if size and (size > 4096 or size & (size - 1)):
                yield complain((*path, key), f"{size}", "a power of 2 up to 4096")
        if entry.section("patch")[1]:
            if entry.data.get("mtu") is not None:
                yield complain((*entry.path, "mtu"), "an MTU on a patch", "none: patches have no MTU")
            for family in entry.families:
                if family.enabled:
                    yield complain((*family.path, "enabled"), "true on a patch", "false: patches have no IP")


def virtual_functions(view: View) -> Iterator[Complaint]:
    """SR-IOV: numbers of the virtual functions."""
    for entry in view.entries:
        path, ethernet = entry.section("ethernet")
        sriov, at = section(ethernet.get("sr-iov")), (*path, "sr-iov")
        total = read_number(sriov.get("total-vfs"))
        seen: set[int] = set()
        for where, vf in mappings(sriov.get("vfs"), (*at, "vfs")):
            number = read_number(vf.get("id"))
            if number is not None and ((total is not None and number >= total) or number in seen):
                found = f"{number} again" if number in seen else f"{number} of {total}"
                yield complain((*where, "id"), found, "each of the functions once, counted from 0")
            seen.add(number if number is not None else -1)
            if vf.get("vlan-proto") == "802.1ad" and not read_number(vf.get("vlan-id")) \
                    and not read_number(vf.get("qos")):
                yield complain((*where, "vlan-proto"), "802.1ad without vlan-id or qos", "one of them too")


def alternative_names(view: View) -> Iterator[Complaint]:
    """An alternative name belongs to one interface and is nobody's name."""
    names = {entry.name for entry in view.entries if not entry.user_space}
    seen: dict[str, Entry] = {}
    for entry in view.entries:
        for path, item in mappings(entry.data.get("alt-names"), (*entry.path, "alt-names")):
            name = text(item.get("name"))
            if item.get("state") == "absent" or entry.gone or not name:
                continue
            if seen.setdefault(name, entry) is not entry or name in names:
                yield complain((*path, "name"), f"{show(name)}, which is an interface's name already",
                               "a name of its own")
