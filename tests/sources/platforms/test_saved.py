"""Metadata in a folder: whatever somebody saved there, it is read as if the platform had said it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeport.core import platforms
from homeport.errors import DocumentError, UsageError
from homeport.sources.platforms import saved

MACS = "2021-01-03/meta-data/network/interfaces/macs"


def aws() -> platforms.Platform:
    found = platforms.find("aws")
    assert found is not None
    return found


def test_a_list_that_is_no_text(tmp_path: Path) -> None:
    """As a file, and as a folder whose names are the list."""
    (tmp_path / MACS).parent.mkdir(parents=True)
    (tmp_path / MACS).write_bytes(b"\xff\xfe/\n")
    with pytest.raises(DocumentError, match="bytes that are not UTF-8") as caught:
        saved.read(aws(), tmp_path)
    assert caught.value.complaints[0].path == f"{MACS}/"
    (tmp_path / MACS).unlink()
    (tmp_path / MACS).mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / MACS) + b"/\xff\xfe")).mkdir()
    with pytest.raises(DocumentError, match="bytes that are not UTF-8"):
        saved.read(aws(), tmp_path)


def test_nothing_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metadata of Amazon EC2"):
        saved.read(aws(), tmp_path)
