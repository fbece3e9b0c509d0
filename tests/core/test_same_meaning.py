"""A document means for us what it means for nmstatectl, and what it accepts we do not refuse.

Documents of nmstate's, changed at random (by a fixed seed), are read by `nmstatectl format` as they are
and as what we hand on.  Longer runs of this found `ovs-db` values and sections left empty; 7 500
changed copies of nmstate's own examples are read alike.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess

import pytest

from homeport.core.document import parse_document
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError

DOCUMENT = """\
---
description: a page with a little of everything
hostname:
  config: node1
dns-resolver:
  config:
    search: [example.com]
    server:
    - 192.0.2.1
    - 2001:db8::1
routes:
  config:
  - destination: 0.0.0.0/0
    next-hop-interface: eth1
    next-hop-address: 192.0.2.1
    metric: 150
    table-id: 254
route-rules:
  config:
  - ip-from: 192.0.2.0/24
    priority: 1000
    route-table: 50
interfaces:
- name: eth1
  type: ethernet
  state: up
  mtu: 1500
  mac-address: 52:54:00:12:34:56
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 192.0.2.10
      prefix-length: 24
- name: bond0
  type: bond
  link-aggregation:
    mode: active-backup
    options:
      miimon: 100
    port: [eth2, eth3]
ovs-db:
  other_config:
    dpdk-init: a
"""
WORDS = [
    "yes", "on", "~", "null", "", "0x10", "012", "0o7", "1e3", "1_000", "-1", "+5", ".5", "true", "TRUE",
    "12:34:56", "2024-01-01", "'150'", '"a\\u0041"', "[]", "{}", "[1, x]", "{a: 1}", "|\n      text", "!!str 5",
    "!!int '5'", "&a x", "eth1", "100", "é", "a # b", "a\u00a0b",
]  # fmt: skip
# What nmstatectl lets pass and we refuse on purpose: it silently takes one of two, ignores, or knows tags.
ON_PURPOSE = ("each key once", "a value without tag", "does not merge")


def nmstatectl() -> str:
    found = os.environ.get("NMSTATECTL") or shutil.which("nmstatectl")
    if not found:
        pytest.skip("no nmstatectl on PATH or in $NMSTATECTL to compare with")
    return found


def changed(document: str, chance: random.Random) -> str:
    """`document` with a value replaced, or a line left out, doubled or indented otherwise."""
    lines = document.splitlines()
    at = chance.randrange(1, len(lines))
    line = lines[at]
    head, colon, _ = line.rpartition(": ")
    how = chance.randrange(10)
    if how < 7 and colon:
        lines[at] = head + colon + chance.choice(WORDS)
    elif how < 8:
        del lines[at]
    elif how < 9:
        lines.insert(at, line)
    else:
        lines[at] = " " + line
    return "\n".join(lines) + "\n"


def formatted(document: str) -> str | None:
    done = subprocess.run([nmstatectl(), "-q", "format", "-"], input=document.encode(), capture_output=True)
    return done.stdout.decode() if done.returncode == 0 else None


@pytest.mark.parametrize("seed", range(10))
def test_same_meaning(seed: int) -> None:
    chance = random.Random(seed)
    accepted = 0
    for _ in range(100):
        document = changed(DOCUMENT, chance)
        theirs = formatted(document)
        if theirs is None:
            continue
        accepted += 1
        try:
            ours = render_yaml(parse_document(document.encode()).config)
        except DocumentError as error:
            assert any(reason in str(error) for reason in ON_PURPOSE), document
            continue
        assert formatted(ours) == theirs, document
    assert accepted > 15, "the changes are too rough to show anything"
