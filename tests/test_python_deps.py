"""Which Python modules come into an initramfs: found out by this Python, without an initramfs (vm-tests/test_08_*)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
SCRIPT = TOP / "dracut/50homeport/python-deps.py"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
LIBRARY = Path(os.__file__).parent

# A program in place of the agent's, with what it imports as the agent does: somewhere.
PROGRAM = {
    "__main__.py": "",
    "homeport/__init__.py": "",
    "homeport/settings.py": f"""
class Settings:
    ca, seed, config = ("/etc/hostname", "/not/there"), (), ("http://example", "{LIBRARY}/json")
def read_settings(lenient):
    return Settings()
""",
    "homeport/sources/__init__.py": "",
    "homeport/sources/trust.py": f"BUNDLES = ('/not/there', {str(BUNDLE)!r})",
}


@pytest.fixture(autouse=True)
def _bundle() -> None:
    if not BUNDLE.exists() and not os.environ.get("CI"):
        pytest.skip("ca-certificates is not installed")


def test_imports_are_followed_into_functions(tmp_path: Path) -> None:
    done = run(tmp_path, work="""
def work():
    import json
    import yaml
    "".encode("utf-16-be")
    try:
        import pyudev
    except ImportError:
        pass
""")
    assert done.returncode == 0, done.stdout + done.stderr
    found = modules(tmp_path)
    assert {"json/__init__.pyc", "json/decoder.pyc", "yaml/cyaml.pyc", "encodings/utf_16_be.pyc"} <= found
    # What C code asks for by name, and what starts a zipapp.
    assert {"encodings/idna.pyc", "stringprep.pyc", "_strptime.pyc", "runpy.pyc"} <= found
    # Left out, never imported, or only with site-packages.
    assert not {name for name in found if name.startswith(("pyudev", "requests", "site.", "lzma", "unittest"))}
    extensions = [line.split() for line in done.stdout.splitlines() if line.startswith("lib ")]
    # All in one folder, which Python looks in without site.
    assert any(Path(to).parent == LIBRARY / "yaml" for _, _, to in extensions)
    assert all(LIBRARY in Path(to).parents for _, _, to in extensions)
    files = [line.removeprefix("file ") for line in done.stdout.splitlines() if line.startswith("file ")]
    assert {str(BUNDLE), "/etc/hostname", f"{LIBRARY}/json/decoder.py"} <= set(files)
    assert not any("example" in file or "not" in file for file in files)


def test_written_is_compiled_and_the_same_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert run(tmp_path / name, work="import hmac").returncode == 0
    first, second = ({path.relative_to(root): path.read_bytes() for path in root.rglob("*.py*") if path.is_file()}
                     for root in (tmp_path / "one/image", tmp_path / "two/image"))
    first, second = ({name: data for name, data in files.items() if name.suffix == ".pyc"} for files in (first, second))
    assert first == second and first
    archive = next((tmp_path / "one/image").rglob("homeport.pyz"))
    with zipfile.ZipFile(archive) as agent:
        assert {Path(name).suffix for name in agent.namelist()} == {".pyc"}
    # It starts, and finds its modules, where nothing else is.
    library = tmp_path / "one/image" / LIBRARY.relative_to("/")
    shown = subprocess.run([sys.executable, "-I", "-S", "-c", f"""
import sys
sys.path[:] = [{str(archive)!r}, {str(library)!r}, {str(LIBRARY / "lib-dynload")!r}]
import homeport.work, hmac, json
print(json.dumps([hmac.__spec__.origin, homeport.work.__file__]))
"""], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert all(path.startswith(str(tmp_path)) and path.endswith(".pyc") for path in json.loads(shown.stdout))


@pytest.mark.parametrize(("work", "missing"), [
    ("def work():\n    import no_such_library", "no_such_library"),
    # A library that the agent has learnt to need, and that somebody thought it can do without.
    ("import lzma", "lzma"),
])
def test_what_is_missing_is_said(tmp_path: Path, work: str, missing: str) -> None:
    done = run(tmp_path, work=work)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("say Cannot put homeport into the initramfs: ") and missing in last


def test_the_agent_has_nothing_else(tmp_path: Path) -> None:
    """A new import of the agent's is a decision about the size of every initramfs."""
    zipapp = tmp_path / "homeport.pyz"
    subprocess.run([sys.executable, TOP / "agent/mkzipapp.py", zipapp], check=True)
    done = make(zipapp, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    top = {name.partition("/")[0].partition(".")[0] for name in modules(tmp_path)}
    assert top - set(sys.stdlib_module_names) <= {
        "certifi", "chardet", "charset_normalizer", "h11", "idna", "jeepney", "requests", "six", "systemd", "urllib3",
        "wsproto", "yaml",
    }
    # `requests` reads certifi's bundle when it is imported, and fails where there is none: it is shown the system's.
    library = tmp_path / "image" / LIBRARY.relative_to("/")
    assert "certifi.pyc" in modules(tmp_path) and "certifi/core.pyc" not in modules(tmp_path)
    where = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(library)!r}); "
                            "import certifi; print(certifi.where())"], capture_output=True, text=True, check=True)
    assert where.stdout.strip() == str(BUNDLE)


def run(folder: Path, *, work: str) -> subprocess.CompletedProcess[str]:
    """The script on a small program whose module homeport.work is `work`; its image is folder/image."""
    zipapp = folder / "homeport.pyz"
    with zipfile.ZipFile(zipapp, "w") as archive:
        for name, source in (PROGRAM | {"homeport/work.py": work}).items():
            archive.writestr(name, source)
    return make(zipapp, folder)


def make(zipapp: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", "-B", SCRIPT, zipapp, folder / "image"], capture_output=True,
                          text=True, check=False)


def modules(folder: Path) -> set[str]:
    library = folder / "image" / LIBRARY.relative_to("/")
    return {path.relative_to(library).as_posix() for path in library.rglob("*.pyc")}
