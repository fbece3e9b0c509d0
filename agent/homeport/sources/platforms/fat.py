"""Files on a FAT image, read without mounting it (Microsoft, "FAT: General Overview of On-Disk Format", 1.03).

For the same reasons as `iso9660.py`.  Knows FAT12, FAT16 and FAT32, long names, and no partitions: a label is
on the file system itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.sources.platforms.image import Damaged, Image, by_name

ENTRY = 32  # bytes
LONG_NAME, FOLDER, VOLUME = 0x0F, 0x10, 0x08  # attributes
END, DELETED = 0x00, 0xE5
MOST_OF_A_FOLDER = 1 << 20  # bytes
FAT12_CLUSTERS, FAT16_CLUSTERS = 4085, 65525  # fewer than these
NAME_FIELDS = ((1, 11), (14, 26), (28, 32))  # where the characters of a long name are
MOST_PIECES, FIRST_PIECE = 20, 0x40  # of a long name; the mark of the one that comes first, which is the name's end


class Fat:
    """Raises Damaged if the image is none; OSError is the reader's."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.folders: dict[int, Mapping[str, bytes]] = {}
        boot = image.read(0, 512)

        def number(at: int, size: int = 2) -> int:
            return int.from_bytes(boot[at:at + size], "little")

        sector, per_cluster, self.root_entries = number(11), boot[13], number(17)
        table = number(22) or number(36, 4)
        if boot[510:512] != b"\x55\xaa" or sector not in (512, 1024, 2048, 4096) or not per_cluster or not table:
            raise Damaged("not a FAT file system")
        self.cluster_size = sector * per_cluster
        self.table = number(14) * sector
        self.root = self.table + boot[16] * table * sector
        self.data = self.root + -(-self.root_entries * ENTRY // sector) * sector
        sectors = number(19) or number(32, 4)
        self.clusters = max(0, sectors - self.data // sector) // per_cluster
        self.bits = 12 if self.clusters < FAT12_CLUSTERS else 16 if self.clusters < FAT16_CLUSTERS else 32
        self.root_cluster = number(44, 4) if self.bits == 32 else 0

    def read(self, path: str, limit: int) -> bytes | None:
        """A file, None if there is none of that name; raises Damaged for one of more than `limit` bytes."""
        folder = self._folder(self.root_cluster)
        *folders, last = path.split("/")
        for part in folders:
            entry = folder.get(part.casefold())
            if entry is None or not entry[11] & FOLDER:
                return None
            folder = self._folder(_cluster(entry))
        entry = folder.get(last.casefold())
        if entry is None:
            return None
        size = int.from_bytes(entry[28:32], "little")
        if entry[11] & FOLDER or size > limit:
            raise Damaged(f"{path} is a folder" if entry[11] & FOLDER else f"{path} has {size} bytes")
        data = self._chain(_cluster(entry), size) if size else b""
        if len(data) < size:
            raise Damaged(f"{path} is cut short")
        return data[:size]

    def _folder(self, cluster: int) -> Mapping[str, bytes]:
        """What is in the folder that begins there, listed once."""
        if cluster not in self.folders:
            self.folders[cluster] = by_name(_entries(
                self._chain(cluster, MOST_OF_A_FOLDER) if cluster else
                self.image.read(self.root, self.root_entries * ENTRY)))
        return self.folders[cluster]

    def _chain(self, cluster: int, most: int) -> bytes:
        """The bytes of a chain of clusters, until its end or until there are `most`."""
        data = bytearray()
        while 2 <= cluster < self.clusters + 2 and len(data) < most:
            data += self.image.read(self.data + (cluster - 2) * self.cluster_size, self.cluster_size)
            cluster = self._next(cluster)
        return bytes(data)

    def _next(self, cluster: int) -> int:
        at = cluster * self.bits // 8
        value = int.from_bytes(self.image.read(self.table + at, self.bits // 8 + (self.bits == 12)), "little")
        if self.bits == 12:
            value = value >> 4 if cluster % 2 else value & 0xFFF
        return value & 0x0FFFFFFF


def _entries(folder: bytes) -> Iterator[tuple[str, bytes]]:
    """Each entry with its long name, or its short one."""
    pieces: list[bytes] = []
    for at in range(0, len(folder) - ENTRY + 1, ENTRY):
        entry = folder[at:at + ENTRY]
        if entry[0] == END:
            return
        if entry[0] != DELETED and entry[11] & 0x3F == LONG_NAME:
            if entry[0] & FIRST_PIECE:
                pieces = []
            if len(pieces) < MOST_PIECES:
                pieces.append(b"".join(entry[start:end] for start, end in NAME_FIELDS))
            continue
        if entry[0] != DELETED and not entry[11] & VOLUME:
            yield _long_name(pieces) or _short_name(entry), entry
        pieces = []


def _long_name(pieces: list[bytes]) -> str:
    """The pieces of a name stand in reverse order before its entry."""
    return b"".join(reversed(pieces)).decode("utf-16-le", "replace").partition("\0")[0]


def _short_name(entry: bytes) -> str:
    stem, ending = (part.decode("ascii", "replace").rstrip() for part in (entry[:8], entry[8:11]))
    return f"{stem}.{ending}" if ending else stem


def _cluster(entry: bytes) -> int:
    return int.from_bytes(entry[26:28], "little") | int.from_bytes(entry[20:22], "little") << 16
