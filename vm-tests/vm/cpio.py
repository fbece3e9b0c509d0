"""An initramfs from pieces: the kernel unpacks several cpio archives behind each other, the later ones over the former.

So what a test adds to an image (its agent, a file of settings) needs no new image. Pure but for reading the files.
Format: the kernel's Documentation/driver-api/early-userspace/buffer-format.rst, "newc".
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path


def archive(trees: Iterable[Path], files: Mapping[str, tuple[str, int]], programs: Mapping[str, Path]) -> bytes:
    """The folders' contents, files as path -> (text, mode), and programs as path -> file, as one archive."""
    entries: dict[str, tuple[int, bytes]] = {}
    for tree in trees:
        entries.update(_walk(tree))
    entries.update((path.strip("/"), (stat.S_IFREG | 0o755, file.read_bytes())) for path, file in programs.items())
    for path, (text, mode) in files.items():
        entries[path.strip("/")] = (stat.S_IFREG | mode, text.encode())
    folders = {str(parent) for name in entries for parent in Path(name).parents} - {"."} - set(entries)
    whole = {**dict.fromkeys(folders, (stat.S_IFDIR | 0o755, b"")), **entries}
    # Sorted: a folder comes before what is in it.
    parts = [_entry(name, *whole[name]) for name in sorted(whole)]
    return b"".join([*parts, _entry("TRAILER!!!", 0, b"")])


def joined(*archives: bytes) -> bytes:
    """Archives one behind the other, each at a multiple of four as the kernel wants it."""
    return b"".join(data + bytes(-len(data) % 4) for data in archives)


def _walk(tree: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for path in sorted(tree.rglob("*")):
        name, mode = str(path.relative_to(tree)), path.lstat().st_mode
        if path.is_symlink():
            yield name, (stat.S_IFLNK | 0o777, str(path.readlink()).encode())
        elif path.is_file():
            yield name, (stat.S_IFREG | stat.S_IMODE(mode), path.read_bytes())


def _entry(name: str, mode: int, data: bytes) -> bytes:
    """One file: owner root, no time, no device."""
    number, links, size = 0, 1, len(data)
    fields = (number, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return head + bytes(-len(head) % 4) + data + bytes(-size % 4)
