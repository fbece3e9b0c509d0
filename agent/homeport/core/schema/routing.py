"""nmstate's sections beside `interfaces`: routes, rules, DNS, host name, OVS database, OVN.

nmstate reads these straight from YAML, so a number, a truth value, even null is good where text
is asked for.
"""

from __future__ import annotations

from dataclasses import replace

from homeport.core.schema.kinds import (
    I64,
    LOOSE_BOOL,
    LOOSE_TEXT,
    PLAIN_U32,
    U16,
    U32,
    ListOf,
    MapOf,
    Section,
    one_of,
)

_TEXTS = ListOf(item=LOOSE_TEXT, wanted="a list of texts")
_ACTION = one_of("blackhole", "unreachable", "prohibit")

ROUTE = Section(null=False, keys={
    "state": one_of("absent", "ignore"),
    "destination": LOOSE_TEXT,
    "next-hop-interface": LOOSE_TEXT,
    "next-hop-address": LOOSE_TEXT,
    "metric": I64,
    "table-id": U32,
    "weight": U16,
    "route-type": _ACTION,
    "cwnd": U32,
    "source": LOOSE_TEXT,
    "initcwnd": U32,
    "initrwnd": U32,
    "mtu": U32,
    "quickack": LOOSE_BOOL,
    "advmss": U32,
    "lock-mtu": LOOSE_BOOL,
    "vrf-name": LOOSE_TEXT,
})
ROUTES = Section(null=False, keys={"running": ListOf(item=ROUTE), "config": ListOf(item=ROUTE)})

RULE = Section(null=False, keys={
    "family": one_of("ipv4", "ipv6", "unknown"),
    "state": one_of("absent"),
    "ip-from": LOOSE_TEXT,
    "ip-to": LOOSE_TEXT,
    "priority": I64,
    "route-table": U32,
    "fwmark": U32,
    "fwmask": U32,
    "action": _ACTION,
    "iif": LOOSE_TEXT,
    "suppress-prefix-length": PLAIN_U32,
}, aliases={"suppress_prefixlength": "suppress-prefix-length"})
ROUTE_RULES = Section(null=False, keys={"config": ListOf(item=RULE)})

_RESOLVER = Section(keys={"server": _TEXTS, "search": _TEXTS, "options": _TEXTS})
DNS_RESOLVER = Section(keys={"running": _RESOLVER, "config": _RESOLVER})
HOSTNAME = Section(keys={"running": LOOSE_TEXT, "config": LOOSE_TEXT})

_OVS_VALUES = MapOf(item=LOOSE_TEXT)
OVS_DB = Section(keys={"external_ids": _OVS_VALUES, "other_config": _OVS_VALUES})
OVN = Section(null=False, keys={"bridge-mappings": ListOf(item=Section(null=False, open=True, keys={
    "localnet": replace(LOOSE_TEXT, required=True),
    "state": one_of("present", "absent"),
    "bridge": LOOSE_TEXT,
}))})
