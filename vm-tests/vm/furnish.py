"""What the test bench adds to a machine: its agent and its signs, in the initramfs and on the disk; no idle units."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from . import cpio

GUEST = Path(__file__).parent / "guest"
# What the agent in the initramfs needs and dracut may have left out.
_PROGRAMS = ("base64", "stty", "timeout", "tail")
# Nothing that a boot to network-online needs, and each costs a second or more without KVM.
_MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "fstrim.timer", "systemd-tpm2-setup.service", "systemd-tpm2-setup-early.service", "systemd-pcrmachine.service",
    "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-pcrphase-initrd.service",
    "systemd-pcrproduct.service", "systemd-hwdb-update.service", "ldconfig.service", "systemd-update-utmp.service",
    "systemd-timesyncd.service", "systemd-networkd.socket", "getty.target", "systemd-logind.service",
    "systemd-user-sessions.service", "systemd-random-seed.service", "systemd-boot-random-seed.service",
    "systemd-pstore.service", "systemd-firstboot.service", "systemd-machine-id-commit.service",
    "systemd-journal-catalog-update.service", "systemd-binfmt.service", "systemd-sysusers.service",
    "systemd-udev-load-credentials.service", "systemd-hibernate-clear.service", "systemd-hostnamed.service",
    "kmod-static-nodes.service", "modprobe@drm.service", "modprobe@efi_pstore.service", "modprobe@fuse.service",
    "modprobe@configfs.service", "modprobe@dm_mod.service", "modprobe@loop.service",
    "dev-hugepages.mount", "dev-mqueue.mount", "run-lock.mount", "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
    "proc-sys-fs-binfmt_misc.automount", "NetworkManager-dispatcher.service", "dracut-shutdown.service",
    "open-iscsi.service", "iscsid.service", "iscsid.socket", "tgt.service",
)  # fmt: skip
_GENERATORS = (
    "debug", "getty", "gpt-auto", "hibernate-resume", "rc-local", "run", "ssh", "system-update", "sysv", "tpm2",
)  # fmt: skip


class Bootable(Protocol):
    """What a machine is made of: image.Image is one."""

    @property
    def kernel(self) -> Path: ...
    @property
    def initramfs(self) -> Path: ...
    @property
    def root(self) -> Path: ...


def initramfs(image: Bootable, files: Mapping[str, tuple[str, int]]) -> bytes:
    """The image's, our units, and files as path -> (text, mode)."""
    programs = {f"usr/bin/{name}": image.root / "usr/bin" / name for name in _PROGRAMS}
    added = cpio.archive([GUEST / "both", GUEST / "initrd"], files, programs)
    return cpio.joined(image.initramfs.read_bytes(), added)


def root(folder: Path, name: str) -> None:
    """Our units, and what makes this machine itself, on its mounted disk."""
    for layer in ("both", "root"):
        subprocess.run(["cp", "-a", "--no-preserve=ownership", f"{GUEST / layer}/.", folder], check=True)
    for unit in _MASKED:
        _mask(folder / "etc/systemd/system" / unit)
    for generator in _GENERATORS:
        _mask(folder / f"etc/systemd/system-generators/systemd-{generator}-generator")
    # Names for hardware that is not here.
    (folder / "usr/lib/udev/hwdb.bin").unlink(missing_ok=True)
    (folder / "var/log/journal").mkdir(exist_ok=True)
    (folder / "etc/machine-id").write_text(hashlib.sha256(name.encode()).hexdigest()[:32] + "\n")
    (folder / "etc/hostname").write_text(name + "\n")


def _mask(link: Path) -> None:
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to("/dev/null")
