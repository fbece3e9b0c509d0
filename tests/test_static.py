"""What can be said of the repository without running it: linters, types, units, scripts.

A tool that is missing skips its test on a person's machine, with the reason, and fails in CI.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
UNITS = ("homeport.service", "homeport-refresh.service", "homeport-refresh.timer", "homeport-attributes.service",
         "homeport-check-in.service", "homeport-hostname.service", "homeport-prepare.service",
         "homeport-initrd.service", "homeport-handover.service", "homeport-tidy.service")
TYPED = ("agent", "server", "dracut", "packages", "tests", "vm-tests", "tools")
# What the pure core must not know: files, processes, network, clock, chance.
IMPURE = {
    "asyncio", "ctypes", "io", "logging.handlers", "multiprocessing", "os", "pathlib", "random", "secrets",
    "select", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time",
    "jeepney", "pyudev", "requests", "systemd", "urllib.request", "homeport.host", "homeport.sources",
}
# Where the refresh differs from the boot; everything else is the same, for the reasons in homeport.service.
REFRESH_DIFFERS = {
    "Description", "Before", "After", "RemainAfterExit", "ExecStart", "StandardOutput", "SuccessExitStatus",
    "WantedBy", "ConditionPathIsSymbolicLink", "StartLimitIntervalSec", "StartLimitBurst",
}


def test_ruff() -> None:
    check([sys.executable, "-m", "ruff", "check", "--quiet", "."])


def test_mypy_strict() -> None:
    check([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *python_folders()])


def test_shellcheck() -> None:
    scripts = [path for path in tracked_files() if is_shell(path)]
    assert TOP / "tools/setup" in scripts
    check([tool("shellcheck"), "--external-sources", *map(str, scripts)])


@pytest.mark.parametrize("unit", UNITS)
def test_unit_is_understood_whole(unit: str, tmp_path: Path) -> None:
    """systemd-analyze verify, in a root with only systemd's targets and ours: any line is about us."""
    analyze = tool("systemd-analyze")
    root = installed_units(tmp_path)
    # The manual pages are not in this root.
    result = check([analyze, "verify", "--man=no", f"--root={root}", unit])
    assert result.stderr.strip() == ""


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.endswith(".service")])
def test_devices_are_allowed_by_their_class(unit: str) -> None:
    """systemd looks a node up when the unit starts: one whose driver is late would stay closed."""
    lines = (TOP / "systemd" / unit).read_text().splitlines()
    assert [line for line in lines if line.startswith("DeviceAllow=/")] == []


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.endswith(".service")])
def test_sandbox_stays_closed(unit: str, tmp_path: Path) -> None:
    """The exposure that systemd reckons, 0 to 10; whoever opens more says so here."""
    root = installed_units(tmp_path)
    check([tool("systemd-analyze"), "security", "--offline=yes", "--threshold=36", f"--root={root}", unit])


def test_refresh_has_the_sandbox_of_the_boot() -> None:
    boot = lines_of(TOP / "systemd/homeport.service")
    refresh = lines_of(TOP / "systemd/homeport-refresh.service")
    assert {line.partition("=")[0] for line in boot ^ refresh} <= REFRESH_DIFFERS


def test_units_of_the_initramfs_never_end_in_an_emergency() -> None:
    """Wanted and never required, stopped before the real root, ordered around both names of NetworkManager's units."""
    daemons = {"nm-initrd.service", "NetworkManager-initrd.service"}
    for name, side in (("prepare", "Before"), ("initrd", "After"), ("handover", ""), ("tidy", "Before")):
        lines = lines_of(TOP / f"systemd/homeport-{name}.service")
        assert {"DefaultDependencies=no", "ConditionPathExists=/etc/initrd-release", "WantedBy=initrd.target",
                "Conflicts=initrd-switch-root.target shutdown.target",
                "Before=initrd-switch-root.target shutdown.target"} <= lines
        assert not [line for line in lines if line.startswith(("OnFailure=", "Requires=", "RequiredBy=", "BindsTo="))]
        ordered = {word for line in lines if line.startswith(f"{side}=") for word in line.partition("=")[2].split()}
        assert not side or daemons <= ordered


def test_the_tidying_up_does_not_depend_on_how_the_rest_ends() -> None:
    """systemd runs ExecStop= only of a unit that has started well; this one has nothing that could fail before."""
    tidy, prepare = (lines_of(TOP / f"systemd/homeport-{name}.service") for name in ("tidy", "prepare"))
    assert {"ExecStop=/usr/bin/homeport handover --clean", "RemainAfterExit=yes"} <= tidy
    assert not [line for line in tidy if line.startswith(("ExecStart", "After=", "Wants="))]
    assert not [line for line in prepare if line.startswith("ExecStop")]


def test_one_unit_to_mask() -> None:
    """All of the agent that the real root starts looks whether homeport.service is masked, in all three ways."""
    wanted = {f"ConditionPathIsSymbolicLink=!{folder}/homeport.service" for folder in (
        "/etc/systemd/system", "/run/systemd/system", "/run/systemd/generator.early")}
    for path in (TOP / "systemd").glob("homeport-*"):
        lines = lines_of(path)
        of_the_agent = path.suffix in (".service", ".timer") and path.stem != "homeport-server"
        if of_the_agent and "ConditionPathExists=/etc/initrd-release" not in lines:
            assert wanted <= lines, path.name


def test_core_is_pure() -> None:
    for path in (TOP / "agent/homeport/core").rglob("*.py"):
        for name in imports(path):
            parts = name.split(".")
            known = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            assert not known & IMPURE, f"{path.relative_to(TOP)} imports {name}"


def test_only_one_module_starts_programs() -> None:
    users = {path.relative_to(TOP).as_posix() for path in (TOP / "agent/homeport").rglob("*.py")
             if "subprocess" in imports(path)}
    assert users <= {"agent/homeport/host/process.py"}


def test_programs_are_executable_and_nothing_else() -> None:
    for path in tracked_files():
        if path.is_file() and not path.is_symlink():
            starts_with_program = path.read_bytes()[:2] == b"#!"
            assert bool(path.stat().st_mode & 0o111) == starts_with_program, path.relative_to(TOP)


def test_help_names_every_target() -> None:
    makefile = (TOP / "Makefile").read_text()
    targets = {line.split()[1] for line in makefile.splitlines() if line.startswith(".PHONY:")}
    shown = check(["make", "--no-print-directory", "help"]).stdout
    assert targets == {line.split()[1] for line in shown.splitlines() if line.startswith("  make ")}


def check(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run it in the repository; a failure shows what it printed, and nothing of pytest's machinery."""
    __tracebackhide__ = True
    result = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command[:6])}:\n{result.stdout}{result.stderr}", pytrace=False)
    return result


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is not None:
        return path
    reason = f"{name} is not installed (run: make setup)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def tracked_files() -> list[Path]:
    return [TOP / name for name in check(["git", "ls-files", "-z"]).stdout.split("\0") if name]


def python_folders() -> list[str]:
    return [folder for folder in TYPED if any((TOP / folder).rglob("*.py"))]


def is_shell(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.readline()
    return path.suffix == ".sh" or (first.startswith(b"#!") and first.rstrip().endswith(b"sh"))


def imports(path: Path) -> set[str]:
    """The modules that a file imports when it runs; what stands under TYPE_CHECKING does not."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def lines_of(path: Path) -> set[str]:
    return {line for line in path.read_text().splitlines() if line and not line.startswith("#")}


def installed_units(root: Path) -> Path:
    folder = root / "usr/lib/systemd/system"
    folder.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(TOP / "systemd" / unit, folder)
    for target in Path("/usr/lib/systemd/system").glob("*.target"):
        if not target.is_symlink():
            shutil.copy(target, folder)
    program = root / "usr/bin/homeport"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    return root
