"""Whether what is written now would be seen when the real root runs, and by whom it is made possible."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.initramfs import make, put

from homeport.host import mounts, realroot


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A real root that was never booted."""
    folder = tmp_path / "sysroot"
    for name in ("etc", "var/lib"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.mark.parametrize(("units", "why"), [
    (["etc/systemd/system/var.mount"], "/var"),
    (["usr/lib/systemd/system/var-lib-homeport.mount"], "/var/lib/homeport"),
    (["usr/local/lib/systemd/system/etc-NetworkManager.mount"], "/etc/NetworkManager"),
    (["../run/systemd/system/var.mount"], "/var"),
    (["usr/lib/systemd/system/var-log.mount", "usr/lib/systemd/system/var-lib-docker.mount"], ""),
    # Masked.
    (["etc/systemd/system/var.mount -> /dev/null", "usr/lib/systemd/system/var.mount"], ""),
    (["etc/systemd/system/var.mount -> /etc/units/var.mount"], "/var"),
])
def test_mount_units_of_the_real_root(tmp_path: Path, real: Path, units: list[str], why: str) -> None:
    """What is written below would be hidden as soon as they start."""
    for unit in units:
        path, _, target = unit.partition(" -> ")
        if target:
            (real / path).parent.mkdir(parents=True, exist_ok=True)
            (real / path).symlink_to(target)
        else:
            put(real, path, "[Mount]\nWhat=/dev/sda3\n", 0o644)
    found = realroot.obstacle("", make(tmp_path).root, real)
    assert found == (f"{why} is another file system, which is not mounted yet" if why else "")


def test_the_initramfs_s_own_extra_mounts_are_not_the_real_roots(tmp_path: Path, real: Path) -> None:
    line = "rd.systemd.mount-extra=/dev/sda3:/var systemd.mount-extra systemd.mount-extra=/dev/sda4:/srv"
    assert realroot.obstacle(line, make(tmp_path).root, real) == ""


@pytest.mark.parametrize(("fstab", "fstype", "possible"), [
    ({"/": ("ext4", "defaults")}, "ext4", True),
    ({"/": ("auto", "rw,noatime")}, "xfs", True),
    ({"/": ("ext4", "defaults,ro")}, "ext4", False),
    ({}, "ext4", False),  # an image that nobody makes writable
    ({"/": ("squashfs", "defaults")}, "squashfs", False),
    ({"/": ("nfs", "defaults")}, "nfs4", False),
])
def test_made_writable_only_where_the_real_root_does_so_itself(
    real: Path, fstab: dict[str, tuple[str, str]], fstype: str, possible: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(realroot, "mounted_type", lambda _: fstype)
    assert realroot.may_be_made_writable(real, fstab) == possible


@pytest.mark.parametrize(("read_only", "why"), [
    (("", "etc", "var/lib"), ""),  # as the initramfs has mounted it
    (("etc",), "it is read-only"),  # by a mount of its own: not to be helped by remounting the rest
    ((), ""),
])
def test_a_part_that_is_read_only_by_itself(
    tmp_path: Path, real: Path, read_only: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(real, "etc/fstab", "UUID=1 / ext4 defaults 0 1\n", 0o644)
    monkeypatch.setattr(realroot, "mounted_type", lambda _: "ext4")
    monkeypatch.setattr(mounts, "is_read_only", lambda path: Path(path) in [real / each for each in read_only])
    assert realroot.obstacle("", make(tmp_path).root, real) == why
