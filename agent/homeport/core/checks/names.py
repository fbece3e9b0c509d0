"""Checks of names and identities: interfaces, profiles, MACs, host name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeport.core.checks.reading import complain, mappings, section, text
from homeport.core.checks.view import Entry, View
from homeport.core.complaint import Complaint, Path
from homeport.core.mac import is_usable_mac, normalise_mac
from homeport.core.schema.interfaces import QUERY_ONLY_TYPES, SECTIONS
from homeport.core.schema.near import Guesser
from homeport.core.showing import show

LONGEST_NAME = 15  # IFNAMSIZ - 1, include/uapi/linux/if.h
_LONGEST_FILE_NAME = 255 - len("homeport-") - len(".nmconnection")
_RESERVED = ("all", "default", "bonding_masters")  # NetworkManager, nm_utils_ifname_valid_kernel()
_MAC = "a MAC address such as 52:54:00:12:34:56"
# systemd's predictable names; those too long for a name are the card's alternative name in the kernel.
_PREDICTABLE = re.compile(r"(en|eth|ib|sl|wl|ww)[a-z0-9]*[0-9][A-Za-z0-9]*\Z")
_VF = re.compile(r"sriov:[^:/\s]+:[0-9]+\Z")


def interface_names(view: View) -> Iterator[Complaint]:
    """Names that the kernel or NetworkManager would refuse."""
    for entry in view.entries:
        path, name = (*entry.path, "name"), entry.name
        if not isinstance(entry.data.get("name"), str):
            continue
        if not name:
            yield complain(path, "an empty name", "a name")
        elif entry.by_name and entry.type != "ipsec":
            yield from _kernel_name(path, name, entry)
        else:
            yield from _file_name(path, name)


def _kernel_name(path: Path, name: str, entry: Entry) -> Iterator[Complaint]:
    existing = entry.type in ("ethernet", "") or entry.gone
    if existing and _VF.match(name):
        return
    bad = sorted({c for c in name if c in "/\\" or c.isspace() or (c == ":" and entry.type != "ovs-bridge")})
    if name in (".", "..") or bad:
        yield complain(path, show(name), "a name without slash, colon or space")
    elif name in _RESERVED:
        yield complain(path, f"{show(name)}, which the kernel uses itself", "another name")


def long_names(view: View) -> Iterator[Complaint]:
    """Names that do not fit into the kernel's IFNAMSIZ."""
    for entry in view.entries:
        name = entry.name
        if len(name.encode(errors="replace")) <= LONGEST_NAME or not entry.by_name or entry.user_space:
            continue
        existing = entry.type in ("ethernet", "") or entry.gone
        if not (existing and (_PREDICTABLE.match(name) or _VF.match(name))):
            yield complain((*entry.path, "name"), f"{show(name)}, {len(name)} characters",
                           f"at most {LONGEST_NAME} characters")


def profile_names(view: View) -> Iterator[Complaint]:
    """Names of profiles become names of files."""
    for entry in view.entries:
        name = entry.data.get("profile-name")
        if isinstance(name, str) and not entry.gone:
            yield from _file_name((*entry.path, "profile-name"), name)


def _file_name(path: Path, name: str) -> Iterator[Complaint]:
    if "/" in name or name in ("", ".", ".."):
        yield complain(path, show(name), "a name that can be a file's: no slash, not empty, not ..")
    elif len(name.encode(errors="replace")) > _LONGEST_FILE_NAME:
        yield complain(path, f"{len(name)} characters", f"at most {_LONGEST_FILE_NAME} bytes")


def duplicate_names(view: View) -> Iterator[Complaint]:
    """nmstate lets the last one win."""
    seen: dict[tuple[str, str], Entry] = {}
    for entry in view.entries:
        key = (entry.name, entry.type if entry.user_space else "")
        if entry.name and key in seen:
            first = seen[key]
            yield complain((*entry.path, "name"), f"{show(entry.name)} again, as in interfaces[{first.path[-1]}]",
                           "one entry for each interface")
        seen.setdefault(key, entry)


def interface_types(view: View) -> Iterator[Complaint]:
    """nmstate warns of a type it doesn't know and takes the interface for what it finds."""
    guesser = Guesser()
    for entry in view.entries:
        known = (*SECTIONS, *QUERY_ONLY_TYPES)
        if entry.type and entry.type not in known and not entry.gone:
            guess = guesser.nearest(entry.type, SECTIONS)
            yield complain((*entry.path, "type"), f"{show(entry.type)}, a type that nmstate does not know",
                           f"did you mean {guess}?" if guess else f"one of {', '.join(SECTIONS)}")


def identifiers(view: View) -> Iterator[Complaint]:
    """Without its MAC or PCI address, such a profile would be for any card."""
    seen: dict[tuple[str, str, str], Entry] = {}
    for entry in view.entries:
        kind = text(entry.data.get("identifier"))
        if kind not in ("mac-address", "pci-address") or entry.gone:
            continue
        value = entry.data.get(kind)
        if not value:
            yield complain((*entry.path, kind), f"missing, although it is the identifier of {entry.name}",
                           _MAC if kind == "mac-address" else "a PCI address such as 0000:07:00.1")
            continue
        key = (kind, read_mac(value) or text(value).lower(), "" if entry.type == "veth" else entry.type)
        if key in seen:
            yield complain((*entry.path, kind), f"the same as in interfaces[{seen[key].path[-1]}]",
                           "a card of its own for each interface")
        seen.setdefault(key, entry)


def mac_addresses(view: View) -> Iterator[Complaint]:
    """MACs that are none, and those that the kernel gives to no interface."""
    for entry in view.entries:
        for path, value, given in _macs(entry):
            mac = read_mac(value)
            if isinstance(value, str) and not mac:
                yield complain(path, show(value), _MAC)
            elif given and mac and not is_usable_mac(mac):
                yield complain(path, show(value), "the MAC address of one card, not zeros, ones or a group")


def _macs(entry: Entry) -> Iterator[tuple[Path, object, bool]]:
    """Every MAC of an interface; true for those that the interface would be given."""
    if entry.gone and entry.by_name:
        return
    # lo has zeros, and `show` prints them.
    yield (*entry.path, "mac-address"), entry.data.get("mac-address"), entry.by_name and entry.type != "loopback"
    path, bond = entry.section("link-aggregation", "bond")
    system = section(bond.get("options")).get("ad_actor_system")
    yield (*path, "options", "ad_actor_system"), system, False
    path, bridge = entry.section("bridge")
    yield (*path, "options", "group-addr"), section(bridge.get("options")).get("group-addr"), False
    path, ethernet = entry.section("ethernet")
    vfs = section(ethernet.get("sr-iov")).get("vfs")
    for at, vf in mappings(vfs, (*path, "sr-iov", "vfs")):
        yield (*at, "mac-address"), vf.get("mac-address"), False


def read_mac(value: object) -> str:
    """The MAC in one spelling, "" if it is none."""
    try:
        return normalise_mac(value) if isinstance(value, str) else ""
    except ValueError:
        return ""


def host_names(view: View) -> Iterator[Complaint]:
    """What sethostname(2), NetworkManager and systemd-hostnamed take (hostname(7))."""
    names = section(view.config.get("hostname"))
    for key in ("running", "config"):
        name = names.get(key)
        # An empty configured name means: from DHCP or DNS.
        if name is not None and not isinstance(name, (dict, list)) and not (key == "config" and name == "") \
                and not is_host_name(text(name)):
            yield complain(("hostname", key), show(name),
                           "labels of letters, digits and inner dashes, with dots between, at most 64 characters")


def is_host_name(name: str) -> bool:
    return len(name) <= 64 and all(_LABEL.match(label) for label in name.split("."))


_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)\Z")
