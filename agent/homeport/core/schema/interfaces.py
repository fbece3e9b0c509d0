"""One entry of nmstate's `interfaces`: the keys every interface has, and the section of each type.

An entry without a type (or of a type that nmstate does not write itself) takes the type that the
interface of that name has on the machine; here it may then hold any type's section.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.core.complaint import Path
from homeport.core.schema.bridges import (
    BOND,
    HSR,
    LINUX_BRIDGE,
    OVS_BRIDGE,
    OVS_DPDK,
    OVS_PATCH,
    VRF,
)
from homeport.core.schema.ethtool import (
    ALT_NAMES,
    DISPATCH,
    ETHTOOL,
    IEEE8021X,
    LLDP,
    MPTCP,
    OVS_DB,
    PCI_ADDRESS,
)
from homeport.core.schema.ip import IPV4, IPV6
from homeport.core.schema.kinds import (
    ANYTHING,
    LOOSE_BOOL,
    PLAIN_U64,
    TEXT,
    U64,
    Kind,
    Section,
    Walk,
    not_null,
    one_of,
    required,
)
from homeport.core.schema.links import (
    ETHERNET,
    INFINIBAND,
    IP_TUNNEL,
    IPVLAN,
    LIBRESWAN,
    MAC_VLAN,
    MACSEC,
    VETH,
    VLAN,
    VXLAN,
)
from homeport.core.showing import show

_STATE = one_of("up", "down", "absent", "ignore", "unknown", null=False)
_IDENTITY: dict[str, Kind] = {
    "name": required(TEXT),
    "type": not_null(TEXT),
    "state": _STATE,
    "identifier": one_of("name", "mac-address", "pci-address"),
    "mac-address": TEXT,
    "pci-address": PCI_ADDRESS,
}
_BASE: dict[str, Kind] = _IDENTITY | {
    "profile-name": TEXT,
    "description": TEXT,
    "driver": TEXT,
    "permanent-mac-address": TEXT,
    "mtu": U64,
    "min-mtu": PLAIN_U64,
    "max-mtu": PLAIN_U64,
    "wait-ip": one_of("any", "ipv4", "ipv6", "ipv4+ipv6"),
    "ipv4": IPV4,
    "ipv6": IPV6,
    "mptcp": MPTCP,
    "controller": TEXT,
    "accept-all-mac-addresses": LOOSE_BOOL,
    "copy-mac-from": TEXT,
    "ovs-db": OVS_DB,
    "802.1x": IEEE8021X,
    "lldp": LLDP,
    "ethtool": ETHTOOL,
    "dispatch": DISPATCH,
    "alt-names": ALT_NAMES,
}

_ETHERNET_SECTIONS: dict[str, Kind] = {"ethernet": ETHERNET, "veth": VETH}
SECTIONS: dict[str, dict[str, Kind]] = {
    "ethernet": _ETHERNET_SECTIONS,
    "veth": _ETHERNET_SECTIONS,
    "bond": {"link-aggregation": BOND},
    "linux-bridge": {"bridge": LINUX_BRIDGE},
    "ovs-bridge": {"bridge": OVS_BRIDGE},
    "ovs-interface": {"patch": OVS_PATCH, "dpdk": OVS_DPDK},
    "vlan": {"vlan": VLAN},
    "vxlan": {"vxlan": VXLAN},
    "mac-vlan": {"mac-vlan": MAC_VLAN},
    "mac-vtap": {"mac-vtap": MAC_VLAN},
    "ipvlan": {"ipvlan": IPVLAN},
    "vrf": {"vrf": VRF},
    "hsr": {"hsr": HSR},
    "macsec": {"macsec": MACSEC},
    "infiniband": {"infiniband": INFINIBAND},
    "ip-tunnel": {"ip-tunnel": IP_TUNNEL},
    "ipsec": {"libreswan": LIBRESWAN},
    "dummy": {},
    "loopback": {},
    "xfrm": {},
}
# Types that `show` may print and that take the machine's own type when applied.
QUERY_ONLY_TYPES = ("tun", "unknown")
_ALIASES = {"bond": {"bond": "link-aggregation"}}

_BY_TYPE = {
    name: Section(keys=_BASE | sections, aliases=_ALIASES.get(name, {}))
    for name, sections in SECTIONS.items()
}
_ANY_TYPE = Section(
    keys={key: kind for sections in SECTIONS.values() for key, kind in sections.items()}
    | _BASE | {"type": TEXT, "bridge": ANYTHING},
    aliases=_ALIASES["bond"],
)
_GOING = Section(open=True, keys=_IDENTITY)
_NAME_AND_STATE = Section(open=True, keys={
    "name": _IDENTITY["name"], "state": _STATE, "type": TEXT})


class Interface(Kind):
    """An entry of `interfaces`, judged by its type and state."""

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if not isinstance(value, dict):
            walk.complain(path, show(value), "a mapping with name, type, state, …")
            return
        section_for(value).check(value, path, walk)


def section_for(entry: Mapping[object, object]) -> Section:
    """The keys that this entry may have."""
    kind, state = entry.get("type"), entry.get("state")
    known = isinstance(kind, str) and kind in _BY_TYPE
    if state == "absent":
        # All but the identity of a removed interface is ignored (iface.rs, ABSENT_KEPT_PROPS).
        return _GOING if known else _NAME_AND_STATE
    if known:
        return _BY_TYPE[str(kind)]
    # Left alone, so nothing of it is ever read under a real type.
    return _NAME_AND_STATE if state in ("ignore", "unknown") else _ANY_TYPE
