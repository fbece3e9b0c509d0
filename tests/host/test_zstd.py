"""zstd by its library: whole, in several frames, damaged, hostile."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from homeport.host import zstd

LIMIT = 1 << 19
TEXT = b"interfaces: []\n" * 20


def pack(data: bytes, *options: str) -> bytes:
    if not shutil.which("zstd"):
        pytest.skip("no zstd")
    return subprocess.run(["zstd", "-c", *options], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("data", [b"", b"x", TEXT, random.Random(1).randbytes(300_000), b"x" * LIMIT])
@pytest.mark.parametrize("options", [(), ("-19", "--no-check"), ("--ultra", "-22")])
def test_unpacked(data: bytes, options: tuple[str, ...]) -> None:
    assert zstd.unpack(pack(data, *options), LIMIT) == data


def test_several_frames() -> None:
    """One after the other, with one to be skipped (RFC 8878, 3.1.2)."""
    skipped = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    assert zstd.unpack(pack(b"a") + skipped + pack(b"") + pack(b"b"), LIMIT) == b"ab"


def test_no_more_than_the_limit() -> None:
    found = zstd.unpack(pack(b"x" * (200 << 20)), LIMIT)
    assert LIMIT < len(found) <= LIMIT + zstd.PIECE


def test_cut_off_anywhere() -> None:
    data = pack(TEXT)
    for length in range(4, len(data)):
        with pytest.raises(zstd.Damaged):
            zstd.unpack(data[:length], LIMIT)


def test_damaged_anywhere() -> None:
    """Its checksum finds what its form does not."""
    data, chance = pack(random.Random(2).randbytes(100) * 9), random.Random(3)
    for place in range(len(data)):
        wrong = bytearray(data)
        wrong[place] ^= 1 << chance.randrange(8)
        try:
            found = zstd.unpack(bytes(wrong), LIMIT)
        except zstd.Damaged:
            continue
        assert found == random.Random(2).randbytes(100) * 9  # a bit that says nothing


def test_a_window_that_takes_too_much_memory() -> None:
    """No more than 128 MiB, whatever it asks for."""
    data = pack(TEXT, "--long=28")
    with pytest.raises(zstd.Damaged, match="memory"):
        zstd.unpack(data, LIMIT)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd, "LIBRARY", "libnone.so.1")
    with pytest.raises(OSError, match="libnone"):
        zstd.unpack(b"", LIMIT)
