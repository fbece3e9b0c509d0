"""nmstate's controllers: bonds, bridges (Linux and Open vSwitch), VRF and HSR."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.core.complaint import Path
from homeport.core.schema.ethtool import OVS_DB
from homeport.core.schema.kinds import (
    BOOL,
    I32,
    IP6,
    LOOSE_BOOL,
    PLAIN_U8,
    PLAIN_U16,
    PLAIN_U32,
    PLAIN_U64,
    TEXT,
    U8,
    U16,
    U32,
    U64,
    Kind,
    Leaf,
    ListOf,
    Section,
    Walk,
    is_number,
    not_null,
    one_of,
    read_bool,
    required,
)
from homeport.core.showing import show

NAMES = ListOf(item=not_null(TEXT), wanted="a list of interface names")
VLAN_PROTOCOL = one_of("802.1q", "802.1ad")


def _numbered(*words: str) -> Kind:
    """Words that the kernel also knows by number, counted from 0."""
    return one_of(*words, numbers={str(index): word for index, word in enumerate(words)})


BOND_MODES = {
    "0": "balance-rr", "1": "active-backup", "2": "balance-xor", "3": "broadcast",
    "4": "802.3ad", "5": "balance-tlb", "6": "balance-alb", "lacp": "802.3ad",
}

BOND_OPTIONS = Section(keys={
    "ad_actor_sys_prio": U16,
    "ad_actor_system": TEXT,
    "ad_select": _numbered("stable", "bandwidth", "count"),
    "ad_user_port_key": U16,
    "all_slaves_active": _numbered("dropped", "delivered"),
    "arp_all_targets": _numbered("any", "all"),
    "arp_interval": U32,
    "arp_ip_target": TEXT,
    "arp_missed_max": U8,
    "arp_validate": _numbered(
        "none", "active", "backup", "all", "filter", "filter_active", "filter_backup"),
    "balance_slb": LOOSE_BOOL,
    "downdelay": U32,
    "fail_over_mac": _numbered("none", "active", "follow"),
    "lacp_active": LOOSE_BOOL,
    "lacp_rate": _numbered("slow", "fast"),
    "lp_interval": U32,
    "miimon": U32,
    "min_links": U32,
    "ns_ip6_target": ListOf(item=not_null(IP6)),
    "num_grat_arp": U8,
    "num_unsol_na": U8,
    "packets_per_slave": U32,
    "primary": TEXT,
    "primary_reselect": _numbered("always", "better", "failure"),
    "resend_igmp": U32,
    "tlb_dynamic_lb": LOOSE_BOOL,
    "updelay": U32,
    "use_carrier": LOOSE_BOOL,
    "xmit_hash_policy": _numbered(
        "layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"),
}, aliases={"balance-slb": "balance_slb"})

BOND = Section(keys={
    "mode": one_of(*dict.fromkeys(BOND_MODES.values()), "unknown", numbers=BOND_MODES),
    "options": BOND_OPTIONS,
    "port": NAMES,
    "ports-config": ListOf(item=Section(null=False, open=True, keys={
        "name": required(TEXT), "priority": I32, "queue-id": U16})),
}, aliases={"ports": "port"})


class TrunkTag(Kind):
    """`{id: 5}` or `{id-range: {min: 5, max: 9}}`; beside `id` nothing else is read."""

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if isinstance(value, Mapping) and "id" in value:
            _TAG_ID.check(value["id"], (*path, "id"), walk)
        elif isinstance(value, Mapping) and "id-range" in value:
            _TAG_RANGE.check(value["id-range"], (*path, "id-range"), walk)
        else:
            walk.complain(path, show(value), "a mapping with id or id-range")


# Read by hand in bridge_vlan.rs: as quoted text it is decimal only.
_TAG_ID = Leaf(U16.wanted, null=False, test=lambda value: U16.accepts(value)
               and not (isinstance(value, str) and value.startswith("0x")))
_TAG_RANGE = Section(null=False, keys={"min": required(U16), "max": required(U16)})

PORT_VLAN = Section(keys={
    "enable-native": LOOSE_BOOL,
    "mode": one_of("trunk", "access"),
    "tag": U16,
    "trunk-tags": ListOf(item=TrunkTag(null=False)),
})


def _is_multicast_router(value: object) -> bool:
    if isinstance(value, str):
        return value.lower() in ("auto", "disabled", "enabled")
    return is_number(value) and value in (0, 1, 2)


LINUX_BRIDGE = Section(keys={
    "allow-extra-ports": BOOL,
    "options": Section(keys={
        "gc-timer": PLAIN_U64,
        "group-addr": TEXT,
        "group-forward-mask": U16,
        "group-fwd-mask": U16,
        "hash-max": U32,
        "hello-timer": PLAIN_U64,
        "mac-ageing-time": U32,
        "multicast-last-member-count": U32,
        "multicast-last-member-interval": U64,
        "multicast-membership-interval": U64,
        "multicast-querier": LOOSE_BOOL,
        "multicast-querier-interval": U64,
        "multicast-query-interval": U64,
        "multicast-query-response-interval": U64,
        "multicast-query-use-ifaddr": LOOSE_BOOL,
        "multicast-router": Leaf(
            "auto, disabled or enabled", null=False, test=_is_multicast_router),
        "multicast-snooping": LOOSE_BOOL,
        "multicast-startup-query-count": U32,
        "multicast-startup-query-interval": U64,
        "stp": Section(keys={
            "enabled": LOOSE_BOOL,
            "forward-delay": U8,
            "hello-time": U8,
            "max-age": U8,
            "priority": U16,
        }),
        "vlan-protocol": VLAN_PROTOCOL,
        "vlan-default-pvid": PLAIN_U16,
    }),
    "port": ListOf(item=Section(null=False, keys={
        "name": required(TEXT),
        "stp-hairpin-mode": LOOSE_BOOL,
        "stp-path-cost": U32,
        "stp-priority": U16,
        "vlan": PORT_VLAN,
    })),
}, aliases={"ports": "port"})


class OvsStp(Kind):
    """`{enabled: true}`, or a truth value alone, but not an unquoted 0 or 1 (ovs.rs)."""

    def look_at(self, value: object, path: Path, walk: Walk) -> None:
        if isinstance(value, Mapping):
            _OVS_STP.check(value, path, walk)
        elif not isinstance(value, (bool, str)) or read_bool(value) is None:
            walk.complain(path, show(value), "true, false or {enabled: true}")


_OVS_STP = Section(keys={"enabled": LOOSE_BOOL})

OVS_BRIDGE = Section(keys={
    "allow-extra-patch-ports": BOOL,
    "allow-extra-ports": BOOL,
    "options": Section(keys={
        "stp": OvsStp(null=False),
        "rstp": LOOSE_BOOL,
        "mcast-snooping-enable": LOOSE_BOOL,
        "fail-mode": TEXT,
        "datapath": TEXT,
    }),
    "port": ListOf(item=Section(null=False, keys={
        "name": required(TEXT),
        "link-aggregation": Section(keys={
            "mode": one_of("active-backup", "balance-slb", "balance-tcp", "lacp"),
            "port": ListOf(item=Section(null=False, open=True, keys={"name": required(TEXT)})),
            "bond-downdelay": U32,
            "bond-updelay": U32,
            "ovs-db": OVS_DB,
        }, aliases={"ports": "port"}),
        "vlan": PORT_VLAN,
    }, aliases={"bond": "link-aggregation"})),
}, aliases={"ports": "port"})

VRF = Section(keys={"port": NAMES, "route-table-id": U32}, aliases={"ports": "port"})

HSR = Section(keys={
    "port1": required(TEXT),
    "port2": required(TEXT),
    "interlink": TEXT,
    "supervision-address": TEXT,
    "multicast-spec": required(PLAIN_U8),
    "protocol": required(one_of("hsr", "hsr-2010", "hsr-2012", "prp")),
})

OVS_PATCH = Section(keys={"peer": required(TEXT)})
OVS_DPDK = Section(keys={
    "devargs": required(TEXT),
    "rx-queue": PLAIN_U32,
    "n_rxq_desc": PLAIN_U32,
    "n_txq_desc": PLAIN_U32,
    "lsc-interrupt": BOOL,
}, aliases={"n_rxq": "rx-queue", "dpdk-lsc-interrupt": "lsc-interrupt"})
