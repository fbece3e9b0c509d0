"""What the root file system stands on, by mountinfo, sysfs and the kernel line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from homeport.host import rootfs
from homeport.host.rootfs import NetworkRoot, network_root

AGENT = Path(__file__).resolve().parents[2] / "agent"
LOCAL = "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
NFS = ("24 1 0:21 / / rw,relatime shared:1 - nfs4 192.0.2.1:/root rw,vers=4.2,proto=tcp,clientaddr=192.0.2.9,"
       "local_lock=none,addr=192.0.2.1\n")


def mounted(root: Path, text: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(text)
    return root


@pytest.mark.parametrize(("mountinfo", "cmdline", "expected"), [
    (LOCAL, "root=UUID=12", None),
    (LOCAL, "root=UUID=12 rd.neednet=1", None),
    (NFS, "", NetworkRoot("nfs4 192.0.2.1:/root", ("192.0.2.1",))),
    # In the initramfs it is at /sysroot; a share elsewhere carries no root.
    (NFS.replace(" / / ", " / /sysroot "), "", NetworkRoot("nfs4 192.0.2.1:/root", ("192.0.2.1",))),
    (LOCAL + NFS.replace(" / / ", " / /home "), "", None),
    (LOCAL + NFS.replace(" / / ", " / /usr "), "", NetworkRoot("nfs4 192.0.2.1:/root", ("192.0.2.1",))),
    # Below an overlay, as live images have it.
    ("1 0 0:5 / / rw - overlay overlay rw\n" + NFS.replace(" / / ", " / /run/rootfsbase "), "",
     NetworkRoot("nfs4 192.0.2.1:/root", ("192.0.2.1",))),
    ("24 1 0:21 / / rw - cifs //192.0.2.3/share rw\n", "", NetworkRoot("cifs //192.0.2.3/share", ("192.0.2.3",))),
    # Nothing mounted says so, the kernel line does.
    (LOCAL, "root=nfs:192.0.2.7:/root", NetworkRoot("root=nfs:192.0.2.7:/root", ("192.0.2.7",))),
    ("", "netroot=iscsi:192.0.2.7::::iqn.x", NetworkRoot("netroot=iscsi:192.0.2.7::::iqn.x", ("192.0.2.7",))),
    ("nonsense\n\n24 1\n", "", None),
])
def test_network_root(tmp_path: Path, mountinfo: str, cmdline: str, expected: NetworkRoot | None) -> None:
    assert network_root(cmdline, mounted(tmp_path, mountinfo)) == expected


@pytest.mark.parametrize("session", ["", "sys/class/iscsi_session/session1", "sys/block/nbd0/pid"])
def test_a_promise_and_a_session(tmp_path: Path, session: str) -> None:
    """What only the kernel line says is a root on the network once something is up that it may speak of."""
    (tmp_path / session).mkdir(parents=True, exist_ok=True)
    cmdline = "netroot=iscsi:192.0.2.7::::iqn.x"
    found = network_root(cmdline, mounted(tmp_path, ""), promised=False)
    assert found == (NetworkRoot(cmdline, ("192.0.2.7",)) if session else None)


def test_iscsi_below_lvm(tmp_path: Path) -> None:
    """Device mapper over a SCSI disk of a session; its server is in the connection."""
    root = mounted(tmp_path, "24 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n")
    disk = root / "sys/devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sda"
    mapper = root / "sys/devices/virtual/block/dm-0"
    for folder in (disk, mapper / "slaves", root / "sys/dev/block", root / "sys/class/iscsi_connection/connection1:0"):
        folder.mkdir(parents=True)
    (mapper / "slaves/sda").symlink_to(disk)
    (root / "sys/dev/block/253:0").symlink_to(mapper)
    (root / "sys/class/iscsi_connection/connection1:0/persistent_address").write_text("192.0.2.20\n")
    assert network_root("", root) == NetworkRoot("iscsi /dev/mapper/vg-root", ("192.0.2.20",))


@pytest.mark.parametrize(("place", "expected"), [
    ("platform/host3/session1/target3:0:0/3:0:0:1/block/sda", NetworkRoot("iscsi /dev/sda")),
    ("pci0000:00/net/eth0/ctlr_0/host7/rport-7:0-0/target7:0:0/7:0:0:1/block/sda", NetworkRoot("fcoe /dev/sda")),
    ("pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda", None),
])
def test_btrfs(tmp_path: Path, place: str, expected: NetworkRoot | None) -> None:
    """Its number is its own and no device's: what counts is the device that it names."""
    root = mounted(tmp_path, "24 1 0:31 /@ / rw - btrfs /dev/sda rw\n")
    disk = root / "sys/devices" / place
    for folder in (disk, root / "sys/class/block"):
        folder.mkdir(parents=True)
    (root / "sys/class/block/sda").symlink_to(disk)
    assert network_root("", root) == expected


@pytest.mark.parametrize(("path", "cmdline", "table"), [
    ("sys/firmware/ibft", "", "/sys/firmware/ibft"),
    ("sys/firmware/ibft", "rd.iscsi.ibft=0", ""),
    ("sys/firmware/acpi/tables/NBFT", "", "/sys/firmware/acpi/tables/NBFT"),
    ("sys/firmware/acpi/tables/NBFT2", "rd.nvmf.nonbft=0", "/sys/firmware/acpi/tables/NBFT2"),
    ("sys/firmware/acpi/tables/NBFT", "rd.nvmf.nonbft", ""),
    ("sys/firmware/acpi/tables/FACP", "", ""),
    ("sys/firmware", "", ""),
])
def test_tables_of_the_firmware(tmp_path: Path, path: str, cmdline: str, table: str) -> None:
    (tmp_path / path).mkdir(parents=True)
    assert rootfs.firmware_table(cmdline, tmp_path) == table


def test_a_table_of_the_firmware_and_a_session(tmp_path: Path) -> None:
    """A table alone may be of another boot's; with a session, it is what the root stands on."""
    root = mounted(tmp_path, LOCAL)
    (root / "sys/firmware/ibft").mkdir(parents=True)
    assert network_root("", root) is None
    (root / "sys/class/iscsi_session/session1").mkdir(parents=True)
    assert network_root("", root) == NetworkRoot("/sys/firmware/ibft")


def test_a_local_disk_below_lvm(tmp_path: Path) -> None:
    root = mounted(tmp_path, "24 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n")
    disk, mapper = root / "sys/devices/pci0000:00/ata1/host0/block/sda", root / "sys/devices/virtual/block/dm-0"
    for folder in (disk, mapper / "slaves", root / "sys/dev/block"):
        folder.mkdir(parents=True)
    (mapper / "slaves/sda").symlink_to(disk)
    (mapper / "slaves/loop").symlink_to(mapper)  # a loop in the tree ends nothing
    (root / "sys/dev/block/253:0").symlink_to(mapper)
    assert network_root("", root) is None


CARDS = """
from pathlib import Path
from homeport.host.rootfs import NetworkRoot, cards_under
for servers in (["192.0.2.1"], ["198.51.100.9"], ["203.0.113.1"], []):
    print(*sorted(cards_under(NetworkRoot("x", tuple(servers)), Path("/"))))
"""


def test_cards(tmp_path: Path) -> None:
    """The one that leads to the server, with what it is made of; all that have an address where nobody knows."""
    script = f"""
        ip link set lo up
        ip link add left type veth peer name other; ip link set left up; ip link set other up
        ip link add br0 type bridge; ip link set left master br0; ip link set br0 up
        ip address add 192.0.2.9/24 dev br0
        ip link add right type veth peer name more; ip link set right up; ip link set more up
        ip address add 198.51.100.1/24 dev right
        mount -t sysfs sysfs /sys
        {sys.executable} -c '{CARDS}'"""
    done = subprocess.run(["unshare", "--net", "--mount", "sh", "-ec", script], text=True, capture_output=True,
                          env={"PYTHONPATH": str(AGENT), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, check=False)
    if "not permitted" in done.stderr:
        pytest.skip("needs root, for namespaces")
    assert done.stdout.splitlines() == ["br0 left", "right", "", "br0 left right"], done.stderr


def test_addresses_of_mount_options() -> None:
    found = rootfs.ADDRESS.findall("rw,clientaddr=192.0.2.9,addr=2001:db8::1,mountaddr=192.0.2.8")
    assert found == ["2001:db8::1"]
