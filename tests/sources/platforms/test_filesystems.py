"""Drives as the hypervisors' own tools make them (the images say which), and damaged ones."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from homeport.sources.platforms.fat import Fat, _entries
from homeport.sources.platforms.image import Damaged, Image
from homeport.sources.platforms.iso9660 import Iso9660

DATA = Path(__file__).parents[2] / "data"
CASES = DATA / "platforms"
NETWORK_CONFIG = ("network-config", CASES / "proxmoxve-static-and-slaac/metadata/network-config")
NETWORK_DATA = ("openstack/latest/network_data.json",
                CASES / "openstack-bond-vlan-dhcpv6/metadata/openstack/latest/network_data.json")
LIMIT = 1 << 19


def image(name: str) -> bytes:
    return lzma.decompress((DATA / "drives" / f"{name}.xz").read_bytes())


def reader(data: bytes) -> Image:
    return Image(lambda offset, length: data[offset:offset + length])


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


@pytest.mark.parametrize("name", ["kubevirt.iso", "joliet-only.iso", "fat12.img", "fat16.img", "fat32.img"])
def test_a_folder_is_listed_once(name: str) -> None:
    """Whoever asks for two dozen names must not read two dozen times what a stranger made large."""
    drive = opened(name)
    assert drive.read("absent", LIMIT) is None
    reads = drive.image.reads
    assert reads
    assert [drive.read(f"absent-{number}", LIMIT) for number in range(30)] == [None] * 30
    assert drive.image.reads == reads


def long_entries(name: str, *, marked: bool = True) -> bytes:
    """The entries of a FAT folder for a long name: pieces in reverse order, and what they are for.

    A name that fills its pieces has no end of its own.
    """
    units = (name + "\0" * (len(name) % 13 > 0)).encode("utf-16-le")
    pieces = [units[at:at + 26].ljust(26, b"\xff") for at in range(0, len(units), 26)]
    return b"".join(bytes([number + (0x40 if marked and number == len(pieces) else 0)]) + piece[:10] + b"\x0f\0\0"
                    + piece[10:22] + b"\0\0" + piece[22:]
                    for number, piece in reversed(list(enumerate(pieces, 1)))) + b"SHORT~1    \x20".ljust(32, b"\0")


def test_a_character_in_two_pieces_of_a_name() -> None:
    """UTF-16 has two units for it, and a piece has thirteen."""
    (found,) = _entries(long_entries("twelve-chars\N{ROCKET}.yaml"))
    assert found[0] == "twelve-chars\N{ROCKET}.yaml"


def test_pieces_of_a_name_that_has_no_entry() -> None:
    """A system that knows short names only has deleted it and left them."""
    orphans = long_entries("an-old-name-that-is-gone.yaml")[:-32]
    (found,) = _entries(orphans + long_entries("homeport.yaml"))
    assert found[0] == "homeport.yaml"


def test_a_name_with_thousands_of_pieces() -> None:
    """No name has more than 255 characters: what is kept of it is no longer than what twenty pieces hold."""
    (found,) = _entries(long_entries("x" * 3000, marked=False))
    assert len(found[0]) <= 20 * 13


@pytest.mark.parametrize("data", [b"", bytes(1 << 16), b"\xff" * (1 << 16)])
def test_something_else(data: bytes) -> None:
    for kind in (Iso9660, Fat):
        with pytest.raises(Damaged):
            kind(reader(data))
