"""What homeport adds to an initramfs that has NetworkManager and nmstatectl already: in all, and by kind of file.

    make bench                    as a part of it
    python vm-tests/growth.py     alone, as a table

Two generic images of the same root, as an image builder makes them (every driver, zstd), one without homeport.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

from image import make_image, unpack
from trees import work_folder

# The first that a path fits is its group.
GROUPS = {
    "the agent": ("usr/lib/homeport/homeport.pyz", "usr/bin/homeport"),
    "the Python interpreter": ("usr/bin/python3*",),
    "certificate authorities": ("etc/ssl/certs/*", "usr/lib/ssl/cert.pem"),
    "C extensions": ("usr/lib/python3*.so",),
    "requests, urllib3, idna": ("usr/lib/python3*/requests/*", "usr/lib/python3*/urllib3/*", "usr/lib/python3*/idna/*"),
    "yaml, jeepney, wsproto, h11, systemd": tuple(
        f"usr/lib/python3*/{name}/*" for name in ("yaml", "jeepney", "wsproto", "h11", "systemd")),
    "Python's library": ("usr/lib/python3*",),
    "shared libraries": ("*.so", "*.so.*"),
    "kernel modules": ("usr/lib/modules/*",),
    "units, settings, the rest": ("*",),
}  # fmt: skip


def measure() -> tuple[float, dict[str, tuple[int, float, float]]]:
    """The growth in MiB; and for each group files, MiB, and MiB when compressed by itself.

    Groups compressed one by one need not add up to the growth: an archive's parts know of each other.
    """
    with_us, without = make_image(generic=True), make_image(generic=True, homeport=False)
    growth = with_us.initramfs.stat().st_size - without.initramfs.stat().st_size
    folders = [unpack(image.initramfs, work_folder() / f"layer-bench-{number}")
               for number, image in enumerate((with_us, without))]
    added = sorted(_files(folders[0]) - _files(folders[1]))
    members: dict[str, list[str]] = {name: [] for name in GROUPS}
    for path in added:
        group = next(name for name, patterns in GROUPS.items() if any(fnmatch(path, each) for each in patterns))
        members[group].append(path)
    table = {name: (len(paths), *_sizes(folders[0], paths)) for name, paths in members.items() if paths}
    for folder in folders:
        shutil.rmtree(folder)
    return growth / 2**20, table


def _files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def _sizes(root: Path, paths: list[str]) -> tuple[float, float]:
    plain = sum((root / path).lstat().st_size for path in paths)
    # As dracut does by default.
    archive = subprocess.run(["cpio", "--create", "--format=newc", "--quiet"], input="\n".join(paths).encode(),
                             cwd=root, stdout=subprocess.PIPE, check=True).stdout  # fmt: skip
    packed = subprocess.run(["zstd", "-15", "-q", "-c"], input=archive, stdout=subprocess.PIPE, check=True).stdout
    return plain / 2**20, len(packed) / 2**20


def show(growth: float, table: Mapping[str, tuple[int, float, float]]) -> None:
    print(f"{'added to an initramfs':<38} {'files':>6} {'MiB':>8} {'zstd, MiB':>10}")
    for name, (files, plain, packed) in sorted(table.items(), key=lambda row: -row[1][2]):
        print(f"  {name:<36} {files:>6} {plain:>8.2f} {packed:>10.2f}")
    total = [sum(column) for column in zip(*table.values(), strict=True)]
    print(f"  {'all of it':<36} {total[0]:>6} {total[1]:>8.2f} {growth:>10.2f}")


if __name__ == "__main__":
    show(*measure())
