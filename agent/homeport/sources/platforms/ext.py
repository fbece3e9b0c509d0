"""Files on an ext2, ext3 or ext4 image, read without mounting it (kernel.org, "ext4 Data Structures and Algorithms").

For the same reasons as `iso9660.py`.  Knows extents and block maps, and folders as lists, which those with a hash tree
are too.  Refuses what is encrypted or kept inside an inode.  What only the journal has is not seen: a drive that was
pulled out while it was written may lack its last file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.sources.platforms.image import Damaged, Image, by_name

SUPERBLOCK, MAGIC = 1024, 0xEF53
ROOT = 2  # the inode of "/"
EXTENT_MAGIC, DEEPEST, LARGEST_EXTENT = 0xF30A, 5, 0x8000
COMPRESSION, META_BG, WIDE, INLINE, ENCRYPTED = 0x1, 0x10, 0x80, 0x8000, 0x10000  # s_feature_incompat
UNREADABLE = COMPRESSION | META_BG
BY_EXTENTS, INSIDE, SECRET = 0x80000, 0x10000000, 0x800  # i_flags
FOLDER, FILE = 0x4000, 0x8000  # i_mode & 0xF000
MOST_OF_A_FOLDER = 1 << 20  # bytes
LARGEST_BLOCK = 1 << 16
MOST_PIECES = 4096  # nodes and runs of one file: with blocks of 1 KiB, a folder of 1 MiB in single blocks has 1040


@dataclass(frozen=True)
class Inode:
    """What of an inode is needed. `blocks` is its i_block: an extent tree or a block map."""

    kind: int
    size: int
    flags: int
    blocks: bytes


class Ext:
    """Raises Damaged if the image is none; OSError is the reader's."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.folders: dict[int, Mapping[str, int]] = {}
        super_block = image.read(SUPERBLOCK, 1024)

        def number(at: int, size: int = 4) -> int:
            return int.from_bytes(super_block[at:at + size], "little")

        self.block = 1024 << min(number(24), 16)
        if number(56, 2) != MAGIC or self.block > LARGEST_BLOCK:
            raise Damaged("not an ext file system")
        features = number(96)
        if features & UNREADABLE:
            raise Damaged("features that are not read here")
        self.inodes, self.per_group = number(0), number(40)
        self.inode_size = number(88, 2) if number(76) else 128
        self.count = number(4) | (number(336) << 32 if features & WIDE else 0)
        self.descriptor = max(32, number(254, 2)) if features & WIDE else 32
        self.descriptors = (number(20) + 1) * self.block
        if not self.per_group or not 128 <= self.inode_size <= self.block:
            raise Damaged("a superblock that makes no sense")

    def read(self, path: str, limit: int) -> bytes | None:
        """A file, None if there is none of that name; raises Damaged for one of more than `limit` bytes."""
        number, inode = ROOT, self._inode(ROOT)
        for part in path.split("/"):
            if inode.kind != FOLDER:
                return None
            found = self._folder(number, inode).get(part.casefold())
            if found is None:
                return None
            number, inode = found, self._inode(found)
        if inode.kind != FILE:
            raise Damaged(f"{path} is not a file")
        if inode.size > limit:
            raise Damaged(f"{path} has {inode.size} bytes")
        return self._content(inode, limit)

    def _folder(self, number: int, inode: Inode) -> Mapping[str, int]:
        """The inodes of what is in a folder, listed once."""
        if number not in self.folders:
            self.folders[number] = by_name(_entries(self._content(inode, MOST_OF_A_FOLDER)))
        return self.folders[number]

    def _inode(self, number: int) -> Inode:
        if not 0 < number <= self.inodes:
            raise Damaged("an entry that leads nowhere")
        group, place = divmod(number - 1, self.per_group)
        descriptor = self.image.read(self.descriptors + group * self.descriptor, self.descriptor)
        table = int.from_bytes(descriptor[8:12], "little")
        if self.descriptor >= 64:
            table |= int.from_bytes(descriptor[40:44], "little") << 32
        data = self.image.read(self._checked(table) * self.block + place * self.inode_size, 128)
        mode, low, flags, high = struct.unpack_from("<H2xI24xI72xI", data)
        return Inode(mode & 0xF000, low | (high << 32 if mode & 0xF000 == FILE else 0), flags, data[40:100])

    def _content(self, inode: Inode, limit: int) -> bytes:
        if inode.flags & (INSIDE | SECRET):
            raise Damaged("a file that is encrypted, or kept in its inode")
        size = min(inode.size, limit)
        data = bytearray(size)
        left = iter(range(MOST_PIECES))
        runs = self._extents(inode.blocks, DEEPEST, left) if inode.flags & BY_EXTENTS else self._map(inode.blocks, size)
        for logical, physical, blocks in runs:
            start = logical * self.block
            if start >= size:  # they are in order: what comes now is set aside, or nonsense
                break
            length = min(blocks * self.block, size - start)
            data[start:start + length] = self.image.read(self._checked(physical) * self.block, length)
        return bytes(data)

    def _extents(self, node: bytes, depth: int, left: Iterator[int]) -> Iterator[tuple[int, int, int]]:
        """(first block of the file, first block on the disk, how many); what is in no run is zeros.

        `left` is what may still be looked at: each node can lead to the same ones below, level by level.
        """
        magic, entries, _, level = struct.unpack_from("<HHHH", node)
        if magic != EXTENT_MAGIC or level > depth or 12 + entries * 12 > len(node):
            raise Damaged("a file whose extents make no sense")
        for at in range(12, 12 + entries * 12, 12):
            if next(left, None) is None:
                raise Damaged(f"a file in more than {MOST_PIECES} pieces")
            if level:
                low, high = struct.unpack_from("<4xIH", node, at)
                below = self.image.read(self._checked(low | high << 32) * self.block, self.block)
                yield from self._extents(below, level - 1, left)
            else:
                logical, length, high, low = struct.unpack_from("<IHHI", node, at)
                if length <= LARGEST_EXTENT:  # a longer one is set aside, and not written yet
                    yield logical, low | high << 32, length

    def _map(self, blocks: bytes, size: int) -> Iterator[tuple[int, int, int]]:
        """The same from a block map: twelve blocks, then blocks of blocks, then blocks of blocks of blocks."""
        needed = -(-size // self.block)
        pointers = struct.unpack("<15I", blocks)
        found = list(pointers[:12])
        for depth, pointer in enumerate(pointers[12:], 1):
            if len(found) < needed:
                found += self._pointers(pointer, depth, needed - len(found))
        for logical, physical in enumerate(found[:needed]):
            if physical:
                yield logical, physical, 1

    def _pointers(self, pointer: int, depth: int, needed: int) -> list[int]:
        width = self.block // 4
        if not pointer:
            return [0] * min(needed, width ** depth)
        here = struct.unpack(f"<{width}I", self.image.read(self._checked(pointer) * self.block, self.block))
        if depth == 1:
            return list(here)
        found: list[int] = []
        for below in here:
            if len(found) < needed:
                found += self._pointers(below, depth - 1, needed - len(found))
        return found

    def _checked(self, block: int) -> int:
        if not 0 < block < self.count:
            raise Damaged("a block beyond the end")
        return block


def _entries(folder: bytes) -> Iterator[tuple[str, int]]:
    at = 0
    while at + 8 <= len(folder):
        number, length, name = struct.unpack_from("<IHB", folder, at)
        if length < 8 or at + length > len(folder):
            raise Damaged("a folder that makes no sense")
        if number:
            yield folder[at + 8:at + 8 + name].decode("utf-8", "replace"), number
        at += length
