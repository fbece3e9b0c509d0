"""Fields that nmstate reads as text, compared with nmstatectl where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

from homeport.core.texts import Texts, as_nmstate_reads
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml

DOCUMENT = """\
description: 5
hostname: {running: 0x10, config: 1e3}
dns-resolver:
  config: {server: [1.1.1.1], search: [yes, 012, 1_000, 1.0, TRUE, ~], options: [on]}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-interface: 100, next-hop-address: 192.0.2.1, metric: 0x96, table-id: '254'}
route-rules:
  config:
  - {ip-from: 192.0.2.0/24, iif: 007, route-table: 200, priority: 0b101}
ovs-db: {other_config: {dpdk-init: 1e3, a: true, b: null}}
ovn:
  bridge-mappings:
  - {localnet: 5, bridge: 1.50}
interfaces:
"""


def read(document: str) -> dict[str, Any]:
    return as_nmstate_reads(read_yaml(document).value, Texts(document), ())


def test_text_fields_have_the_text_of_the_document() -> None:
    assert read(DOCUMENT) == {
        "description": "5",
        "hostname": {"running": "0x10", "config": "1e3"},
        "dns-resolver": {"config": {"server": ["1.1.1.1"], "options": ["on"],
                                    "search": ["yes", "012", "1_000", "1.0", "TRUE", "~"]}},
        "routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-interface": "100",
                               "next-hop-address": "192.0.2.1", "metric": 150, "table-id": "254"}]},
        "route-rules": {"config": [{"ip-from": "192.0.2.0/24", "iif": "007", "route-table": 200,
                                    "priority": 5}]},
        "ovs-db": {"other_config": {"dpdk-init": "1e3", "a": "true", "b": None}},
        "ovn": {"bridge-mappings": [{"localnet": "5", "bridge": "1.50"}]},
        # `interfaces:` with nothing below it is an empty list to nmstate, `null` an error.
    }


@pytest.mark.parametrize("document", [
    "interfaces: [{name: 100, type: ethernet}]",  # a number, which nmstate refuses for a name
    "hostname: x\nroutes: {config: 5}\ndns-resolver: [1]\nroute-rules: {config: [7]}",  # the schema's business
    "routes: {config: [{destination: {a: 1}, next-hop-interface: [5]}]}",
    "hostname: {config: null}",  # not set
    "ovs-db: {other_config: [1]}",
])
def test_all_else_stays(document: str) -> None:
    assert read(document) == read_yaml(document).value


def test_without_a_document_of_its_own_a_value_has_its_usual_spelling() -> None:
    """A RawExtension's JSON has no place in the document's text."""
    config = {"hostname": {"config": 100}, "routes": {"config": [{"next-hop-interface": True}]}}
    assert as_nmstate_reads(config, Texts("hostname: {raw: [1]}"), ("config",)) == {
        "hostname": {"config": "100"}, "routes": {"config": [{"next-hop-interface": "true"}]}}


def nmstatectl() -> str:
    found = os.environ.get("NMSTATECTL") or shutil.which("nmstatectl")
    if not found:
        pytest.skip("no nmstatectl on PATH or in $NMSTATECTL to compare with")
    return found


def formatted(document: str) -> str:
    done = subprocess.run([nmstatectl(), "-q", "format", "-"], input=document.encode(),
                          capture_output=True, check=True)
    return done.stdout.decode()


def test_what_we_hand_on_is_what_nmstatectl_reads_in_the_document() -> None:
    assert formatted(render_yaml(read(DOCUMENT))) == formatted(DOCUMENT)
