"""ext2, ext3 and ext4 images as mke2fs makes them, and as nobody does."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from homeport.sources.platforms.ext import Ext
from homeport.sources.platforms.iso9660 import Damaged

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
    return Ext(lambda offset, length: data[offset:offset + length])


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
