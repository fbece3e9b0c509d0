"""The set-up's cache: a piece is made once, is whole or not there, and two at once or a kill change nothing.

The real makers take minutes; here a small script stands for them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
PARTS = TOP / "tools/setup.d"
PIECES = ("venv", "nmstatectl", "guest-trixie", "guest-bookworm", "vm-trixie", "vm-forky", "fuzz", "peer-afterburn",
          "peer-nm-cloud-setup")

# Makes the piece "fake" under the key $2, in the cache $1, with the maker $3; $4 is how it is called.
MAKE = f"""
set -euo pipefail
cache=$1
. {PARTS}/say.sh
. {PARTS}/cache.sh
make() {{ make_piece fake "$key" "a moment" "$maker"; }}
key=$2 maker=$3
eval "${{4-make}}"
"""


class Bench:
    """A cache of its own, and a maker that notes each call and waits as long as it is told to."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.calls = folder / "calls"
        self.wait = folder / "wait"
        self.maker = folder / "maker"
        self.calls.touch()
        self.write_maker("echo whole > $1/last")

    def write_maker(self, last_step: str) -> None:
        self.maker.write_text(f"""#!/bin/bash
            set -e
            echo $1 >> {self.calls}
            echo half > $1/first
            while [ -e {self.wait} ]; do sleep 0.01; done
            {last_step}
        """)
        self.maker.chmod(0o755)

    def start(self, key: str = "key") -> subprocess.Popen[str]:
        return subprocess.Popen(["bash", "-c", MAKE, "setup", self.cache, key, self.maker],
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def make(self, key: str = "key") -> str:
        """Have it made; what the set-up says."""
        process = self.start(key)
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
        return said

    def start_and_stop_half_way(self, key: str = "key") -> subprocess.Popen[str]:
        """A set-up whose maker has begun and will not end."""
        self.wait.touch()
        before = self.times_made()
        process = self.start(key)
        wait_for(lambda: self.times_made() > before)
        return process

    def times_made(self) -> int:
        return len(self.calls.read_text().splitlines())

    def piece(self, key: str = "key") -> Path:
        return self.cache / "fake" / key

    def is_whole(self, key: str = "key") -> bool:
        return (self.piece(key) / "first").exists() and (self.piece(key) / "last").exists()

    def pieces(self) -> set[str]:
        return {path.name for path in (self.cache / "fake").iterdir() if path.is_dir()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_made_once(bench: Bench) -> None:
    assert "making it" in bench.make()
    assert bench.is_whole()
    assert bench.make() == "setup: fake: there\n"
    assert bench.times_made() == 1


def test_another_key_is_another_piece(bench: Bench) -> None:
    bench.make("old")
    bench.make("new")
    assert bench.is_whole("old") and bench.is_whole("new")


def test_nothing_is_there_until_all_is(bench: Bench) -> None:
    process = bench.start_and_stop_half_way()
    assert not bench.piece().exists()
    bench.wait.unlink()
    assert process.wait(20) == 0
    assert bench.is_whole()


def test_two_at_once_make_it_once(bench: Bench) -> None:
    first = bench.start_and_stop_half_way()
    second = bench.start()
    assert second.stderr is not None
    assert "another set-up is at it" in second.stderr.readline()
    bench.wait.unlink()
    assert first.wait(20) == second.wait(20) == 0
    assert bench.times_made() == 1 and bench.is_whole()


def test_killed_half_way_and_made_again(bench: Bench) -> None:
    process = bench.start_and_stop_half_way()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not bench.piece().exists()
    bench.wait.unlink()
    bench.make()
    assert bench.is_whole()
    assert bench.pieces() == {"key"}  # what the killed one left is swept away


def test_a_maker_that_outlives_its_setup_is_waited_for(bench: Bench) -> None:
    """kill -9 of the script alone: cargo goes on, and nobody may pull its folder away."""
    bench.write_maker("echo still here > $1/last")
    process = bench.start_and_stop_half_way()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    orphan = Path(bench.calls.read_text().strip())
    second = bench.start()
    assert second.stderr is not None
    assert "another set-up is at it" in second.stderr.readline()
    assert (orphan / "first").exists()
    bench.wait.unlink()
    assert second.wait(20) == 0
    assert bench.is_whole() and bench.pieces() == {"key"}


@pytest.mark.parametrize("call", ["make", "make || exit", "if ! make; then exit 1; fi"])
def test_failure_leaves_nothing_and_says_why(bench: Bench, call: str) -> None:
    """Also where the caller looks at the status, which makes bash forget `set -e` in functions."""
    bench.write_maker("echo no space left on device; false; echo whole > $1/last")
    result = subprocess.run(["bash", "-c", MAKE, "setup", bench.cache, "key", bench.maker, call],
                            capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "no space left on device" in result.stderr
    assert not bench.piece().exists()


def test_what_nobody_used_for_a_month_goes(bench: Bench) -> None:
    bench.make("forgotten")
    bench.make("in use elsewhere")
    long_ago = time.time() - 40 * 86400
    for key in ("forgotten", "in use elsewhere"):
        os.utime(bench.piece(key), (long_ago, long_ago))
    bench.make("in use elsewhere")
    bench.make("new")
    assert bench.pieces() == {"in use elsewhere", "new"}


def test_key_is_of_words_and_contents(tmp_path: Path) -> None:
    file, same, other = (tmp_path / name for name in ("file", "same", "other"))
    file.write_text("a")
    same.write_text("a")
    other.write_text("b")
    assert key("2.2.62", "--", file) == key("2.2.62", "--", same)
    different = [key("2.2.62"), key("2.2", ".62"), key("2.2.62", "--", file), key("2.2.61", "--", file),
                 key("2.2.62", "--", other), key("2.2.62", "--", file, file)]
    assert len(set(different)) == len(different)


@pytest.mark.parametrize("changed", [None, "tools/setup.d/guest.sh", "tools/setup.d/vm.sh",
                                     "tools/setup.d/peer.sh", "tools/requirements.txt", "README.md"])
def test_keys_are_the_same_in_every_clone(tmp_path: Path, changed: str | None) -> None:
    """Each piece's key changes with its own part, and with nothing else; an emulated machine is a guest with more."""
    clone = tmp_path / "clone"
    shutil.copytree(TOP / "tools", clone / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    if changed:
        (clone / changed).open("a").write("# changed\n")
    here, there = keys(TOP), keys(clone)
    vms = {"vm-trixie", "vm-forky"}
    expected = {"tools/setup.d/guest.sh": {"guest-trixie", "guest-bookworm"} | vms,
                "tools/setup.d/vm.sh": vms,
                "tools/setup.d/peer.sh": {"peer-afterburn", "peer-nm-cloud-setup"},
                "tools/requirements.txt": {"venv", "fuzz"}}
    assert {name for name in here if here[name] != there[name]} == expected.get(changed or "", set())
    assert len(set(here.values())) == len(here)


def test_unknown_piece_is_refused() -> None:
    result = subprocess.run([TOP / "tools/setup", "gust"], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "setup: no piece is called gust (tools/setup --help)\n"


def key(*words: str | Path) -> str:
    script = f'. {PARTS}/cache.sh; key_of "$@"'
    return subprocess.run(["bash", "-c", script, "key", *words], capture_output=True, text=True,
                          check=True).stdout.strip()


def keys(tree: Path) -> dict[str, str]:
    result = subprocess.run([tree / "tools/setup", "--keys", *PIECES],
                            capture_output=True, text=True, check=True)
    return dict(line.split() for line in result.stdout.splitlines())


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)
