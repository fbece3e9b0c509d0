"""nmstate's `ipv4` and `ipv6` sections: one struct for both, some keys refused by one (ip.rs)."""

from __future__ import annotations

from homeport.core.schema.kinds import (
    BOOL,
    I64,
    IP,
    LOOSE_BOOL,
    TEXT,
    U8,
    U32,
    Kind,
    Leaf,
    ListOf,
    Section,
    one_of,
    read_number,
    required,
)

MPTCP_FLAG = one_of("signal", "subflow", "backup", "fullmesh", null=False)


def _is_protocol(value: object) -> bool:
    if value in ("lo", "ra", "kernel_ll"):
        return True
    found = read_number(value)
    return found is not None and 0 <= found <= 255


ADDRESS = Section(null=False, keys={
    "ip": required(IP),
    "prefix-length": required(U8),
    "mptcp-flags": ListOf(item=MPTCP_FLAG),
    "valid-life-time": TEXT,
    "preferred-life-time": TEXT,
    "protocol": Leaf("lo, ra, kernel_ll or a number from 0 to 255", null=False, test=_is_protocol),
}, aliases={
    "valid-left": "valid-life-time", "valid-lft": "valid-life-time",
    "preferred-left": "preferred-life-time", "preferred-lft": "preferred-life-time",
})

_BOTH: dict[str, Kind] = {
    "enabled": LOOSE_BOOL,
    "dhcp": LOOSE_BOOL,
    "address": ListOf(item=ADDRESS),
    "dhcp-client-id": TEXT,
    "dhcp-duid": TEXT,
    "auto-dns": LOOSE_BOOL,
    "auto-gateway": LOOSE_BOOL,
    "auto-routes": LOOSE_BOOL,
    "auto-route-table-id": U32,
    "auto-route-metric": I64,
    "addr-gen-mode": TEXT,
    "allow-extra-address": BOOL,
    "token": TEXT,
    "dhcp-send-hostname": BOOL,
    "dhcp-custom-hostname": TEXT,
}

IPV4 = Section(
    keys=_BOTH | {"forwarding": BOOL, "prefix-route-metric": I64},
    forbidden={"autoconf": "autoconf belongs to ipv6: IPv4 has no router advertisements"},
)
IPV6 = Section(
    keys=_BOTH | {"autoconf": LOOSE_BOOL},
    forbidden={
        "forwarding": "forwarding can be set under ipv4 only",
        "prefix-route-metric": "prefix-route-metric can be set under ipv4 only",
    },
)
