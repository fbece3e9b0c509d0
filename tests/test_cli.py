"""The command line as a person or a script meets it: words, streams and exit statuses."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from homeport import cli
from homeport.settings import OPTIONS

GOOD = b"interfaces:\n- {name: enp1s0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}\n"
TEMPLATE = b"""ipAddresses: {other: 192.0.2.1}
config:
  interfaces:
  - {name: enp1s0, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: '{mine}', prefix-length: 24}]}}
"""
VERBS = ("boot", "identify", "fetch", "check", "render", "apply", "refresh", "status", "reset", "version")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "document.yaml"
    path.write_bytes(GOOD)
    return path


@pytest.mark.parametrize("argv", [
    [], ["fly"], ["boot", "--fast"], ["boot", "--stage", "moon"], ["check"], ["render"], ["--stat"],
    ["render", "x", "--ip", "name"], ["check", "/nonexistent"], ["apply", "/nonexistent"],
    ["boot", "--deadline", "soon"],
])
def test_wrong_command_line_is_64_and_one_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == os.EX_USAGE
    err = capsys.readouterr().err
    assert err.startswith("homeport: ")
    assert err.count("\n") == 1


def test_help_names_every_verb_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        cli.main(["--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)
    assert all(str(status) in text for status in (0, 64, 65, 69, 70, 73, 75, 77, 78))


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([verb, "--help"])
    assert f"usage: homeport {verb}" in capsys.readouterr().out


def test_every_setting_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["boot", "--help"])
    text = capsys.readouterr().out
    assert all(f"--{option.name} VALUE" in text for option in OPTIONS)


def test_check_good(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(document)]) == os.EX_OK
    assert capsys.readouterr().out == f"{document}: good\n"


def test_check_shows_all_faults_of_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(GOOD.replace(b"state: up", b"sate: up, mtu: many"))
    two.write_bytes(b"interfaces: 7\n")
    assert cli.main(["check", str(one), str(two)]) == os.EX_DATAERR
    out = capsys.readouterr().out
    assert "interfaces[0].sate" in out
    assert "interfaces[0].mtu" in out
    assert f"{two}: " in out


def test_check_json(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document.write_bytes(GOOD.replace(b"dhcp: true", b"dchp: true"))
    assert cli.main(["check", "--json", str(document)]) == os.EX_DATAERR
    (found,) = json.loads(capsys.readouterr().out)
    assert found["file"] == str(document)
    assert not found["valid"]
    assert [complaint["path"] for complaint in found["complaints"]] == ["interfaces[0].ipv4.dchp"]


def test_check_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert cli.main(["check", "-"]) == os.EX_DATAERR
    assert capsys.readouterr().out.startswith("-: 1 complaint\n")


def test_check_of_a_template_says_what_it_waits_for(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document.write_bytes(TEMPLATE)
    assert cli.main(["check", str(document)]) == os.EX_UNAVAILABLE
    out = capsys.readouterr().out
    assert "pending" in out
    assert "{mine}" in out


def test_status_before_the_first_boot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--root", str(tmp_path)]) == os.EX_UNAVAILABLE
    assert "has not run in this boot" in capsys.readouterr().out
    assert cli.main(["status", "--json", "--root", str(tmp_path)]) == os.EX_UNAVAILABLE
    assert json.loads(capsys.readouterr().out)["exit"] == os.EX_UNAVAILABLE


def test_status_has_the_exit_status_of_the_boot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run/homeport"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps({"rung": "dhcp", "exit": 75, "reason": "gateway silent"}))
    assert cli.main(["status", "--root", str(tmp_path)]) == os.EX_TEMPFAIL
    assert "gateway silent" in capsys.readouterr().out


def test_wrong_settings_are_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "etc/homeport").mkdir(parents=True)
    (tmp_path / "etc/homeport/homeport.conf").write_text("Deadline=soon\n")
    assert cli.main(["identify", "--root", str(tmp_path)]) == os.EX_CONFIG
    assert "/etc/homeport/homeport.conf:1" in capsys.readouterr().err


def test_identify_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even a kernel command line: no identity is invented."""
    assert cli.main(["identify", "--json", "--root", str(tmp_path)]) == os.EX_UNAVAILABLE
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["value"]) == ("none", "")
    assert found["rejected"]


def test_identify_by_override(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "etc/homeport").mkdir(parents=True)
    (tmp_path / "etc/homeport/identity").write_text("serial:ABC123\n")
    assert cli.main(["identify", "--root", str(tmp_path)]) == os.EX_OK
    out = capsys.readouterr().out
    assert "override" in out
    assert "ABC123" in out


def test_reset_asks_or_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))  # a pipe is nobody
    assert cli.main(["reset", "--root", str(tmp_path)]) == os.EX_USAGE
    assert "--yes" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == os.EX_OK
    assert capsys.readouterr().out.startswith("homeport 0.")


def test_bug_is_70_and_the_only_one_with_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    def buggy(_: object) -> int:
        raise KeyError("name")
    monkeypatch.setattr("homeport.commands.version", buggy)
    assert cli.main(["version"]) == os.EX_SOFTWARE
    assert "Traceback" in capsys.readouterr().err
