"""A disk once more, read-only: nothing can be written to it there, and udev leaves it alone."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest

from homeport.host import loop


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make loop devices")
    if not os.path.exists(loop.CONTROL):
        pytest.skip("no loop devices here")
    image = tmp_path / "disk.img"
    image.write_bytes(b"sector " * 512)
    return image


def attribute(path: str, name: str) -> str:
    return Path("/sys/block", os.path.basename(path), name).read_text().strip()


def test_read_only_and_gone_afterwards(disk: Path) -> None:
    with loop.read_only(str(disk)) as path:
        assert attribute(path, "ro") == attribute(path, "loop/autoclear") == "1"
        assert attribute(path, "loop/backing_file") == str(disk)
        assert Path(path).read_bytes() == disk.read_bytes()
        with open(path, "r+b", buffering=0) as writing, pytest.raises(PermissionError):
            writing.write(b"x" * 512)
    assert not Path("/sys/block", os.path.basename(path), "loop/backing_file").exists()


def test_locked_for_udev(disk: Path) -> None:
    """By which it is not shown as the disk that it stands for."""
    with loop.read_only(str(disk)) as path, open(path, "rb") as looking, pytest.raises(BlockingIOError):
        fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_udev_is_done_first(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a loop device that has just come to be."""
    with open(loop.CONTROL, "rb") as control:
        free = f"/dev/loop{fcntl.ioctl(control, loop.LOOP_CTL_GET_FREE)}"
    looking = os.open(free, os.O_RDONLY)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        os.close(looking)
    monkeypatch.setattr(time, "sleep", sleep)
    fcntl.flock(looking, fcntl.LOCK_SH)
    with loop.read_only(str(disk)) as path:
        assert (path, len(pauses)) == (free, 1)


@pytest.mark.parametrize("comes", [True, False])
def test_udev_has_not_come_to_it(disk: Path, comes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It might have been unable to open it, and look what is in it now."""
    udev, pauses = disk.parent / "udev", list[float]()
    udev.mkdir()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if comes and len(pauses) == 3:
            for number in range(256):
                (udev / f"b7:{number}").touch()
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(loop, "UDEV", str(udev))
    monkeypatch.setattr(loop, "UDEV_KNOWS", str(udev))
    monkeypatch.setattr(loop, "WAIT", 60 if comes else 0)
    if comes:
        with loop.read_only(str(disk)):
            assert len(pauses) == 3
    else:
        with pytest.raises(OSError, match="udev has not looked at it yet"):
            loop.read_only(str(disk)).__enter__()


def test_none_is_to_be_had(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without them, and one that is in use for too long: an OSError."""
    monkeypatch.setattr(loop, "CONTROL", str(disk.parent / "loop-control"))
    with pytest.raises(FileNotFoundError):
        loop.read_only(str(disk)).__enter__()
    monkeypatch.undo()
    monkeypatch.setattr(loop, "WAIT", 0)
    monkeypatch.setattr(loop, "_configure", in_use)
    with pytest.raises(OSError, match="busy"):
        loop.read_only(str(disk)).__enter__()


def in_use(*_: int) -> None:
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
