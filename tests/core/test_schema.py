"""The schema against the real nmstatectl: never stricter on what it reads, and no looser on unknown keys."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.core.complaint import MAX_COMPLAINTS
from homeport.core.schema import STATE, check_schema, is_policy
from homeport.core.schema.interfaces import _BY_TYPE, SECTIONS, Interface
from homeport.core.schema.kinds import Kind, ListOf, MapOf, Section
from homeport.core.yamlsafe import read_yaml

Judge = Callable[[str, object], tuple[bool, str]]
Documents = list[tuple[str, dict[str, Any]]]
Mutants = Callable[[int, int], Iterator[tuple[str, dict[str, Any]]]]


def read(text: str) -> Any:
    return read_yaml(text).value


def faults(config: object) -> list[tuple[str, str, str]]:
    return [(c.path, c.found, c.wanted) for c in check_schema(config)]


def test_documents_that_nmstate_reads_have_no_complaints(documents: Documents) -> None:
    assert len(documents) >= 60
    assert {name: found for name, tree in documents if (found := faults(tree))} == {}


def test_nmstate_reads_them(documents: Documents, nmstatectl: Judge) -> None:
    assert {name: said for name, tree in documents for ok, said in [nmstatectl("format", tree)] if not ok} == {}


def test_the_documents_use_every_key_of_every_section(documents: Documents) -> None:
    unused = {(id(section), key) for section in _sections(STATE) for key in section.keys}
    for _, tree in documents:
        _use(STATE, tree, unused)
    assert sorted(key for _, key in unused) == []


def _sections(kind: Kind) -> Iterator[Section]:
    """Every section that can be reached, the common keys of interfaces once (under ethernet)."""
    if isinstance(kind, Interface):
        yield from _sections(_BY_TYPE["ethernet"])
        for sections in SECTIONS.values():
            for section in sections.values():
                yield from _sections(section)
    elif isinstance(kind, (ListOf, MapOf)):
        yield from _sections(kind.item)
    elif isinstance(kind, Section):
        yield kind
        for item in kind.keys.values():
            yield from _sections(item)


def _use(kind: Kind, value: object, unused: set[tuple[int, str]]) -> None:
    if isinstance(kind, Interface) and isinstance(value, Mapping):
        section = _BY_TYPE.get(str(value.get("type")))
        if section is not None:
            # The common keys are those of ethernet in this count.
            common = {key: item for key, item in value.items() if key in _BY_TYPE["dummy"].keys}
            _use(_BY_TYPE["ethernet"], common, unused)
            _use(section, value, unused)
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for item in value:
            _use(kind.item, item, unused)
    elif isinstance(kind, Section) and isinstance(value, Mapping):
        for key, item in value.items():
            name = kind.aliases.get(key, key)
            unused.discard((id(kind), name))
            if name in kind.keys:
                _use(kind.keys[name], item, unused)


def _is_typeless(tree: object) -> bool:
    """An entry without a type: nmstate reads it only when it knows the machine, so `format` proves nothing."""
    entries = tree.get("interfaces") if isinstance(tree, dict) else None
    return any(isinstance(entry, dict) and entry.get("state") != "absent" and entry.get("type") not in SECTIONS
               for entry in (entries if isinstance(entries, list) else []))


def _has_positional_section(tree: object) -> bool:
    """The known exception: a section as a bare list of its values (see the module's docstring)."""
    return any(": a list of" in str(complaint) and "a mapping with keys" in complaint.wanted
               for complaint in check_schema(tree))


@pytest.mark.parametrize("seed", range(4))
def test_both_agree_on_mutants(seed: int, mutants: Mutants, nmstatectl: Judge) -> None:
    disagreements = []
    for name, mutant in mutants(seed, 250):
        accepted, said = nmstatectl("format", mutant)
        found = check_schema(mutant)
        if accepted != (not found) and not _is_typeless(mutant) and not _has_positional_section(mutant):
            disagreements.append((name, json.dumps(mutant)[:2000], accepted, said[-300:], list(map(str, found))))
    assert disagreements == []


def places(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def test_both_refuse_an_unknown_key_in_each_section(documents: Documents, nmstatectl: Judge) -> None:
    """At every mapping of every document: a key more is refused by both or by none."""
    disagreements = []
    for name, tree in documents:
        for path in [(), *places(tree)]:
            mutant = copy.deepcopy(tree)
            place: Any = mutant
            for step in path:
                place = place[step]
            if isinstance(place, dict) and not _is_typeless(tree):
                place["no-such-key"] = "x"
                accepted, said = nmstatectl("format", mutant)
                if accepted != (not check_schema(mutant)):
                    disagreements.append((name, path, accepted, said[-200:]))
    assert disagreements == []


ETH = "interfaces: [{name: eth0, type: ethernet, %s}]"


@pytest.mark.parametrize(("text", "path", "found", "wanted"), [
    ("interfacs: []", "interfacs", "unknown key", "did you mean interfaces?"),
    (ETH % "mtuu: 5", "interfaces[0].mtuu", "unknown key", "did you mean mtu?"),
    (ETH % "macAddress: x", "interfaces[0].macAddress", "unknown key", "did you mean mac-address?"),
    # Swapped neighbours are one mistake, not two.
    (ETH % "ipv4: {enbaled: true}", "interfaces[0].ipv4.enbaled", "unknown key", "did you mean enabled?"),
    (ETH % "ipv4: {addresses: []}", "interfaces[0].ipv4.addresses", "unknown key", "did you mean address?"),
    # Other tools' words, which no edit distance finds.
    (ETH % "ipv4: {gateway: 192.0.2.1}", "interfaces[0].ipv4.gateway", "unknown key", "a route in routes.config"),
    (ETH % "dhcp4: true", "interfaces[0].dhcp4", "unknown key", "ipv4.dhcp"),
    (ETH % "ipv4: {autoconf: true}", "interfaces[0].ipv4.autoconf", "not allowed", "ipv6"),
    (ETH % "ipv6: {forwarding: true}", "interfaces[0].ipv6.forwarding", "not allowed", "ipv4"),
    (ETH % "mtu: big", "interfaces[0].mtu", "'big'", "a whole number from 0 to"),
    (ETH % "mtu: -1", "interfaces[0].mtu", "-1", "a whole number"),
    # As nmstate: a null is not "left out" where it reads numbers itself.
    (ETH % "mtu: null", "interfaces[0].mtu", "nothing", "a whole number"),
    (ETH % "mtu: true", "interfaces[0].mtu", "true", "a whole number"),
    (ETH % "mtu: 1500.5", "interfaces[0].mtu", "1500.5", "a whole number"),
    (ETH % "state: Up", "interfaces[0].state", "'Up'", "one of up, down"),
    (ETH % "name2: x", "interfaces[0].name2", "unknown key", "did you mean name?"),
    (ETH % "description: 5", "interfaces[0].description", "5", "text"),
    (ETH % "vlan: {id: 5}", "interfaces[0].vlan", "unknown key", ""),
    (ETH % "pci-address: '7.1'", "interfaces[0].pci-address", "'7.1'", "0000:07:00.1"),
    (ETH % "ipv4: []", "interfaces[0].ipv4", "an empty list", "a mapping"),
    (ETH % "ipv4: {address: [{ip: 10.0.0.300, prefix-length: 24}]}", "interfaces[0].ipv4.address[0].ip",
     "'10.0.0.300'", "an IP address"),
    # Python's ipaddress takes a scope here; nmstate doesn't.
    (ETH % "ipv6: {address: [{ip: 'fe80::1%eth0', prefix-length: 64}]}", "interfaces[0].ipv6.address[0].ip",
     "fe80::1%eth0", "an IP address"),
    (ETH % "ipv4: {address: [{ip: 192.0.2.1}]}", "interfaces[0].ipv4.address[0].prefix-length", "missing", "number"),
    (ETH % "ipv4: {address: [{ip: 192.0.2.1, prefix-length: 300}]}", "interfaces[0].ipv4.address[0].prefix-length",
     "300", "from 0 to 255"),
    (ETH % "802.1x: {password: 5}", "interfaces[0].802.1x.password", "5", "text"),
    ("interfaces: [{type: bond}]", "interfaces[0].name", "missing", "text"),
    ("interfaces: {eth0: {}}", "interfaces", "a mapping", "a list of interfaces"),
    ("interfaces: [eth0]", "interfaces[0]", "'eth0'", "a mapping"),
    ("interfaces: [{name: b, type: bond, link-aggregation: {mode: fast}}]", "interfaces[0].link-aggregation.mode",
     "'fast'", "balance-rr"),
    ("interfaces: [{name: b, type: bond, link-aggregation: {port: [a], ports: [a]}}]",
     "interfaces[0].link-aggregation.ports", "the same as port", "one of the two"),
    ("interfaces: [{name: v, type: vlan, vlan: {base-iface: e, id: 70000}}]", "interfaces[0].vlan.id", "70000",
     "from 0 to 65535"),
    ("interfaces: [{name: b, type: linux-bridge, bridge: {port: [{name: a, vlan: {trunk-tags: [{ids: 5}]}}]}}]",
     "interfaces[0].bridge.port[0].vlan.trunk-tags[0]", "a mapping", "id or id-range"),
    ("routes: {config: [{destination: 0.0.0.0/0, next-hop-iface: e}]}", "routes.config[0].next-hop-iface",
     "unknown key", "did you mean next-hop-interface?"),
    ("routes: {config: [{metric: low}]}", "routes.config[0].metric", "'low'", "a whole number"),
    ("routes: []", "routes", "an empty list", "a mapping"),
    ("route-rules: {config: [{route-tabel: 5}]}", "route-rules.config[0].route-tabel", "unknown key",
     "did you mean route-table?"),
    ("dns-resolver: {server: [192.0.2.1]}", "dns-resolver.server", "unknown key", ""),
    ("dns-resolver: {config: {server: 192.0.2.1}}", "dns-resolver.config.server", "'192.0.2.1'", "a list"),
    ("hostname: node1", "hostname", "'node1'", "a mapping with keys such as running, config"),
    ("ovn: {bridge-mappings: [{bridge: b}]}", "ovn.bridge-mappings[0].localnet", "missing", ""),
    ("5", "", "5", "a mapping"),
    ("capture: {gw: 'routes.running.destination==\"0.0.0.0/0\"'}\ndesired: {interfacs: []}", "desired.interfacs",
     "unknown key", "did you mean interfaces?"),
])
def test_what_is_said(text: str, path: str, found: str, wanted: str) -> None:
    complaints = faults(read(text))
    assert len(complaints) == 1, complaints
    assert complaints[0][0] == path
    assert found in complaints[0][1]
    assert wanted in complaints[0][2]


def test_every_fault_is_said_in_the_order_of_the_document() -> None:
    tree = {"interfaces": [{"name": f"eth{i}", "type": "ethernet", "mtu": "big"} for i in range(50)], "x": 1}
    assert [path for path, _, _ in faults(tree)] == [*(f"interfaces[{i}].mtu" for i in range(50)), "x"]


def test_a_misspelt_required_key_is_one_fault() -> None:
    tree = read(ETH % "ipv4: {address: [{ip: 192.0.2.1, prefix_length: 24}]}")
    assert [path for path, _, _ in faults(tree)] == ["interfaces[0].ipv4.address[0].prefix_length"]


def test_a_policy_may_hold_captures_anywhere() -> None:
    policy = read("""
capture: {gw: 'routes.running.destination=="0.0.0.0/0"'}
desired:
  interfaces: [{name: '{{ capture.gw.routes.running.0.next-hop-interface }}', type: ethernet, mtu: '{{ x }}'}]
  routes: {config: '{{ capture.gw.routes.running }}'}
""")
    assert is_policy(policy)
    assert faults(policy) == []


def test_what_comes_from_a_document_cannot_steer_a_terminal() -> None:
    [(path, found, _)] = faults({"interfaces": [{"name": "e", "type": "ethernet", "\x1b[2J" * 99: "x"}]})
    assert (path + found).isprintable()
    assert len(path) < 150


def test_many_faults_cost_little() -> None:
    """Half a MiB of nothing but faults, each with a word of its own that could be looked up."""
    tree = {"interfaces": [{"name": f"e{i}", "type": "ethernet", f"ipv4{i}x": {}} for i in range(9000)]}
    assert len(json.dumps(tree)) > 500_000
    begin = time.process_time()
    assert len(check_schema(tree)) == MAX_COMPLAINTS + 1
    assert time.process_time() - begin < 3  # 0.3 s on a quiet machine; quadratic would be minutes


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
words = sorted({*STATE.keys, *_BY_TYPE["bond"].keys, *SECTIONS, "address", "config", "port"})
keys = st.sampled_from(words) | st.text()
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=20)


@given(trees)
def test_it_never_raises(tree: object) -> None:
    for complaint in check_schema(tree):
        assert complaint.found
        assert str(complaint).isprintable()


@given(trees)
def test_nor_inside_an_interface(tree: object) -> None:
    for kind in (*SECTIONS, "tun", 5, None):
        check_schema({"interfaces": [{"name": "x", "type": kind, "ipv4": tree, "bridge": tree, "vlan": tree}]})
