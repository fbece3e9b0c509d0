"""File systems of configuration drives, read without the kernel's help."""

from __future__ import annotations

from contextlib import suppress

from homeport.sources.platforms.ext import Ext
from homeport.sources.platforms.fat import Fat
from homeport.sources.platforms.iso9660 import Damaged, Iso9660

PATHS = ("meta-data", "openstack/latest/network_data.json")
LIMIT = 512 << 10


def _fat() -> bytes:
    """Sixteen sectors: FAT12, one file `META-DATA` by its long name."""
    boot = bytearray(512)
    boot[11:13], boot[13], boot[14:16], boot[16] = b"\0\2", 1, b"\1\0", 1
    boot[17:19], boot[19:21], boot[22:24], boot[510:] = b"\x10\0", b"\x10\0", b"\1\0", b"\x55\xaa"
    table = b"\xf8\xff\xff\xff\x0f\0".ljust(512, b"\0")
    first, second = "meta-".encode("utf-16-le"), "data\0\uffff".encode("utf-16-le")
    long = b"\x41" + first + b"\x0f\0\0" + second + b"\0\0\xff\xff\xff\xff"
    short = b"META-D~1   \x20" + bytes(14) + b"\2\0" + b"\3\0\0\0"
    return bytes(boot) + table + (long + short).ljust(512, b"\0") + b"abc".ljust(512, b"\0")


def _iso() -> bytes:
    """A primary volume descriptor whose root folder is the sector behind it."""
    root = b"\x22\0" + b"\x12\0\0\0\0\0\0\x12" + b"\0\x08\0\0\0\0\x08\0" + bytes(7) + b"\2" + bytes(6) + b"\1\0"
    volume = (b"\1CD001\1\0".ljust(156, b"\0") + root).ljust(2048, b"\0")
    file = b"\x2c\0" + b"\x13\0\0\0\0\0\0\x13" + b"\3\0\0\0\0\0\0\3" + bytes(14) + b"\x0bMETA-DATA;1"
    return volume + b"\xffCD001\1".ljust(2048, b"\0") + (root + file).ljust(2048, b"\0") + b"abc"


def _ext() -> bytes:
    """ext2 of seven blocks: superblock, descriptors, two of inodes, the root folder, the file."""
    super_block = bytearray(1024)
    for at, value in ((0, 16), (4, 7), (20, 1), (24, 0), (40, 16)):
        super_block[at:at + 4] = value.to_bytes(4, "little")
    super_block[56:58] = b"\x53\xef"
    descriptors = (bytes(8) + b"\3\0\0\0").ljust(1024, b"\0")

    def inode(mode: int, size: int, block: int) -> bytes:
        return (mode.to_bytes(2, "little") + b"\0\0" + size.to_bytes(4, "little")).ljust(40, b"\0") + (
            block.to_bytes(4, "little").ljust(88, b"\0"))
    inodes = bytes(128) + inode(0x41ED, 1024, 5) + bytes(128 * 8) + inode(0x81A4, 3, 6)
    entry = b"\x0b\0\0\0" + (1024).to_bytes(2, "little") + b"\x09\1meta-data"
    return b"".join((bytes(1024), bytes(super_block), descriptors, inodes.ljust(2048, b"\0"),
                     entry.ljust(1024, b"\0"), b"abc".ljust(1024, b"\0")))


SEEDS = (_fat(), _iso(), _ext())
WORDS = (b"\x55\xaa", b"\1CD001\1", b"\2CD001\1", b"\xffCD001\1", b"%/E", b"META-DATA;1", b"\x0f\0\0",
         b"\x53\xef", b"\x0a\xf3\1\0", b"\x09\1meta-data", b"NM\x0e\1\0meta-data", b"META-D~1   ", b"\xff\x0f\0")


def check(data: bytes) -> None:
    # An ISO image begins with sixteen sectors that say nothing.
    for kind, skipped in ((Fat, 0), (Iso9660, 16 * 2048), (Ext, 0)):
        def read_at(offset: int, length: int, skipped: int = skipped) -> bytes:
            assert offset >= 0 and 0 <= length <= 2 << 20, (offset, length)
            return data[max(0, offset - skipped):][:length]

        for path in PATHS:
            with suppress(Damaged):
                found = kind(read_at).read(path, LIMIT)
                assert found is None or len(found) <= LIMIT
