"""Keyfile text that others wrote, before a byte of it is written: every complaint at once.

Knows the holes of `nmstatectl gc` (a newline in a description becomes a section, `../../x` a file
name, an unknown type an ethernet profile, `hsr` and `ipvlan` lose their section;
spec/nmstate-and-peers.md, 0.2 and 1.4) and what a profile from a document must not do at boot: run
programs, wait for a person.  Refuses to judge whether the network that comes out makes sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from homeport.core.complaint import Complaint
from homeport.core.keyfile.escapes import KeyfileError, escape_fault, shown
from homeport.core.keyfile.format import MAX_COMPLAINTS, Keyfile, scan
from homeport.core.keyfile.names import is_uuid
from homeport.core.keyfile.values import check_values

# Every type that NetworkManager takes (1.42 and 1.52, by `nmcli --offline`), and the section without
# which it refuses the profile.
_NEEDS: dict[str, str] = {
    "6lowpan": "6lowpan", "adsl": "adsl", "bluetooth": "bluetooth", "bond": "", "bridge": "", "cdma": "",
    "dummy": "", "ethernet": "", "generic": "", "gsm": "", "hsr": "hsr", "infiniband": "",
    "ip-tunnel": "ip-tunnel", "ipvlan": "ipvlan", "loopback": "", "macsec": "macsec", "macvlan": "macvlan",
    "ovs-bridge": "", "ovs-interface": "", "ovs-port": "", "pppoe": "pppoe", "team": "", "tun": "",
    "veth": "veth", "vlan": "vlan", "vpn": "vpn", "vrf": "vrf", "vxlan": "", "wifi": "wifi",
    "wifi-p2p": "wifi-p2p", "wireguard": "", "wpan": "",
}
_ALIASES = {"802-3-ethernet": "ethernet", "802-11-wireless": "wifi",
            "802-11-wireless-security": "wifi-security"}
# What nmstate's `libreswan:` becomes.  Any other VPN plugin is a program of the document's choice.
_LIBRESWAN = "org.freedesktop.NetworkManager.libreswan"
_SECRETS = ("802-1x", "wifi-security", "wireguard", "macsec", "gsm", "cdma", "pppoe", "vpn")
_MASK = "<_password_hid_by_nmstate>"


def check_untrusted(
    text: str, *, file_name: str = "", expect_id: str | None = None, expect_uuid: str | None = None,
    expect_interface: str | None = None,
) -> list[Complaint]:
    """Why this text must not be written as a profile; empty if it may.

    `file_name` is the name that came with the text.  What is expected must stand there if it is
    given; a profile that is matched by MAC may leave out the interface's name.
    """
    sections, scanned = scan(text)
    complaints = [*check_file_name(file_name), *scanned] if file_name else scanned
    twice = [old for old, new in _ALIASES.items() if {old, new} <= dict(sections).keys()]
    complaints += [Complaint(f"[{name}]", f"the same section as [{_ALIASES[name]}]", "each section once")
                   for name in twice]
    profile = Keyfile(tuple((_ALIASES.get(name, name), pairs) for name, pairs in sections
                            if name not in twice))
    complaints += islice(chain(
        _check_identity(profile, expect_id, expect_uuid, expect_interface), _check_type(profile),
        _check_boot(profile), _check_text(profile), check_values(profile)), MAX_COMPLAINTS)
    return [Complaint(": ".join(part for part in (shown(file_name), complaint.path) if part),
                      complaint.found, complaint.wanted) for complaint in complaints[:MAX_COMPLAINTS]]


def check_file_name(name: str) -> list[Complaint]:
    """What is wrong with a file name that somebody gave us (`gc` makes it from `profile-name`)."""
    faults = []
    if "/" in name or "\\" in name or name.startswith("."):
        faults.append("a plain name in one folder")
    if not name.isprintable():
        faults.append("printable characters")
    if len(name.encode("utf-8", "replace")) > 255:
        faults.append("at most 255 bytes")
    return [Complaint("file name", f"“{shown(name)}”", wanted) for wanted in faults]


def _check_identity(
    profile: Keyfile, name: str | None, uuid: str | None, interface: str | None,
) -> Iterator[Complaint]:
    expected = {"id": name, "uuid": uuid, "interface-name": interface}
    for key, wanted in expected.items():
        found = profile.raw("connection", key)
        by_mac = key == "interface-name" and found is None and _is_matched(profile)
        if wanted is not None and not by_mac and _text(profile, "connection", key) != wanted:
            yield Complaint(f"[connection] {key}", f"“{shown(found or '')}”", f"“{shown(wanted)}”")
    if uuid is None and not is_uuid(profile.raw("connection", "uuid") or "0-0") and (
            profile.raw("connection", "uuid") is not None):
        yield Complaint("[connection] uuid", f"“{shown(profile.raw('connection', 'uuid') or '')}”", "a UUID")
    device = profile.raw("connection", "interface-name")
    if device is not None and not is_interface_name(device):
        yield Complaint("[connection] interface-name", f"“{shown(device)}”",
                        "a kernel interface name of at most 15 bytes")


def is_interface_name(name: str) -> bool:
    """What the kernel takes: net/core/dev.c, dev_valid_name(), and what can be shown."""
    return (0 < len(name.encode("utf-8", "replace")) < 16 and name not in (".", "..") and name.isprintable()
            and not any(char in "/:" or char.isspace() for char in name))


def _check_type(profile: Keyfile) -> Iterator[Complaint]:
    kind = profile.raw("connection", "type")
    if kind is None:
        yield Complaint("[connection] type", "missing", "one of " + ", ".join(sorted(_NEEDS)))
        return
    kind = _ALIASES.get(kind, kind)
    if kind not in _NEEDS:
        yield Complaint("[connection] type", f"“{shown(kind)}”", "one of " + ", ".join(sorted(_NEEDS)))
    elif _NEEDS[kind] and not profile.items(_NEEDS[kind]):
        yield Complaint(f"[{_NEEDS[kind]}]", "missing", f"the settings that a profile of type {kind} needs")
    if kind == "vpn" and profile.raw("vpn", "service-type") not in (None, _LIBRESWAN):
        yield Complaint("[vpn] service-type", f"“{shown(profile.raw('vpn', 'service-type') or '')}”",
                        f"{_LIBRESWAN}: a document may not choose a program to run")


def _check_boot(profile: Keyfile) -> Iterator[Complaint]:
    """What would keep the profile from coming up when nobody is logged in."""
    if profile.raw("connection", "permissions"):
        yield Complaint("[connection] permissions", "binds the profile to a person's login",
                        "no permissions: it must come up at boot")
    if profile.has(".nmmeta"):
        yield Complaint("[.nmmeta]", "NetworkManager's own section", "no such section in a document")
    for section, pairs in profile.sections:
        kind = section.partition(".")[0].removesuffix("-secrets")
        for key, raw in pairs if kind in _SECRETS or kind == "wireguard-peer" else ():
            if key.endswith("-flags") and raw.strip().isdecimal() and int(raw[:9]) & 3:
                yield Complaint(f"[{shown(section)}] {shown(key)}", f"{shown(raw)}: a person is asked",
                                "0: the secret stands in the profile")


def _check_text(profile: Keyfile) -> Iterator[Complaint]:
    for section, pairs in profile.sections:
        for key, raw in pairs:
            if _MASK in raw:
                yield Complaint(f"[{shown(section)}] {shown(key)}", "nmstate's mask for a secret",
                                "the secret itself")
            if "\\" in raw:  # NetworkManager drops a value with a wrong escape, without a word
                yield from escape_fault(raw, f"[{section}] {key}")


def _is_matched(profile: Keyfile) -> bool:
    return bool(profile.get_mac("ethernet", "mac-address") or profile.raw("infiniband", "mac-address")
                or profile.raw("match", "path"))


def _text(profile: Keyfile, section: str, key: str) -> str | None:
    try:
        return profile.get(section, key)
    except KeyfileError:
        return profile.raw(section, key)
