"""The file with which Elemental replays our keyfiles at each boot."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from homeport.errors import PersistError
from homeport.host import oem
from homeport.host.files import write_atomic

ETC = "etc/NetworkManager/system-connections"
# What a keyfile may hold that YAML or a shell could mistake.
ODD = ("[connection]\nid=homeport-enp1s0\n\n[wifi-security]\npsk=a: 'b' \"c\" \\n # $(d) `e` {f} {{g}} {{{\n"
       "[user]\nnote=  two  blanks, a tab\there, ümlaut, no:yes, 0o17, 1e3\n")
KEYFILES = {f"{ETC}/homeport-enp1s0.nmconnection": ODD, f"{ETC}/homeport-bond0.nmconnection": "[connection]\nid=b\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "oem").mkdir()
    return tmp_path


def replay(root: Path) -> None:
    """What yip does with the files of a stage: the content is a template, in which only a quoted text may stand."""
    stage, = yaml.safe_load((root / oem.PATH).read_text())["stages"]["initramfs"]
    for file in stage["files"]:
        target = root / file["path"].lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub(r'\{\{("\{\{"|.*?)\}\}', lambda found: "{{" if found[1] == '"{{"' else "(a template)",
                                 file["content"]))
        target.chmod(file["permissions"])
        assert (file["owner"], file["group"]) == (0, 0)


def test_the_keyfiles_come_back_byte_for_byte(root: Path) -> None:
    assert oem.write(root, KEYFILES) == (oem.PATH,)
    replay(root)
    for path, text in KEYFILES.items():
        assert (root / path).read_text() == text
        assert (root / path).stat().st_mode & 0o7777 == 0o600


def test_it_is_for_root_only(root: Path) -> None:
    oem.write(root, KEYFILES)
    assert (root / oem.PATH).stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(("marker", "replayed"), [
    ("run/elemental/active_mode", True),
    ("run/elemental/passive_mode", True),
    ("run/cos/active_mode", True),  # older images
    ("run/elemental/recovery_mode", False),
    ("run/elemental/live_mode", False),
    ("run/cos/recovery_mode", False),
    ("run/nothing", False),
])
def test_only_in_active_and_passive_mode(root: Path, marker: str, replayed: bool) -> None:
    """The guard is run by a shell, as yip runs it; here with the root in front of its paths."""
    oem.write(root, KEYFILES)
    stage, = yaml.safe_load((root / oem.PATH).read_text())["stages"]["initramfs"]
    (root / marker).parent.mkdir(parents=True, exist_ok=True)
    (root / marker).write_text("1")
    guard = stage["if"].replace("/run/", f"{root}/run/")
    assert (subprocess.run(["sh", "-c", guard], check=False).returncode == 0) is replayed


def test_elsewhere_than_on_elemental_nothing_is_written(tmp_path: Path) -> None:
    assert oem.write(tmp_path, KEYFILES) == ()
    assert oem.is_written(tmp_path, KEYFILES)
    assert not oem.forget(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_it_is_written_only_if_it_changes(root: Path) -> None:
    oem.write(root, KEYFILES)
    before = os.stat(root / oem.PATH).st_ino
    assert oem.is_written(root, KEYFILES)
    oem.write(root, KEYFILES)
    assert os.stat(root / oem.PATH).st_ino == before
    assert not oem.is_written(root, {})


def test_forgetting_needs_nothing_but_the_file(root: Path) -> None:
    oem.write(root, KEYFILES)
    assert oem.forget(root)
    assert not (root / oem.PATH).exists()
    assert not oem.forget(root)


def test_a_stranger_s_file_is_left_alone_by_a_reset(root: Path) -> None:
    write_atomic(root, oem.PATH, b"name: Apply network config\n")
    assert not oem.forget(root)
    assert (root / oem.PATH).exists()


def test_elemental_register_s_file_is_replaced_with_a_word(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both would be replayed, one over the other; from now on this machine's network is ours to keep."""
    write_atomic(root, oem.PATH, b"name: Apply network config\n")
    oem.write(root, KEYFILES)
    assert oem.owns(root)
    assert "is elemental-register's, replacing it" in caplog.text


def test_a_folder_that_cannot_be_written(root: Path) -> None:
    (root / oem.PATH).mkdir()
    with pytest.raises(PersistError, match=r"cannot be kept: Is a directory \(/oem/elemental-network.yaml\)"):
        oem.write(root, KEYFILES)
