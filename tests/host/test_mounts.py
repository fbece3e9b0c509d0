"""A file system that is looked at for a moment: as it is, by nobody else, and not there any more afterwards."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

AGENT = Path(__file__).resolve().parents[2] / "agent"

LOOK = """
import sys
from homeport.host import mounts
with mounts.read_only(sys.argv[1], *sys.argv[2:]) as place:
    print((place / "word").read_text())
    try:
        (place / "other").write_text("x")
    except OSError as error:
        print(error.strerror)
    lines = [line for line in open("/proc/self/mountinfo") if str(place) in line]
    print(*(word for word in ("ro", "nosuid", "nodev", "noexec", "norecovery", "noload") if word in lines[0]
            .replace(",", " ").split()))
print(any(str(place) in line for line in open("/proc/self/mountinfo")), place.exists())
"""
WRITE = """
import sys
from pathlib import Path
from homeport.host import mounts
mounts.own_namespace()
place = Path(sys.argv[1])
with mounts.writable(place):
    (place / "word").write_text("another")
try:
    (place / "word").write_text("a third")
except OSError as error:
    print(error.strerror)
"""


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def python(program: str, *argv: str) -> list[str]:
    """In a process of its own: its mount namespace is not ours any more."""
    return subprocess.run([sys.executable, "-c", program, *argv], check=True, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": str(AGENT)}).stdout.splitlines()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loop device with an ext4 that was never unmounted, and the image behind it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    image, cut = tmp_path / "disk.img", tmp_path / "cut.img"
    run("truncate", "--size=16M", str(image))
    run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", str(image))
    run("unshare", "--mount", "sh", "-ec",
        f"mount -o loop {image} /mnt; echo -n kept >/mnt/word; sync; cp --sparse=always {image} {cut}; umount /mnt")
    try:
        device = run("losetup", "--find", "--show", str(cut))
    except subprocess.CalledProcessError:
        pytest.skip("no loop devices here")
    yield device, cut
    run("losetup", "--detach", device)


@pytest.mark.parametrize("arguments", [[], ["ext4"], ["ext4", "subvol=none,errors=panic"]])
def test_looked_at_as_it_is(disk: tuple[str, Path], arguments: list[str]) -> None:
    """Not a byte of it changes, although its journal wants to be replayed; the type may be said or found out."""
    device, image = disk
    assert "needs_recovery" in run("dumpe2fs", "-h", device)
    before = hashlib.sha256(image.read_bytes()).digest()
    word, refused, options, after = python(LOOK, device, *arguments)
    assert (word, refused, after) == ("kept", "Read-only file system", "False False")
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(options.split())
    assert hashlib.sha256(image.read_bytes()).digest() == before
    assert device not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize("arguments", [["nfs"], ["xfs"], ["fuse.sshfs"]])
def test_not_looked_at(disk: tuple[str, Path], arguments: list[str]) -> None:
    """A type that could write, or that it is not: an OSError, and nothing is left."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        python(LOOK, disk[0], *arguments)
    assert "OSError" in caught.value.stderr
    assert not list(Path("/run").glob("homeport-root-*"))


@pytest.mark.parametrize(("mounts", "refused", "others"), [
    # The file system is read-only, and is again afterwards.
    ("mount -t tmpfs -o ro tmpfs {place}; mount --bind {place} {other}", True, False),
    # Only the mount is: nobody else's becomes so by us.
    ("mount -t tmpfs tmpfs {place}; mount --bind {place} {other}; mount -o remount,bind,ro {place}", False, True),
    # Nothing is: nothing to do, and nothing to undo.
    ("mount -t tmpfs tmpfs {place}; mount --bind {place} {other}", False, True),
])
def test_writable_for_a_moment(tmp_path: Path, mounts: str, refused: bool, others: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    script = (f"set -e; {mounts.format(place=place, other=other)}; before=$(grep {place} /proc/self/mountinfo); "
              f"{sys.executable} -c '{WRITE}' {place}; cat {place}/word; echo; "
              f'test "$before" = "$(grep {place} /proc/self/mountinfo)" && echo as before; '
              f"touch {other}/new 2>/dev/null && echo others write || true")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], text=True, capture_output=True, check=True,
                          env=os.environ | {"PYTHONPATH": str(AGENT)})
    assert done.stdout.splitlines() == [
        *(["Read-only file system"] if refused else []), "another" if refused else "a third", "as before",
        *(["others write"] if others else [])]


def test_nobody_sees_it_but_others_reach_it(tmp_path: Path) -> None:
    """A mount of somebody else's that goes must not be held by this process."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    program = ("import sys; from homeport.host import mounts; mounts.own_namespace(); print(flush=True); "
               "sys.stdin.readline(); print(sys.argv[1] in open('/proc/self/mountinfo').read())")
    script = (f"mount --make-rshared /; mount -t tmpfs tmpfs {tmp_path}; "
              f"coproc {sys.executable} -c \"{program}\" {tmp_path}; read -r line <&${{COPROC[0]}}; umount {tmp_path}; "
              f"echo >&${{COPROC[1]}}; cat <&${{COPROC[0]}}")
    done = subprocess.run(["unshare", "--mount", "bash", "-c", script], text=True, capture_output=True, check=True,
                          env=os.environ | {"PYTHONPATH": str(AGENT)})
    assert done.stdout.split() == ["False"]
