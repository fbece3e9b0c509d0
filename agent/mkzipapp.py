#!/usr/bin/python3
"""Packs the agent into one file, the same byte for byte wherever and whenever it is packed.

    mkzipapp.py OUTPUT
    mkzipapp.py --server OUTPUT            homeport-server, with what it shares of the agent
    mkzipapp.py --add-bytecode ZIPAPP      for the Python that runs this, in place

Knows what goes in (the package `homeport`, the `__main__.py` beside it, the commit) and all that makes two
archives of the same files differ: order, dates, modes, the packer's zlib; `python3 -m zipapp` fixes none
of these. Refuses to know what the agent does, and is no part of it: it is installed beside the zipapp, in
/usr/share/homeport, for the day when the machine gets another Python.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

# Isolated (-I): neither PYTHON* variables, nor the user's packages, nor the folder one stands in. Debian,
# Fedora and openSUSE have the distribution's Python, with its libraries, behind this name.
SHEBANG = b"#!/usr/bin/python3 -I\n"
# The earliest date that a zip file can hold. The commit's would change archives whose files are the same.
DATE = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644
# Not server/__main__.py, which looks for the agent's folder: here it is in the archive.
SERVER_MAIN = b"import sys\n\nfrom homeport_server.cli import main\n\nsys.exit(main(sys.argv[1:]))\n"
UNIX = 3


def main() -> int:
    match sys.argv[1:]:
        case ["--add-bytecode", zipapp]:
            write_executable(Path(zipapp), pack(with_bytecode(Path(zipapp)), shebang_of(Path(zipapp))))
        case ["--server", output]:
            write_executable(Path(output), pack(server_members(Path(__file__).resolve().parent)))
        case [output]:
            write_executable(Path(output), pack(members(Path(__file__).resolve().parent)))
        case _:
            print("usage: mkzipapp.py [--server] OUTPUT | --add-bytecode ZIPAPP", file=sys.stderr)
            return os.EX_USAGE
    return os.EX_OK


def members(agent: Path) -> Iterator[tuple[str, bytes]]:
    """Name in the archive and content of all that ships from the folder `agent`."""
    yield "__main__.py", (agent / "__main__.py").read_bytes()
    yield "homeport/_build.py", build_module(agent).encode()
    for path in (agent / "homeport").rglob("[!.]*.py"):
        yield path.relative_to(agent).as_posix(), path.read_bytes()


def server_members(agent: Path) -> Iterator[tuple[str, bytes]]:
    """The same of homeport-server, whose folder is beside the agent's."""
    yield "__main__.py", SERVER_MAIN
    yield from ((name, data) for name, data in members(agent) if name != "__main__.py")
    for path in (agent.parent / "server/homeport_server").rglob("[!.]*.py"):
        yield path.relative_to(agent.parent / "server").as_posix(), path.read_bytes()


def with_bytecode(zipapp: Path) -> Iterator[tuple[str, bytes]]:
    """What is in `zipapp`, with each module compiled beside its source.

    Python takes the compiled one if it is of this very Python, and the source if not (zipimport); it looks no
    further ("unchecked", PEP 552), as both come in one file. Half of a boot's time in Python is compiling.
    """
    with zipfile.ZipFile(zipapp) as archive:
        sources = {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
    unchecked = (0b01).to_bytes(4, "little")
    for name, source in sources.items():
        code = compile(source, f"{zipapp}/{name}", "exec", dont_inherit=True, optimize=0)
        yield name, source
        yield f"{name}c", (importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source)
                           + marshal.dumps(code))


def shebang_of(zipapp: Path) -> bytes:
    """Whoever installed it may have given it another interpreter."""
    with zipapp.open("rb") as file:
        return file.readline()


def pack(files: Iterable[tuple[str, bytes]], shebang: bytes = SHEBANG) -> bytes:
    """The zipapp of `files`, sorted by name."""
    buffer = io.BytesIO(shebang)
    buffer.seek(len(shebang))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in sorted(files):
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = UNIX
            entry.external_attr = MODE << 16
            # Not deflated: zlib and its faster replacements make different bytes of the same text. What carries
            # the zipapp (a package, an initramfs) compresses it anyway.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, data)
    return buffer.getvalue()


def build_module(agent: Path) -> str:
    """What only the packer knows, for `homeport.version`."""
    commit, seconds = read_commit(agent)
    return (f'"""Written by mkzipapp.py."""\n\nCOMMIT = "{commit}"\n'
            f"COMMIT_TIME = {seconds}  # seconds since 1970, UTC\n")


def read_commit(agent: Path) -> tuple[str, int]:
    """The commit of this tree, with a + if the agent has been changed since, and its time.

    ("unknown", 0) where this is not a clone: a source package, also one that lies in somebody's repository.
    """
    try:
        if Path(git(agent, "rev-parse", "--show-toplevel")) != agent.parent:
            return "unknown", 0
        commit, seconds = git(agent, "log", "-1", "--format=%H %ct").split()
        changed = git(agent, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return "unknown", 0
    return commit + ("+" if changed else ""), int(seconds)


def git(folder: Path, *arguments: str) -> str:
    # A clone that belongs to someone else (sudo make install) is still the tree that is being packed.
    command = ["git", "-C", os.fspath(folder), "-c", f"safe.directory={folder.parent}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write_executable(path: Path, data: bytes) -> None:
    """`data` as the program `path`, at one instant: one that is being run stays whole, also through a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o755)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
