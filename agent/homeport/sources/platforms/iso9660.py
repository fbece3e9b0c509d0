"""Files on an ISO 9660 image, read without mounting it (ECMA-119; Joliet; Rock Ridge names).

The bytes are strangers', and a kernel's file system is a wide door for those: here a few fields of them
are looked at, within bounds.  Knows what cloud-init drives are made with (genisoimage, xorriso, Windows): a
tree with long names, files in one extent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from homeport.sources.platforms.image import Damaged, Image, by_name

SECTOR = 2048
FIRST_DESCRIPTOR, MOST_DESCRIPTORS = 16, 64
PRIMARY, SUPPLEMENTARY, LAST = 1, 2, 255
MAGIC = b"CD001"
JOLIET = (b"%/@", b"%/C", b"%/E")  # escape sequences of UCS-2, levels 1 to 3
ROOT_RECORD = 156
IS_FOLDER, GOES_ON = 0x02, 0x80  # flags of a record
MOST_OF_A_FOLDER = 1 << 20  # bytes


@dataclass(frozen=True)
class Record:
    """One entry of a folder."""

    name: str
    extent: int
    size: int
    flags: int


class Iso9660:
    """Raises Damaged if the image is none; OSError is the reader's."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.folders: dict[Record, Mapping[str, Record]] = {}
        self.joliet = False
        self.root = self._root()

    def read(self, path: str, limit: int) -> bytes | None:
        """A file, None if there is none of that name; raises Damaged for one of more than `limit` bytes."""
        record = self.root
        for part in path.split("/"):
            found = self._folder(record).get(part.casefold())
            if found is None:
                return None
            record = found
        if record.flags & (IS_FOLDER | GOES_ON):
            raise Damaged(f"{path} is not a file in one piece")
        if record.size > limit:
            raise Damaged(f"{path} has {record.size} bytes")
        return self.image.read(record.extent * SECTOR, record.size)

    def _root(self) -> Record:
        """The root of the tree with the better names."""
        found: Record | None = None
        for number in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + MOST_DESCRIPTORS):
            descriptor = self.image.read(number * SECTOR, SECTOR)
            if descriptor[1:6] != MAGIC or descriptor[0] == LAST:
                break
            is_joliet = descriptor[0] == SUPPLEMENTARY and descriptor[88:91] in JOLIET
            if is_joliet or (descriptor[0] == PRIMARY and found is None):
                self.joliet = is_joliet
                found = _record(descriptor[ROOT_RECORD:ROOT_RECORD + 34], joliet=False)
        if found is None:
            raise Damaged("not an ISO 9660 file system")
        return found

    def _folder(self, folder: Record) -> Mapping[str, Record]:
        """What is in a folder, listed once; nothing is in a file."""
        if not folder.flags & IS_FOLDER:
            return {}
        if folder not in self.folders:
            self.folders[folder] = by_name((entry.name, entry) for entry in self._entries(folder))
        return self.folders[folder]

    def _entries(self, folder: Record) -> Iterator[Record]:
        data = self.image.read(folder.extent * SECTOR, min(folder.size, MOST_OF_A_FOLDER))
        at = 0
        while at < len(data):
            length = data[at]
            if length == 0:  # records do not cross sectors
                at = (at // SECTOR + 1) * SECTOR
                continue
            yield _record(data[at:at + length], self.joliet)
            at += length


def _record(data: bytes, joliet: bool) -> Record:
    if len(data) < 34 or len(data) < 33 + data[32]:
        raise Damaged("an entry of a folder is cut short")
    raw = data[33:33 + data[32]]
    system_use = data[33 + data[32] + (data[32] % 2 == 0):]
    name = raw.decode("utf-16-be", "replace") if joliet else _rock_ridge(system_use) or raw.decode("ascii", "replace")
    return Record(name.partition(";")[0].rstrip("."), int.from_bytes(data[2:6], "little"),
                  int.from_bytes(data[10:14], "little"), data[25])


def _rock_ridge(data: bytes) -> str:
    """The name in the NM entries of the system use area (SUSP, RRIP 4.1.4); "" if there are none."""
    name, at = b"", 0
    while at + 4 <= len(data) and data[at + 2] >= 4:
        if data[at:at + 2] == b"NM":
            name += data[at + 5:at + data[at + 2]]
        at += data[at + 2]
    return name.decode("utf-8", "replace")
