"""Does a document make sense? Every check, before nmstate sees it.

A check is a generator that looks at the whole document and complains; `CHECKS` lists them. They assume
nothing: on a value of the wrong kind they are silent, as the schema has complained already. The rule for all:
a document that nmstate accepts and that would work is not refused. Two kinds are stricter, for reasons of
ours: what would be kept outside our profiles (`resolver`, `route_interfaces`), and `DOUBTS`, which an
assignment overrules with `force: true`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from homeport.core.checks import addresses, bonds, everywhere, gateways, links, names, ports, resolver, routing, uplink
from homeport.core.checks.needs import Needs, needs
from homeport.core.checks.view import View
from homeport.core.complaint import Complaint, Complaints
from homeport.core.schema import is_policy

__all__ = ["CHECKS", "DOUBTS", "Check", "Needs", "check_meaning", "needs"]

Check = Callable[[View], Iterator[Complaint]]

# Of any document, policies too: their texts reach keyfiles and shells just the same.
EVERYWHERE: tuple[Check, ...] = (
    everywhere.harmful_strings,
)

CHECKS: tuple[Check, ...] = (
    uplink.empty_configurations,
    names.interface_names,
    names.long_names,
    names.profile_names,
    names.duplicate_names,
    names.identifiers,
    names.mac_addresses,
    names.host_names,
    addresses.address_families,
    addresses.addresses_on_ports,
    addresses.mtus,
    addresses.dynamic_settings,
    addresses.waits_for_ip,
    addresses.loopback,
    addresses.mptcp_flags,
    ports.ports_of_two,
    ports.ports_that_are,
    ports.named_controllers,
    ports.bases,
    ports.circles,
    ports.other_references,
    bonds.bonds,
    links.vlans,
    links.tunnels,
    links.vrfs,
    links.macsec,
    links.flags,
    links.bridges,
    links.open_vswitch,
    links.virtual_functions,
    links.alternative_names,
    routing.route_addresses,
    routing.route_values,
    routing.route_interfaces,
    routing.route_tables,
    routing.rule_values,
    routing.rule_families,
    resolver.dns_syntax,
    resolver.dns_in_profiles,
)

# What is possible but so likely a mistake that the assignment must say it is meant.
DOUBTS: tuple[Check, ...] = (
    names.interface_types,
    addresses.group_addresses,
    bonds.primary_ports,
    addresses.enabled_families,
    addresses.duplicate_addresses,
    gateways.gateways,
    uplink.uplinks,
)


def check_meaning(
        config: Mapping[str, object], *, allow_dispatch: bool = False, force: bool = False) -> list[Complaint]:
    """Everything in `config` that cannot work or must not be, up to a thousand; in the order of the document.

    `allow_dispatch`: scripts are welcome. `force`: the assignment says that its doubtful parts are meant.
    Never raises; time grows with the size of the document.
    """
    checks = [*EVERYWHERE, *(() if allow_dispatch else (everywhere.dispatch_scripts,))]
    if not is_policy(config):
        checks += [*CHECKS, *(() if force else DOUBTS)]
    view = View(config)
    found = Complaints()
    found += (complaint for check in checks for complaint in check(view))
    return found
