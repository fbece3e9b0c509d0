"""Whole documents: a folder below tests/data/documents is a test.

In it: `document.*`, perhaps `machine.json` (the facts that `match:` is about), and what comes of it:
`expected.json` (the assignment), `complaints.txt` (a line each), `pending.txt` or `nothing.txt`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from homeport.core.document import (
    LIMIT,
    Address,
    Assignment,
    check_assignment,
    check_document,
    parse_document,
    understand_document,
)
from homeport.core.render_complaints import as_lines
from homeport.errors import DocumentError, NoAssignment, Pending

CASES = Path(__file__).parents[1] / "data" / "documents"


def outcome(data: bytes, machine: Mapping[str, Sequence[str]] | None) -> tuple[str, str]:
    """The file that `parse_document`'s answer belongs into, and its text."""
    try:
        assignment = parse_document(data, machine=machine)
    except DocumentError as error:
        return "complaints.txt", "".join(line + "\n" for line in as_lines(error.complaints))
    except Pending as error:
        return "pending.txt", f"{error}\n"
    except NoAssignment as error:
        return "nothing.txt", f"{error}\n"
    return "expected.json", json.dumps(asdict(assignment), indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_golden(case: str) -> None:
    folder = CASES / case
    (document,) = folder.glob("document.*")
    facts = folder / "machine.json"
    name, text = outcome(document.read_bytes(), json.loads(facts.read_text()) if facts.exists() else None)
    (expected,) = (folder / answer for answer in (
        "expected.json", "complaints.txt", "pending.txt", "nothing.txt") if (folder / answer).exists())
    assert (name, text) == (expected.name, expected.read_text())


def complaints_of(data: bytes, **arguments: Any) -> list[str]:
    return as_lines(check_document(data, **arguments).complaints)


NOT_AN_ADDRESS = b"""\
configurater: nmstate
config:
  interfaces:
  - name: eth0
    type: ethernet
    mtu: fast
    ipv4:
      enabled: true
      address: [{ip: 10.0.0.300, prefix-length: 24}]
"""


def test_faults_of_the_document_and_of_its_configuration_come_together() -> None:
    found = complaints_of(NOT_AN_ADDRESS)
    assert found[0].startswith("configurater: unknown key")
    assert any(line.startswith("config.interfaces[0].mtu: ") for line in found)
    assert any(line.startswith("config.interfaces[0].ipv4.address[0].ip: ") for line in found)
    with pytest.raises(DocumentError) as error:
        understand_document(NOT_AN_ADDRESS)
    assert as_lines(error.value.complaints) == found


def test_paths_are_those_of_the_document() -> None:
    data = (CASES / "seed-inventory" / "document.yaml").read_bytes().replace(b"prefix-length: 24",
                                                                            b"prefix-length: 240")
    # What follows from it (no way out) is said as well.
    assert "spec.network.config.interfaces[0].ipv4.address[0].prefix-length" in [
        line.partition(": ")[0] for line in complaints_of(data)]
    bare = b"interfaces: [{name: eth0, type: ethernet, mtu: x}]"
    assert "interfaces[0].mtu" in [line.partition(": ")[0] for line in complaints_of(bare)]


@pytest.mark.parametrize("case", [
    "seed-inventory", "elemental-tpm-complete", "assignment-full", "bare-nmstate-json", "elemental-keyfiles",
    "assignment-none", "policy",
])
def test_a_good_document_is_good_to_all_checks(case: str) -> None:
    (document,) = (CASES / case).glob("document.*")
    assert complaints_of(document.read_bytes()) == []
    assert isinstance(understand_document(document.read_bytes()), Assignment)


def test_an_open_placeholder_is_no_fault() -> None:
    """The schema would refuse '{inventory-ip}' as an address; it is only not there yet."""
    data = (CASES / "elemental-tpm-pending" / "document.yaml").read_bytes()
    findings = check_document(data)
    assert findings.complaints == ()
    assert [one.name for one in findings.open] == ["inventory-ip"]
    with pytest.raises(Pending):
        understand_document(data)


def test_a_fault_comes_before_an_open_placeholder() -> None:
    data = (CASES / "seed-inventory" / "document.yaml").read_bytes().replace(
        b"inventory-ip: 192.168.122.150", b"other: 192.168.122.150").replace(b"enabled: true", b"enabled: maybe")
    with pytest.raises(DocumentError, match=r"ipv4\.enabled"):
        understand_document(data)


def test_addresses_from_outside_fill_a_template() -> None:
    """`homeport render --ip inventory-ip=…` on an operator's own machine."""
    data = (CASES / "elemental-tpm-pending" / "document.yaml").read_bytes()
    assignment = parse_document(data, addresses={"inventory-ip": Address("192.0.2.77")})
    assert assignment.config["interfaces"][0]["ipv4"]["address"][0]["ip"] == "192.0.2.77"


def test_checking_looks_at_every_machine_and_booting_at_its_own() -> None:
    data = b"""\
machines:
- {match: {serial: A}, config: {interfaces: [{name: eth0, type: ethernet}]}}
- {match: {serial: B}, configurator: nothing, config: {interfaces: [{name: eth0, mtu: x, type: ethernet}]}}
"""
    assert parse_document(data, machine={"serial": ["A"]}).shape == "machines"
    assert {line.partition(": ")[0] for line in complaints_of(data)} >= {
        "machines[1].configurator", "machines[1].config.interfaces[0].mtu"}
    assert complaints_of(data, machine={"serial": ["A"]}) == []


def test_secrets_are_not_quoted() -> None:
    data = b"interfaces: [{name: eth0, type: ethernet, 802.1x: {identity: a, password: [hunter2]}}]"
    assert any("password" in line for line in complaints_of(data))
    assert "hunter2" not in "".join(complaints_of(data))


def test_revisions_of_a_part_are_of_that_part() -> None:
    """Tokens, resource versions and other machines change without changing the assignment."""
    seed = (CASES / "seed-inventory" / "document.yaml").read_bytes()
    elemental = (CASES / "elemental-tpm-complete" / "document.yaml").read_bytes()
    machines = (CASES / "machines-by-mac" / "document.yaml").read_bytes()
    facts = json.loads((CASES / "machines-by-mac" / "machine.json").read_text())
    for data, old, new, machine in (
        (seed, b"namespace: fleet-default", b"namespace: fleet-default\n  resourceVersion: '7'", None),
        (elemental, b"token: ", b"token: other-", None),
        (machines, b"name: eth9", b"name: eth8", facts),
    ):
        assert old in data
        changed = parse_document(data.replace(old, new), machine=machine)
        assert changed.revision == parse_document(data, machine=machine).revision
    assert parse_document(seed.replace(b"150\n", b"151\n")).revision != parse_document(seed).revision
    bare = b"interfaces: []"
    assert parse_document(bare).revision != parse_document(bare + b"\n").revision


def test_keyfiles_are_untrusted_text() -> None:
    assert any(line.startswith("config.eth0") for line in complaints_of(
        b"configurator: nmconnections\nconfig: {eth0: \"[connection]\\nid=a\\n[connection]\\nid=b\\n\"}"))


def test_the_configuration_is_shared_with_nothing() -> None:
    data = b"interfaces: [&a {name: eth0, ipv4: &ip {enabled: true}, ipv6: *ip}]"
    config = parse_document(data).config
    config["interfaces"][0]["ipv4"]["dhcp"] = True
    assert config["interfaces"][0]["ipv6"] == {"enabled": True}


def test_check_assignment_asks_nothing_of_none() -> None:
    assert check_assignment(parse_document(b"configurator: none")) == []


def fifty_faults() -> bytes:
    """A template that went wrong in every interface, twice."""
    return b"interfaces:\n" + b"".join(
        b"- name: eth%d\n  type: ethernet\n  mtuu: 1500\n  ipv4:\n    enabled: true\n"
        b"    address: [{ip: 10.0.%d.256, prefix-length: 24}]\n" % (n, n) for n in range(25))


def test_fifty_faults_show_all_fifty() -> None:
    paths = {line.partition(": ")[0] for line in complaints_of(fifty_faults())}
    assert paths >= {f"interfaces[{n}].mtuu" for n in range(25)}
    assert paths >= {f"interfaces[{n}].ipv4.address[0].ip" for n in range(25)}


def filled_up(line: bytes) -> bytes:
    """`line` with a number in it, as often as the limit allows."""
    lines: list[bytes] = []
    size = 0
    while size < LIMIT - 200:
        lines.append(line.replace(b"%d", b"%d" % len(lines)))
        size += len(lines[-1])
    return b"".join(lines)


LARGE = {
    "interfaces": b"interfaces:\n" + filled_up(
        b"- {name: e%d, type: dummy, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 24}]}}\n"),
    "unknown keys": filled_up(b"intefaces%d: 1\n"),
    "unknown interface keys": b"interfaces:\n" + filled_up(b"- {name: e%d, mtuu%d: 1}\n"),
    "addresses": b"config: {}\nipAddresses:\n" + filled_up(b"  a%d: x\n"),
    "address keys": b"config: {}\nipAddresses:\n" + filled_up(b"  a%d: {adress%d: x}\n"),
    "placeholders": b"config:\n  interfaces:\n" + filled_up(b"  - {name: '{a%d}'}\n"),
    "braces": b"config:\n  hostname:\n    config: '" + b"{" * (LIMIT - 100) + b"'\n",
    "machines": b"machines:\n" + filled_up(b"- {match: {serial: s%d}, configurator: none}\n"),
    "machines with faults": b"machines:\n" + filled_up(b"- {match: {sereal%d: s}}\n"),
    "proof": b"proof: [{" + filled_up(b"k%d: 1, ") + b"}]\n",
    "text fields": b"routes:\n  config:\n" + filled_up(b"  - {next-hop-interface: %d}\n"),
    "keyfile": b"configurator: nmconnections\nconfig:\n  a: |\n" + filled_up(b"    k%d={x}\n"),
    "raw": b"config:\n  interfaces:\n    raw: [91" + b",32" * ((LIMIT - 100) // 3) + b",93]\n",
}


@pytest.mark.parametrize("name", LARGE)
def test_half_a_mebibyte_is_checked_in_time(name: str) -> None:
    """About a second on the slow machine this was written on; four is no sign of a hurry but of a square."""
    data = LARGE[name][:LIMIT]
    start = time.process_time()
    check_document(data)
    assert time.process_time() - start < 4


WORDS = st.sampled_from([
    "interfaces", "config", "ipAddresses", "machines", "match", "configurator", "nmstate", "nmconnections",
    "none", "apiVersion", "kind", "MachineInventory", "spec", "network", "elemental", "elemental.cattle.io/v1",
    "raw", "object", "proof", "gateway", "tcp", "revision", "force", "capture", "desired", "routes", "hostname",
    "dns-resolver", "{a}", "{a.prefix}", "192.0.2.1/24", "address", "name", "mac", "uuid", "description",
])
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
TREES = st.recursive(LEAVES, lambda parts: st.lists(parts, max_size=3) | st.dictionaries(
    WORDS, parts, max_size=5), max_leaves=25)


def answers(data: bytes, machine: Mapping[str, Sequence[str]] | None) -> None:
    """Any answer will do, but no other exception."""
    try:
        parse_document(data, machine=machine)
    except (DocumentError, Pending, NoAssignment) as error:
        assert str(error)
    findings = check_document(data, machine=machine)
    assert all(complaint.wanted and (complaint.path + complaint.found).isprintable()
               for complaint in findings.complaints)


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
@example(b"machines:")
@example(b"\xef\xbb\xbf")
@example(b"{}")
def test_any_bytes_have_an_answer(data: bytes) -> None:
    answers(data, None)


@given(TREES, st.none() | st.just({"mac": ["52:54:00:aa:bb:cc"], "uuid": ["a"]}))
def test_any_tree_has_an_answer(tree: Any, machine: Mapping[str, Sequence[str]] | None) -> None:
    """JSON is YAML, so that this reaches further than bytes do."""
    answers(json.dumps(tree).encode(), machine)


def test_keyfiles_have_free_text_of_their_own() -> None:
    """A password with braces is no placeholder that waits for an address."""
    document = (b"configurator: nmconnections\nipAddresses: {lan: 192.0.2.10}\nconfig:\n  office: |\n"
                b"    [connection]\n    id=office\n    type=wifi\n    [wifi-security]\n    psk=a{secret}b\n"
                b"    [ipv4]\n    method=manual\n    address1={lan}/24\n")
    text = parse_document(document).config["office"]
    assert "psk=a{secret}b\n" in text
    assert "address1=192.0.2.10/24\n" in text
