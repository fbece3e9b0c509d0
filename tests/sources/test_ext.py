"""ext2, ext3 and ext4 images as mke2fs makes them, and as nobody does."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from homeport.core.identity import Identity
from homeport.errors import DocumentError
from homeport.sources import drive
from homeport.sources.platforms.ext import MOST_PIECES, Ext
from homeport.sources.platforms.image import Damaged, Image

FILES = {"word": b"x", "empty": b"", "Homeport.YAML": b"a: 1\n", "large": bytes(range(256)) * 1400,
         "sub/below.yaml": b"below\n", "grüße.yaml": b"g\n"}
LIMIT = 512 << 10


def make(folder: Path, *options: str, files: dict[str, bytes] | None = None, size: str = "8M") -> bytes:
    if not shutil.which("mke2fs"):
        pytest.skip("no mke2fs")
    content, image = folder / "content", folder / "disk.img"
    for name, data in (FILES if files is None else files).items():
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_bytes(data)
    subprocess.run(["mke2fs", "-q", "-F", *options, "-d", str(content), str(image), size], check=True,
                   capture_output=True)
    return image.read_bytes()


def opened(data: bytes) -> Ext:
    return Ext(Image(lambda offset, length: data[offset:offset + length]))


@pytest.mark.parametrize("options", [
    ("-t", "ext4"), ("-t", "ext3"), ("-t", "ext2"),
    ("-t", "ext4", "-b", "1024"), ("-t", "ext2", "-b", "1024"), ("-t", "ext4", "-b", "4096", "-O", "^64bit"),
    ("-t", "ext2", "-I", "128"), ("-t", "ext4", "-O", "^metadata_csum,^flex_bg"),
], ids=" ".join)
def test_read(tmp_path: Path, options: tuple[str, ...]) -> None:
    found = opened(make(tmp_path, *options))
    for name, data in FILES.items():
        assert found.read(name, LIMIT) == data, name
        assert found.read(name.upper(), LIMIT) == data
    assert found.read("absent", LIMIT) is None
    assert found.read("word/below", LIMIT) is None
    for refused in ("sub", "large"):
        with pytest.raises(Damaged):
            found.read(refused, 1000)


def test_a_folder_is_listed_once(tmp_path: Path) -> None:
    found = opened(make(tmp_path, "-t", "ext4"))
    assert found.read("absent", LIMIT) is None
    reads = found.image.reads
    assert [found.read(f"absent-{number}", LIMIT) for number in range(30)] == [None] * 30
    # The root's inode and its place, each time.
    assert found.image.reads == reads + 30 * 2


def test_a_folder_with_a_hash_tree(tmp_path: Path) -> None:
    """Thousands of names, in many blocks, and a file in pieces."""
    many = {f"{number:04}-{'n' * 100}": b"" for number in range(3000)}
    make(tmp_path, "-t", "ext4", "-N", "4000", files={**many, "homeport.yaml": b"here\n"}, size="32M")
    image = tmp_path / "disk.img"
    subprocess.run(["e2fsck", "-fyD", str(image)], check=False, capture_output=True)
    tree = subprocess.run(["debugfs", "-R", "htree_dump /", str(image)], capture_output=True, text=True, check=False)
    assert "Root node dump" in tree.stdout
    found = opened(image.read_bytes())
    assert found.read("homeport.yaml", LIMIT) == b"here\n"
    assert found.read(f"2999-{'n' * 100}", LIMIT) == b""


@pytest.mark.parametrize("data", [b"", b"\0" * 4096, b"\xff" * 4096])
def test_another_file_system(data: bytes) -> None:
    with pytest.raises(Damaged):
        opened(data)


def test_cut_short(tmp_path: Path) -> None:
    data = make(tmp_path, "-t", "ext4")
    for length in (1500, 2048, 5000, 20_000, 70_000):
        with pytest.raises(Damaged):
            opened(data[:length]).read("large", LIMIT)


@pytest.mark.parametrize("kind", ["ext2", "ext4"])
def test_damaged_at_random(tmp_path: Path, kind: str) -> None:
    """Whatever is wrong with it, it is said or read, soon, and in bounded memory."""
    sound = make(tmp_path, "-t", kind, "-b", "1024", size="2M", files={"homeport.yaml": b"x" * 60_000})
    chance = random.Random(5)
    for _ in range(1500):
        data = bytearray(sound)
        for _ in range(chance.randint(1, 40)):
            # Superblock, descriptors, inodes, folders: all of it near the beginning.
            at = chance.choice((1024 + chance.randrange(400), chance.randrange(len(data) // 4)))
            data[at] = chance.randrange(256)
        try:
            read = opened(bytes(data)).read("homeport.yaml", LIMIT)
        except Damaged:
            continue
        assert read is None or len(read) <= LIMIT


LEVELS, FIRST_NODE, PER_NODE = 4, 2000, 84  # blocks of 1 KiB, near the end of 2 MiB, where nothing else is


def inode_of(data: bytes, size: int) -> int:
    """Where the inode of the file of that size is, if that has extents."""
    return next(found.start() - 4 for found in re.finditer(re.escape(struct.pack("<I", size)), data)
                if data[found.start() + 36:found.start() + 38] == b"\x0a\xf3")


def node(level: int, entries: int, entry: bytes) -> bytes:
    return struct.pack("<HHHHI", 0xF30A, entries, entries, level, 0) + entry * entries


@pytest.mark.parametrize("leaf", [
    struct.pack("<IHHI", 0, 1, 0, FIRST_NODE),  # always the same block of the file
    struct.pack("<IHHI", 0, 0x8001, 0, FIRST_NODE),  # set aside, not written
    b"",  # no run at all
], ids=["the-same", "set-aside", "none"])
def test_extents_that_all_lead_to_the_same(tmp_path: Path, leaf: bytes) -> None:
    """Four levels of nodes, each with all its entries for the same one below: two hundred million runs in 4 KiB."""
    data = bytearray(make(tmp_path, "-t", "ext4", "-b", "1024", size="2M", files={"homeport.yaml": b"x" * 60_000}))
    at = inode_of(bytes(data), 60_000) + 40
    data[at:at + 60] = node(LEVELS, 4, struct.pack("<IIHH", 0, FIRST_NODE, 0, 0))
    for level in range(LEVELS):
        below = struct.pack("<IIHH", 0, FIRST_NODE + LEVELS - level, 0, 0)
        block = (FIRST_NODE + LEVELS - 1 - level) * 1024
        data[block:block + 1024] = node(level, PER_NODE if level or leaf else 0, below if level else leaf).ljust(1024)
    image = Image(lambda offset, length: bytes(data[offset:offset + length]))
    with pytest.raises(Damaged, match="pieces"):
        Ext(image).read("homeport.yaml", LIMIT)
    assert image.reads < MOST_PIECES + 20


def test_what_is_set_aside_behind_the_end(tmp_path: Path) -> None:
    """Runs that begin where the file has ended are not looked at: as fallocate --keep-size leaves them."""
    data = bytearray(make(tmp_path, "-t", "ext4", "-b", "1024", size="2M", files={"homeport.yaml": b"x" * 60_000}))
    at = inode_of(bytes(data), 60_000) + 40
    entries, first = struct.unpack_from("<H", data, at + 2)[0], data[at + 12:at + 24]
    assert entries == 1
    data[at:at + 60] = node(0, 4, bytes(12))
    data[at + 12:at + 60] = first + struct.pack("<IHHI", 59, 1, 0xFFFF, 0xFFFFFFFF) * 3
    assert opened(bytes(data)).read("homeport.yaml", LIMIT) == b"x" * 60_000


def test_a_block_number_of_64_bits(tmp_path: Path) -> None:
    """As the inode table of the first group, on a drive of 2^64 blocks."""
    data = bytearray(make(tmp_path, "-t", "ext4", "-O", "64bit", "-b", "4096"))
    assert struct.unpack_from("<H", data, 1024 + 254) == (64,)
    data[1024 + 336:1024 + 340] = data[4096 + 40:4096 + 44] = b"\xff" * 4
    image = tmp_path / "root/dev/disk/by-label/HOMEPORT"
    image.parent.mkdir(parents=True)
    image.write_bytes(data)
    with pytest.raises(DocumentError, match="beyond the end"):
        drive.fetch(Identity(), root=tmp_path / "root")
