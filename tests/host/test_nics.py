"""Network cards of a real kernel in a namespace of the test's own, and of a sysfs made up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import homeport
from homeport.core.facts import Nic
from homeport.host.nics import read_nics, wait_for

AGENT = str(Path(homeport.__file__).parents[1])
MAC = "52:54:00:12:34:56"

in_a_namespace = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"),
    reason="needs root, unshare and ip for a network namespace")


def run_in_namespace(setup: str, code: str) -> Any:
    """What `code` prints as JSON, run among the links that `setup` (shell) makes; skips if the kernel can't."""
    script = f"mount -t sysfs sysfs /sys && {setup} && exec {sys.executable} -c \"$CODE\""
    run = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join((AGENT, *sys.path)), "CODE": code})
    if any(text in run.stderr for text in ("Unknown device type", "not supported", "Operation not permitted")):
        pytest.skip(f"this kernel does not make such links: {run.stderr.strip()}")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


READ = """
import json
from dataclasses import asdict
from homeport.host.nics import read_nics
print(json.dumps({nic.name: asdict(nic) for nic in read_nics()}))
"""


@in_a_namespace
def test_links_of_a_kernel() -> None:
    found = run_in_namespace(
        f"ip link add v0 address {MAC} type veth peer name v1 && ip link add br0 type bridge && "
        f"ip link add link v1 name m0 address 02:00:00:00:00:01 type macvlan && ip link set v0 master br0 && "
        f"ip link set v0 up && ip link set v1 up", READ)
    assert set(found) == {"lo", "v0", "v1", "br0", "m0"}
    assert {name: nic["kind"] for name, nic in found.items()} == {
        "lo": "loopback", "v0": "veth", "v1": "veth", "br0": "bridge", "m0": "macvlan"}
    assert all(nic["virtual"] and not nic["permanent_mac"] and not nic["pci"] for nic in found.values())
    assert (found["v0"]["mac"], found["v0"]["addr_assign_type"]) == (MAC, 3)
    assert found["v1"]["addr_assign_type"] == 1  # nobody said which: random
    assert found["v0"]["carrier"] is True
    assert found["br0"]["carrier"] is None  # down
    assert found["lo"]["mac"] == ""


@in_a_namespace
def test_sysfs_of_another_namespace_is_not_believed() -> None:
    """Without its own sysfs a namespace shows the host's: names may be the same, the links are not."""
    found = run_in_namespace("umount /sys && ip link add v0 type veth peer name v1", READ)
    assert set(found) == {"lo", "v0", "v1"}
    assert found["v0"]["addr_assign_type"] is None
    assert found["v0"]["virtual"] is True


@in_a_namespace
def test_waiting_ends_with_the_event() -> None:
    """The link comes after 0.5 s; polling alone would see it a whole `LOOK_AGAIN` later at best."""
    seconds = run_in_namespace("(sleep 0.5; ip link add late type veth peer name v1) & true", """
import json, time
import homeport.host.nics as nics
nics.LOOK_AGAIN = 60
started = time.monotonic()
found = nics.wait_for(lambda there: any(nic.name == "late" for nic in there), started + 30)
print(json.dumps([time.monotonic() - started, [nic.name for nic in found]]))
""")
    assert "late" in seconds[1]
    assert seconds[0] < 15


@in_a_namespace
def test_a_rename_is_an_event_too() -> None:
    names = run_in_namespace("ip link add v0 type veth peer name v1 && (sleep 0.3; ip link set v0 name wan) & true", """
import json, time
import homeport.host.nics as nics
nics.LOOK_AGAIN = 60
nics.wait_for_change(time.monotonic() + 30)
while nics.wait_for_change(time.monotonic() + 30):
    names = [nic.name for nic in nics.read_nics()]
    if "wan" in names:
        break
print(json.dumps(names))
""")
    assert "wan" in names and "v0" not in names


def test_waiting_ends_with_the_deadline() -> None:
    started = time.monotonic()
    wait_for(lambda nics: False, started + 0.2)
    assert 0.2 <= time.monotonic() - started < 10


def test_what_is_there_already_is_not_waited_for() -> None:
    assert any(nic.name == "lo" for nic in wait_for(lambda nics: True, 0))


# -- a made-up sysfs ------------------------------------------------------------------------------------------

def add(root: Path, name: str, device: str, driver: str = "", **attributes: str) -> None:
    """A network device below `device` (a path in /sys/devices), with a driver bound if it is one."""
    at = root / "sys/devices" / device / "net" / name
    at.mkdir(parents=True)
    for attribute, text in {"type": "1", "flags": "0x1003", "carrier": "1", "uevent": "", **attributes}.items():
        file = at / attribute.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text + "\n")
    if not device.startswith("virtual"):
        (at / "device").symlink_to(root / "sys/devices" / device)
        (root / f"sys/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        (root / "sys/devices" / device / "driver").symlink_to(root / f"sys/drivers/{driver}")
    (root / "sys/class/net").mkdir(parents=True, exist_ok=True)
    (root / "sys/class/net" / name).symlink_to(at)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    add(tmp_path, "eth0", "pci0000:00/0000:00:03.0/virtio0", "virtio_net", ifindex="2", address=MAC,
        addr_assign_type="0")
    add(tmp_path, "eth1", "pci0000:00/0000:00:1c.0/0000:3b:00.1", "ixgbe", ifindex="3", address=MAC,
        addr_assign_type="3", bonding_slave__perm_hwaddr="52:54:00:12:34:57")
    add(tmp_path, "usb0", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0", "cdc_ether", ifindex="4",
        address="02:00:00:00:00:01", addr_assign_type="0", flags="0x1002")
    add(tmp_path, "bond0", "virtual", ifindex="5", address=MAC, addr_assign_type="2", uevent="DEVTYPE=bond")
    add(tmp_path, "lo", "virtual", ifindex="1", address="00:00:00:00:00:00", type="772", addr_assign_type="0")
    (tmp_path / "sys/class/net/bonding_masters").write_text("bond0\n")
    return tmp_path


def test_a_sysfs(root: Path) -> None:
    assert read_nics(root) == (
        Nic("lo", 1, kind="loopback", virtual=True, addr_assign_type=0, carrier=True),
        Nic("eth0", 2, MAC, MAC, 0, "0000:00:03.0", "virtio_net", "ethernet", True),
        Nic("eth1", 3, MAC, "52:54:00:12:34:57", 3, "0000:3b:00.1", "ixgbe", "ethernet", True),
        # a USB card has no PCI address of its own, and a link that is down no carrier
        Nic("usb0", 4, "02:00:00:00:00:01", "02:00:00:00:00:01", 0, "", "cdc_ether", "ethernet", None, usb=True),
        Nic("bond0", 5, MAC, "", 2, kind="bond", carrier=True, virtual=True))


def test_a_card_that_udev_may_still_rename_is_not_there_yet(root: Path) -> None:
    (root / "run/udev/data").mkdir(parents=True)
    (root / "run/udev/control").touch()
    (root / "run/udev/data/n2").touch()
    assert [nic.name for nic in read_nics(root)] == ["lo", "eth0", "bond0"]


def test_a_root_without_sysfs(tmp_path: Path) -> None:
    assert read_nics(tmp_path) == ()
