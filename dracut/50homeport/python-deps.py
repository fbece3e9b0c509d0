#!/usr/bin/python3
"""Puts the Python part of homeport into an initramfs that is being made: what is really imported, nothing else.

    python-deps.py ZIPAPP INITDIR      run by the Python, and in the root, that the initramfs is made of

Writes below INITDIR the zipapp and all modules, compiled and without their sources, and prints for
module-setup.sh what dracut copies better, because it follows libraries and links, a line each:

    lib FROM TO      a C extension
    file PATH        a file by its own name: certificate authorities, TLS settings, what our settings name
    say TEXT         for the person who makes the image

Which modules: every module of the zipapp is imported, and everything that the zipapp's code imports anywhere,
in a process of its own; what that process has loaded in the end is what is needed. Then once more for imports
that stand inside a loaded module's functions, until nothing new comes. `LEFT_OUT` and `IF_LOADED` are those
that a boot in the initramfs does without, each with its reason; that process cannot import the former either, so
that whatever cannot do without fails here. `BY_NAME` are those that no `import` shows. Refuses to know dracut.

There is no site-packages in the image: all is in the standard library's folder, which is where
`python3 -I -S` looks. Compiled by name of the source's hash and never checked (PEP 552), so that the same root
gives the same image, byte for byte.
"""

from __future__ import annotations

import ast
import contextlib
import encodings
import functools
import importlib.util
import io
import json
import marshal
import os
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from encodings import aliases, normalize_encoding
from pathlib import Path

# Each with everything below it. Whoever tries to import one of these is told that it is not there.
LEFT_OUT = {
    "cryptography": "registers a machine with an emulated TPM, which is made and kept on the real root; 10 MiB",
    "libnmstate": "nmstatectl is in the image",
    "pyudev": "hears of a card a second sooner; to find libudev it needs ldconfig, 1 MiB",
    "bz2": "archives",
    "lzma": "archives",
    "tarfile": "archives",
    "simplejson": "another json",
    "brotli": "compressed answers, which are not asked for",
    "brotlicffi": "compressed answers, which are not asked for",
    "zstandard": "compressed answers, which are not asked for",
    "compression.zstd": "compressed answers, which are not asked for; archives",
    "OpenSSL": "another ssl",
    "socks": "SOCKS",
}
# Only where an import of ours really loads them. They stand inside of functions that nothing of ours calls, or their
# absence is allowed for.
IF_LOADED = {
    "chardet": "guesses the encoding of text, which is bytes to us",  # `requests` 2.32 and newer goes without
    "charset_normalizer": "the same",
    "_py_abc": "replaces a C module that is there",
    "_pydatetime": "replaces a C module that is there",
    "_pydecimal": "replaces a C module that is there",
    "_threading_local": "replaces a C module that is there",
    "typing_extensions": "types of a newer Python, for those who check them",
    "csv": "lists of installed packages (importlib.metadata)",
    "doctest": "tests",
    "tracemalloc": "where memory went, for warnings",
    "pickle": "logging to other machines",
    "optparse": "a command line of a module's own",
    "getopt": "a command line of a module's own",
    "getpass": "asks a person at a terminal",
    "ftplib": "FTP",
    "netrc": "passwords of ~/.netrc, which are not read",
    "nturl2path": "Windows",
    "encodings.mbcs": "Windows",
    "encodings.oem": "Windows",
    "platform": "MAC addresses by asking programs (uuid)",
    "statistics": "chance with a shape (random)",
    "py_compile": "compiles",
    "urllib3.contrib": "other TLS libraries, browsers, SOCKS",
    "urllib3.http2.connection": "HTTP/2",
}
# The agent goes without: where the root has them not, so does the initramfs.
OPTIONAL = {
    "systemd": "the journal gets lines instead of fields",
    "wsproto": "no registration with an Elemental server",
}
OURS = {"homeport", "__main__"}
# What C code and Python itself ask for.
BY_NAME = (
    "runpy",             # starts a zipapp
    "_strptime",         # time.strptime: the dates of certificates
    "encodings.idna",    # every host name of a connection goes through it
    "encodings.ascii", "encodings.latin_1", "encodings.utf_8",
)
# Loaded at every start of Python but not with -S.
ONLY_WITH_SITE = {"site", "sitecustomize", "usercustomize", "_sitebuiltins"}

IMPORTER = """
import importlib, json, sys
names, left_out, sys.path[:] = json.load(sys.stdin)

class LeftOut:
    def find_spec(name, path, target=None):
        if name in left_out:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, LeftOut)
problems = {}
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        problems[name] = f"{type(error).__name__}: {error}"
loaded = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
json.dump([loaded, problems], sys.stdout)
"""


class CannotMake(Exception):
    """Why there can be no homeport in this initramfs."""


@dataclass(frozen=True)
class Module:
    """A module that was loaded from a file, by its canonical name."""

    name: str
    file: Path

    @property
    def is_package(self) -> bool:
        return self.file.name == "__init__.py"

    @property
    def is_extension(self) -> bool:
        return self.file.suffix != ".py"

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def place(self) -> Path:
        """Its file, relative to a folder that Python looks in."""
        path = Path(*self.name.split("."))
        if self.is_extension:
            return path.parent / self.file.name
        return path / "__init__.py" if self.is_package else path.with_suffix(".py")


def main(zipapp: Path, initdir: Path) -> int:
    try:
        sources = read_sources(zipapp)
        sys.path.insert(0, str(zipapp))
        bundle = find_bundle()
        modules = find_modules(sources)
        write_zipapp(zipapp, sources, initdir)
        for line in (*place_modules(modules, bundle, initdir), *files_to_read(bundle)):
            print(line)
    except CannotMake as error:
        print(f"say Cannot put homeport into the initramfs: {error}")
        return 1
    return 0


def read_sources(zipapp: Path) -> dict[str, bytes]:
    """The modules of the zipapp, by their names in the archive."""
    try:
        with zipfile.ZipFile(zipapp) as archive:
            return {name: archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".py")}
    except (OSError, zipfile.BadZipFile) as error:
        raise CannotMake(f"{zipapp} is not a program of ours: {error} (run make install)") from error


def find_modules(sources: Mapping[str, bytes]) -> list[Module]:
    """What a process has loaded that has imported all that may be imported. Raises CannotMake."""
    own = sorted(module_name(name) for name in sources if not name.endswith("__main__.py"))
    asked = [asked_by(source) for source in sources.values()]
    foreign = sorted({name for each in asked for name in (*each.imports, *each.codecs)
                      if name.partition(".")[0] not in OURS and not is_in(name, LEFT_OUT)})
    # Ours first: they know how to import what they use (`requests` without its guessers of encodings).
    must = [*BY_NAME, *own, *foreign]
    more: list[str] = []
    while True:
        loaded, problems = import_all([*must, *more])
        without = missing_optional({name: problems[name] for name in must if name in problems})
        found = sorted(asked_in(loaded) - set(loaded) - set(more))
        if not found:
            for name in without:
                print(f"say homeport in this initramfs is without python3-{name}: {OPTIONAL[name]}")
            return [loaded[name] for name in sorted(loaded)]
        more += found


def import_all(names: Iterable[str]) -> tuple[dict[str, Module], dict[str, str]]:
    """The modules that are loaded after importing `names`, and which could not be imported and why."""
    order = json.dumps([list(names), list(LEFT_OUT), sys.path])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", IMPORTER], input=order,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMake(f"Python ended with {done.stderr.strip().splitlines()[-1:]}")
    loaded, problems = json.loads(done.stdout)
    found: dict[str, Module] = {}
    for name, file in loaded.items():
        # Without a file: part of Python itself, or made at run time.
        if file and os.path.isabs(file) and name.partition(".")[0] not in OURS and name not in ONLY_WITH_SITE:
            found[name] = Module(name, Path(file))
    return found, problems


def missing_optional(problems: Mapping[str, str]) -> set[str]:
    """The libraries that the agent goes without. Raises CannotMake for any other."""
    for name, why in problems.items():
        if name.partition(".")[0] not in OPTIONAL:
            raise CannotMake(f"{name}: {why} (install it in the root that the initramfs is made of)")
    return {name.partition(".")[0] for name in problems}


def asked_in(loaded: Mapping[str, Module]) -> set[str]:
    """What the loaded modules' code imports or encodes with, wherever it stands, if it exists."""
    found: set[str] = set()
    for module in loaded.values():
        if not module.is_extension:
            asked = asked_by(module.file.read_bytes(), module.package)
            found |= {*asked.imports, *asked.names, *asked.codecs}
    return {name for name in found if not is_in(name, LEFT_OUT) and not is_in(name, IF_LOADED) and exists(name, loaded)}


def exists(name: str, loaded: Mapping[str, Module]) -> bool:
    """Whether there is such a module, without importing it: its package is loaded, or it is a top one."""
    package, _, last = name.rpartition(".")
    if not package:
        return importlib.util.find_spec(name) is not None
    parent = loaded.get(package)
    if parent is None or not parent.is_package:
        return False
    folder = parent.file.parent
    return (folder / f"{last}.py").exists() or (folder / last / "__init__.py").exists()


@dataclass(frozen=True)
class Asked:
    """The modules that code imports, the names it takes from them, which may be modules, and its encodings' modules."""

    imports: frozenset[str]
    names: frozenset[str]
    codecs: frozenset[str]


@functools.cache
def asked_by(source: bytes, package: str = "") -> Asked:
    """Of all of `source`, also what stands inside functions; `package` is the one that it is a module of."""
    imports, names, codecs = set[str](), set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            with contextlib.suppress(ImportError):  # from beyond the top
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                imports.add(base)
                names |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call):
            codecs |= {f"encodings.{codec}" for codec in codecs_named(node)}
    return Asked(frozenset(imports), frozenset(names), frozenset(codecs))


def codecs_named(call: ast.Call) -> Iterator[str]:
    """The encodings that a call names: of text, or none."""
    named: list[ast.expr] = [word.value for word in call.keywords if word.arg == "encoding"]
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("encode", "decode"):
        named += call.args[:1]
    for each in named:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isascii():
            codec = normalize_encoding(each.value).lower()
            codec = aliases.aliases.get(codec, codec)
            if (Path(encodings.__file__).parent / f"{codec}.py").exists():
                yield codec


def is_in(name: str, table: Mapping[str, str]) -> bool:
    """Whether a module, or one that it is below, is in a table."""
    parts = name.split(".")
    return any(".".join(parts[:length]) in table for length in range(1, len(parts) + 1))


def module_name(archived: str) -> str:
    return archived.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def write_zipapp(zipapp: Path, sources: Mapping[str, bytes], initdir: Path) -> None:
    """The zipapp, compiled for this Python: a third of its sources' size is saved, half a start's time."""
    first_line = zipapp.open("rb").readline()
    buffer = io.BytesIO(first_line)
    buffer.seek(len(first_line))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, source in sources.items():
            entry = zipfile.ZipInfo(f"{name}c")
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, compiled(source, f"{zipapp}/{name}"))
    write(initdir, zipapp, buffer.getvalue(), 0o755)


def place_modules(modules: Iterable[Module], bundle: Path, initdir: Path) -> Iterator[str]:
    """Writes those in Python; a line for each of the others."""
    library = Path(os.__file__).parent
    # A module may be loaded under several names (requests.packages.urllib3): once, by its own. `requests` reads
    # certifi's bundle when it is imported, though whom to trust is not its business (trust.py): the system's.
    own_name: dict[Path, Module] = {}
    for module in modules:
        if str(module.file).endswith(str(module.place)) and module.name.partition(".")[0] != "certifi":
            own_name.setdefault(module.file, module)
    if any(module.name == "certifi" for module in modules):
        stand_in = f"def where(): return {str(bundle)!r}"
        write(initdir, library / "certifi.pyc", compiled(stand_in.encode(), str(library / "certifi.py")), 0o644)
    for module in own_name.values():
        if not module.is_extension:
            write(initdir, library / f"{module.place}c", compiled(module.file.read_bytes(),
                                                                  str(library / module.place)), 0o644)
        elif library in module.file.parents:  # lib-dynload
            yield f"lib {module.file} {module.file}"
        else:
            yield f"lib {module.file} {library / module.place}"


def find_bundle() -> Path:
    """The system's certificate authorities, where the agent looks for them. Raises CannotMake."""
    from homeport.sources.trust import BUNDLES
    for path in map(Path, BUNDLES):
        if path.exists():
            return path
    raise CannotMake("there are no certificate authorities in this root (install ca-certificates)")


def files_to_read(bundle: Path) -> Iterator[str]:
    """What is read at run time: authorities, OpenSSL's settings, what our own settings name; a line for each."""
    yield f"file {bundle}"
    authorities = Path(ssl.get_default_verify_paths().openssl_cafile)
    openssl = authorities.with_name("openssl.cnf")
    for path in (authorities, openssl, *included(openssl)):
        if path.exists():
            yield f"file {path}"
    from homeport.settings import read_settings
    settings = read_settings(lenient=True)
    for path in map(Path, (*settings.ca, *settings.seed, *settings.config)):
        # Config= may also be an address, which is no path, or a folder with a document for each machine.
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            if file.is_absolute() and file.is_file():
                yield f"file {file}"


def included(openssl: Path) -> Iterator[Path]:
    """The files that OpenSSL's settings include: the system's choice of ciphers (crypto-policies)."""
    with contextlib.suppress(OSError):
        for line in openssl.read_text(errors="replace").splitlines():
            word, _, name = line.replace("=", " ").strip().partition(" ")
            if word == ".include":
                yield Path(name.strip())


def compiled(source: bytes, path: str) -> bytes:
    """What a .pyc file of `source` holds; `path` is shown in tracebacks."""
    code = compile(source, path, "exec", dont_inherit=True, optimize=0)
    unchecked = (0b01).to_bytes(4, "little")
    return (importlib.util.MAGIC_NUMBER + unchecked + importlib.util.source_hash(source) + marshal.dumps(code))


def write(initdir: Path, path: Path, data: bytes, mode: int) -> None:
    file = initdir / path.relative_to("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(mode)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
