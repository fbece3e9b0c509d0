"""Drives as the hypervisors' own tools make them (the images say which), and damaged ones."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from homeport.sources.platforms.fat import Fat
from homeport.sources.platforms.iso9660 import Damaged, Iso9660

DATA = Path(__file__).parents[2] / "data"
CASES = DATA / "platforms"
NETWORK_CONFIG = ("network-config", CASES / "proxmoxve-static-and-slaac/metadata/network-config")
NETWORK_DATA = ("openstack/latest/network_data.json",
                CASES / "openstack-bond-vlan-dhcpv6/metadata/openstack/latest/network_data.json")
LIMIT = 1 << 19


def image(name: str) -> bytes:
    return lzma.decompress((DATA / "drives" / f"{name}.xz").read_bytes())


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, length: data[offset:offset + length]


def opened(name: str, data: bytes | None = None) -> Iso9660 | Fat:
    kind = Iso9660 if name.endswith(".iso") else Fat
    return kind(reader(image(name) if data is None else data))


@pytest.mark.parametrize(("name", "there"), [
    ("proxmox-rock-ridge.iso", NETWORK_CONFIG),  # genisoimage -R
    ("cloud-localds-joliet-rock.iso", NETWORK_CONFIG),  # genisoimage -J -r
    ("kubevirt.iso", NETWORK_DATA),  # xorrisofs -J -r, a folder of more than one sector
    ("joliet-only.iso", NETWORK_DATA),
    ("fat12.img", NETWORK_CONFIG),  # mkfs.vfat, a floppy
    ("fat16.img", NETWORK_DATA),  # a folder of more than one cluster
    ("fat32.img", NETWORK_DATA),
])
def test_files_are_found_and_whole(name: str, there: tuple[str, Path]) -> None:
    path, original = there
    drive = opened(name)
    assert drive.read(path, LIMIT) == original.read_bytes()
    assert drive.read(path.upper(), LIMIT) == original.read_bytes()
    assert drive.read("user-data", LIMIT) is None
    assert drive.read(f"{path}/deeper", LIMIT) is None
    with pytest.raises(Damaged):
        drive.read(path, 100)


@pytest.mark.parametrize("name", ["kubevirt.iso", "fat16.img"])
def test_a_folder_is_no_file(name: str) -> None:
    with pytest.raises(Damaged):
        opened(name).read("openstack/latest", LIMIT)


@pytest.mark.parametrize("name", ["proxmox-rock-ridge.iso", "kubevirt.iso", "fat12.img"])
def test_a_damaged_image_is_said_to_be_one(name: str) -> None:
    """Cut short anywhere, or with any byte of its structures changed, it never does anything but fail."""
    whole = image(name)
    structures = range(16 * 2048, 30 * 2048, 37) if name.endswith(".iso") else range(0, 20_000, 37)
    for at in structures:
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:]):
            try:
                opened(name, data).read(NETWORK_CONFIG[0], LIMIT)
            except Damaged:
                continue


def test_a_chain_that_bites_its_tail_ends() -> None:
    """In every entry of the table the number of its own cluster; the size says where it ends all the same."""
    whole = bytearray(image("fat16.img"))
    table = int.from_bytes(whole[14:16], "little") * 512
    for cluster in range(2, 100):
        whole[table + 2 * cluster:table + 2 * cluster + 2] = cluster.to_bytes(2, "little")
    data = opened("fat16.img", bytes(whole)).read(NETWORK_CONFIG[0], LIMIT)
    assert data is not None and len(data) == len(NETWORK_CONFIG[1].read_bytes())


@pytest.mark.parametrize("data", [b"", bytes(1 << 16), b"\xff" * (1 << 16)])
def test_something_else(data: bytes) -> None:
    for kind in (Iso9660, Fat):
        with pytest.raises(Damaged):
            kind(reader(data))
