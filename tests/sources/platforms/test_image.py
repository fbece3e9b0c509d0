"""How much a drive can make us read, and from where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.sources.platforms import image
from homeport.sources.platforms.image import Damaged, Image, by_name


def test_a_device(tmp_path: Path) -> None:
    """Through os.pread, which knows no offsets of 64 bits, nor negative ones."""
    file = tmp_path / "drive"
    file.write_bytes(b"0123456789")
    device = os.open(file, os.O_RDONLY)
    try:
        read = Image.of_device(device).read
        assert (read(2, 3), read(10, 0)) == (b"234", b"")
        for offset, length in ((8, 3), (1 << 40, 1), (1 << 63, 1), ((1 << 63) - 1, 1), (1 << 80, 512), (-1, 1)):
            with pytest.raises(Damaged):
                read(offset, length)
    finally:
        os.close(device)


@pytest.mark.parametrize(("length", "reads"), [(0, image.MOST_READS), (1 << 20, image.MOST_BYTES >> 20)])
def test_enough_is_enough(length: int, reads: int) -> None:
    found = Image(lambda offset, length: bytes(length))
    for _ in range(reads):
        found.read(0, length)
    with pytest.raises(Damaged, match="more to read than"):
        found.read(0, length)


def test_a_folder_by_name() -> None:
    assert by_name([("A.yaml", 1), ("a.YAML", 2), ("b", 3)]) == {"a.yaml": 1, "b": 3}
    with pytest.raises(Damaged, match="names"):
        by_name((str(number), number) for number in range(image.MOST_NAMES + 1))
