"""The packages: the same bytes from any clone, exactly what `make install` installs, and all that it needs.

What they do on a machine is in vm-tests/test_57_packages.py.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.version import VERSION

TOP = Path(__file__).resolve().parents[1]
KINDS = ("deb", "rpm")
TOOLS = {"deb": "dpkg-deb", "rpm": "rpmbuild"}
# Of no distribution's packages: imported where it is there.
NOT_PACKAGED = {"libnmstate"}
Listing = dict[str, str]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with everything as it is now, committed."""
    tree = tmp_path_factory.mktemp("packages") / "here"
    for name in run("git", "-C", TOP, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (TOP / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, tree / name)
    run("git", "init", "--quiet", tree)
    run("git", "-C", tree, "add", ".")
    commit(tree)
    return tree


@pytest.fixture(scope="module", params=KINDS)
def made(request: pytest.FixtureRequest, tree: Path) -> list[Path]:
    """The packages of one kind, by name."""
    kind: str = request.param
    if not shutil.which(TOOLS[kind]):
        missing(f"{TOOLS[kind]} is not installed (run: make setup)")
    return build(kind, tree)


def test_same_bytes_from_any_clone(made: list[Path], tree: Path) -> None:
    second = tree.parent / "a much longer place" / "there"
    if not second.exists():
        run("git", "clone", "--quiet", tree, second, umask=0o077)
    again = build(made[0].suffix[1:], second, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    assert [path.name for path in again] == [path.name for path in made]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in made]


def test_hold_what_make_install_installs(made: list[Path], tree: Path, tmp_path: Path) -> None:
    """No file more or less, each in one package, with the same modes, root's."""
    run("make", "-C", tree, "install", "install-server-files", f"DESTDIR={tmp_path}")
    wanted = {compressed(path.relative_to(tmp_path).as_posix()): mode_of(path)
              for path in tmp_path.rglob("*") if not path.is_dir() or path.is_symlink()}
    # Links of enabled units are made on the machine.
    wanted = {path: mode for path, mode in wanted.items() if not path.startswith("etc/")}
    held = [(path, mode) for package in made for path, mode in listing(package).items()
            if not mode.startswith("d") and not path.startswith("usr/share/doc/")]
    assert sorted(held) == sorted(wanted.items())
    assert listing(agent_of(made))["var/lib/homeport"] == "drwx------"


def test_nothing_in_etc(made: list[Path]) -> None:
    """All of it is the image's; the administrator's is in /etc. So there are no conffiles either."""
    for package in made:
        assert not [path for path in listing(package) if path.startswith("etc")]
        if package.suffix == ".deb":
            assert "conffiles" not in run("dpkg-deb", "--info", package)
        else:
            assert run("rpm", "--query", "--package", "--configfiles", package) == ""


def test_scripts_are_filled_in(made: list[Path], tmp_path: Path) -> None:
    """Whole shell scripts, in which the parts are, and all units that the preset names."""
    units = {line.split()[1] for line in (TOP / "systemd/80-homeport.preset").read_text().splitlines()
             if line.startswith(("enable", "disable"))}
    agent = agent_of(made)
    if agent.suffix == ".deb":
        run("dpkg-deb", "--control", agent, tmp_path)
        scripts = [(tmp_path / name).read_text() for name in ("postinst", "prerm", "postrm")]
    else:
        shown = run("rpm", "--query", "--package", "--scripts", agent)
        scripts = re.split(r"^\w+ scriptlet .*:$", shown, flags=re.MULTILINE)[1:]
        scripts = [script for script in scripts if "for unit in" in script or "homeport.service" in script]
    assert len(scripts) in (2, 3)
    for script in scripts:
        assert not re.search(r"@\w+@|^#include|shellcheck", script, re.MULTILINE)
        assert set(re.findall(r"homeport[a-z-]*\.(?:service|timer)", script)) == units
        run("sh", "-n", "-c", script)


@pytest.mark.parametrize(("name", "folder", "more"), [
    ("homeport", "agent", set[str]()),
    ("homeport-server", "server", {"yaml"}),  # by the agent's core, which it has in its file
])
def test_every_import_is_a_dependency(tree: Path, name: str, folder: str, more: set[str]) -> None:
    """Which package a module is of, the guest's dpkg knows."""
    guest = prepared("GUEST_trixie")
    (package,) = (package for package in build("deb", tree) if package.name.startswith(f"{name}_"))
    depends, suggests = (
        {relation.split()[0] for relation in run("dpkg-deb", "--field", package, field).split(", ")
         if relation.startswith("python3-")} for field in ("Depends", "Suggests"))
    found = {module: packages_of(guest, module) for module in imports(TOP / folder) - NOT_PACKAGED | more}
    # What is only suggested may be in the guest or not.
    assert {f"python3-{module}" for module, packages in found.items() if not packages} <= suggests
    assert set[str]().union(*found.values()) - suggests == depends
    assert not depends & suggests


def test_version_is_an_upgrade(tree: Path) -> None:
    """From commit to commit, to the release, and after it; the release has the plain version."""
    clone = tree.parent / "released"
    run("git", "clone", "--quiet", tree, clone)
    before = version(clone)
    commit(clone, "--allow-empty", seconds=60)
    later = version(clone)
    run("git", "-C", clone, "tag", f"v{VERSION}")
    release = version(clone)
    commit(clone, "--allow-empty", seconds=120)
    after = version(clone)
    (clone / "README.md").write_text("changed\n")
    assert version(clone) == f"{after}.dirty"
    assert release == VERSION
    for lower, higher in ((before, later), (later, release), (release, after)):
        assert run("dpkg", "--compare-versions", lower, "lt", higher) == ""


def build(kind: str, tree: Path, umask: int = 0o022, **environment: str) -> list[Path]:
    """The packages in `tree`; made if they are not there."""
    output = tree / "build/packages"
    if there := sorted(output.glob(f"*.{kind}")):
        return there
    run(tree / "packages/build.py", kind, output, umask=umask, **environment)
    return sorted(output.glob(f"*.{kind}"))


def agent_of(packages: list[Path]) -> Path:
    (agent,) = (package for package in packages if re.match("homeport[-_][0-9]", package.name))
    return agent


def version(tree: Path) -> str:
    """What a package made in `tree` would have."""
    script = "import build; print(build.read_release('').version)"
    return run(sys.executable, "-B", "-c", script, PYTHONPATH=str(tree / "packages")).strip()


def commit(tree: Path, *more: str, seconds: int = 0) -> None:
    date = f"{1780000000 + seconds} +0000"
    # A subject that a macro processor would stumble over.
    run("git", "-C", tree, "-c", "user.name=A", "-c", "user.email=a@example.org",
        "commit", "--quiet", "-m", "100%d @DONE@", *more, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)


def listing(package: Path) -> Listing:
    """Path below the root: mode as `ls` shows it, a link's target. Everything is root's."""
    if package.suffix == ".deb":
        lines = [line.split(None, 5) for line in run("dpkg-deb", "--contents", package).splitlines()]
        rows = [(mode, owner, path) for mode, owner, _, _, _, path in lines]
    else:
        shown = run("rpm", "--query", "--package", "--list", "-v", package)
        lines = [line.split(None, 8) for line in shown.splitlines()]
        rows = [(mode, f"{user}/{group}", path) for mode, _, user, group, _, _, _, _, path in lines]
    assert {owner for _, owner, _ in rows} == {"root/root"}
    found = {}
    for mode, _, path in rows:
        name, _, target = path.partition(" -> ")
        found[name.lstrip("./").rstrip("/")] = target or mode
    return found


def mode_of(path: Path) -> str:
    return os.readlink(path) if path.is_symlink() else stat.filemode(path.lstat().st_mode)


def compressed(path: str) -> str:
    return f"{path}.gz" if path.startswith("usr/share/man/") else path


def imports(folder: Path) -> set[str]:
    """The modules that are neither Python's own nor ours; what stands under TYPE_CHECKING counts, too."""
    found = set[str]()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"homeport", "homeport_server"}


def packages_of(guest: Path, module: str) -> set[str]:
    """Those whose files in dist-packages are this module: none, or one."""
    begin = re.compile(rf"^/usr/lib/python3/dist-packages/{module}(/__init__)?(\.|$)")
    return {file.name.split(".list")[0].partition(":")[0]
            for file in (guest / "var/lib/dpkg/info").glob("python3-*.list")
            if any(begin.match(line) for line in file.read_text().splitlines())}


def prepared(name: str) -> Path:
    paths = TOP / "build/paths.env"
    lines = paths.read_text().splitlines() if paths.exists() else []
    told = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    path = os.environ.get(name) or told.get(name)
    if not path:
        pytest.skip(f"there is no {name} (run: make setup)")
    return Path(path)


def missing(reason: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: str | Path, umask: int = 0o022, **environment: str) -> str:
    """What it prints; a failure shows it, and nothing of pytest's machinery."""
    __tracebackhide__ = True
    done = subprocess.run(command, umask=umask, capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", **environment})
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout
