"""`make install DESTDIR=`: exactly these files, with these modes, enabled; as often as one likes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]

# Path below the root: the mode of a file or folder, or a link's target.
INSTALLED: dict[str, int | str] = {
    "usr/bin/homeport": "../lib/homeport/homeport.pyz",
    "usr/lib/NetworkManager/conf.d/50-homeport.conf": 0o644,
    "usr/lib/NetworkManager/dispatcher.d/90-homeport": 0o755,
    "usr/lib/NetworkManager/dispatcher.d/pre-up.d/90-homeport": "../90-homeport",
    # NetworkManager ignores a profile that others could read.
    "usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection": 0o600,
    # Nothing below dracut.conf.d/ is read that is not asked for.
    "usr/lib/dracut/dracut.conf.d/homeport/homeport.conf": 0o644,
    "usr/lib/dracut/modules.d/50homeport/launcher.sh": 0o755,
    "usr/lib/dracut/modules.d/50homeport/module-setup.sh": 0o755,
    "usr/lib/dracut/modules.d/50homeport/python-deps.py": 0o755,
    "usr/lib/homeport": 0o755,
    "usr/lib/homeport/homeport.conf": 0o644,
    "usr/lib/homeport/homeport.pyz": 0o755,
    "usr/lib/systemd/system/NetworkManager-wait-online-initrd.service.d/50-homeport.conf": 0o644,
    "usr/lib/systemd/system/NetworkManager-wait-online.service.d/50-homeport.conf": 0o644,
    "usr/lib/systemd/system/homeport-handover.service": 0o644,
    "usr/lib/systemd/system/homeport-initrd.service": 0o644,
    "usr/lib/systemd/system/homeport-prepare.service": 0o644,
    "usr/lib/systemd/system/homeport-tidy.service": 0o644,
    "usr/lib/systemd/system/nm-wait-online-initrd.service.d/50-homeport.conf": 0o644,
    "usr/lib/systemd/system-preset/80-homeport.preset": 0o644,
    "usr/lib/systemd/system/homeport-attributes.service": 0o644,
    "usr/lib/systemd/system/homeport-check-in.service": 0o644,
    "usr/lib/systemd/system/homeport-hostname.service": 0o644,
    "usr/lib/systemd/system/homeport-refresh.service": 0o644,
    "usr/lib/systemd/system/homeport-refresh.timer": 0o644,
    "usr/lib/systemd/system/homeport.service": 0o644,
    "usr/lib/tmpfiles.d/homeport.conf": 0o644,
    "usr/lib/udev/rules.d/85-homeport.rules": 0o644,
    # Adds bytecode to the installed zipapp again, when this root gets another Python.
    "usr/share/homeport/mkzipapp.py": 0o755,
    "usr/share/man/man5/homeport.conf.5": 0o644,
    "usr/share/man/man8/homeport.8": 0o644,
    "usr/share/man/man8/homeport.service.8": 0o644,
    "var/lib/homeport": 0o700,
}
ENABLED = {
    "etc/systemd/system/multi-user.target.wants/homeport.service",
    "etc/systemd/system/network-online.target.wants/homeport.service",
    "etc/systemd/system/multi-user.target.wants/homeport-refresh.service",
}


@pytest.fixture(params=["merged", "split"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The least that a root tree can be, with /lib in /usr or beside it."""
    root = tmp_path / "a root"
    for folder in ("etc", "usr/bin", "usr/lib"):
        (root / folder).mkdir(parents=True)
    if request.param == "merged":
        (root / "lib").symlink_to("usr/lib")
    else:
        (root / "lib/systemd/system").mkdir(parents=True)
    return root


def test_exactly_these_files(root: Path) -> None:
    before = contents(root)
    install(root)
    after = contents(root)
    files = {path: what for path, what in after.items() if path not in before and not is_folder(root / path)}
    assert {path for path in files if path.startswith("etc/")} == ENABLED
    assert {path: what for path, what in files.items() if not path.startswith("etc/")} == \
        {path: what for path, what in INSTALLED.items() if not is_folder(root / path)}
    assert {path: after[path] for path in INSTALLED} == INSTALLED
    for path in ENABLED:
        assert resolved(root, path).read_bytes() == (TOP / "systemd" / Path(path).name).read_bytes()
    # Folders that were not there are made for everyone to enter, whatever the umask was.
    assert {after[path] for path in after if is_folder(root / path) and path.startswith("usr/")} == {0o755}


def test_twice_is_once(root: Path) -> None:
    install(root)
    first = {path: (root / path).read_bytes() for path in contents(root) if (root / path).is_file()}
    install(root)
    assert {path: (root / path).read_bytes() for path in contents(root) if (root / path).is_file()} == first


def test_settings_of_the_machine_stay(root: Path) -> None:
    settings = root / "etc/homeport/homeport.conf"
    settings.parent.mkdir()
    settings.write_text("Config=/srv/assignment.yaml\n")
    state = root / "var/lib/homeport/assigned.yaml"
    state.parent.mkdir(parents=True, mode=0o700)
    state.write_text("configurator: none\n")
    install(root)
    assert settings.read_text() == "Config=/srv/assignment.yaml\n"
    assert state.read_text() == "configurator: none\n"


def test_what_was_installed_runs(root: Path) -> None:
    """With nothing but the distribution's Python, through the link; its settings change nothing."""
    install(root)
    shown = subprocess.run(["/usr/bin/python3", "-I", root / "usr/bin/homeport", "version"],
                           env={}, cwd="/", capture_output=True, text=True, check=True).stdout
    assert shown.startswith("homeport ")
    default = (root / "usr/lib/homeport/homeport.conf").read_text().splitlines()
    assert [line for line in default if line and not line.startswith("#")] == ["[Homeport]"]


def install(root: Path) -> None:
    if not shutil.which("systemctl") and not os.environ.get("CI"):
        pytest.skip("systemctl is not installed")
    # Nothing of the set-up, and a umask as careful administrators have it.
    result = subprocess.run(["make", "-C", TOP, "install", f"DESTDIR={root}"], umask=0o077,
                            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def contents(root: Path) -> dict[str, int | str]:
    """Every path below the root, with its mode or where it points."""
    return {path.relative_to(root).as_posix():
            os.readlink(path) if path.is_symlink() else stat.S_IMODE(path.stat().st_mode)
            for path in root.rglob("*")}


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def resolved(root: Path, path: str) -> Path:
    """Where a link of the tree points when the tree is /."""
    return root / os.readlink(root / path).lstrip("/")


def test_bootstrap_says_the_same_in_every_stage() -> None:
    """Leases and addresses by the MAC alone: machine-id and NetworkManager's secret_key differ in the initramfs."""
    keyfile = ConfigParser(delimiters=("=",))
    keyfile.read(TOP / "systemd/homeport-bootstrap.nmconnection")
    assert keyfile["ipv4"]["dhcp-client-id"] == "mac"
    assert {key: keyfile["ipv6"][key] for key in ("addr-gen-mode", "dhcp-duid", "dhcp-iaid")} == {
        "addr-gen-mode": "eui64", "dhcp-duid": "ll", "dhcp-iaid": "mac"}
