"""Alternative names that are desired go for a moment; all others stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGENT = Path(__file__).resolve().parents[2] / "agent"
PROGRAM = """
from homeport.host.altnames import make_way
make_way({"interfaces": [
    {"name": "eth0", "alt-names": [
        {"name": "uplink0"}, {"name": "a-name-that-is-longer-than-15"}, {"name": "not-there"}, {"name": "eth0"},
        {"name": "stays", "state": "absent"}, {"name": "of-far"}]},
    {"name": "absent", "alt-names": [{"name": "uplink1"}]}, {"name": "far"}]})
make_way({})
"""


def test_they_make_way() -> None:
    """One that another card has is not this one's to take."""
    script = f"""
        ip link add eth0 type veth peer name far
        for name in uplink0 a-name-that-is-longer-than-15 stays; do ip link property add dev eth0 altname $name; done
        ip link property add dev far altname of-far
        {sys.executable} -c '{PROGRAM}'
        ip link show | sed -n 's/^ *altname //p'"""
    done = subprocess.run(["unshare", "--net", "sh", "-ec", script], text=True, capture_output=True, check=False,
                          env={"PYTHONPATH": str(AGENT), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    if "not permitted" in done.stderr:
        pytest.skip("needs root, for namespaces")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["of-far", "stays"]
