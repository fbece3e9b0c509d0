"""Policy rules that belong to no address, in profiles that are surely up.

nmstate puts a rule without a source into one profile, another one from run to run
(spec/sources-and-initramfs.md, 3.1).  If that NIC is down, the rule is missing and the traffic of all
the others goes wrong.  NetworkManager counts who wants a rule, so every profile may have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from homeport.core.keyfile.format import Keyfile

_FAMILIES = ("ipv4", "ipv6")
_UP = ("manual", "auto", "dhcp")
_ANY = ("0.0.0.0/0", "::/0")
# Words that tie a rule to an address or an interface.
_TIES = ("from", "to", "iif", "oif")


def spread_rules(profiles: Mapping[str, Keyfile]) -> dict[str, Keyfile]:
    """The profiles, each with every rule that is tied to none of them."""
    result = dict(profiles)
    for family in _FAMILIES:
        rules = [rule for profile in profiles.values() for rule in _rules(profile, family).values()]
        # The first spelling of a rule is the one that is kept.
        loose = {_meaning(rule): rule for rule in reversed(rules) if not _is_tied(rule)}
        for name, profile in profiles.items():
            if profile.raw(family, "method") in _UP:
                result[name] = _with_rules(result[name], family, loose)
    return result


def _with_rules(profile: Keyfile, family: str, loose: Mapping[tuple[str, ...], str]) -> Keyfile:
    have = _rules(profile, family)
    known = {_meaning(rule) for rule in have.values()}
    first = 1 + max((int(key.removeprefix("routing-rule") or 0) for key in have), default=0)
    missing = [rule for meaning, rule in loose.items() if meaning not in known]
    more = tuple((f"routing-rule{number}", rule) for number, rule in enumerate(missing, first))
    return profile.with_section(family, profile.items(family) + more) if more else profile


def _rules(profile: Keyfile, family: str) -> dict[str, str]:
    return {key: raw for key, raw in profile.items(family)
            if key.removeprefix("routing-rule").isdecimal() and key.startswith("routing-rule")}


def _is_tied(rule: str) -> bool:
    words = rule.split()
    return any(word in _TIES and value not in _ANY for word, value in pairwise(words))


def _meaning(rule: str) -> tuple[str, ...]:
    """One value for one rule, in whatever order its words stand."""
    return tuple(sorted(rule.split()))
