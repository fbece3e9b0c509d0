"""A card that is put down has no address left for anybody to adopt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGENT = Path(__file__).resolve().parents[2] / "agent"


def test_put_down_and_emptied() -> None:
    script = f"""
        ip link add eth0 type veth peer name far; ip link set far up; ip link set eth0 up
        ip address add 192.0.2.5/24 dev eth0; ip address add 192.0.2.6/24 dev eth0
        ip address add 2001:db8::5/64 dev eth0 nodad; ip route add default via 192.0.2.1
        {sys.executable} -c 'from homeport.host.linkdown import take_down; take_down("eth0"); take_down("absent")'
        ip -oneline address show dev eth0; ip route; ip -oneline link show up"""
    done = subprocess.run(["unshare", "--net", "sh", "-ec", script], text=True, capture_output=True, check=False,
                          env={"PYTHONPATH": str(AGENT), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    if "not permitted" in done.stderr:
        pytest.skip("needs root, for namespaces")
    assert done.returncode == 0, done.stderr
    left = done.stdout.splitlines()
    assert len(left) == 1 and ": far@" in left[0], left
