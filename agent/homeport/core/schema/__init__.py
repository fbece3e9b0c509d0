"""The schema of nmstate 2.2.62: which keys a document may have, and of what kind each value is.

Tables, one a section, in `routing.py`, `interfaces.py`, `ip.py`, `links.py`, `bridges.py` and
`ethtool.py`; `kinds.py` judges. Facts are from nmstate's own structs. A document that nmstate reads
is never refused here (tests/core/test_schema.py asks the real `nmstatectl`), with one exception: a
section written as a bare list of its values in nmstate's order, which its reader happens to take,
and which nobody writes. Whether a document makes sense is the business of `checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from homeport.core.complaint import Complaint
from homeport.core.schema.interfaces import Interface
from homeport.core.schema.kinds import LOOSE_TEXT, Enough, ListOf, MapOf, Section, Walk, not_null
from homeport.core.schema.routing import DNS_RESOLVER, HOSTNAME, OVN, OVS_DB, ROUTE_RULES, ROUTES
from homeport.core.showing import show

STATE = Section(keys={
    "description": LOOSE_TEXT,
    "hostname": HOSTNAME,
    "dns-resolver": DNS_RESOLVER,
    "route-rules": ROUTE_RULES,
    "routes": ROUTES,
    "interfaces": ListOf(null=False, item=Interface(null=False), wanted="a list of interfaces"),
    "ovs-db": OVS_DB,
    "ovn": OVN,
})

# A policy: what to look for on the machine, and a state with `{{ capture.… }}` in it.
POLICY = Section(keys={
    "capture": MapOf(null=False, item=not_null(LOOSE_TEXT)),
    "desired": STATE,
    "current": STATE,
}, aliases={"desiredState": "desired"})
_POLICY_KEYS = ("capture", "desired", "desiredState")


def is_policy(config: object) -> bool:
    """Whether this is an nmstate policy rather than a state."""
    return isinstance(config, Mapping) and any(key in config for key in _POLICY_KEYS)


def check_schema(config: object) -> list[Complaint]:
    """Every key and value of `config` that nmstate would not read, in document order, up to a thousand.

    `config` may be any tree of mappings, lists and scalars. Never raises; linear in its size.
    """
    if not isinstance(config, Mapping):
        return [Complaint("", show(config), "a mapping with interfaces, routes, dns-resolver, …")]
    policy = is_policy(config)
    walk = Walk(templated=policy)
    with suppress(Enough):
        (POLICY if policy else STATE).check(config, (), walk)
    return walk.complaints
