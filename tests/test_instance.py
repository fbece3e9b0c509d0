"""Files for others on the machine: written whole, readable, and never over what somebody has set."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.errors import PersistError
from homeport.instance import Instance, write_attributes, write_hostname

NAMED = Instance("AFTERBURN_AWS_REGION=eu\n", "web-1")


def test_attributes_are_for_everybody(tmp_path: Path) -> None:
    write_attributes(tmp_path, "/run/metadata/afterburn", NAMED)
    file = tmp_path / "run/metadata/afterburn"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("AFTERBURN_AWS_REGION=eu\n", 0o644)


@pytest.mark.parametrize(("before", "after", "words"), [
    (None, "web-1\n", "is web-1 now"),
    ("\n", "web-1\n", "is web-1 now"),
    ("localhost\n", "web-1\n", "is web-1 now"),
    ("localhost.localdomain\n", "web-1\n", "is web-1 now"),
    ("# by hand\ndb.example\n", "# by hand\ndb.example\n", "stays db.example"),
    ("web-1\n", "web-1\n", "is web-1"),
])
def test_a_host_name_that_somebody_has_set_stays(
        tmp_path: Path, before: str | None, after: str, words: str) -> None:
    file = tmp_path / "etc/hostname"
    file.parent.mkdir()
    if before is not None:
        file.write_text(before)
    assert words in write_hostname(tmp_path, "/etc/hostname", NAMED)
    assert file.read_text() == after


def test_no_name(tmp_path: Path) -> None:
    assert "no host name" in write_hostname(tmp_path, "/etc/hostname", Instance("", ""))
    assert not (tmp_path / "etc").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(PersistError, match=r"cannot write /run/x/y"):
        write_attributes(tmp_path, "/run/x/y", NAMED)
