"""Seeds: on the kernel line, on a drive, in the image; and what is wrong with those that are none."""

from __future__ import annotations

import base64
import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from homeport.errors import DocumentError, NoAssignment
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


def test_zstd_by_its_program() -> None:
    if not shutil.which("zstd"):
        pytest.skip("no zstd")
    data = subprocess.run(["zstd", "-c"], input=TEXT, capture_output=True, check=True).stdout
    assert seeds.unpack(base64.b64encode(data).decode()) == TEXT
    with pytest.raises(DocumentError, match="zstd: damaged or cut off"):
        seeds.unpack(base64.b64encode(data[:-5]).decode())


def test_zstd_without_its_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DocumentError, match=r"zstd: Cannot start zstd.*; gzip, which needs no program"):
        seeds.unpack(base64.b64encode(seeds.ZSTD + b"x" * 9).decode())


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
