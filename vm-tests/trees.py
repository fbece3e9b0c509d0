"""The root file system of a machine: layers under an overlay.

From the bottom: the guest tree (a Debian, made by the set-up), what `make install DESTDIR=` puts into it,
the test bench's own check unit (`guest/`), and at the top a folder that is kept from boot to boot: the
machine's disk.  Knows overlay mounts and where the set-up leaves things (`build/paths.env`); knows
nothing of booting.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from namespaces import make_mounts_private

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent


class NotPrepared(Exception):
    """Something that the set-up makes is not there; the message says what to run."""


@functools.cache
def prepared() -> dict[str, str]:
    """NAME=VALUE of build/paths.env, each overridden by the environment variable of that name."""
    file = REPOSITORY / "build" / "paths.env"
    lines = file.read_text().splitlines() if file.exists() else []
    pairs = (line.partition("=")[::2] for line in lines if "=" in line and not line.startswith("#"))
    values = {name.strip(): value.strip().strip("'\"") for name, value in pairs}
    interesting = {n: v for n, v in os.environ.items() if n == "NMSTATECTL" or n[:6] == "GUEST_"}
    return {**values, **interesting}


def prepared_path(name: str) -> Path:
    """The file or folder that build/paths.env calls `name`."""
    value = prepared().get(name, "")
    if not value or not Path(value).exists():
        raise NotPrepared(f"{name} is not there: {value or 'not in build/paths.env'} (run: make setup)")
    return Path(value)


@functools.cache
def work_folder() -> Path:
    """Where this process keeps its machines; removed at the end if nothing in it was kept."""
    folder = Path(tempfile.mkdtemp(prefix="homeport-vm-"))
    atexit.register(_forget, folder)
    return folder


def _forget(folder: Path) -> None:
    for tree in folder.glob("layer-*"):
        shutil.rmtree(tree, ignore_errors=True)
    # Not empty if a failed machine is kept in there; the failure report said so.
    with contextlib.suppress(OSError):
        folder.rmdir()


class Overlay:
    """One overlay mount, seen by this process and what it starts."""

    def __init__(self, lower: list[Path], upper: Path, work: Path, merged: Path) -> None:
        make_mounts_private()
        for folder in (upper, work, merged):
            folder.mkdir(parents=True, exist_ok=True)
        self.path = merged
        # Commas and colons separate options here; no path of ours has one.
        options = f"lowerdir={':'.join(map(str, lower))},upperdir={upper},workdir={work}"
        mount("-t", "overlay", "-o", options, "overlay", str(merged))

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.path)], check=False, capture_output=True)


def mount(*arguments: str) -> None:
    """mount(8). Raises RuntimeError with what it said."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"mount {' '.join(arguments)}: {done.stderr.strip()}")


@functools.cache
def layers(tree: str, *, installed: bool = True) -> list[Path]:
    """The read-only layers of a machine, uppermost first; made once in the life of this process."""
    guest = prepared_path(f"GUEST_{tree}")
    lower = [HERE / "guest", guest]
    if (guest / "usr/bin/nmstatectl").exists() and not installed:
        return lower
    layer = work_folder() / f"layer-{tree}-{'installed' if installed else 'plain'}"
    work = work_folder() / f"layer-{tree}-work"
    merged = work_folder() / f"layer-{tree}-merged"
    overlay = Overlay([guest], layer, work, merged)
    try:
        shutil.copy2(prepared_path("NMSTATECTL"), merged / "usr/bin/nmstatectl")
        if installed:
            install_product(merged)
    finally:
        overlay.unmount()
        shutil.rmtree(work, ignore_errors=True)
        merged.rmdir()
    return [HERE / "guest", layer, guest]


def install_product(root: Path, target: str = "install") -> None:
    """`make install` (or `install-server`), exactly as an image builder would."""
    done = subprocess.run(
        ["make", "--no-print-directory", target, f"DESTDIR={root}"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600,
        env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")},
    )  # fmt: skip
    if done.returncode != 0:
        raise NotPrepared(f"make {target} DESTDIR={root} failed:\n{done.stdout}{done.stderr}")
