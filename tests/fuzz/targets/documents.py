"""An assignment: whatever it is, it is accepted or refused, in words that a console can bear.

What is accepted must survive being written out and read back, and being compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from homeport.core.compare import differences
from homeport.core.complaint import MAX_COMPLAINTS, Complaint
from homeport.core.document import check_document, understand_document
from homeport.core.proof import parse_targets
from homeport.core.render_complaints import as_json, as_lines, as_table
from homeport.core.secrets import mask_document
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError, NoAssignment, Pending

MACHINE = {"mac": ["52:54:00:12:34:56"], "uuid": ["11-22"], "serial": ["S7"], "hostname": ["node1"]}

_KEYS = """
    interfaces name type state ethernet linux-bridge bond vlan vxlan mac-vlan vrf ovs-bridge ovs-interface veth dummy
    infiniband macsec ipsec hsr ipvlan ipv4 ipv6 enabled dhcp autoconf address ip prefix-length mtu mac-address
    identifier pci-address match driver profile-name alt-names copy-mac-from lldp wait-ip dispatch
    link-aggregation mode options port ports bridge base-iface id routes config destination next-hop-address
    next-hop-interface table-id metric route-rules ip-from ip-to priority route-table dns-resolver server search
    hostname ovs-db external_ids capture desired desiredState ipAddresses configurator nmconnections nmstate none
    revision proof gateway source tcp http dns machines spec network raw object force absent up ignore
    192.0.2.1 2001:db8::1 0.0.0.0/0 52:54:00:12:34:56 {mine} {mine.prefix} eth0
    """  # fmt: skip
WORDS = (*(f"{word}: " for word in _KEYS.split()), *_KEYS.split(), "- ", "\n  ", "{", "}", "[", "]", ", ", "'", '"',
         "&a ", "*a", "<<: ", "!!str ", "\\u0000", "\\ud800", "---\n", "|\n  ", "true", "null", "0x7f", "1e3", ".inf")

_DATA = Path(__file__).parents[2] / "data"
SEEDS = (*(path.read_bytes() for path in sorted(_DATA.glob("documents/*/document*"))),
         *(text.encode() for path in sorted(_DATA.glob("nmstate/*.yaml"))
           for text in path.read_text().split("\n---\n")))


def check(data: bytes) -> None:
    findings = check_document(data)
    check_complaints(findings.complaints)
    try:
        assignment = understand_document(data, machine=MACHINE)
    except DocumentError as error:
        check_complaints(error.complaints)
    except (Pending, NoAssignment) as error:
        assert f"{error.message}{error.hint}".isprintable()
    else:
        config = assignment.config
        assert read_yaml(render_yaml(config)).value == config
        differences(config, config, thorough=True)
        differences(config, {})
        proof = [{target.kind: target.value or None, "timeout": target.timeout} for target in assignment.proof]
        assert parse_targets(proof) == (assignment.proof, [])
    try:
        mask_document(data)
    except DocumentError as error:
        check_complaints(error.complaints)


def check_complaints(complaints: Iterable[Complaint]) -> None:
    """Bounded, each on one printable line, and every way to show them works."""
    complaints = tuple(complaints)
    assert len(complaints) <= MAX_COMPLAINTS + 1
    for complaint in complaints:
        assert str(complaint).isprintable(), ascii(str(complaint))
        assert complaint.found or complaint.wanted
        assert len(str(complaint)) < 2_000
    few = complaints[:5]
    assert len(as_lines(few)) == len(few) and as_json(few)
    assert not few or all(line.isprintable() for line in as_table(few).split("\n"))
