"""Seeds: on the kernel line, on a drive, in the image; and what is wrong with those that are none."""

from __future__ import annotations

import base64
import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from homeport.errors import DocumentError, NoAssignment
from homeport.host import zstd
from homeport.settings import Settings, read_settings
from homeport.sources import LARGEST, seeds

TEXT = b"interfaces: []\n" * 20


def packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


@pytest.mark.parametrize("text", [
    packed(TEXT),
    packed(TEXT).rstrip("="),
    packed(TEXT).replace("+", "-").replace("/", "_"),
    base64.b64encode(TEXT).decode(),
])
def test_packed(text: str) -> None:
    assert seeds.unpack(text) == TEXT


def by_zstd(data: bytes) -> str:
    if not shutil.which("zstd"):
        pytest.skip("no zstd")
    done = subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True)
    return base64.b64encode(done.stdout).decode()


def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd, "LIBRARY", "libnone.so.1")


def test_zstd_by_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in an initramfs, which has no program for it."""
    text = by_zstd(TEXT)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert seeds.unpack(text) == TEXT
    with pytest.raises(DocumentError, match=r"zstd: damaged or cut off.*the whole of what zstd wrote"):
        seeds.unpack(base64.b64encode(base64.b64decode(text)[:-5]).decode())
    with pytest.raises(DocumentError, match="zstd: damaged or cut off"):
        seeds.unpack(base64.b64encode(base64.b64decode(text) + b"x" * 9).decode())


def test_zstd_by_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    without_library(monkeypatch)
    text = by_zstd(TEXT)
    assert seeds.unpack(text) == TEXT
    with pytest.raises(DocumentError, match="zstd: damaged or cut off"):
        seeds.unpack(base64.b64encode(base64.b64decode(text)[:-5]).decode())


def test_zstd_by_neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_library(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DocumentError, match=r"no libnone.so.1 here.* Cannot start zstd.*gzip, which needs neither"):
        seeds.unpack(base64.b64encode(seeds.ZSTD + b"x" * 9).decode())


@pytest.mark.parametrize("library", [True, False])
def test_a_bomb_of_zstd(monkeypatch: pytest.MonkeyPatch, library: bool) -> None:
    if not library:
        without_library(monkeypatch)
    assert seeds.unpack(by_zstd(b"x" * LARGEST)) == b"x" * LARGEST
    with pytest.raises(DocumentError, match="larger than 512 KiB"):
        seeds.unpack(by_zstd(b"x" * (200 << 20)))


@pytest.mark.parametrize(("text", "fault"), [
    ("!!!", "not base64"),
    ("abcde", "not base64"),
    (packed(TEXT)[:-12], "gzip: cut off"),
    (base64.b64encode(seeds.GZIP + b"\x00" * 20).decode(), "gzip: "),
    (packed(b"x" * (LARGEST + 1)), "larger than 512 KiB"),
    (packed(b"x" * (200 << 20)), "larger than 512 KiB"),  # a bomb
])
def test_what_is_wrong(text: str, fault: str) -> None:
    with pytest.raises(DocumentError, match=fault):
        seeds.unpack(text)


def test_on_the_kernel_line(tmp_path: Path) -> None:
    """It takes the place of the image's; a path there is a path as ever."""
    settings = read_settings(tmp_path, f"quiet homeport.seed={packed(TEXT)}")
    reply = seeds.read(settings, root=tmp_path)
    assert (reply.data, reply.label, reply.over_network) == (TEXT, "seed homeport.seed=", False)
    settings = read_settings(tmp_path, "homeport.seed=/etc/other.yaml")
    assert settings.seed == ("/etc/other.yaml",)
    with pytest.raises(NoAssignment):
        seeds.read(settings, root=tmp_path)


def test_its_text_is_in_no_message(tmp_path: Path) -> None:
    settings = read_settings(tmp_path, "homeport.seed=se;cret", lenient=True)
    assert settings.warnings and not any("cret" in warning for warning in settings.warnings)
    assert settings.seed == Settings().seed


def test_files_of_the_image(tmp_path: Path) -> None:
    with pytest.raises(NoAssignment, match="no seed document"):
        seeds.read(Settings(), root=tmp_path)
    (tmp_path / "usr/lib/homeport").mkdir(parents=True)
    (tmp_path / "usr/lib/homeport/seed.yaml").write_bytes(TEXT)
    assert seeds.read(Settings(), root=tmp_path).url == "/usr/lib/homeport/seed.yaml"
    assert seeds.read_at_hand(Settings(), root=tmp_path) is None
