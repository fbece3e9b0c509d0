"""The documentation is compared with the program: what is written there exists, and examples work."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homeport import errors
from homeport.cli import build_parser
from homeport.core.document import check_document
from homeport.host.entry import RESULT_MESSAGE_ID
from homeport.settings import OPTIONS, man_options

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.[58]"))
GUIDES = sorted(DOCS.glob("*.md"))
EXAMPLE = re.compile(r"^```yaml(?: (bad|pending))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def plain(page: str) -> str:
    """A man page without what is for the eye."""
    return re.sub(r"\\f[RBIP]|\\&", "", page).replace("\\-", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_pages_have_no_faults(page: Path) -> None:
    if not shutil.which("groff"):
        pytest.skip("no groff")
    command = ["groff", "-man", "-ww", "-z", "-K", "utf8", str(page)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


def test_options_are_those_of_the_program() -> None:
    assert man_options() in read("homeport.conf.5"), "run tools/man-options.py"


def verbs() -> dict[str, argparse.ArgumentParser]:
    actions = build_parser()._subparsers._group_actions  # type: ignore[union-attr]
    return {name: parser for action in actions for name, parser in action.choices.items()}  # type: ignore[union-attr]


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_and_its_flags_are_described(verb: str) -> None:
    page = plain(read("homeport.8"))
    described = next(part for part in page.split("\n.TP\n") if part.startswith(verb))
    common = {"--help", "--root", "--debug"}
    settings = {f"--{option.name}" for option in OPTIONS}
    flags = {flag for action in verbs()[verb]._actions for flag in action.option_strings if flag.startswith("--")}
    assert {flag for flag in flags - common - settings if flag not in described} == set()


def test_no_verb_is_described_that_is_not_there() -> None:
    section = plain(read("homeport.8")).partition(".SH VERBS")[2].partition(".SH THE LADDER")[0]
    assert [part.split()[0] for part in section.split("\n.TP\n")[1:]] == list(verbs())


def test_exit_statuses() -> None:
    section = read("homeport.8").partition(".SH EXIT STATUS")[2].partition(".PP")[0]
    known = {kind.status for kind in vars(errors).values()
             if isinstance(kind, type) and issubclass(kind, errors.HomeportError)}
    assert {int(number) for number in re.findall(r"^\.B (\d+)$", section, re.MULTILINE)} == known | {os.EX_OK}


@pytest.mark.parametrize("guide", [*GUIDES, *PAGES], ids=lambda guide: guide.name)
def test_settings_that_are_named_exist(guide: Path) -> None:
    text = plain(guide.read_text(encoding="utf-8")).replace("\\fI", "")
    names = {option.kernel_argument for option in OPTIONS} | {"homeport.assignment"}  # a credential
    assert set(re.findall(r"\bhomeport\.[a-z][a-z-]*(?==)", text)) <= names
    keys = {option.key for option in OPTIONS} | {"LoadCredential", "Name", "Environment", "EnvironmentFile"}
    keys |= {"Bootable", "Initrds", "KernelModulesInitrd", "Packages"}  # mkosi's
    assert set(re.findall(r"(?<![\w@.-])[A-Z][a-z]+[A-Za-z]*(?==)", text)) <= keys


def test_messages_that_are_quoted_are_said() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "agent").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)  # a message may go over two lines
    quoted = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", read("troubleshooting.md"))
    pieces = [piece.strip(" :") for text in quoted for piece in text.split("…")]
    assert len(pieces) > 10
    assert [piece for piece in pieces if piece not in source] == []


def test_the_message_id() -> None:
    for name in ("homeport.8", "integration.md", "troubleshooting.md"):
        assert RESULT_MESSAGE_ID in read(name)


@pytest.mark.parametrize(("kind", "text"), EXAMPLE.findall(read("documents.md")))
def test_examples(kind: str, text: str) -> None:
    findings = check_document(text.encode())
    assert bool(findings.complaints) == (kind == "bad"), findings.complaints
    assert bool(findings.open) == (kind == "pending")


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_files_that_are_installed_are_named_right(guide: Path) -> None:
    """A path below /usr/lib that a guide names is one that `make install` writes, or a place for the site's own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"/usr/lib/(?:homeport|NetworkManager|tmpfiles\.d)/[\w./-]*\w", guide.read_text("utf-8")))
    own = {"/usr/lib/homeport/seed.yaml", "/usr/lib/homeport/homeport.conf.d/50-site.conf"}
    assert {path for path in named - own if os.path.basename(path) not in makefile} == set()


def names_by_file() -> dict[str, set[str]]:
    return {str(path.relative_to(ROOT)): set(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
            for folder in ("tests", "vm-tests") for path in (ROOT / folder).rglob("test_*.py")}


@pytest.mark.parametrize("guide", [ROOT / "README.md", *GUIDES], ids=lambda guide: guide.name)
def test_tests_that_are_named_exist(guide: Path) -> None:
    """With their file's whole path, with its name where that follows from what is before it, or alone."""
    known = names_by_file()
    named = re.findall(r"`(?:([\w./-]+\.py)::)?(test_\w+)`", guide.read_text("utf-8"))
    assert [f"{file}::{name}" for file, name in named if not any(
        name in tests for path, tests in known.items() if f"/{path}".endswith(f"/{file or path}"))] == []


def test_the_tool_changes_nothing_but_the_options(tmp_path: Path) -> None:
    before = read("homeport.conf.5")
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "agent", copy / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", copy / "tools")
    (copy / "docs").mkdir()
    damaged = before.replace("Which sources are asked", "Nonsense")
    (copy / "docs" / "homeport.conf.5").write_text(damaged, encoding="utf-8")
    subprocess.run([sys.executable, copy / "tools" / "man-options.py"], check=True)
    assert damaged != before == (copy / "docs" / "homeport.conf.5").read_text(encoding="utf-8")
