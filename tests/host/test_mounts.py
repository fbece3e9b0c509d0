"""A file system that is looked at for a moment: as it is, by nobody else, and not there any more afterwards."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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
    print(*lines[0].replace(",", " ").split())
print(any(str(place) in line for line in open("/proc/self/mountinfo")), place.exists())
"""
KILLED = """
import os, sys
from homeport.host import mounts
with mounts.read_only(sys.argv[1]) as place:
    os.kill(os.getpid(), 9)
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


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def loops_over(device: str) -> list[str]:
    """The loop devices that are made of this one."""
    return [name for name, _, backing in (line.partition(" ") for line in run(
        "losetup", "--list", "--noheadings", "--output=NAME,BACK-FILE").splitlines()) if backing.strip() == device]


def looped(image: Path) -> Iterator[tuple[str, Path]]:
    """A loop device over the image, and the image."""
    try:
        device = run("losetup", "--find", "--show", str(image))
    except subprocess.CalledProcessError:
        pytest.skip("no loop devices here")
    yield device, image
    run("losetup", "--detach", device)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loop device with an ext4 that was never unmounted, and the image behind it. As after a power cut: a journal to
    be replayed, and a file to be deleted that was still open. About what is damaged it would panic.
    """
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    image, cut = tmp_path / "disk.img", tmp_path / "cut.img"
    run("truncate", "--size=16M", str(image))
    run("mkfs.ext4", "-q", "-F", "-e", "panic", "-E", "lazy_itable_init=0", str(image))
    # What is frozen has left the journal: the file is on the list in the superblock, too.
    run("unshare", "--mount", "sh", "-ec",
        f"mount -o loop {image} /mnt; exec 3>/mnt/open; echo gone >&3; rm /mnt/open; "
        "fsfreeze -f /mnt; fsfreeze -u /mnt; echo -n kept >/mnt/word; sync; "
        f"cp --sparse=always {image} {cut}; exec 3>&-; umount /mnt")
    yield from looped(cut)


@pytest.mark.parametrize("arguments", [[], ["ext4"], ["ext4", "subvol=none,errors=panic"]])
def test_looked_at_as_it_is(disk: tuple[str, Path], arguments: list[str]) -> None:
    """Not a byte of it changes, although its journal wants to be replayed; the type may be said or found out."""
    device, image = disk
    found = run("dumpe2fs", "-h", device)
    assert "needs_recovery" in found and "First orphan inode" in found
    before = hashlib.sha256(image.read_bytes()).digest()
    word, refused, options, after = python(LOOK, device, *arguments)
    assert (word, refused, after) == ("kept", "Read-only file system", "False False")
    assert {"ro", "nosuid", "nodev", "noexec", "errors=continue"} <= set(options.split())
    assert hashlib.sha256(image.read_bytes()).digest() == before
    assert device not in Path("/proc/mounts").read_text()
    assert loops_over(device) == []


def test_nothing_is_left_of_one_that_was_killed(disk: tuple[str, Path]) -> None:
    """Mount and loop device go with the process; the disk can be mounted for good, writable."""
    device, _ = disk
    with pytest.raises(subprocess.CalledProcessError):
        python(KILLED, device)
    wait_until(lambda: not loops_over(device))  # the kernel is at it
    for folder in Path("/run").glob("homeport-root-*"):
        folder.rmdir()
    run("unshare", "--mount", "sh", "-ec", f"mount {device} /mnt; echo x >/mnt/new; umount /mnt")


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


# As after a power cut: what is frozen has left the journal, what is synced by itself stands there alone; and a file is
# to be deleted that was still open.
CUT = """
mount -o loop {image} /mnt; exec 3>/mnt/open; echo gone >&3; rm /mnt/open; echo -n kept >/mnt/word
fsfreeze -f /mnt; fsfreeze -u /mnt; echo -n new >/mnt/later; sync /mnt/later
cp --sparse=always {image} {cut}; exec 3>&-; umount /mnt
"""
# What to ask of each whether there is something to be replayed.
DIRTY = {"xfs": ("xfs_logprint -t {cut}", "state: <DIRTY>"),
         "btrfs": ("btrfs inspect-internal dump-super {cut} | grep -w log_root | grep -v '[[:space:]]0$'", "log_root")}


@pytest.fixture(params=DIRTY)
def other_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loop device with a file system of another kind that was never unmounted, and the image behind it."""
    kind, image, cut = request.param, tmp_path / "disk.img", tmp_path / "cut.img"
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount")
    if not shutil.which(f"mkfs.{kind}"):
        if os.environ.get("CI"):
            pytest.fail(f"no mkfs.{kind}: run tools/setup")
        pytest.skip(f"no mkfs.{kind}: run tools/setup")
    subprocess.run(["modprobe", "--quiet", kind], check=False)
    if f"\t{kind}\n" not in Path("/proc/filesystems").read_text():
        pytest.skip(f"this kernel has no {kind}")
    run("truncate", "--size=320M", str(image))
    run(f"mkfs.{kind}", "-q", str(image))
    run("unshare", "--mount", "sh", "-ec", CUT.format(image=image, cut=cut))
    image.unlink()
    question, answer = DIRTY[kind]
    assert answer in run("sh", "-c", question.format(cut=cut))
    yield from looped(cut)


def test_other_kinds_are_looked_at_as_they_are(other_disk: tuple[str, Path]) -> None:
    """Found out by itself, not a byte changes, and what has to be replayed still is when it is mounted for good."""
    device, image = other_disk
    before = hashlib.sha256(image.read_bytes()).digest()
    word, refused, options, after = python(LOOK, device)
    assert (word, refused, after) == ("kept", "Read-only file system", "False False")
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(options.split())
    assert hashlib.sha256(image.read_bytes()).digest() == before
    found = run("unshare", "--mount", "sh", "-ec", f"mount {device} /mnt; ls /mnt; cat /mnt/later; umount /mnt")
    assert found.split() == ["later", "word", "new"]
