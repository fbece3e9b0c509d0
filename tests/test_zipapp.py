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
    build(tree)
    assert set(read_members(tree / "build/homeport.pyz")) == modules | {"__main__.py", "homeport/_build.py"}


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
    clean = commit_in(tree)
    (tree / "agent/homeport/errors.py").open("a").write("# changed\n")
    assert commit_in(tree) == clean + "+"


@pytest.mark.parametrize("inside_a_repository", [False, True])
def test_source_package_has_no_commit(tmp_path: Path, inside_a_repository: bool) -> None:
    """Also one unpacked in somebody's repository: that one's commit says nothing of ours."""
    if inside_a_repository:
        repository(tmp_path)
    tree = tmp_path / "homeport-0.1"
    copy_agent(tree)
    assert commit_in(tree) == "unknown"


def test_bytecode_is_used_and_sources_are_kept(tmp_path: Path) -> None:
    """Spoil the sources: what was compiled still runs. Compile for another Python: the sources do."""
    zipapp = with_bytecode(tmp_path)
    modules = read_members(zipapp)
    assert {name for name in modules if name.endswith(".pyc")} == {
        f"{name}c" for name in modules if name.endswith(".py")}
    spoiled = {name: b"(" if name.endswith(".py") else data for name, data in modules.items()}
    assert run(repacked(spoiled, tmp_path / "spoiled"), "version").startswith("homeport ")
    alien = {name: b"\0\0\r\n" + data[4:] if name.endswith(".pyc") else data for name, data in modules.items()}
    assert run(repacked(alien, tmp_path / "alien"), "version").startswith("homeport ")


def test_bytecode_added_twice_is_added_once(tmp_path: Path) -> None:
    zipapp = with_bytecode(tmp_path)
    once = zipapp.read_bytes()
    run("/usr/bin/python3", AGENT / "mkzipapp.py", "--add-bytecode", zipapp)
    assert zipapp.read_bytes() == once


def with_bytecode(folder: Path) -> Path:
    tree = repository(folder / "tree")
    build(tree)
    zipapp = tree / "build/homeport.pyz"
    run("/usr/bin/python3", AGENT / "mkzipapp.py", "--add-bytecode", zipapp)
    return zipapp


def read_members(zipapp: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(zipapp) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repacked(members: dict[str, bytes], path: Path) -> Path:
    path.write_bytes(b"#!/usr/bin/python3 -I\n")
    with zipfile.ZipFile(path, "a") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    path.chmod(0o755)
    return path


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


def commit_in(tree: Path) -> str:
    build(tree)
    scope: dict[str, str] = {}
    exec(read_members(tree / "build/homeport.pyz")["homeport/_build.py"], scope)
    return scope["COMMIT"]


def run(*command: str | Path, cwd: Path | None = None, umask: int = -1,
        environment: dict[str, str] | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, umask=umask, env={**os.environ, **(environment or {})},
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
