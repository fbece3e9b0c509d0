"""What an emulated machine is made of: a kernel, an initramfs with homeport in it, and a root tree with the product.

    image = make_image("trixie")              # .kernel, .initramfs, .root
    make_image("forky", own_units=True)       # with NetworkManager's own units for the initramfs
    make_image(generic=True)                  # as image builders make one: for every machine, zstd

The suite's own dracut makes the initramfs, in the tree that the set-up made (VM_trixie, ...) with what `make install`
puts into it and our nmstatectl. Kept in build/vm by a key of all that went into it, so that a second caller, also in
another process, has it at once. For boots it is trimmed and not compressed: without KVM every byte that is not there
is time. Knows dracut; knows nothing of booting.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from namespaces import make_mounts_private
from trees import REPOSITORY, Overlay, install_product, mount, prepared_path, work_folder

KEPT = REPOSITORY / "build" / "vm"
KEEP = 3  # of each kind; an older one is of a former state of the repository
_in_use: list[IO[str]] = []  # locks of the images that this process has, until it ends

# Of dracut's modules those that an emulated machine of ours has nothing for; of the drivers its own.
_OMITTED = (
    "biosdevname", "bluetooth", "btrfs", "cifs", "convertfs", "crypt", "dm", "dmraid", "fcoe", "fido2", "hwdb", "i18n",
    "iscsi", "kernel-modules-extra", "lvm", "lvmmerge", "lvmthinpool-monitor", "mdraid", "memstrack", "multipath",
    "nbd", "nfs", "numlock", "nvdimm", "nvmf", "overlay-root", "overlayfs", "pcsc", "pkcs11", "plymouth", "resume",
    "rngd", "systemd-cryptsetup", "systemd-pcrextend", "systemd-pcrphase", "terminfo", "tpm2-tss", "virtfs", "virtiofs",
)  # fmt: skip
_DRIVERS = "virtio_blk virtio_net virtio_pci virtio_scsi ext4"
# What goes into the product. Not the commit, which only `homeport version` tells.
_SOURCES = ("agent/**/*.py", "systemd/*", "dracut/**/*", "docs/*.[58]", "Makefile", "tools/default-settings.py",
            "vm-tests/image.py")


@dataclass(frozen=True)
class Image:
    """In `folder`; see the head of this module."""

    folder: Path
    tree: Path
    arguments: tuple[str, ...]  # of dracut

    @property
    def kernel(self) -> Path:
        return next((self.tree / "boot").glob("vmlinuz-*"))

    @property
    def initramfs(self) -> Path:
        return self.folder / "initramfs"

    @property
    def log(self) -> Path:
        """What dracut said."""
        return self.folder / "dracut.log"

    @property
    def root(self) -> Path:
        """The tree with the product, as long as this process runs. To read: what is written is lost."""
        return _mounted(self.folder / "installed", self.tree)


@dataclass(frozen=True)
class _Kind:
    """What a caller may ask for."""

    suite: str
    homeport: bool
    generic: bool
    hostonly: bool
    own_units: bool
    modules: tuple[str, ...]

    def dracut(self) -> list[str]:
        """dracut's arguments."""
        # Without homeport it is what homeport is measured against: the same network, and nmstatectl.
        wanted = ["--add", "homeport"] if self.homeport else \
            ["--add", "network-manager", "--include", "/usr/bin/nmstatectl", "/usr/bin/nmstatectl"]
        for name in self.modules:
            wanted += ["--add", name]
        kind = ["--hostonly", "--no-hostonly-cmdline"] if self.hostonly else ["--no-hostonly"]
        if self.generic:
            return [*wanted, *kind, "--zstd"]
        omitted = " ".join(name for name in _OMITTED if name not in self.modules)
        return [*wanted, *kind, "--no-compress", "--omit", omitted, "--drivers", _DRIVERS]


def make_image(suite: str = "trixie", *, homeport: bool = True, generic: bool = False, hostonly: bool = False,
               own_units: bool = False, modules: tuple[str, ...] = ()) -> Image:
    """The image of these words, made if it is not there. Raises NotPrepared without the set-up's tree.

    `homeport`: whether it is in the initramfs, or only what it stands on. `generic`: not trimmed, and compressed as an
    image builder would. `hostonly`: with what belongs to this one machine. `own_units`: NetworkManager's instead of
    dracut's (forky). `modules`: more of dracut's modules, by name.
    """
    return _make(_Kind(suite, homeport, generic, hostonly, own_units, modules))


@functools.cache
def _make(kind: _Kind) -> Image:
    tree = prepared_path(f"VM_{kind.suite}")
    name = "-".join([kind.suite, *(field.name for field in fields(kind) if getattr(kind, field.name) is True),
                     *kind.modules])
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"lock-{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = KEPT / f"{name}.{_key(kind, tree)}"
        if not folder.exists():
            _sweep(name)
            partial = KEPT / f"{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _fill(partial, kind, tree)
            partial.rename(folder)
        os.utime(folder)
        _use(folder)
    return Image(folder, tree, tuple(kind.dracut()))


def build(image: Image, output: Path, *arguments: str) -> str:
    """Another initramfs of an image's root by dracut, at `output`; what dracut said."""
    return _run_dracut(image.root, output, arguments)


def unpack(initramfs: Path, folder: Path) -> Path:
    """The files of an initramfs, as root would see them: of all archives in it, the later ones over the former."""
    folder.mkdir(parents=True)
    for data in _archives(initramfs.read_bytes()):
        subprocess.run(["cpio", "--extract", "--make-directories", "--preserve-modification-time", "--unconditional",
                        "--quiet"], cwd=folder, input=data, check=True)  # fmt: skip
    return folder


def _archives(data: bytes) -> Iterator[bytes]:
    """dracut 112 has one of its own for kernel modules, which are compressed already. "newc" as in vm/cpio.py."""
    while data := data.lstrip(b"\0"):
        if data[:4] == b"\x28\xb5\x2f\xfd":
            data = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True).stdout
        assert data[:4] == b"0707", f"not an archive: {data[:8]!r}"
        at, name = 0, b""
        while name != b"TRAILER!!!\0":
            size, length = int(data[at + 54:at + 62], 16), int(data[at + 94:at + 102], 16)
            name = data[at + 110:at + 110 + length]
            at = (at + 110 + length + 3) // 4 * 4
            at = (at + size + 3) // 4 * 4
        yield data[:at]
        data = data[at:]


def _key(kind: _Kind, tree: Path) -> str:
    digest = hashlib.sha256(f"{kind} {tree} {prepared_path('NMSTATECTL')}".encode())
    for path in (file for name in _SOURCES for file in sorted(REPOSITORY.glob(name)) if file.is_file()):
        digest.update(f"{path.relative_to(REPOSITORY)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _sweep(name: str) -> None:
    """What is left of former states of the repository, but for the last ones and those that some process has."""
    former = sorted(KEPT.glob(f"{name}.*"), key=lambda folder: folder.stat().st_mtime)
    for folder in former[:-KEEP + 1]:
        if not _is_used(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _use(folder: Path) -> None:
    """Nobody sweeps it away as long as this process runs: its machines stand on it."""
    lock = (folder / "in-use").open("a")
    fcntl.flock(lock, fcntl.LOCK_SH)
    _in_use.append(lock)


def _is_used(folder: Path) -> bool:
    with (folder / "in-use").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _fill(folder: Path, kind: _Kind, tree: Path) -> None:
    overlay = Overlay([tree], folder / "installed", folder / "work", folder / "merged")
    try:
        shutil.copy2(prepared_path("NMSTATECTL"), overlay.path / "usr/bin/nmstatectl")
        install_product(overlay.path)
        if kind.own_units:
            _put_own_units(overlay.path, tree.parent / "networkmanager")
    finally:
        overlay.unmount()
    shutil.rmtree(folder / "work")
    (folder / "merged").rmdir()
    (folder / "dracut.log").write_text(
        _run_dracut(_mounted(folder / "installed", tree), folder / "initramfs", kind.dracut()))


def _put_own_units(root: Path, source: Path) -> None:
    """As NetworkManager's build installs them (data/meson.build, src/nm-initrd-generator/meson.build)."""
    folders = ("/usr/lib", "/usr/libexec")
    generator = next(folder for folder in folders if (root / folder[1:] / "nm-initrd-generator").exists())
    for template in source.glob("*.service.in"):
        text = template.read_text()
        for name, value in {"libexecdir": generator, "sbindir": "/usr/sbin", "bindir": "/usr/bin"}.items():
            text = text.replace(f"@{name}@", value)
        (root / "usr/lib/systemd/system" / template.stem).write_text(text)
    target = root / "usr/lib/systemd/system-generators/nm-initrd-generator.sh"
    target.write_text((source / "nm-initrd-generator/nm-initrd-generator.sh").read_text())
    target.chmod(0o755)


def _run_dracut(root: Path, output: Path, arguments: Iterable[str]) -> str:
    """dracut in the tree. Raises RuntimeError with what it said."""
    version = next((root / "usr/lib/modules").iterdir()).name
    inside = root / "tmp/initramfs"
    inside.unlink(missing_ok=True)
    with _kernel_files(root):
        done = subprocess.run(
            ["nice", "chroot", root, "dracut", "--force", "--reproducible", *arguments, "/tmp/initramfs", version],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    if done.returncode or not inside.exists():
        raise RuntimeError(f"dracut ended with {done.returncode}:\n{done.stdout[-4000:]}")
    shutil.move(inside, output)
    return done.stdout


@contextlib.contextmanager
def _kernel_files(root: Path) -> Iterator[None]:
    """/proc, /sys and /dev in a tree, in this process's own mount namespace."""
    folders = [root / name for name in ("proc", "sys", "dev")]
    for folder in folders:
        mount("--rbind", f"/{folder.name}", str(folder))
    try:
        yield
    finally:
        for folder in reversed(folders):
            subprocess.run(["umount", "--recursive", folder], check=False)


@functools.cache
def _mounted(installed: Path, tree: Path) -> Path:
    make_mounts_private()
    base = work_folder() / f"layer-image-{hashlib.sha256(str(installed).encode()).hexdigest()[:8]}"
    return Overlay([installed, tree], base / "upper", base / "work", base / "root").path


def modes(root: Path, names: Iterable[str]) -> dict[str, int]:
    """The permission bits of files in a tree."""
    return {name: stat.S_IMODE((root / name).lstat().st_mode) for name in names}
