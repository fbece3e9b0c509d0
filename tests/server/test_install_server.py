"""`make install-server`: exactly these files, a unit that systemd understands whole, and a program of one file."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
UNIT = "homeport-server.service"
PROGRAM = "usr/lib/homeport-server/homeport-server.pyz"
INSTALLED: dict[str, int | str] = {
    "usr/bin/homeport-server": "../lib/homeport-server/homeport-server.pyz",
    PROGRAM: 0o755,
    f"usr/lib/systemd/system/{UNIT}": 0o644,
    "usr/lib/sysusers.d/homeport-server.conf": 0o644,
    "usr/lib/tmpfiles.d/homeport-server.conf": 0o644,
    "usr/share/man/man8/homeport-server.8": 0o644,
}


def install(root: Path, target: str = "install-server-files", *more: str) -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", target, f"DESTDIR={root}", *more], cwd=TOP, capture_output=True, text=True,
        check=False, env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")})
    assert done.returncode == 0, done.stdout + done.stderr


def test_exactly_these_files(tmp_path: Path) -> None:
    root = tmp_path / "a root"
    install(root)
    install(root)
    found: dict[str, int | str] = {
        str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else stat.S_IMODE(path.stat().st_mode)
        for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}
    assert found == INSTALLED
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o755 for path in root.rglob("*") if path.is_dir())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("systemd-sysusers"), reason="needs root and systemd-sysusers")
def test_its_user_and_its_folder(tmp_path: Path) -> None:
    """Manifests hold tokens: for root to write, and for the service alone to read."""
    for folder in ("etc", "usr"):
        (tmp_path / folder).mkdir()
    install(tmp_path, "install-server")
    user = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if "homeport-server" in line)
    assert user.endswith(":/usr/sbin/nologin")
    its = (tmp_path / "etc/homeport-server").stat()
    assert (stat.S_IMODE(its.st_mode), its.st_uid, str(its.st_gid)) == (0o750, 0, user.split(":")[3])


def test_the_unit_is_understood_whole_and_closed(tmp_path: Path) -> None:
    """Any line of systemd-analyze is about us; the exposure that systemd reckons is 0 to 10."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed (run: make setup)")
    install(tmp_path)
    for target in Path("/usr/lib/systemd/system").glob("*.target"):
        if not target.is_symlink():
            shutil.copy(target, tmp_path / "usr/lib/systemd/system")
    (tmp_path / "usr/bin/kill").touch(0o755)
    for command in (["verify", "--man=no"], ["security", "--offline=yes", "--threshold=17"]):
        done = subprocess.run(["systemd-analyze", *command, f"--root={tmp_path}", UNIT], capture_output=True, text=True,
                              check=False)
        assert (done.returncode, done.stderr.strip()) == (0, ""), done.stdout


def test_one_file_is_the_whole_program(tmp_path: Path) -> None:
    """Nothing of the tree is needed, and nothing of the agent's program is the server's."""
    install(tmp_path)
    program = shutil.copy(tmp_path / PROGRAM, tmp_path / "alone.pyz")
    folder = TOP / "tests/data/server"
    done = subprocess.run([sys.executable, "-I", program, "check", folder], cwd="/", capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert "1 pools, 1 registrations" in done.stdout
    with zipfile.ZipFile(program) as archive:
        names = archive.namelist()
    assert "homeport_server/serve.py" in names
    assert names == sorted(names)


def test_a_library_that_is_missing_is_said(tmp_path: Path) -> None:
    """By an interpreter that has none of them: one line, what to install, and no trace of our code."""
    install(tmp_path)
    bare = [sys.executable, "-I", "-S", str(tmp_path / PROGRAM), "check", str(TOP / "tests/data/server")]
    done = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert done.returncode == os.EX_CONFIG, done.stderr
    assert done.stderr.startswith("homeport-server: The Python library ")
    assert "python3-sqlalchemy" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_interpreter_may_be_another_one(tmp_path: Path) -> None:
    """Where the distribution's libraries are too old; adding bytecode keeps it."""
    install(tmp_path, "install-server-files", "SERVER_PYTHON=/opt/server/bin/python")
    program = tmp_path / PROGRAM
    assert program.open("rb").readline() == b"#!/opt/server/bin/python -I\n"
    subprocess.run([sys.executable, "-I", TOP / "agent/mkzipapp.py", "--add-bytecode", program], check=True)
    assert program.open("rb").readline() == b"#!/opt/server/bin/python -I\n"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
