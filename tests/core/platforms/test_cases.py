"""Saved metadata, and what becomes of them: a folder below tests/data/platforms is a test.

It is named PLATFORM-CASE.  In it: `metadata/` (named as the platform's paths), `machine.json` (the NICs, and
settings that are not at their default), and what comes of it: `desired-state.yaml` and, as far as there
is an nmstatectl, `keyfiles/`; or `complaints.txt`.  `notes.txt` says what was left out, if anything.
"""

from __future__ import annotations

import json
import os
from ipaddress import ip_address
from pathlib import Path

import pytest
from tests.conftest import find_nmstatectl

from homeport.cli import main
from homeport.core import platforms
from homeport.core.document import check_document
from homeport.core.facts import Nic
from homeport.core.platformnames import ALIASES, NAMES, find_name
from homeport.core.render_complaints import as_lines
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError
from homeport.rendering import DESIRED, render_platform
from homeport.sources.platforms import saved

CASES = sorted((Path(__file__).parents[2] / "data" / "platforms").iterdir())


def platform_of(case: Path) -> str:
    return max((name for name in NAMES if case.name.startswith(f"{name}-")), key=len)


def outcome(case: Path, root: Path) -> dict[str, str]:
    """File name -> text, of everything in the case's folder that is not put in."""
    machine = json.loads((case / "machine.json").read_text())
    try:
        files, notes = render_platform(
            platform_of(case), case / "metadata", root=root, nics=[Nic(**nic) for nic in machine["nics"]],
            policy_routing=machine.get("policy_routing", True),
            servers=[ip_address(server) for server in machine.get("servers", ())],
            routers={mac: ip_address(router) for mac, router in machine.get("routers", {}).items()})
    except DocumentError as error:
        return {"complaints.txt": "".join(f"{line}\n" for line in as_lines(error.complaints))}
    made = {name if name == DESIRED else f"keyfiles/{name}": text for name, text in files.items()}
    return made | ({"notes.txt": "".join(f"{note}\n" for note in notes)} if notes else {})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of a machine with an id of its own, so that the profiles' UUIDs are always the same."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {path.relative_to(case).as_posix(): path.read_text() for path in case.rglob("*")
                if path.is_file() and path.name != "machine.json" and case / "metadata" not in path.parents}
    if nmstatectl := find_nmstatectl():
        monkeypatch.setenv("NMSTATECTL", nmstatectl)
    else:
        monkeypatch.setattr("homeport.rendering.render_keyfiles", lambda *_: {})
        expected = {name: text for name, text in expected.items() if not name.startswith("keyfiles/")}
    assert outcome(case, root) == expected


def test_every_platform_has_a_case() -> None:
    assert {platform_of(case) for case in CASES} == set(NAMES)


# Those that need to know the machine, as their metadata tell no MAC or no servers, and those that are refused.
BLIND = [case for case in CASES if not (case / "complaints.txt").exists()
         and platform_of(case) not in ("packet", "scaleway", "akamai")]


@pytest.mark.parametrize("case", BLIND, ids=lambda case: case.name)
def test_a_document_of_ours_is_acceptable(case: Path) -> None:
    """As any document must be, also where nothing is known of the machine."""
    platform = platforms.find(platform_of(case))
    assert platform is not None
    made = platforms.make(platform, saved.read(platform, case / "metadata"), platforms.Situation())
    assert check_document(render_yaml(made.tree).encode()).complaints == ()


def test_names() -> None:
    assert tuple(platform.name for platform in platforms.PLATFORMS) == NAMES
    assert {find_name(name) for name in ALIASES} <= set(NAMES)
    assert not set(ALIASES) & set(NAMES)
    assert find_name(" EC2 ") == "aws"
    assert platforms.find("metal") is None


def test_an_unknown_name_is_a_wrong_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--platform", "awz", str(tmp_path)]) == os.EX_USAGE
    assert "known are akamai, aliyun, aws" in capsys.readouterr().err


def test_a_folder_without_its_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--platform", "digitalocean", str(tmp_path)]) == os.EX_USAGE
    assert "it would have openstack/latest/network_data.json or metadata/v1.json" in capsys.readouterr().err


def test_what_is_left_out_is_said_beside_the_result(
        root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.rendering.render_keyfiles", lambda *_: {})
    folder = next(case for case in CASES if case.name == "nocloud-version-1-whole") / "metadata"
    nics = [f"--nic=ens{number + 2}=00:00:5e:00:53:0{number}" for number in (1, 2, 3)]
    assert main(["render", "--platform", "nocloud", str(folder), "--root", str(root), *nics]) == os.EX_OK
    told = capsys.readouterr()
    assert told.out.startswith("# desired-state.yaml\ninterfaces:\n- name: ens3\n")
    assert "bond-new-option is not known here" in told.err
