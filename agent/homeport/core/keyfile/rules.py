"""Policy rules that belong to no address, in profiles that are surely up.

nmstate puts a rule without a source into one profile, another one from run to run
(spec/sources-and-initramfs.md, 3.1).  If that NIC is down, the rule is missing and the traffic of all
the others goes wrong.  NetworkManager counts who wants a rule, so every profile may have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

from homeport.core.keyfile.format import Keyfile

_RULE = re.compile(r"routing-rule\d*", re.ASCII)
_PRIORITY = re.compile(r"\bpriority (\d{1,10})\b", re.ASCII)
_FAMILIES = ("ipv4", "ipv6")
_UP = ("manual", "auto", "dhcp")
_ANY = ("0.0.0.0/0", "::/0", "all")
# Words that tie a rule to an address or an interface.
_TIES = ("from", "to", "iif", "oif")


def spread_rules(profiles: Mapping[str, Keyfile]) -> dict[str, Keyfile]:
    """The profiles, each with every rule that is tied to none of them; their rules by priority.

    nmstate's order changes from run to run and means nothing to the kernel, which goes by priority.
    """
    result = dict(profiles)
    for family in _FAMILIES:
        rules = [rule for profile in profiles.values() for rule in _rules(profile, family)]
        loose = [rule for rule in rules if not _is_tied(rule)]
        for name, profile in profiles.items():
            if profile.raw(family, "method") in _UP:
                result[name] = _with_rules(result[name], family, [*_rules(profile, family), *loose])
    return result


def _with_rules(profile: Keyfile, family: str, rules: Iterable[str]) -> Keyfile:
    """With these rules, each once, in their order of priority, and no others."""
    # The first spelling of a rule is the one that is kept.
    each = {_meaning(rule): rule for rule in reversed([*rules])}
    ordered = sorted(each.values(), key=lambda rule: (_priority(rule), _meaning(rule)))
    kept = tuple(pair for pair in profile.items(family) if not _RULE.fullmatch(pair[0]))
    numbered = tuple((f"routing-rule{number}", rule) for number, rule in enumerate(ordered, 1))
    return profile.with_section(family, kept + numbered)


def _rules(profile: Keyfile, family: str) -> list[str]:
    return [raw for key, raw in profile.items(family) if _RULE.fullmatch(key)]


def _priority(rule: str) -> int:
    found = _PRIORITY.search(rule)
    return int(found[1]) if found else 0


def _is_tied(rule: str) -> bool:
    words = rule.split()
    return any(word in _TIES and value not in _ANY for word, value in pairwise(words))


def _meaning(rule: str) -> tuple[str, ...]:
    """One value for one rule, in whatever order its words stand."""
    return tuple(sorted(rule.split()))
