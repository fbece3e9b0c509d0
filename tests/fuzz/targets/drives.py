"""File systems of configuration drives, read without the kernel's help."""

from __future__ import annotations

import errno
import os
import struct
from contextlib import suppress

from homeport.sources.platforms.ext import Ext
from homeport.sources.platforms.fat import Fat
from homeport.sources.platforms.image import Damaged, Image
from homeport.sources.platforms.iso9660 import Iso9660

PATHS = ("meta-data", "openstack/latest/network_data.json")
LIMIT = 512 << 10
BY_EXTENTS = 0x80000  # i_flags


def _fat(before: bytes = b"") -> bytes:
    """FAT12, a cluster is a sector; a file `meta-data` by its long name, in the root folder behind `before`."""
    first, second = "meta-".encode("utf-16-le"), "data\0\uffff".encode("utf-16-le")
    long = b"\x41" + first + b"\x0f\0\0" + second + b"\0\0\xff\xff\xff\xff"
    short = b"META-D~1   \x20" + bytes(14) + b"\2\0" + b"\3\0\0\0"
    root = before + long + short
    root += bytes(-len(root) % 512)
    boot = bytearray(512)
    boot[11:13], boot[13], boot[14:16], boot[16] = b"\0\2", 1, b"\1\0", 1
    boot[17:19], boot[19:21] = (len(root) // 32).to_bytes(2, "little"), (len(root) // 512 + 15).to_bytes(2, "little")
    boot[22:24], boot[510:] = b"\1\0", b"\x55\xaa"
    table = b"\xf8\xff\xff\xff\x0f\0".ljust(512, b"\0")
    return bytes(boot) + table + root + b"abc".ljust(512, b"\0")


def _iso() -> bytes:
    """A primary volume descriptor whose root folder is the sector behind it, and a file that is the descriptor."""
    root = b"\x22\0" + b"\x11\0\0\0\0\0\0\x11" + b"\0\x08\0\0\0\0\x08\0" + bytes(7) + b"\2" + bytes(6) + b"\1\0"
    volume = (b"\1CD001\1\0".ljust(156, b"\0") + root).ljust(2048, b"\0")
    file = b"\x2c\0" + b"\x10\0\0\0\0\0\0\x10" + b"\3\0\0\0\0\0\0\3" + bytes(14) + b"\x0bMETA-DATA;1"
    return volume + (root + file).ljust(2048, b"\0")


def _ext(file: bytes = b"\4".ljust(60, b"\0"), flags: int = 0, *more: bytes) -> bytes:
    """Blocks of 1 KiB from the second on: superblock, descriptor and inodes, the root folder, the file, `more`.

    `file` is the i_block of the file's inode; it is a block map, or what `flags` say.
    """
    super_block = bytearray(1024)
    for at, value in ((0, 16), (4, 5 + len(more)), (20, 1), (24, 0), (40, 16)):
        super_block[at:at + 4] = value.to_bytes(4, "little")
    super_block[56:58] = b"\x53\xef"

    def inode(mode: int, size: int, flags: int, blocks: bytes) -> bytes:
        return struct.pack("<HHI24xI4x", mode, 0, size, flags).ljust(40, b"\0") + blocks.ljust(88, b"\0")
    # What is left free for the first inode, which is none, has the descriptor: the table is the block it is in.
    inodes = (bytes(8) + b"\2\0\0\0").ljust(128, b"\0") + inode(0x41ED, 1024, 0, b"\3") + inode(0x81A4, 3, flags, file)
    entry = b"\3\0\0\0" + (1024).to_bytes(2, "little") + b"\x09\1meta-data"
    return b"".join(block.ljust(1024, b"\0") for block in (bytes(super_block), inodes, entry, b"abc", *more))


def _node(level: int, entries: int, entry: bytes) -> bytes:
    """A node of an extent tree that has the same entry again and again."""
    return struct.pack("<HHHHI", 0xF30A, entries, entries, level, 0) + entry * entries


def _below(block: int) -> bytes:
    return struct.pack("<IIHH", 0, block, 0, 0)


def _ext_in_extents() -> bytes:
    return _ext(_node(0, 1, struct.pack("<IHHI", 0, 1, 0, 4)), BY_EXTENTS)


def _ext_of_many_ways() -> bytes:
    """Two hundred million runs, which are all the same one."""
    return _ext(_node(4, 4, _below(5)), BY_EXTENTS, _node(3, 84, _below(6)), _node(2, 84, _below(7)),
                _node(1, 84, _below(8)), _node(0, 84, struct.pack("<IHHI", 0, 1, 0, 4)))


def _ext_of_64_bits() -> bytes:
    """Its inodes are at the end of 2^64 blocks."""
    image = bytearray(_ext())
    image[96], image[254], image[336:340] = 0x80, 64, b"\xff" * 4
    image[1024 + 40:1024 + 44] = b"\xff" * 4
    return bytes(image)


SEEDS = (_fat(), _iso(), _ext(), _ext_in_extents(), _ext_of_many_ways(), _ext_of_64_bits(),
         _fat((b"\1" + b"x\0" * 5 + b"\x0f\0\0" + b"x\0" * 6 + b"\0\0" + b"x\0" * 2) * 2000))
WORDS = (b"\x55\xaa", b"\1CD001\1", b"\2CD001\1", b"\xffCD001\1", b"%/E", b"META-DATA;1", b"\x0f\0\0",
         b"\x53\xef", b"\x0a\xf3\1\0", b"\x09\1meta-data", b"NM\x0e\1\0meta-data", b"META-D~1   ", b"\xff\x0f\0")


def check(data: bytes) -> None:
    # An ISO image begins with sixteen sectors that say nothing, and an ext one with two.
    for kind, skipped in ((Fat, 0), (Iso9660, 16 * 2048), (Ext, 1024)):
        def read_at(offset: int, length: int, skipped: int = skipped) -> bytes:
            assert 0 <= length <= 2 << 20, length
            return _pread(data, offset, length, skipped)

        for path in PATHS:
            with suppress(Damaged):
                found = kind(Image(read_at)).read(path, LIMIT)
                assert found is None or len(found) <= LIMIT


def _pread(data: bytes, offset: int, length: int, skipped: int) -> bytes:
    """As os.pread does it, with so many zeros before `data`."""
    if not -1 << 63 <= offset < 1 << 63:
        raise OverflowError("Python int too large to convert to C long")
    if offset < 0 or offset + length >= 1 << 63:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    before, start = max(0, min(skipped - offset, length)), max(0, offset - skipped)
    return bytes(before) + data[start:start + length - before]
