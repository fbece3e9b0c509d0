"""The network part of a registration or an inventory: a template, and where its addresses come from.

Knows both shapes of `ipAddresses` and `ipAddressPools`: a mapping by name, and the older list of
`{name, ipPoolRef}` (spec.config.network of a MachineRegistration, spec of a MachineInventory; elemental.cattle.io
v1beta1). Whether the configuration itself is sound is asked of the agent's own checks, with an address of the pool
in each placeholder: what a machine would refuse is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.core.addresses import Address, read_addresses
from homeport.core.assignment import CONFIGURATORS
from homeport.core.complaint import Complaint
from homeport.core.document import check_document
from homeport.core.rawextension import decode_raws
from homeport.core.showing import listing, meant, show
from homeport_server.manifests.fields import Complain, Fields
from homeport_server.manifests.pools import GROUP, KINDS, Pool, pool_key
from homeport_server.ranges import to_text

_KEYS = ("configurator", "ipAddresses", "config", "proof", "force")


@dataclass(frozen=True)
class Network:
    """A template: `pools` says for each name which pool its address is from, `fixed` which address it is.

    Of `Address`, prefix and gateway are what stands beside the address itself, None where nothing does.
    """

    configurator: str = "none"
    config: dict[str, Any] = field(default_factory=dict)
    pools: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Address] = field(default_factory=dict)
    proof: Any = None
    force: bool = False

    def __bool__(self) -> bool:
        return self.configurator != "none"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.pools, *self.fixed)))


def read_network(tree: Any, path: tuple[str | int, ...], namespace: str, complain: Complain, *,
                 pinned: bool = False) -> Network:
    """The network at `path`. In an inventory (`pinned`) `ipAddresses` holds addresses, else references to pools."""
    part = Fields(tree, path, complain)
    part.only(_KEYS)
    configurator = part.text("configurator", f"one of {listing(CONFIGURATORS)}")
    if configurator and configurator not in CONFIGURATORS:
        part.fault(("configurator",), configurator, meant(configurator, CONFIGURATORS))
        configurator = "nmstate"
    config, found = decode_raws(part.below("config", "the configuration, a mapping").tree, (*path, "config"))
    for complaint in found:
        complain(complaint)
    # The API's default is none, but who writes a configuration means it (and the first releases knew only nmstate).
    configurator = configurator or ("nmstate" if config else "none")
    pools: dict[str, str] = {}
    fixed: dict[str, Address] = {}
    if pinned:
        fixed, found = read_addresses(part.tree.get("ipAddresses"), (*path, "ipAddresses"))
        for complaint in found:
            complain(complaint)
    else:
        pools = read_references(part, "ipAddresses", namespace)
    if configurator != "none" and not config:
        part.fault(("config",), part.tree.get("config"), "a configuration, or 'configurator: none'")
    return Network(configurator, config, pools, fixed, part.tree.get("proof"), part.flag("force"))


def read_references(part: Fields, key: str, namespace: str) -> dict[str, str]:
    """Name -> key of the pool, from a mapping or from the older list."""
    value = part.tree.get(key)
    if isinstance(value, list):
        entries = []
        for index, item in enumerate(value):
            entry = Fields(item, (*part.path, key, index), part.complain, "an entry with 'name' and 'ipPoolRef'")
            name = entry.text("name", "the name of the placeholder", required=True)
            entries.append((name, entry.below("ipPoolRef", "a reference to a pool")))
    else:
        below = part.below(key, "a mapping of names to references to pools")
        entries = [(name, below.below(name, "a reference to a pool: apiGroup, kind and name"))
                   for name in below.tree]
    found: dict[str, str] = {}
    for name, reference in entries:
        if name in found:
            reference.say((), f"{show(name)} once more", "each name once")
        pool = _reference(reference, namespace)
        if name and pool:
            found[name] = pool
    return found


def _reference(reference: Fields, namespace: str) -> str:
    if not reference.tree:
        reference.fault((), None, "a reference to a pool: apiGroup, kind and name")
        return ""
    group = reference.text("apiGroup", GROUP)
    kind = reference.text("kind", f"one of {listing(KINDS)}", required=True)
    name = reference.text("name", "the name of a pool", required=True)
    if kind and (kind not in KINDS or group not in ("", GROUP)):
        reference.fault(("kind",), kind, f"one of {listing(KINDS)} of {GROUP}; this server has no other pools")
        return ""
    return pool_key(kind, namespace, name) if kind and name else ""


def check_references(network: Network, path: str, pools: Mapping[str, Pool]) -> list[Complaint]:
    """Complaints about references to pools that are not there."""
    if not network:
        return []
    return [Complaint(f"{path}.ipAddresses.{name}", f"there is no {key}", _pools_there_are(pools))
            for name, key in network.pools.items() if key not in pools and name not in network.fixed]


def check_template(network: Network, path: str, pools: Mapping[str, Pool]) -> list[Complaint]:
    """What a machine would say of the configuration, were it given an address of each of its (sound) references."""
    if not network:
        return []
    samples = {name: sample(pools[network.pools[name]]) if name not in network.fixed else
               complete(network.fixed[name], pools.get(network.pools.get(name, "")))
               for name in network.names}
    return [replace(complaint, path=f"{path}.{complaint.path}" if complaint.path else path)
            for complaint in _check_config(network, samples)]


def _check_config(network: Network, samples: Mapping[str, Address]) -> Iterable[Complaint]:
    document = json.dumps(as_document(network, samples), ensure_ascii=False).encode("utf-8", "surrogatepass")
    # What is behind a script or a hook is the operator's own business, and the agent's setting.
    findings = check_document(document, allow_dispatch=True)
    yield from findings.complaints
    for one in findings.open:
        base, _, part = one.name.rpartition(".")
        if base in samples and part in ("prefix", "gateway"):
            yield Complaint(one.path, f"the placeholder {{{one.name}}}", f"a pool of {base} that has a {part}")
        else:
            yield Complaint(one.path, f"the placeholder {show('{' + one.name + '}')}",
                            f"one of ipAddresses: {listing(samples) or 'there are none'}")


def as_document(network: Network, addresses: Mapping[str, Address]) -> dict[str, Any]:
    """What a machine is told by HTTP: the agent's own shape of an assignment."""
    given = {name: {key: value for key, value in (
        ("address", address.ip), ("prefix", address.prefix), ("gateway", address.gateway)) if value is not None}
        for name, address in addresses.items()}
    document: dict[str, Any] = {"configurator": network.configurator}
    if given:
        document["ipAddresses"] = given
    if network:
        document["config"] = network.config
    if network.proof is not None:
        document["proof"] = network.proof
    if network.force:
        document["force"] = True
    return document


def complete(address: Address, pool: Pool | None) -> Address:
    """An address with the prefix and gateway of its pool, where it has none of its own."""
    if pool is None or not pool.on_link(address.ip):
        return address
    return Address(address.ip, pool.prefix if address.prefix is None else address.prefix,
                   address.gateway or pool.gateway)


def sample(pool: Pool) -> Address:
    """Some address of the pool, to check a template with."""
    first = pool.ranges.spans[0][0]
    return Address(to_text(pool.ranges.version, first), pool.prefix, pool.gateway)


def _pools_there_are(pools: Mapping[str, Pool]) -> str:
    return f"one of the pools in this folder: {listing(pools)}" if pools else "a pool; this folder has none"
