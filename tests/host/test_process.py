"""Programs: what comes of them, how they end, and that none outlives us or is cut off in a rollback."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from homeport.host import process
from homeport.host.process import MissingProgram, TimedOut, run

# Notes each SIGINT and takes a moment to "roll back"; writes its process id when it is ready.
ROLLS_BACK = """
import os, signal, sys, time
def note(number, frame):
    with open(sys.argv[1], "a") as file: file.write("SIGINT\\n")
    time.sleep(0.3)
    with open(sys.argv[1], "a") as file: file.write("rolled back\\n")
    sys.exit(1)
signal.signal(signal.SIGINT, note)
with open(sys.argv[1] + ".pid", "w") as file: file.write(str(os.getpid()))
while True: time.sleep(0.05)
"""


def wait_for(what: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # not there yet, or a process that has just gone
        return ""


def session_of(stat: str) -> int:
    """The session in a /proc/PID/stat, 0 for a zombie (proc(5))."""
    state, _parent, _group, session = stat.rpartition(") ")[2].split()[:4]
    return 0 if state == "Z" else int(session)


def sessions() -> set[int]:
    return {session_of(text(path)) for path in Path("/proc").glob("[0-9]*/stat") if text(path)}


def test_what_came_of_it() -> None:
    done = run(["sh", "-c", "cat; echo no >&2; exit 3"], input=b"yes", timeout=10)
    assert (done.status, done.stdout, done.stderr, done.truncated) == (3, b"yes", b"no\n", False)
    assert done.argv == ("sh", "-c", "cat; echo no >&2; exit 3") and 0 < done.seconds < 10


def test_without_input_there_is_none() -> None:
    assert run(["cat"], timeout=10).stdout == b""


def test_input_and_output_do_not_wait_for_each_other() -> None:
    data = os.urandom(3 << 20)
    assert run(["cat"], input=data, timeout=30).stdout == data


def test_input_that_nobody_reads_is_no_error() -> None:
    assert run(["true"], input=b"x" * (1 << 20), timeout=10).status == 0


def test_output_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STDOUT_LIMIT", 1000)
    monkeypatch.setattr(process, "STDERR_LIMIT", 1000)
    done = run(["sh", "-c", "seq 1 200000; seq 1 200000 >&2"], timeout=30)
    assert done.truncated and done.status == 0
    # Output is read from its beginning, an error stands at the end.
    assert done.stdout.startswith(b"1\n2\n") and len(done.stdout) == 1000
    assert done.stderr.endswith(b"199999\n200000\n") and len(done.stderr) == 1000


def test_the_signal_that_killed_it() -> None:
    assert run(["sh", "-c", "kill -9 $$"], timeout=10).status == -9


@pytest.mark.parametrize("make", [
    lambda path: None,
    lambda path: path.write_text("#!/bin/sh\n"),  # not executable
    lambda path: (path.write_text("#!/nonexistent/sh\n"), path.chmod(0o755)),
])
def test_a_program_that_cannot_be_started(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "nmstatectl")
    with pytest.raises(MissingProgram, match=r"Cannot start .*/nmstatectl: .*installed") as caught:
        run([str(tmp_path / "nmstatectl"), "apply"], timeout=10)
    assert caught.value.status == os.EX_TEMPFAIL


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")  # a child must not speak for us
    monkeypatch.setenv("KEPT", "1")
    lines = run(["env"], timeout=10, env={"ADDED": "2"}).stdout.decode().splitlines()
    assert {"KEPT=1", "ADDED=2", "LC_ALL=C.UTF-8"} <= set(lines)
    assert not any(line.startswith("NOTIFY_SOCKET") for line in lines)


def test_a_child_that_is_late_is_stopped_with_sigint(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with pytest.raises(TimedOut, match="was stopped") as caught:
        run([sys.executable, "-c", ROLLS_BACK, str(seen)], timeout=5.0)  # it must be ready for signals by then
    assert seen.read_text() == "SIGINT\nrolled back\n"  # once, and it had the time for it
    assert not caught.value.killed and caught.value.completed.status == 1


def test_one_that_does_not_heed_is_killed_with_its_own_children() -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut, match="was killed") as caught:
        run(["sh", "-c", "trap '' INT; echo $$; sleep 60 & sleep 60"], timeout=2.0, grace=0.3)
    assert caught.value.killed and time.monotonic() - started < 40
    session = int(caught.value.completed.stdout)
    wait_for(lambda: session not in sessions())


def test_the_message_has_the_verb_and_no_arguments() -> None:
    with pytest.raises(TimedOut, match=r"^python\S* did not end within 0\.1 s") as caught:
        run([sys.executable, "-c", "import time; time.sleep(9)  # geheim"], timeout=0.1)
    assert "geheim" not in str(caught.value)


def test_a_grandchild_that_stays_does_not_keep_us() -> None:
    started = time.monotonic()
    done = run(["sh", "-c", "sleep 60 & echo gone"], timeout=90)
    assert done.stdout == b"gone\n" and time.monotonic() - started < 40


def test_a_child_that_closes_its_output_first_is_waited_for() -> None:
    done = run(["sh", "-c", "exec >&- 2>&-; sleep 0.5; exit 4"], timeout=10)
    assert done.status == 4 and done.seconds >= 0.5


def test_input_is_never_logged_and_the_command_line_is_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run(["cat", "-"], input=b"geheim", timeout=10)
    assert "Running cat -" in caplog.text and "geheim" not in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_the_terminal_reaches_only_us() -> None:
    status = run(["cat", "/proc/self/stat"], timeout=10).stdout.decode()
    assert session_of(status) not in (0, os.getsid(0))


def test_ignored_signals_are_not_handed_down() -> None:
    """A shell starts background jobs with SIGINT ignored; nmstatectl must hear it all the same."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        mask = run(["sh", "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status"], timeout=10).stdout
    finally:
        signal.signal(signal.SIGINT, before)
    assert b"SigBlk:\t0000000000000000" in mask
    ignored = int(mask.split(b"SigIgn:")[1].split()[0], 16)
    assert not ignored & (1 << signal.SIGINT - 1)


def test_from_another_thread() -> None:
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(run(["echo", "a"], timeout=10).stdout))
    thread.start()
    thread.join()
    assert found == [b"a\n"]


# -- what happens to the child when something happens to us

def start_parent(tmp_path: Path, more: str = "", call: str = "timeout=60") -> subprocess.Popen[str]:
    """A process of its own that runs ROLLS_BACK by `run`, once that is ready for signals."""
    program = textwrap.dedent("""
        import signal, sys
        from homeport.host.process import run
        # A job in the background, or under nohup, is started with these ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        {more}
        try:
            done = run([sys.executable, "-c", {child!r}, {seen!r}], {call})
            print("came back with", done.status, flush=True)
        except BaseException as error:
            print("raised", type(error).__name__, flush=True)
    """).format(more=more, child=ROLLS_BACK, seen=str(tmp_path / "seen"), call=call)
    parent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": "agent"},
                              stdout=subprocess.PIPE, text=True)
    wait_for(lambda: text(tmp_path / "seen.pid"))
    return parent


@pytest.mark.parametrize(("number", "more", "said", "status"), [
    (signal.SIGTERM, "", "", -signal.SIGTERM),  # as if nothing had been in between, only later
    (signal.SIGHUP, "", "", -signal.SIGHUP),
    (signal.SIGINT, "", "raised KeyboardInterrupt\n", 0),
    (signal.SIGTERM, "signal.signal(signal.SIGTERM, lambda *a: sys.exit(7))", "raised SystemExit\n", 0),
    (signal.SIGTERM, "signal.signal(signal.SIGTERM, lambda *a: None)", "came back with 1\n", 0),
])
def test_a_signal_to_us_reaches_the_child_first(tmp_path: Path, number: signal.Signals, more: str, said: str,
                                                status: int) -> None:
    parent = start_parent(tmp_path, more)
    parent.send_signal(number)
    output, _ = parent.communicate(timeout=60)
    assert text(tmp_path / "seen") == "SIGINT\nrolled back\n"
    assert (output, parent.returncode) == (said, status)


def test_an_impatient_second_signal_does_not_cut_the_rollback_short(tmp_path: Path) -> None:
    parent = start_parent(tmp_path)
    parent.send_signal(signal.SIGTERM)
    wait_for(lambda: text(tmp_path / "seen"))
    parent.send_signal(signal.SIGINT)
    parent.communicate(timeout=60)
    assert text(tmp_path / "seen") == "SIGINT\nrolled back\n"


def test_a_signal_that_we_ignore_is_ignored(tmp_path: Path) -> None:
    parent = start_parent(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)", "timeout=5.0")
    parent.send_signal(signal.SIGTERM)
    output, _ = parent.communicate(timeout=60)
    assert output == "raised TimedOut\n"


def test_a_child_that_does_not_heed_bounds_our_own_end(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        from homeport.host.process import run
        run(["sh", "-c", "trap '' INT; echo $$ > {seen}; while true; do sleep 1; done"], timeout=60, grace=0.5)
    """).format(seen=tmp_path / "seen")
    parent = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": "agent"})
    wait_for(lambda: text(tmp_path / "seen"))
    started = time.monotonic()
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(timeout=90) == -signal.SIGTERM and time.monotonic() - started < 40


def test_if_we_are_killed_the_child_is_told(tmp_path: Path) -> None:
    parent = start_parent(tmp_path)
    parent.kill()
    parent.communicate(timeout=60)
    wait_for(lambda: text(tmp_path / "seen") == "SIGINT\nrolled back\n")
