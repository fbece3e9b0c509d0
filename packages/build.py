#!/usr/bin/python3
"""Makes the packages: the same byte for byte from the same commit, wherever and whenever it is made.

    build.py deb|rpm OUTPUT [--version VERSION]

Knows how dpkg-deb and rpmbuild want it. What is in a package is what its target of the Makefile installs; what the
package says of itself is in packages.toml, what happens on a machine in deb/, rpm/ and parts/. Needs none of the
set-up: Python, git, make, and dpkg-deb or rpmbuild.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
# Where it is in no clone: the earliest date that a zip file can hold, as in the zipapp.
EPOCH_OF_NO_COMMIT = 315532800
# The one file that changes after it was unpacked (parts/bytecode.sh).
GETS_BYTECODE = "usr/lib/homeport/homeport.pyz"


class CannotBuild(Exception):
    """What is missing, and what to do."""


@dataclass(frozen=True)
class Release:
    """What is being packed: `when` is the commit's time, in seconds since 1970, `who` its author."""

    version: str
    when: int
    who: str
    what: str


@dataclass(frozen=True)
class Package:
    """One of packages.toml, with the tree that its target installed."""

    name: str
    tree: Path
    entry: dict[str, Any]

    def relations(self, kind: str, field: str) -> list[str]:
        """Of `needs`, `wants` or `suggests`, what `deb` or `rpm` says."""
        return [relation[kind] for relation in self.entry.get(field, ()) if kind in relation]

    def paths(self) -> list[Path]:
        """All that it holds, relative to the root, sorted; folders before what is in them."""
        return sorted(path.relative_to(self.tree) for path in self.tree.rglob("*"))

    def units(self) -> list[str]:
        """What is enabled, or not, by preset."""
        presets = (self.tree / "usr/lib/systemd/system-preset").glob("*.preset")
        return [line.split()[1] for preset in sorted(presets) for line in preset.read_text().splitlines()
                if line.startswith(("enable ", "disable "))]


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the packages.")
    parser.add_argument("kind", choices=("deb", "rpm"))
    parser.add_argument("output", type=Path, help="the folder for them; older ones in it are removed")
    parser.add_argument("--version", default="", help="instead of the commit's")
    arguments = parser.parse_args()
    os.umask(0o022)
    try:
        build(arguments.kind, arguments.output.resolve(), arguments.version)
    except CannotBuild as error:
        print(f"packages: {error}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    return os.EX_OK


def build(kind: str, output: Path, version: str = "") -> None:
    """Raises CannotBuild."""
    make_packages: Callable[[list[Package], Release, Path], None] = {"deb": make_debs, "rpm": make_rpms}[kind]
    release = read_release(version)
    text = (HERE / "packages.toml").read_text().replace("@VERSION@", release.version)
    table = tomllib.loads(text)
    with tempfile.TemporaryDirectory(prefix="homeport-packages-") as folder:
        packages = [Package(entry["name"], install(entry, Path(folder) / entry["name"]),
                            {"license": table["license"], **entry}) for entry in table["package"]]
        made = Path(folder) / "made"
        made.mkdir()
        os.environ["SOURCE_DATE_EPOCH"] = str(release.when)
        make_packages(packages, release, made)
        output.mkdir(parents=True, exist_ok=True)
        for old in output.glob(f"homeport*.{kind}"):
            old.unlink()
        for new in sorted(made.glob(f"*.{kind}")):
            shutil.move(new, output / new.name)
            print(output / new.name)


def read_release(version: str) -> Release:
    """The tag of this commit if it has the program's version; else one that sorts before that release, or after it.

    By the commit's time, so that a later one is an upgrade, and a shallow clone knows it, too.
    """
    program = re.search(r'^VERSION = "(.+)"$', (TOP / "agent/homeport/version.py").read_text(), re.MULTILINE)
    assert program, "agent/homeport/version.py has no VERSION"
    plain = program[1]
    if git("rev-parse", "--show-toplevel") != str(TOP):
        return Release(version or plain, EPOCH_OF_NO_COMMIT, "homeport <root@localhost>", "not from a clone")
    when, commit, who, what = git("log", "-1", "--format=%ct%n%h%n%an <%ae>%n%s").split("\n")
    changed = ".dirty" if git("status", "--porcelain", "--untracked-files=no") else ""
    if git("tag", "--points-at", "HEAD", "--list", f"v{plain}") and not changed:
        snapshot = plain
    else:
        sign = "+" if git("tag", "--merged", "HEAD", "--list", f"v{plain}") else "~"
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(int(when)))
        snapshot = f"{plain}{sign}{stamp}.g{commit[:7]}{changed}"
    return Release(version or snapshot, int(when), who, what)


def install(entry: dict[str, Any], tree: Path) -> Path:
    """What the target of the Makefile installs, in `tree`."""
    tree.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    run(["make", "--no-print-directory", "-C", str(TOP), entry["target"], f"DESTDIR={tree}"], env=environment)
    # Manual pages are compressed in packages of either kind. No name and no date in them.
    for page in tree.glob("usr/share/man/man?/*"):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()
    return tree


# Debian's

def make_debs(packages: list[Package], release: Release, output: Path) -> None:
    for package in packages:
        size = sum(path.lstat().st_size for path in package.tree.rglob("*") if not path.is_dir())
        write_documentation(package, release)
        write_control(package, release, -(-size // 1024))
        # No date is later than SOURCE_DATE_EPOCH. xz in several threads cuts the data otherwise than in one.
        run([program("dpkg-deb", "dpkg"), "--root-owner-group", "-Zxz", "--threads-max=1", "--build",
             str(package.tree), str(output / f"{package.name}_{release.version}_all.deb")])


def write_control(package: Package, release: Release, kibibytes: int) -> None:
    """DEBIAN/: control, md5sums, and what runs on the machine."""
    # What is summed up is what was installed: DEBIAN/ is not there yet.
    sums = [f"{hashlib.md5((package.tree / path).read_bytes()).hexdigest()}  {path}\n" for path in package.paths()
            if (package.tree / path).is_file() and not (package.tree / path).is_symlink()
            and str(path) != GETS_BYTECODE]  # fmt: skip
    fields = {
        "Package": package.name, "Version": release.version, "Architecture": "all", "Maintainer": release.who,
        "Installed-Size": str(kibibytes), "Depends": ", ".join(package.relations("deb", "needs")),
        "Recommends": ", ".join(package.relations("deb", "wants")),
        "Suggests": ", ".join(package.relations("deb", "suggests")),
        "Section": "net", "Priority": "optional", "Multi-Arch": "foreign",
        "Description": package.entry["summary"] + "\n" + "\n .\n".join(
            textwrap.fill(text, 79, initial_indent=" ", subsequent_indent=" ", break_on_hyphens=False)
            for text in paragraphs(package)),
    }
    control = package.tree / "DEBIAN"
    control.mkdir()
    (control / "control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items() if value))
    (control / "md5sums").write_text("".join(sums))
    for script in sorted((HERE / "deb").glob(f"{package.name}.*")):
        what = control / script.suffix[1:]
        what.write_text(filled_in(script.read_text(), package.units()))
        what.chmod(0o644 if what.name == "triggers" else 0o755)


def write_documentation(package: Package, release: Release) -> None:
    """What policy asks each package for: changelog and copyright."""
    folder = package.tree / "usr/share/doc" / package.name
    folder.mkdir(parents=True)
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(release.when))
    changelog = (f"{package.name} ({release.version}) unstable; urgency=medium\n\n  * {release.what}\n\n"
                 f" -- {release.who}  {date}\n")
    (folder / "changelog.gz").write_bytes(gzip.compress(changelog.encode(), mtime=0))
    (folder / "copyright").write_text(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: homeport\n\n"
        f"Files: *\nCopyright: the authors of homeport\nLicense: {package.entry['license']}\n"
        " As the repository that this package was made from states it.\n")


# RPM's

def make_rpms(packages: list[Package], release: Release, output: Path) -> None:
    folder = output / "rpmbuild"
    folder.mkdir()
    (folder / "homeport.spec").write_text(spec(packages, release))
    macros = {
        "_topdir": str(folder), "_rpmdir": str(output),
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.noarch.rpm",
        # Nothing of the machine that it is made on.
        "_buildhost": "localhost", "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
        "source_date_epoch_from_changelog": "0", "_binary_payload": "w9.gzdio", "vendor": "%{nil}",
        "packager": release.who,
    }
    defines = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    run([program("rpmbuild", "rpm (Debian) or rpm-build"), "-bb", "--target", "noarch", *defines,
         str(folder / "homeport.spec")])


def spec(packages: list[Package], release: Release) -> str:
    """rpm/homeport.spec, filled in."""
    date = time.strftime("%a %b %d %Y", time.gmtime(release.when))
    values = {
        "VERSION": release.version, "STAGES": " ".join(f"{package.tree}/." for package in packages),
        "CHANGELOG": f"* {date} {release.who} - {release.version}-1\n- {release.what}".replace("%", "%%"),
    }
    for package in packages:
        values |= {
            f"HEAD {package.name}": "\n".join(spec_head(package)),
            f"DESCRIPTION {package.name}": "\n\n".join(
                textwrap.fill(text, 79, break_on_hyphens=False) for text in paragraphs(package)),
            f"FILES {package.name}": "\n".join(spec_files(package)),
        }
    text = filled_in((HERE / "rpm/homeport.spec").read_text(), [u for package in packages for u in package.units()],
                     escape=lambda part: part.replace("%", "%%"))
    return re.sub(r"@([A-Z]+(?: [a-z-]+)?)@", lambda found: values[found[1]], text)


def spec_head(package: Package) -> Iterator[str]:
    summary = package.entry["summary"]
    yield f"Summary: {summary[0].upper()}{summary[1:]}"
    yield f"License: {package.entry['license']}"
    for tag, field in (("Requires", "needs"), ("Recommends", "wants"), ("Suggests", "suggests")):
        for relation in package.relations("rpm", field):
            yield f"{tag}: {relation}"


def spec_files(package: Package) -> Iterator[str]:
    """Every file; and those folders that are ours, or come with our drop-ins."""
    for path in package.paths():
        mode = stat.S_IMODE((package.tree / path).lstat().st_mode)
        if (package.tree / path).is_symlink():
            yield f"/{path}"
        elif not (package.tree / path).is_dir():
            # It gets bytecode.
            verify = "%verify(not md5 size mtime) " if str(path) == GETS_BYTECODE else ""
            yield f"{verify}%attr({mode:04o},root,root) /{path}"
        elif "homeport" in path.name or (path.name.endswith(".d") and path.parent.name == "system"):
            yield f"%dir %attr({mode:04o},root,root) /{path}"


# Both's

def paragraphs(package: Package) -> list[str]:
    """Of the description."""
    text: str = package.entry["description"]
    return text.strip().split("\n\n")


def filled_in(script: str, units: list[str], escape: Callable[[str], str] = str) -> str:
    """`script` with its parts and the names of the units."""
    def part(found: re.Match[str]) -> str:
        return escape((HERE / found[1]).read_text().rstrip("\n"))

    script = re.sub(r"^#include (\S+)$", part, script, flags=re.MULTILINE)
    # What is said to the linter is about the template.
    script = re.sub(r"^ *# shellcheck .*\n", "", script, flags=re.MULTILINE)
    return script.replace("@UNITS@", " ".join(units))


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CannotBuild(f"{name} is not installed (it comes with the package {package})")
    return found


def git(*arguments: str) -> str:
    """What git says, "" if this is no clone. Also in a clone of somebody else's, as in `sudo make deb`."""
    command = ["git", "-C", str(TOP), "-c", f"safe.directory={TOP}", *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def run(command: list[str], env: dict[str, str] | None = None) -> None:
    """What it prints is shown if it fails. Raises CannotBuild."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
