"""Checks of bonds: their mode, and the options that go with it.

Facts: nmstate's ifaces/bond.rs, NetworkManager's nm-setting-bond.c (verify), the kernel's
Documentation/networking/bonding.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.core.checks.reading import Section, complain, mappings, section, text
from homeport.core.checks.view import Entry, View
from homeport.core.complaint import Complaint, Path
from homeport.core.schema.bridges import BOND_MODES
from homeport.core.schema.kinds import read_bool, read_number
from homeport.core.showing import show

_MODES = tuple(dict.fromkeys(BOND_MODES.values()))
# Options that only some modes know; in others nmstate or NetworkManager refuses the bond.
_ONLY_IN = {
    "lacp_rate": ("802.3ad",),
    "lacp_active": ("802.3ad",),
    "primary": ("active-backup", "balance-tlb", "balance-alb"),
}


def bonds(view: View) -> Iterator[Complaint]:
    """Everything about the bonds that are to be up."""
    for entry in view.entries:
        if entry.type == "bond" and entry.up:
            path, bond = entry.section("link-aggregation", "bond")
            mode = BOND_MODES.get(str(bond.get("mode")), text(bond.get("mode")))
            if not mode or mode == "unknown":
                yield complain((*path, "mode"), "missing" if not mode else show(mode), f"one of {', '.join(_MODES)}")
            options = section(bond.get("options"))
            yield from _options_of_mode(mode, options, (*path, "options"))
            yield from _link_monitoring(mode, options, (*path, "options"))
            yield from _ports(entry, bond, path)


def primary_ports(view: View) -> Iterator[Complaint]:
    """A primary that is no port: the kernel waits for it to become one."""
    for entry in view.entries:
        if entry.type == "bond" and entry.up:
            path, bond = entry.section("link-aggregation", "bond")
            primary = text(section(bond.get("options")).get("primary"))
            names = {port.name for port in entry.ports}
            if primary and names and primary not in names:
                yield complain((*path, "options", "primary"), f"{show(primary)}, which is no port of {entry.name}",
                               f"one of {', '.join(sorted(names)[:8])}")


def _options_of_mode(mode: str, options: Section, path: Path) -> Iterator[Complaint]:
    for key, modes in _ONLY_IN.items():
        if options.get(key) is not None and mode in _MODES and mode not in modes:
            yield complain((*path, key), f"{show(options[key])} in mode {mode}", f"mode {' or '.join(modes)}")
    slb = options.get("balance_slb", options.get("balance-slb"))
    if read_bool(slb) and mode in _MODES and (
            mode != "balance-xor" or str(options.get("xmit_hash_policy")) not in ("vlan+srcmac", "5")):
        yield complain((*path, "balance_slb"), "true", "mode balance-xor with xmit_hash_policy vlan+srcmac")
    if text(options.get("ad_actor_system")).upper().replace("-", ":").startswith("01:00:5E"):
        yield complain((*path, "ad_actor_system"), show(options["ad_actor_system"]), "an address that is no multicast")
    arp, na = read_number(options.get("num_grat_arp")), read_number(options.get("num_unsol_na"))
    if arp is not None and na is not None and arp != na:
        yield complain((*path, "num_unsol_na"), f"{na}, but num_grat_arp is {arp}",
                       "the same: the kernel has one value")


def _link_monitoring(mode: str, options: Section, path: Path) -> Iterator[Complaint]:
    miimon, interval = read_number(options.get("miimon")), read_number(options.get("arp_interval"))
    targets = [key for key in ("arp_ip_target", "ns_ip6_target") if options.get(key)]
    if miimon and interval:
        yield complain((*path, "arp_interval"), f"{interval}, although miimon is {miimon}", "one of the two")
    if interval and mode in ("802.3ad", "balance-tlb", "balance-alb"):
        yield complain((*path, "arp_interval"), f"{interval} in mode {mode}", "miimon instead")
    if interval and not targets:
        yield complain((*path, "arp_interval"), f"{interval} without a target", "arp_ip_target or ns_ip6_target too")
    if not interval and targets:
        yield complain((*path, targets[0]), "a target without arp_interval", "arp_interval greater than 0")
    for key in ("updelay", "downdelay"):
        if read_number(options.get(key)) and miimon == 0:
            yield complain((*path, key), f"{options[key]}, although miimon is 0", "miimon greater than 0")


def _ports(entry: Entry, bond: Section, path: Path) -> Iterator[Complaint]:
    listed = bond.get("port", bond.get("ports"))
    configured = {text(item.get("name")): at for at, item in mappings(
        bond.get("ports-config"), (*path, "ports-config"))}
    names = {port.name for port in entry.ports}
    if isinstance(listed, list) and configured:
        for name, at in configured.items():
            if name not in names:
                yield complain((*at, "name"), f"{show(name)}, which is not in port", "the same ports in both lists")
        for name in sorted(names - set(configured)):
            yield complain((*path, "port"), f"{show(name)}, which is not in ports-config",
                           "the same ports in both lists")
    queues: dict[int, str] = {}
    for at, item in mappings(bond.get("ports-config"), (*path, "ports-config")):
        queue = read_number(item.get("queue-id"))
        if queue and queue in queues:
            yield complain((*at, "queue-id"), f"{queue}, which {queues[queue]} has too", "a queue of its own")
        elif queue:
            queues[queue] = text(item.get("name"))
