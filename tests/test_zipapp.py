"""The zipapp: the same bytes from any clone, only the agent inside, started by Python alone."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
AGENT = TOP / "agent"


def test_same_bytes_from_any_clone(tmp_path: Path) -> None:
    first = repository(tmp_path / "here")
    second = tmp_path / "a much longer place" / "there"
    run("git", "clone", "--quiet", first, second, umask=0o077)
    for path in second.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    assert build(first) == build(first) == build(second, umask=0o077)


def test_holds_only_the_agent(tmp_path: Path) -> None:
    tree = repository(tmp_path / "tree")
    for litter in ("homeport/__pycache__/cli.cpython-311.pyc", "homeport/.#cli.py", "homeport/cli.py~",
                   "notes.py"):
        (tree / "agent" / litter).parent.mkdir(exist_ok=True)
        (tree / "agent" / litter).write_text("litter")
    modules = {path.relative_to(AGENT).as_posix() for path in (AGENT / "homeport").rglob("[!.]*.py")}
    assert set(names(build(tree), tmp_path)) == modules | {"__main__.py", "homeport/_build.py"}


def test_entries_carry_nothing_of_the_machine(tmp_path: Path) -> None:
    build(repository(tmp_path / "tree"))
    with zipfile.ZipFile(tmp_path / "tree/build/homeport.pyz") as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    for entry in entries:
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)
        assert entry.external_attr >> 16 == stat.S_IFREG | 0o644
        assert entry.compress_type == zipfile.ZIP_STORED  # zlib's output differs between its versions
        assert not entry.extra


def test_starts_isolated(tmp_path: Path) -> None:
    """Neither the folder one stands in, nor PYTHONPATH, nor a module of the user's gets between."""
    tree = repository(tmp_path / "tree")
    build(tree)
    hostile = tmp_path / "hostile"
    (hostile / "homeport").mkdir(parents=True)
    for name in ("homeport/__init__.py", "argparse.py", "os.py", "sitecustomize.py"):
        (hostile / name).write_text("raise SystemExit('imported from where one stands')")
    shown = run(tree / "build/homeport.pyz", "version", cwd=hostile, environment={"PYTHONPATH": str(hostile)})
    commit = run("git", "-C", tree, "rev-parse", "HEAD").strip()
    assert shown.startswith("homeport ") and shown.strip().endswith(f"({commit})")


def test_tells_a_changed_tree_from_its_commit(tmp_path: Path) -> None:
    tree = repository(tmp_path / "tree")
    clean = commit_in(tree, tmp_path)
    (tree / "agent/homeport/errors.py").open("a").write("# changed\n")
    assert commit_in(tree, tmp_path) == clean + "+"


@pytest.mark.parametrize("inside_a_repository", [False, True])
def test_source_package_has_no_commit(tmp_path: Path, inside_a_repository: bool) -> None:
    """Also one unpacked in somebody's repository: that one's commit says nothing of ours."""
    if inside_a_repository:
        repository(tmp_path)
    tree = tmp_path / "homeport-0.1"
    copy_agent(tree)
    assert commit_in(tree, tmp_path) == "unknown"


def copy_agent(tree: Path) -> None:
    shutil.copytree(AGENT, tree / "agent", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def repository(tree: Path) -> Path:
    """A repository with the agent as it is now, committed."""
    copy_agent(tree)
    (tree / ".gitignore").write_text("/build/\n")
    run("git", "init", "--quiet", tree)
    run("git", "-C", tree, "add", ".")
    run("git", "-C", tree, "-c", "user.name=A", "-c", "user.email=a@example.org",
        "commit", "--quiet", "-m", "agent")
    return tree


def build(tree: Path, umask: int = 0o022) -> bytes:
    output = tree / "build/homeport.pyz"
    run("/usr/bin/python3", tree / "agent/mkzipapp.py", output, umask=umask)
    assert output.stat().st_mode & 0o777 == 0o755
    return output.read_bytes()


def names(data: bytes, folder: Path) -> list[str]:
    (folder / "names.zip").write_bytes(data)
    with zipfile.ZipFile(folder / "names.zip") as archive:
        return archive.namelist()


def commit_in(tree: Path, folder: Path) -> str:
    (folder / "commit.zip").write_bytes(build(tree))
    with zipfile.ZipFile(folder / "commit.zip") as archive:
        scope: dict[str, str] = {}
        exec(archive.read("homeport/_build.py"), scope)
    return scope["COMMIT"]


def run(*command: str | Path, cwd: Path | None = None, umask: int = -1,
        environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, umask=umask, env={**os.environ, **(environment or {})},
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
