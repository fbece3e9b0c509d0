"""What is missing on a machine, asked of the real kernel; and nothing is made on the way."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from homeport.host import preflight

BOND = {"interfaces": [
    {"name": "bond0", "type": "bond", "state": "up", "link-aggregation": {"mode": "802.3ad", "port": ["eth0"]}}]}
VLAN = {"interfaces": [
    {"name": "eth0.7", "type": "vlan", "state": "up", "vlan": {"base-iface": "eth0", "id": 7}}]}
OVS = {"interfaces": [{"name": "br0", "type": "ovs-bridge", "state": "up", "bridge": {"port": []}}]}
IPVLAN = {"interfaces": [
    {"name": "v0", "type": "ipvlan", "state": "up", "ipvlan": {"base-iface": "eth0", "mode": "l2"}}]}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may ask the kernel for a link")


@needs_root
def test_kernel_knows_what_it_can_make() -> None:
    """`ip` in a network namespace of its own is the judge: both must agree, and no link is left behind."""
    before = set(os.listdir("/sys/class/net"))
    more = {"veth": "peer name probe1", "vxlan": "id 7 dev lo dstport 4789"}
    for kind in ("bond", "bridge", "dummy", "veth", "vxlan", "no-such-kind"):
        argv = f"unshare --net ip link add probe0 type {kind} {more.get(kind, '')}".split()
        made = subprocess.run(argv, capture_output=True, check=False).returncode == 0
        assert preflight.can_make(kind) is made, kind
    assert set(os.listdir("/sys/class/net")) == before


def test_who_may_not_ask_is_not_complained_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError
    monkeypatch.setattr("socket.socket", refused)
    assert preflight.can_make("bond")


def test_base_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "can_make", lambda kind: True)
    assert preflight.missing(VLAN, interfaces={"eth0"}, networkmanager="1.52.1") == []
    (complaint,) = preflight.missing(VLAN, interfaces={"eth1", "eth2"}, networkmanager="1.52.1")
    assert "no interface eth0" in complaint.found
    assert "eth0.7" in complaint.found
    assert "eth1, eth2" in complaint.wanted


def test_module_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "can_make", lambda kind: kind != "bond")
    (complaint,) = preflight.missing(BOND, interfaces={"eth0"}, networkmanager="1.52.1")
    assert "bond0 is of type bond" in complaint.found
    assert "bonding" in complaint.wanted


@pytest.mark.parametrize(("config", "networkmanager", "count"), [
    (IPVLAN, "1.50.3", 1),
    (IPVLAN, "1.52.1", 0),
    (IPVLAN, "1.60", 0),
    (IPVLAN, "unknown", 0),  # what cannot be told is not complained about
])
def test_networkmanager_too_old(config: dict[str, object], networkmanager: str, count: int,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "can_make", lambda kind: True)
    assert len(preflight.missing(config, interfaces={"eth0"}, networkmanager=networkmanager)) == count


def test_plugin_of_networkmanager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "can_make", lambda kind: True)
    (complaint,) = preflight.missing(OVS, interfaces=(), networkmanager="1.52.1", root=tmp_path)
    assert "plugin for ovs" in complaint.found
    plugin = tmp_path / "usr/lib/x86_64-linux-gnu/NetworkManager/1.52.1/libnm-device-plugin-ovs.so"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    assert preflight.missing(OVS, interfaces=(), networkmanager="1.52.1", root=tmp_path) == []
