"""Where a network state names an interface: every place, by field.

Knows the fields of nmstate 2.2.62 that hold the name of an interface other than their own, and how to
rewrite them.  A name is only ever a whole field, or the part of one that nmstate's own syntax sets off
(a DNS server's `%zone`, the card in `sriov:CARD:NUMBER`): never a substring, so `eth1` is not in `eth10`
nor in `eth0.1`.  Refuses to know what a name stands for: `nics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.core.complaint import Path

Pattern = tuple[str, ...]  # keys from the top of a tree; "*" is each item of a list

# Interfaces that one interface is made of: without them it cannot come up.
PARTS: tuple[Pattern, ...] = (
    *((section, key, "*") for section in ("link-aggregation", "bond", "vrf") for key in ("port", "ports")),
    *((section, "ports-config", "*", "name") for section in ("link-aggregation", "bond")),
    *(("bridge", key, "*", "name") for key in ("port", "ports")),
    *(("bridge", key, "*", section, inner, "*", "name") for key in ("port", "ports")
      for section in ("link-aggregation", "bond") for inner in ("port", "ports")),
    *((section, "base-iface") for section in (
        "vlan", "vxlan", "mac-vlan", "mac-vtap", "ipvlan", "macsec", "infiniband", "ip-tunnel")),
    *(("hsr", key) for key in ("port1", "port2", "interlink")),
)
# Other mentions in an interface. Those that name nothing which exists are for nmstate to judge.
MENTIONS: tuple[Pattern, ...] = (
    ("controller",), ("copy-mac-from",), ("veth", "peer"), ("patch", "peer"),
    *((section, "options", key) for section in ("link-aggregation", "bond")
      for key in ("primary", "active_slave")),
)
# Most interfaces have none of either: a look at their keys says so.
_PARTS_IN = frozenset(pattern[0] for pattern in PARTS)
_NAMED_IN = _PARTS_IN | {pattern[0] for pattern in MENTIONS}
ROUTE: Pattern = ("routes", "config", "*", "next-hop-interface")
# Outside `interfaces`.
ELSEWHERE: tuple[Pattern, ...] = (
    ROUTE, ("route-rules", "config", "*", "iif"), ("ovn", "bridge-mappings", "*", "bridge"))
DNS_SERVER: Pattern = ("dns-resolver", "config", "server", "*")
VF_PREFIX = "sriov:"


@dataclass(frozen=True)
class Reference:
    """One mention of an interface: where, and the name as it stands there (of a VF: its card's)."""

    path: Path
    name: str


def find(tree: Any, pattern: Pattern) -> Iterator[Reference]:
    """The names at `pattern` in `tree`; whatever has another shape is passed over."""
    yield from _find(tree, pattern, ())


def rewrite_state(state: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """`state` with every reference renamed; the interfaces' own names are as they were."""
    for pattern in ELSEWHERE:
        state = _rewrite(state, pattern, lambda name: rename_reference(name, rename))
    for pattern in (DNS_SERVER,):
        state = _rewrite(state, pattern, lambda server: rename_zone(server, rename))
    return state


def find_parts(interface: Mapping[str, Any]) -> Iterator[Reference]:
    """What `interface` is made of."""
    if not _PARTS_IN.isdisjoint(interface):
        for pattern in PARTS:
            yield from _find(interface, pattern, ())


def rewrite_interface(interface: dict[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """`interface` with every reference in it renamed; its own name is as it was."""
    if _NAMED_IN.isdisjoint(interface):
        return interface
    for pattern in (*PARTS, *MENTIONS):
        interface = _rewrite(interface, pattern, lambda name: rename_reference(name, rename))
    return interface


def rename_zone(address: str, rename: Callable[[str], str]) -> str:
    """An address with its zone renamed: "fe80::1%eth0" (RFC 4007, 11.2)."""
    ip, percent, zone = address.partition("%")
    return f"{ip}%{rename(zone)}" if percent and zone else address


def rename_reference(name: str, rename: Callable[[str], str]) -> str:
    """A name renamed; of "sriov:CARD:NUMBER", a virtual function, its card."""
    card = card_of_vf(name)
    return f"{VF_PREFIX}{rename(card)}:{name.rpartition(':')[2]}" if card else rename(name)


def card_of_vf(name: str) -> str:
    """The card in "sriov:CARD:NUMBER"; "" if that is not the form."""
    if not name.startswith(VF_PREFIX):
        return ""
    card, _, number = name.removeprefix(VF_PREFIX).rpartition(":")
    return card if number.isdigit() else ""


def _find(tree: Any, pattern: Pattern, path: Path) -> Iterator[Reference]:
    if not pattern:
        if isinstance(tree, str) and tree:
            yield Reference(path, card_of_vf(tree) or tree)
    elif pattern[0] == "*":
        for index, item in enumerate(tree if isinstance(tree, list) else ()):
            yield from _find(item, pattern[1:], (*path, index))
    elif isinstance(tree, dict) and pattern[0] in tree:
        yield from _find(tree[pattern[0]], pattern[1:], (*path, pattern[0]))


def _rewrite(tree: Any, pattern: Pattern, rename: Callable[[str], str]) -> Any:
    """A copy of `tree` along `pattern`, and the very same object where there is nothing to rename."""
    if not pattern:
        return rename(tree) if isinstance(tree, str) and tree else tree
    if pattern[0] == "*":
        return [_rewrite(item, pattern[1:], rename) for item in tree] if isinstance(tree, list) else tree
    if not isinstance(tree, dict) or pattern[0] not in tree:
        return tree
    return {**tree, pattern[0]: _rewrite(tree[pattern[0]], pattern[1:], rename)}
