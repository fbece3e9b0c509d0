"""The bytes of a drive, with a limit to how many of them it can make us read.

Everything on a drive is a stranger's: numbers that lead in a circle, to the same place a million times, or out of the
world. What the file systems beside this module read goes through here, and what they list; a loop of theirs that reads
nothing has a limit of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

# For all that is read of one drive. A folder of 1 MiB and a document of 512 KiB, in clusters of 512 bytes that are
# looked up one by one, are 6000 reads.
MOST_READS, MOST_BYTES = 16384, 32 << 20
MOST_NAMES = 16384  # in a folder
BEYOND = 1 << 63  # what no offset of the kernel's reaches (off_t)

Entry = TypeVar("Entry")


class Damaged(ValueError):
    """Not such a file system, or not a sound one."""


class Image:
    """A drive's bytes by way of `read_at`, which takes an offset and a length and gives what is there, as os.pread."""

    def __init__(self, read_at: Callable[[int, int], bytes]) -> None:
        self.read_at = read_at
        self.reads = self.bytes = 0

    @classmethod
    def of_device(cls, device: int) -> Image:
        """What the descriptor `device` reads."""
        return cls(lambda offset, length: os.pread(device, length, offset))

    def read(self, offset: int, length: int) -> bytes:
        """So many bytes from there. Raises Damaged if they are not all there, or it has been too much; OSError."""
        if not 0 <= offset < BEYOND - length:
            raise Damaged("something that is said to be beyond the end")
        self.reads += 1
        self.bytes += length
        if self.reads > MOST_READS or self.bytes > MOST_BYTES:
            raise Damaged("more to read than a sound drive has")
        data = self.read_at(offset, length)
        if len(data) < length:
            raise Damaged("the image is cut short")
        return data


def by_name(entries: Iterable[tuple[str, Entry]]) -> dict[str, Entry]:
    """A folder by names in folded case, the first of each. Raises Damaged for too many."""
    found: dict[str, Entry] = {}
    for name, entry in entries:
        if len(found) >= MOST_NAMES:
            raise Damaged(f"a folder with more than {MOST_NAMES} names")
        found.setdefault(name.casefold(), entry)
    return found
