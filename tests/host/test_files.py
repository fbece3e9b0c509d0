"""Files appear whole, with their mode, below their root, or not at all."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.host.files import is_dir, make_dir, read_file, remove, resolve, sweep, write_atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def strange_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


# -- writing

@pytest.mark.parametrize("wanted", [0o600, 0o644, 0o755])
def test_write(tmp_path: Path, wanted: int) -> None:
    write_atomic(tmp_path, "/a", b"new", wanted)
    assert (tmp_path / "a").read_bytes() == b"new" and mode(tmp_path / "a") == wanted
    assert os.listdir(tmp_path) == ["a"]


def test_nobody_else_may_read_it_by_default(tmp_path: Path) -> None:
    write_atomic(tmp_path, "a", b"")
    assert mode(tmp_path / "a") == 0o600


def test_a_reader_of_the_old_file_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with open(tmp_path / "a", "rb") as reader:
        write_atomic(tmp_path, "a", b"new")
        assert reader.read() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_symlink_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "a").symlink_to("target")
    write_atomic(tmp_path, "a", b"new")
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "target").read_bytes() == b"old"


def test_the_directory_must_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(tmp_path, "/etc/a", b"")
    assert caught.value.filename == "/etc/a"


@pytest.mark.parametrize("path", ["/", "", "/etc/.."])
def test_a_path_needs_a_name(tmp_path: Path, path: str) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path, path, b"")


def test_a_directory_in_the_way_leaves_no_litter(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_atomic(tmp_path, "a", b"")
    assert caught.value.filename == "a" and os.listdir(tmp_path) == ["a"]


def test_the_order_of_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode before content, content on disk before the name, the name on disk before we say so."""
    seen: list[str] = []

    def note(name: str) -> None:
        real = getattr(os, name)

        def noting(first: Any, *more: Any, **options: Any) -> Any:
            file = os.fstat(first) if isinstance(first, int) else None
            kind = "" if file is None else " directory" if stat.S_ISDIR(file.st_mode) else f" file of {file.st_size}"
            seen.append(f"{name}{kind}")
            return real(first, *more, **options)
        monkeypatch.setattr(os, name, noting)

    for name in ("fchmod", "fsync", "rename"):
        note(name)
    write_atomic(tmp_path, "a", b"new")
    assert seen == ["fchmod file of 0", "fsync file of 3", "rename", "fsync directory"]


KILLED = """
import os, signal, sys
from homeport.host import files
real = os.fsync
def die(fd):
    real(fd)
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = die
files.write_atomic(sys.argv[1], "a", b"new")
"""


def test_killed_in_the_middle_the_old_file_stands_and_litter_can_be_swept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False,
                          env={**os.environ, "PYTHONPATH": "agent"})
    assert done.returncode == -signal.SIGKILL and (tmp_path / "a").read_bytes() == b"old"
    litter, = (name for name in os.listdir(tmp_path) if name != "a")
    # NetworkManager reads neither hidden files nor other endings than .nmconnection
    assert litter.startswith(".") and not litter.endswith(".nmconnection")
    (tmp_path / ".homeport-0123.tmp").write_bytes(b"somebody else's")
    assert sweep(tmp_path, "/") == (litter,)
    assert sorted(os.listdir(tmp_path)) == [".homeport-0123.tmp", "a"]
    assert sweep(tmp_path, "/absent") == ()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file(small: Path) -> None:
    write_atomic(small, "a", b"old")
    with pytest.raises(OSError) as caught:
        write_atomic(small, "a", b"#" * (1 << 20))
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == "a"
    assert (small / "a").read_bytes() == b"old" and os.listdir(small) == ["a"]


def test_a_read_only_disk(small: Path) -> None:
    write_atomic(small, "a", b"old")
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    for change in (lambda: write_atomic(small, "a", b""), lambda: remove(small, "a"), lambda: make_dir(small, "b")):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EROFS


# -- reading

def test_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_file(tmp_path, "/a", 5) == b"12345"
    assert read_file(tmp_path, "/b", 5) is None and read_file(tmp_path, "/a/b", 5) is None
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        read_file(tmp_path, "/a", 4)
    assert caught.value.errno == errno.EFBIG and caught.value.filename == "/a"


def test_files_of_the_kernel_have_content_and_no_size() -> None:
    assert read_file("/", "/proc/self/stat", 4096)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        read_file(tmp_path, "fifo", 5)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path, "folder", 5)


# -- below the root

@pytest.mark.parametrize(("path", "wanted"), [
    ("/etc/a", "etc/a"),
    ("etc/./a", "etc/a"),
    ("/../../etc/a", "etc/a"),
    ("/absolute/a", "etc/a"),  # a link to /etc
    ("/relative/a", "etc/a"),  # a link to etc
    ("/climbing/a", "etc/a"),  # a link to ../../../etc
    ("/chain/a", "etc/a"),  # a link to relative
    ("/absent/b/c", "absent/b/c"),
    ("/etc/out", "etc/passwd"),  # a link to ../../../../etc/passwd
])
def test_nothing_leads_out_of_the_root(tmp_path: Path, path: str, wanted: str) -> None:
    (tmp_path / "etc").mkdir()
    for name, target in {"absolute": "/etc", "relative": "etc", "climbing": "../../../etc", "chain": "relative",
                         "etc/out": "../../../../etc/passwd"}.items():
        (tmp_path / name).symlink_to(target)
    assert resolve(tmp_path, path) == str(tmp_path / wanted)


def test_writing_through_a_link_stays_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "root/run").mkdir(parents=True)
    (tmp_path / "root/var").mkdir()
    (tmp_path / "root/var/run").symlink_to("/run")
    name = f"homeport-test-{os.getpid()}"
    write_atomic(tmp_path / "root", f"/var/run/{name}", b"x")
    assert (tmp_path / "root/run" / name).read_bytes() == b"x" and not os.path.exists(f"/run/{name}")
    assert read_file(tmp_path / "root", f"/var/run/{name}", 9) == b"x"
    assert remove(tmp_path / "root", f"/var/run/{name}") and os.listdir(tmp_path / "root/run") == []


def test_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError) as caught:
        resolve(tmp_path, "/a/c")
    assert caught.value.errno == errno.ELOOP
    assert not is_dir(tmp_path, "/a")


# -- removing, making directories

def test_remove(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "a").symlink_to("target")
    assert remove(tmp_path, "a") is True and remove(tmp_path, "a") is False
    assert remove(tmp_path, "/absent/a") is False
    assert os.listdir(tmp_path) == ["target"]


def test_make_dir(tmp_path: Path) -> None:
    make_dir(tmp_path, "/var/lib/homeport", 0o700)
    assert mode(tmp_path / "var/lib/homeport") == 0o700 and mode(tmp_path / "var/lib") == 0o755
    (tmp_path / "var/lib/homeport").chmod(0o750)
    make_dir(tmp_path, "/var/lib/homeport", 0o700)
    assert mode(tmp_path / "var/lib/homeport") == 0o750  # whoever changed it had a reason


def test_make_dir_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "var").write_bytes(b"")
    with pytest.raises(FileExistsError):
        make_dir(tmp_path, "/var")
    with pytest.raises(OSError):
        make_dir(tmp_path, "/var/lib")


def test_where_directories_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """9p and some FUSE; nothing of the kind can be mounted in a test, so the kernel's answer is played."""
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path, "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
