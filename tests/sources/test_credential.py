from __future__ import annotations

from pathlib import Path

import pytest

from homeport.errors import DocumentError, NoAssignment
from homeport.sources import LARGEST, credential


def put(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "homeport.assignment").write_bytes(data)


def test_the_units_own_comes_before_the_systems(tmp_path: Path) -> None:
    put(tmp_path / "unit", b"unit\n")
    put(tmp_path / "root/run/credentials/@system", b"system\n")
    ours = {"CREDENTIALS_DIRECTORY": str(tmp_path / "unit")}
    reply = credential.fetch(root=tmp_path / "root", environ=ours)
    assert (reply.data, reply.label) == (b"unit\n", "credential homeport.assignment")
    assert credential.fetch(root=tmp_path / "root", environ={}).data == b"system\n"
    # A unit that was given other credentials only.
    elsewhere = {"CREDENTIALS_DIRECTORY": str(tmp_path / "empty")}
    assert credential.fetch(root=tmp_path / "root", environ=elsewhere).data == b"system\n"


def test_none(tmp_path: Path) -> None:
    with pytest.raises(NoAssignment, match=r"homeport\.assignment"):
        credential.fetch(root=tmp_path, environ={})


def test_too_large(tmp_path: Path) -> None:
    put(tmp_path / "run/credentials/@system", b"#" * (LARGEST + 1))
    with pytest.raises(DocumentError, match=r"credential homeport\.assignment is larger than 512 KiB"):
        credential.fetch(root=tmp_path, environ={})
