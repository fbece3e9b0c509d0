"""A document of the largest size costs little, whatever is in it: processor time and memory, each in its own process.

On a quiet machine every check here takes less than a second; 18 MiB are Python with what it has imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from homeport.core.body import MAX_BYTES

AGENT = Path(__file__).parents[2] / "agent"
SECONDS = 5.0  # this machine may be busy; what grows faster than the document takes minutes
MEBIBYTES = 50
# VmHWM, and not ru_maxrss: that one begins with what the parent had when it forked.
MEASURE = """
import sys, time
from homeport.core.document import check_document
data = sys.stdin.buffer.read()
begin = time.process_time()
findings = check_document(data)
seconds = time.process_time() - begin
kibibytes = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(kibibytes) / 1024, len(findings.complaints))
"""
ETHERNET = "interfaces:\n- name: e\n  type: ethernet\n  ipv4:\n    enabled: true\n    address:"
BOND = "interfaces:\n- {name: b, type: bond, link-aggregation: {mode: active-backup, port: ["


def rows(head: str, row: Callable[[int], str], tail: str = "") -> str:
    """As many rows as fit."""
    found, size = [head, tail], len(head) + len(tail)
    for number in range(MAX_BYTES):
        text = row(number)
        size += len(text)
        if size > MAX_BYTES:
            break
        found.insert(-1, text)
    return "".join(found)


HUGE = {
    "interfaces": rows("interfaces:\n", lambda i: f"- {{name: e{i}, type: ethernet, ipv4: {{enabled: true, "
                                                  f"dhcp: true}}}}\n"),
    "routes": rows(f"{ETHERNET} [{{ip: 10.0.0.1, prefix-length: 8}}]\nroutes:\n  config:\n",
                   lambda i: f"  - {{destination: 10.{i >> 8 & 255}.{i & 255}.0/24, next-hop-interface: e, "
                             f"next-hop-address: 10.0.0.2}}\n"),
    "ports": rows(BOND, lambda i: f"p{i},", "x]}}"),
    "machines": rows("machines:\n", lambda i: f"- {{match: {{mac: 'x{i}'}}, config: {{interfaces: [1]}}}}\n"),
    "placeholders": rows("ipAddresses: {a: 192.0.2.1}\nconfig:\n  interfaces:\n",
                         lambda i: "  - {name: '{b}', type: '{c}'}\n"),
    "wrong interfaces": rows("interfaces: [", lambda i: "1,", "1]"),
    "empty interfaces": rows("interfaces: [", lambda i: "{},", "{}]"),
    "unknown keys": rows("interfaces:\n", lambda i: f"- {{namee: e{i}, typo: ethernet, mtuu: 5}}\n"),
    "wrong addresses": rows(f"{ETHERNET} [", lambda i: "1,", "1]"),
    "wrong rules": rows("route-rules:\n  config: [", lambda i: "{a: 1},", "{}]"),
    "wrong servers": rows("dns-resolver:\n  config:\n    server: [", lambda i: "1,", "1]"),
    "long names": rows("interfaces:\n", lambda i: f"- {{name: a-very-long-name-{i}, type: dummy}}\n"),
    "keyfiles": rows("configurator: nmconnections\nconfig:\n", lambda i: f"  k{i}: x\n"),
    "keyfile lines": rows("configurator: nmconnections\nconfig:\n  a: |\n    [connection]\n",
                          lambda i: f"    a{i}=\\x\n"),
    "raw JSON": rows("config:\n  interfaces: {object: null, raw: '[", lambda i: '"\\u0001",', "1]'}"),
}  # fmt: skip


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_document_costs_little(name: str) -> None:
    data = HUGE[name].encode()
    assert MAX_BYTES - 200 < len(data) <= MAX_BYTES
    result = subprocess.run([sys.executable, "-c", MEASURE], input=data, capture_output=True, check=True,
                            env=os.environ | {"PYTHONPATH": str(AGENT)})
    seconds, mebibytes, complaints = map(float, result.stdout.split())
    assert seconds < SECONDS
    assert mebibytes < MEBIBYTES
    assert complaints <= 1001
