"""Metadata in a folder: whatever somebody saved there, it is read as if the platform had said it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.core import platforms
from homeport.core.platforms.reading import Files, lines
from homeport.core.platforms.shape import Service, Want, fixed
from homeport.errors import DocumentError, UsageError
from homeport.sources.platforms import saved

MACS = "2021-01-03/meta-data/network/interfaces/macs"


def aws() -> platforms.Platform:
    found = platforms.find("aws")
    assert found is not None
    return found


def test_a_walk_that_leads_nowhere(tmp_path: Path) -> None:
    def wants(files: Files) -> Iterator[Want]:
        yield Want("list")
        yield from (Want(name.text()) for name in lines(files, "list"))

    (tmp_path / "list").write_bytes(b"m\xe9\n")
    with pytest.raises(DocumentError, match="bytes that are not UTF-8") as caught:
        saved.read(replace(aws(), ways=(Service("", wants),)), tmp_path)
    assert caught.value.complaints[0].path == "list"
    assert "Amazon EC2" in caught.value.hint


def test_more_than_any_platform_says(tmp_path: Path) -> None:
    pieces = [str(number) for number in range(9)]
    for piece in pieces:
        (tmp_path / piece).write_bytes(bytes(512 << 10))
    with pytest.raises(DocumentError, match="more than 4 MiB"):
        saved.read(replace(aws(), ways=(Service("", fixed(*pieces)),)), tmp_path)


def test_names_of_folders_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / MACS).mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(tmp_path / MACS) + b"/m\xe9")).mkdir()
    with pytest.raises(DocumentError, match="bytes that are not UTF-8"):
        platforms.make(aws(), saved.read(aws(), tmp_path), platforms.Situation())


def test_nothing_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no metadata of Amazon EC2"):
        saved.read(aws(), tmp_path)
