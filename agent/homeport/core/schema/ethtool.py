"""nmstate's sections of any interface: ethtool, 802.1x, lldp, mptcp, dispatch, alt-names, …"""

from __future__ import annotations

from homeport.core.schema.ip import MPTCP_FLAG
from homeport.core.schema.kinds import (
    ANYTHING,
    LOOSE_BOOL,
    TEXT,
    U32,
    Leaf,
    ListOf,
    MapOf,
    Section,
    one_of,
    required,
)


def _is_feature_state(value: object) -> bool:
    return isinstance(value, bool) or (
        isinstance(value, str) and value.lower() in ("true", "false", "0", "1"))


_COALESCE_NUMBERS = (
    "pkt-rate-high", "pkt-rate-low", "sample-interval", "stats-block-usecs",
    "rx-frames", "rx-frames-high", "rx-frames-irq", "rx-frames-low",
    "rx-usecs", "rx-usecs-high", "rx-usecs-irq", "rx-usecs-low",
    "tx-frames", "tx-frames-high", "tx-frames-irq", "tx-frames-low",
    "tx-usecs", "tx-usecs-high", "tx-usecs-irq", "tx-usecs-low",
)
_RING_NUMBERS = (
    "rx", "rx-max", "rx-jumbo", "rx-jumbo-max", "rx-mini", "rx-mini-max", "tx", "tx-max")

ETHTOOL = Section(keys={
    "pause": Section(keys={"rx": LOOSE_BOOL, "tx": LOOSE_BOOL, "autoneg": LOOSE_BOOL}),
    "feature": MapOf(null=False, item=Leaf("true or false", null=False, test=_is_feature_state)),
    "coalesce": Section(keys={
        "adaptive-rx": LOOSE_BOOL,
        "adaptive-tx": LOOSE_BOOL,
        **dict.fromkeys(_COALESCE_NUMBERS, U32),
    }),
    "ring": Section(keys=dict.fromkeys(_RING_NUMBERS, U32)),
    "fec": Section(keys={"auto": LOOSE_BOOL, "mode": one_of("off", "rs", "baser", "llrs")}),
})

IEEE8021X = Section(open=True, keys={
    "identity": TEXT,
    "eap-methods": ListOf(item=Leaf("text", null=False, test=lambda value: isinstance(value, str))),
    "private-key": TEXT,
    "client-cert": TEXT,
    "ca-cert": TEXT,
    "private-key-password": TEXT,
    "phase2-auth": TEXT,
    "password": TEXT,
})

LLDP = Section(keys={"enabled": required(LOOSE_BOOL), "neighbors": ANYTHING})
MPTCP = Section(keys={"address-flags": ListOf(item=MPTCP_FLAG)})
DISPATCH = Section(open=True, keys={"post-activation": TEXT, "post-deactivation": TEXT})
ALT_NAMES = ListOf(item=Section(null=False, keys={
    "name": required(TEXT), "state": one_of("absent")}))
# Whatever stands inside is read leniently (ovs.rs, value_to_hash_map).
OVS_DB = Section(keys={"external_ids": ANYTHING, "other_config": ANYTHING})


def is_pci_address(value: object) -> bool:
    """`0000:07:00.1` or `07:00.1`, hexadecimal but for the function (pci_address.rs)."""
    if not isinstance(value, str):
        return False
    parts = value.split(":")
    slot, dot, function = parts[-1].partition(".")
    if len(parts) not in (2, 3) or not dot:
        return False
    domain = parts[0] if len(parts) == 3 else "0"
    return (_fits(domain, 16, 2**32 - 1) and _fits(parts[-2], 16, 255)
            and _fits(slot, 16, 255) and _fits(function, 10, 255))


def _fits(text: str, base: int, most: int) -> bool:
    body = text[1:] if text.startswith("+") else text
    allowed = "0123456789" if base == 10 else "0123456789abcdefABCDEF"
    return 0 < len(body) < 40 and all(c in allowed for c in body) and int(body, base) <= most


PCI_ADDRESS = Leaf("a PCI address such as 0000:07:00.1", test=is_pci_address)
