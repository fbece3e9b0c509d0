"""One run at a time, and a lock that dies with its holder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.host.lock import LOCK, Busy, only_one

AGENT = Path(__file__).resolve().parents[2] / "agent"
HOLDER = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from homeport.host.lock import only_one
with only_one(Path(sys.argv[2]), 1):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(AGENT), str(tmp_path)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_second_run_waits_and_says_why_it_gives_up(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    with pytest.raises(Busy, match="Another homeport"), only_one(tmp_path, 0.2):
        pass
    holder.kill()
    holder.communicate()
    # The holder was killed: nothing stale is left.
    with only_one(tmp_path, 0.2):
        pass


def test_second_run_goes_on_when_the_first_ends(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    assert holder.stdin is not None
    holder.stdin.close()
    with only_one(tmp_path, 10):
        assert (tmp_path / LOCK).exists()
    holder.wait()


def test_no_lock_is_no_reason_not_to_work(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("not a folder")
    with only_one(tmp_path, 0.1):
        os.stat(tmp_path)
