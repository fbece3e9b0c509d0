"""When two spellings of a value mean the same: the document's and `nmstatectl show`'s.

Knows numbers in quotes, truth values in words, IP and MAC spellings, the kernel's numbers for words
(bond modes and options). Refuses to know where a value stands, apart from the name of its key.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_interface

from homeport.core.mac import normalise_mac
from homeport.core.schema.kinds import read_bool, read_number

# The kernel knows these words by number too, and nmstate reads both (ifaces/bond.rs).
_NUMBERED = {
    "mode": ("balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb",
             "balance-alb"),
    "ad_select": ("stable", "bandwidth", "count"),
    "all_slaves_active": ("dropped", "delivered"),
    "arp_all_targets": ("any", "all"),
    "arp_validate": ("none", "active", "backup", "all", "filter", "filter_active",
                     "filter_backup"),
    "fail_over_mac": ("none", "active", "follow"),
    "lacp_rate": ("slow", "fast"),
    "primary_reselect": ("always", "better", "failure"),
    "xmit_hash_policy": ("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"),
    "multicast-router": ("disabled", "auto", "enabled"),
}
# Kernels with 250 Hz round these by one (nmstate, query_apply/linux_bridge.rs).
_ROUNDED = frozenset({
    "multicast-last-member-interval", "multicast-membership-interval", "multicast-querier-interval",
    "multicast-query-response-interval", "multicast-startup-query-interval",
})
_OTHER_WORDS = {
    ("mode", "lacp"): "802.3ad",
    ("protocol", "hsr-2010"): "hsr",
    ("token", ""): "::",
}


def same_value(key: str, one: object, other: object) -> bool:
    """Whether two scalars under `key` mean the same."""
    if isinstance(one, bool) or isinstance(other, bool):
        return read_bool(one) is not None and read_bool(one) == read_bool(other)
    numbers = read_number(one), read_number(other)
    if key not in _NUMBERED and numbers[0] is not None and numbers[1] is not None:
        return abs(numbers[0] - numbers[1]) <= (key in _ROUNDED)
    return plain(key, one) == plain(key, other)


def plain(key: str, value: object) -> str:
    """One spelling for all that mean the same under `key`."""
    text = ("" if value is None else str(value)).strip()
    words = _NUMBERED.get(key, ())
    if words and text.isdecimal() and int(text) < len(words):
        return words[int(text)]
    text = _OTHER_WORDS.get((key, text.lower()), text)
    for canonical in (_ip, _mac):
        found = canonical(text)
        if found:
            return found
    return text


def plain_ip(value: object) -> str:
    """An address in its canonical form, scope kept; the text itself if it is no address."""
    text = str(value)
    address, percent, scope = text.partition("%")
    return (_ip(address) or address.lower()) + percent + scope


def plain_network(value: object) -> str:
    """`10.0.0.5/24` as `10.0.0.0/24`, `10.0.0.5` as `10.0.0.5/32`; "" stays "" ("no network")."""
    text = str(value)
    try:
        return str(ip_interface(text).network) if text else ""
    except ValueError:
        return text


def plain_mac(value: object) -> str:
    """A MAC in lower case with colons; other text as it is."""
    text = str(value)
    return _mac(text) or text


def _ip(text: str) -> str:
    if not text or text[0] not in ":0123456789abcdefABCDEF":
        return ""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def _mac(text: str) -> str:
    if ":" not in text and "-" not in text:
        return ""
    try:
        return normalise_mac(text)
    except ValueError:
        return ""
