"""nmstate's links by themselves or upon another one: ethernet, VLAN, tunnels, MACsec, IPsec, …"""

from __future__ import annotations

from homeport.core.schema.bridges import VLAN_PROTOCOL
from homeport.core.schema.kinds import (
    BOOL,
    IP,
    LOOSE_BOOL,
    PLAIN_U8,
    PLAIN_U32,
    TEXT,
    U16,
    U32,
    U64,
    Kind,
    Leaf,
    ListOf,
    Section,
    is_number,
    not_null,
    one_of,
    read_number,
    required,
)

ETHERNET = Section(keys={
    "auto-negotiation": LOOSE_BOOL,
    "speed": U32,
    "duplex": one_of("full", "half"),
    "sr-iov": Section(keys={
        "drivers-autoprobe": LOOSE_BOOL,
        "total-vfs": U32,
        "max-vfs": U32,
        "vfs": ListOf(item=Section(null=False, keys={
            "id": required(U32),
            "iface-name": not_null(TEXT),
            "mac-address": TEXT,
            "spoof-check": LOOSE_BOOL,
            "trust": LOOSE_BOOL,
            "min-tx-rate": U32,
            "max-tx-rate": U32,
            "vlan-id": U32,
            "qos": U32,
            "vlan-proto": VLAN_PROTOCOL,
        })),
    }),
})

VETH = Section(open=True, keys={"peer": required(TEXT)})

_QOS_MAP = ListOf(item=Section(null=False, open=True, keys={
    "from": required(U32), "to": required(U32)}))

VLAN = Section(keys={
    "base-iface": TEXT,
    "id": required(U16),
    "protocol": VLAN_PROTOCOL,
    "registration-protocol": one_of("gvrp", "mvrp", "none"),
    "reorder-headers": BOOL,
    "loose-binding": BOOL,
    "ingress-qos-map": _QOS_MAP,
    "egress-qos-map": _QOS_MAP,
})

VXLAN = Section(keys={
    "base-iface": not_null(TEXT),
    "id": required(U32),
    "learning": BOOL,
    "local": IP,
    "remote": IP,
    "destination-port": U16,
})

MAC_VLAN = Section(keys={
    "base-iface": required(TEXT),
    "mode": required(one_of("vepa", "bridge", "private", "passthru", "source", "unknown")),
    "promiscuous": LOOSE_BOOL,
}, aliases={"accept-all-mac": "promiscuous"})

IPVLAN = Section(keys={
    "base-iface": TEXT,
    "mode": one_of("l2", "l3", "l3s"),
    "private": LOOSE_BOOL,
    "vepa": LOOSE_BOOL,
})

MACSEC = Section(keys={
    "encrypt": required(BOOL),
    "base-iface": required(TEXT),
    "mka-cak": TEXT,
    "mka-ckn": TEXT,
    "port": required(PLAIN_U32),
    "validation": required(one_of("disabled", "check", "strict")),
    "send-sci": required(BOOL),
    "offload": one_of("off", "phy", "mac"),
})

INFINIBAND = Section(keys={
    "mode": required(one_of("datagram", "connected")),
    "base-iface": TEXT,
    "pkey": required(U16),
})

IP_TUNNEL = Section(keys={
    "mode": one_of("unknown", "ipip", "sit", "ip6ip6", "ipip6"),
    "base-iface": TEXT,
    "local": IP,
    "remote": IP,
    "ttl": PLAIN_U8,
    "tos": PLAIN_U8,
    "flow-label": PLAIN_U32,
    "ip6tun-flags": ListOf(item=one_of(
        "ign-encap-limit", "use-orig-tclass", "use-orig-flowlabel", "mip6-dev", "rcv-dscp-copy",
        "use-orig-fw-mark", "allow-local-remote", "cap-xmit", "cap-rcv", "cap-per-packet",
        null=False)),
    "pmtu-disc": BOOL,
    "encap-limit": PLAIN_U8,
    "fwmark": PLAIN_U32,
})


def _is_ipsec_interface(value: object) -> bool:
    if is_number(value):
        return isinstance(value, int) and 0 <= value < 2**64
    found = read_number(value) if isinstance(value, str) and not value.startswith("0x") else None
    return value in ("yes", "no") or (found is not None and 0 <= found < 2**32)


_FAMILY = one_of("ipv4", "ipv6")
_LIBRESWAN_TEXTS: dict[str, Kind] = dict.fromkeys((
    "left", "leftid", "leftrsasigkey", "leftcert", "leftsubnet", "leftsubnets", "leftsendcert",
    "leftprotoport", "rightid", "rightrsasigkey", "rightcert", "rightca", "rightsubnet",
    "rightsubnets", "rightprotoport", "authby", "psk", "ikev2", "ike", "esp", "ikelifetime",
    "salifetime", "dpdaction",
), TEXT)

LIBRESWAN = Section(keys={
    "right": required(TEXT),
    **_LIBRESWAN_TEXTS,
    "nm-auto-defaults": not_null(BOOL),
    "dpddelay": U64,
    "dpdtimeout": U64,
    "ipsec-interface": Leaf("yes, no or a number", null=False, test=_is_ipsec_interface),
    "leftmodecfgclient": BOOL,
    "type": one_of("tunnel", "transport"),
    "hostaddrfamily": _FAMILY,
    "clientaddrfamily": _FAMILY,
    "require-id-on-certificate": BOOL,
})
