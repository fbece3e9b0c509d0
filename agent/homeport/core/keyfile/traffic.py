"""How long a kept profile waits for its addresses, and which of them it cannot do without.

Knows what nmstate writes for DHCP and what NetworkManager does with it at the next boots, when
nobody is there to prove anything.  Refuses to know whose profile it is.
"""

from __future__ import annotations

from homeport.core.keyfile.format import Keyfile

# NetworkManager's own default for DHCP.  nmstate writes INT32_MAX ("never gives up"): then no other
# profile ever gets its turn, and wait-online blocks to its own limit (spec/nmstate-and-peers.md,
# 1.5).  A switch port that takes longer (LACP: 70 s) is reached by NetworkManager's second attempt.
WAIT_SECONDS = 45

# Duplicate address detection of a static address takes up to 3 s.
STATIC_MILLISECONDS = 5000

_ENDLESS = 2**31 - 1
_FAMILIES = ("ipv4", "ipv6")
_WAITS = {"ipv4": ("dhcp-timeout",), "ipv6": ("dhcp-timeout", "ra-timeout")}
_DYNAMIC = ("auto", "dhcp")
_WAITED = {"any": (), "ipv4": ("ipv4",), "ipv6": ("ipv6",), "ipv4+ipv6": _FAMILIES}
_UPLINK = ("manual", *_DYNAMIC)
# Two stages of one boot, and two boots, must be one client to the server, or it gives two leases
# (spec/field-reports.md, 28).  The same values as nmstate's.
_CLIENT = {"ipv4": {"dhcp-client-id": "mac"}, "ipv6": {"dhcp-duid": "ll", "dhcp-iaid": "mac"}}


def finite_waits(profile: Keyfile) -> Keyfile:
    """With waits that end, no waits where nothing is asked for, and one DHCP identity."""
    for family in _FAMILIES:
        if profile.raw(family, "method") not in _DYNAMIC:
            profile = profile.remove(family, *_WAITS[family])
            continue
        for key in _WAITS[family]:
            if profile.get_int(family, key) == _ENDLESS:
                profile = profile.set_raw(family, key, str(WAIT_SECONDS))
        for key, value in _CLIENT[family].items():
            if profile.raw(family, key) is None:
                profile = profile.set_raw(family, key, value)
    return profile


def required_families(profile: Keyfile, wait_ip: str | None = None) -> Keyfile:
    """With `may-fail` as the document's `wait-ip` says, and as reason says where it is "".

    One family that can be an uplink: the profile stands or falls with it.  Otherwise a link-local
    address of the other family counts as "connected", network-online.target comes too early, and the
    bootstrap profile never gets its turn when the address is taken or the DHCP server gone.  Two such
    families: one must not take the other down, but network-online waits for the duplicate detection of
    static ones.  With None, what the profile itself says comes first.
    """
    if profile.raw("connection", "type") == "loopback":
        return profile
    if wait_ip is None and any(profile.raw(family, "may-fail") is not None for family in _FAMILIES):
        return profile
    for family in _FAMILIES:
        profile = profile.remove(family, "may-fail")
        if profile.get_int(family, "required-timeout") == STATIC_MILLISECONDS:
            profile = profile.remove(family, "required-timeout")
    uplinks = [family for family in _FAMILIES if profile.raw(family, "method") in _UPLINK]
    if wait_ip or len(uplinks) == 1:
        for family in _WAITED[wait_ip] if wait_ip else uplinks:
            profile = profile.set_raw(family, "may-fail", "false")
        return profile
    for family in uplinks:
        if profile.raw(family, "method") == "manual" and not profile.raw(family, "required-timeout"):
            profile = profile.set_raw(family, "required-timeout", str(STATIC_MILLISECONDS))
    return profile
