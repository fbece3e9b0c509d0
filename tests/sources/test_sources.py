"""The order of sources, and what is said when none has a document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from homeport import sources
from homeport.errors import DocumentError, NoAssignment, SourceError, Unreachable
from homeport.settings import Settings


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def put(root: Path, path: str, data: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


CREDENTIAL = "run/credentials/@system/homeport.assignment"


def test_the_first_that_has_something_decides(tmp_path: Path, server: Any, ask: Any) -> None:
    locations = ("/etc/net.yaml", f"{server.url}/a")
    assert ask(*locations, root=tmp_path).source == "url"
    put(tmp_path, "etc/net.yaml", b"file\n")
    assert ask(*locations, root=tmp_path).source == "file"
    put(tmp_path, CREDENTIAL, b"credential\n")
    assert ask(*locations, root=tmp_path).source == "credential"
    assert ask(*locations, root=tmp_path, sources=("url", "file", "credential")).source == "url"
    assert ask(*locations, root=tmp_path, sources=("file",)).source == "file"


def test_why_the_others_had_nothing_is_kept(tmp_path: Path, server: Any, ask: Any) -> None:
    reply = ask("/etc/net.yaml", f"{server.url}/a", root=tmp_path)
    assert reply.passed_over == (
        "credential: No credential homeport.assignment was passed to this machine", "fw-cfg: not configured",
        "file: No document for this machine at /etc/net.yaml", "drive: not configured")


def test_a_document_that_is_there_but_unusable_decides_too(tmp_path: Path, server: Any, ask: Any) -> None:
    put(tmp_path, "etc/net.yaml", b"#" * (sources.LARGEST + 1))
    with pytest.raises(DocumentError):
        ask("/etc/net.yaml", f"{server.url}/a", root=tmp_path)
    assert server.paths == []


def test_a_silent_source_outweighs_one_that_says_none(tmp_path: Path, server: Any, ask: Any) -> None:
    """Or a boot would take an empty folder for "this machine has no assignment any more"."""
    server.answers[0].status = 503
    with pytest.raises(Unreachable) as caught:
        ask("/etc/net.yaml", f"{server.url}/a", root=tmp_path, within=1.0)
    assert any(note.startswith("file: No document") for note in caught.value.__notes__)
    server.answers[0].status = 404
    with pytest.raises(NoAssignment):
        ask("/etc/net.yaml", f"{server.url}/a", root=tmp_path)


def test_an_unreadable_file_outweighs_none(tmp_path: Path, server: Any, ask: Any) -> None:
    server.answers[0].status = 404
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/net.yaml").symlink_to("net.yaml")
    with pytest.raises(SourceError, match="Cannot read the document") as caught:
        ask("/etc/net.yaml", f"{server.url}/a", root=tmp_path)
    assert not isinstance(caught.value, NoAssignment)


def test_nothing_configured(tmp_path: Path, ask: Any) -> None:
    with pytest.raises(NoAssignment, match=r"No source .* is configured"):
        ask(root=tmp_path)


@pytest.mark.parametrize(("config", "order", "wanted"), [
    ((), ("credential", "file", "url"), False),
    (("/etc/net.yaml",), ("credential", "file", "url"), False),
    (("/etc/net.yaml", "https://cfg.example/"), ("credential", "file", "url"), True),
    (("https://cfg.example/",), ("credential", "file"), False),
])
def test_whether_a_network_is_needed(config: tuple[str, ...], order: tuple[str, ...], wanted: bool) -> None:
    assert sources.needs_network(Settings({"config": config, "sources": order})) is wanted


def test_the_seed_is_the_first_that_exists(tmp_path: Path) -> None:
    settings = Settings()
    with pytest.raises(NoAssignment, match="no seed document"):
        sources.read_seed(settings, root=tmp_path)
    put(tmp_path, "usr/lib/homeport/seed.yaml", b"image\n")
    assert sources.read_seed(settings, root=tmp_path).label == "seed /usr/lib/homeport/seed.yaml"
    put(tmp_path, "etc/homeport/seed.yaml", b"site\n")
    assert sources.read_seed(settings, root=tmp_path).data == b"site\n"


def test_a_boot_that_needs_no_network_imports_none_of_its_libraries(tmp_path: Path) -> None:
    put(tmp_path, "etc/net.yaml", b"file\n")
    program = f"""
import sys
from homeport import sources
from homeport.core.identity import Identity
from homeport.settings import Settings
sources.fetch(Settings({{"config": ("/etc/net.yaml",)}}), Identity(), deadline=1e9, root={str(tmp_path)!r})
print(*sorted({{"requests", "urllib3", "ssl", "yaml", "subprocess", "socket"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env={"PYTHONPATH": "agent"})
    assert done.stdout.strip() == ""
