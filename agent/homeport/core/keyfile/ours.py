"""What makes a profile ours: NetworkManager's or `nmstatectl gc`'s text in, a profile to keep out.

Knows which of a live profile's settings are its state (timestamps, shadows), which are traps when
it is kept (endless DHCP, kernel names that change), and how ours is marked.  Refuses to know where
the text came from and where it goes.  The facts are in spec/nmstate-and-peers.md, 1.5, and
nm-settings-keyfile(5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from homeport.core.complaint import Complaint
from homeport.core.facts import Nic
from homeport.core.keyfile.escapes import KeyfileError, shown
from homeport.core.keyfile.format import Keyfile, Pairs, parse
from homeport.core.keyfile.names import file_name, is_uuid
from homeport.core.keyfile.rules import spread_rules
from homeport.core.keyfile.traffic import finite_waits, required_families

# The mark's value is the profile's own UUID.  `nmcli connection clone` copies [user] as it is but
# gives the clone another UUID, so a clone is not taken for ours.
OWNED = "io.homeport.owned"
_OURS = "io.homeport."
_ORIGIN = "org.freedesktop.NetworkManager.origin"

# An image's or administrator's profile has 0 unless told otherwise and cloud-init's have 120: the
# assigned one must win over both.  It must not win over somebody who sets a higher one on purpose
# (at most 999).
PRIORITY = 130

_TYPES = {"802-3-ethernet": "ethernet", "802-11-wireless": "wifi"}
_SECTIONS = {**_TYPES, "802-11-wireless-security": "wifi-security"}
# NetworkManager 1.52 writes the newer names and reads both, 1.42 only the older: an image may be rolled back.
_OLDER = {"controller": "master", "port-type": "slave-type", "autoconnect-ports": "autoconnect-slaves",
          "mac-address-denylist": "mac-address-blacklist"}
_PARENTS = ("vlan", "macvlan", "vxlan", "ipvlan", "macsec", "ip-tunnel")
_NUMBERED = re.compile(r"(address|route|routing-rule)([0-9]{0,9})(_options)?")
_NOTHING: Mapping[str, str] = MappingProxyType({})


def own_profile(
    nm_text: str, *, uuid: str, name: str, nic: Nic | None, tags: Mapping[str, str],
    references: Mapping[str, str] = _NOTHING, wait_ip: str | None = None,
) -> Keyfile:
    """The profile `name`, ours, from the text of NetworkManager (or `gc`); raises KeyfileError.

    `nic` is the device if the profile is for one that exists in hardware.  `tags` go to [user] (a
    key without a dot gets our prefix).  `references` says which UUID each interface name or UUID
    has that ports and VLANs may refer to: a parent that was renamed is still found by its profile's
    UUID.
    """
    profile = _canonical(parse(nm_text))
    profile = _without_state(profile)
    profile = _identified(profile, uuid, name)
    profile = _matching(profile, name, nic)
    profile = _referring(profile, references)
    profile = _numbered(profile)
    profile = finite_waits(profile)
    profile = required_families(profile, wait_ip)
    profile = _tagged(profile, uuid, tags)
    return profile.in_order()


def own_profiles(
    texts: Mapping[str, str], *, uuids: Mapping[str, str], nics: Sequence[Nic], tags: Mapping[str, str],
    waits: Mapping[str, str] | None = None,
) -> dict[str, Keyfile]:
    """All profiles of one assignment: `texts` and `uuids` by profile name; raises KeyfileError.

    A NIC is matched by its permanent MAC only if no other NIC has the same (a virtual function and
    its synthetic twin do).  A profile is for the NIC that its interface-name, else its name, says.
    """
    for name in texts:
        file_name(name)
    parsed = {name: parse(text) for name, text in texts.items()}
    devices = {name: profile.get("connection", "interface-name") or name
               for name, profile in parsed.items()}
    macs = Counter(nic.permanent_mac for nic in nics)
    by_name = {nic.name: nic if macs[nic.permanent_mac] == 1 else replace(nic, permanent_mac="")
               for nic in nics}
    references = _references(parsed, devices, uuids)
    owned = spread_rules({
        name: own_profile(text, uuid=uuids[name], name=name, nic=by_name.get(devices[name]),
                          tags=tags, references=references,
                          wait_ip=None if waits is None else waits.get(devices[name], ""))
        for name, text in texts.items()})
    return {name: profile.in_order() for name, profile in owned.items()}


def is_ours(profile: Keyfile) -> bool:
    """True if the profile carries our mark and the mark was made for it (see OWNED)."""
    mark = profile.raw("user", OWNED)
    return bool(mark) and mark == profile.raw("connection", "uuid")


def _references(
    parsed: Mapping[str, Keyfile], devices: Mapping[str, str], uuids: Mapping[str, str],
) -> dict[str, str]:
    # An Open vSwitch bridge, its port and its interface may share a name, so that says nothing
    # there.
    count = Counter(devices.values())
    found = {device: uuids[name] for name, device in devices.items() if count[device] == 1}
    for name, profile in parsed.items():
        found[profile.raw("connection", "uuid") or uuids[name]] = uuids[name]
    return found


def _canonical(profile: Keyfile) -> Keyfile:
    """One spelling for what NetworkManager knows under two names; both at once are refused."""
    if not profile.raw("connection", "type"):
        raise KeyfileError([Complaint("[connection] type", "missing", "a profile's type")])
    kind = profile.raw("connection", "type") or ""
    sections = tuple(
        (_SECTIONS.get(name, name),
         tuple((_OLDER.get(key, key), raw) for key, raw in pairs) if name != "user" else pairs)
        for name, pairs in profile.sections)
    return Keyfile(sections).set_raw("connection", "type", _TYPES.get(kind, kind))


def _without_state(profile: Keyfile) -> Keyfile:
    """Without what is of the moment, and what would keep the profile down at boot.

    `permissions` binds a profile to somebody's login; `wait-device-timeout` is
    nm-initrd-generator's and holds up the start-up of every later boot.  [.nmmeta] says what a file
    in /run hides, an empty [proxy] says nothing.
    """
    profile = profile.remove(".nmmeta")
    if not profile.items("proxy"):
        profile = profile.remove("proxy")
    return profile.remove("connection", "timestamp", "permissions", "read-only", "wait-device-timeout")


def _identified(profile: Keyfile, uuid: str, name: str) -> Keyfile:
    """With our UUID; with the document's `profile-name` as id, if it gave one, else with ours."""
    if not is_uuid(uuid):
        raise KeyfileError([Complaint("[connection] uuid", f"“{shown(uuid)}”", "a UUID")])
    if _id(profile) in ("", name, profile.raw("connection", "interface-name")):
        profile = profile.set("connection", "id", f"homeport-{name}")
    profile = profile.set_raw("connection", "uuid", uuid)
    if (profile.get_int("connection", "autoconnect-priority") or 0) < PRIORITY:
        profile = profile.set_raw("connection", "autoconnect-priority", str(PRIORITY))
    return profile


def _id(profile: Keyfile) -> str:
    """The id that somebody gave the profile, "" if there is none that can be shown."""
    try:
        text = profile.get("connection", "id") or ""
    except KeyfileError:
        return ""
    return text if text.isprintable() and len(text) <= 255 else ""


def _matching(profile: Keyfile, name: str, nic: Nic | None) -> Keyfile:
    """Bound to the NIC itself where it has a permanent MAC, to the kernel name where it has none.

    NetworkManager compares `mac-address` with the permanent MAC, so a bond port matches too.  A
    profile without either would come up on any NIC.  `match.path` is the document's `pci-address`:
    it means the slot, not the card.
    """
    if profile.raw("connection", "type") != "ethernet" or profile.raw("match", "path"):
        return profile
    if nic and nic.permanent_mac and not nic.virtual:
        profile = profile.remove("connection", "interface-name")
        return profile.set_raw("ethernet", "mac-address", nic.permanent_mac.upper())
    if nic or not profile.get_mac("ethernet", "mac-address"):
        device = profile.get("connection", "interface-name") or (nic.name if nic else name)
        return profile.set("connection", "interface-name", device)
    return profile


def _referring(profile: Keyfile, references: Mapping[str, str]) -> Keyfile:
    """Controllers and parents by UUID; the settings that take only a name (veth, HSR) stay."""
    for section, key in (("connection", "master"), *((section, "parent") for section in _PARENTS)):
        uuid = references.get(profile.raw(section, key) or "")
        if uuid:
            profile = profile.set_raw(section, key, uuid)
    return profile


def _numbered(profile: Keyfile) -> Keyfile:
    """`address0=`, as `gc` counts, to `address1=`, as NetworkManager writes; the order stays."""
    for section in ("ipv4", "ipv6"):
        if profile.has(section):
            profile = profile.with_section(section, _renumbered(profile.items(section)))
    return profile


def _renumbered(pairs: Pairs) -> Pairs:
    found = [match for key, _ in pairs if (match := _NUMBERED.fullmatch(key))]
    places = sorted({(match[1], int(match[2] or -1)) for match in found})
    numbers = {place: 1 + rank for kind in ("address", "route", "routing-rule")
               for rank, place in enumerate(place for place in places if place[0] == kind)}
    new = {match[0]: f"{match[1]}{numbers[match[1], int(match[2] or -1)]}{match[3] or ''}"
           for match in found}
    if len(set(new.values())) < len(new):
        # `route1` and `route01` are two keys and one number: NetworkManager would guess.
        raise KeyfileError([Complaint("[ipv4]", "two addresses, routes or rules of one number",
                                      "each number once")])
    return tuple((new.get(key, key), raw) for key, raw in pairs)


def _tagged(profile: Keyfile, uuid: str, tags: Mapping[str, str]) -> Keyfile:
    """Marked as ours.  A mark in the text is somebody else's: a document cannot claim to be ours."""
    kept = tuple(pair for pair in profile.items("user") if not pair[0].startswith(_OURS))
    profile = profile.with_section("user", kept)
    profile = profile.set("user", _ORIGIN, "homeport").set("user", OWNED, uuid)
    for key, value in tags.items():
        profile = profile.set("user", key if "." in key else _OURS + key, value)
    return profile
