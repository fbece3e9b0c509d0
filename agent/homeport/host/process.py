"""The one place that starts programs.

Knows how to run a child in bounded time and memory, and how to stop it: with SIGINT first, because
`nmstatectl` rolls back on SIGINT and leaves its checkpoint behind on anything else
(spec/nmstate-and-peers.md 0.1).  Refuses to know what any program does or what its output means.

The child lives in a session of its own, so that a Ctrl-C on the terminal reaches us and only us.  A
SIGINT, SIGTERM or SIGHUP that we get becomes one SIGINT for the child, and is acted on by us only
once the child has finished.  If we die without warning, the kernel sends the child SIGINT
(PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeport.errors import HomeportError

if TYPE_CHECKING:
    import subprocess

log = logging.getLogger(__name__)

GRACE = 15.0  # seconds between SIGINT and SIGKILL: a rollback by NetworkManager takes 1 to 3
STDOUT_LIMIT = 4 << 20  # bytes kept; `nmstatectl show` writes about 3 KiB for each NIC
STDERR_LIMIT = 256 << 10
POLL = 0.2  # seconds; delays only what is rare: a signal to us, a child that outlives its output
PR_SET_PDEATHSIG = 1    # include/uapi/linux/prctl.h

# What systemd hands to *us*; a child that used it would speak in our name.
NOT_INHERITED = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID",
                 "LISTEN_FDNAMES", "CREDENTIALS_DIRECTORY", "JOURNAL_STREAM", "INVOCATION_ID")


@dataclass(frozen=True)
class Completed:
    """A program that has ended. `status` is its exit status, or minus the signal that killed it.

    `stdout` is the beginning, `stderr` the end of what it wrote, within the limits above;
    `truncated` says that more was thrown away.  `seconds` is wall time.
    """

    argv: tuple[str, ...]
    status: int
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool = False


class MissingProgram(HomeportError):
    """A program we need cannot be started at all; nothing was changed."""

    status = os.EX_TEMPFAIL


class TimedOut(HomeportError):
    """A program did not end in time and was stopped.

    `killed` is true if SIGINT was not enough: then it had no chance to clean up behind itself.
    """

    status = os.EX_TEMPFAIL

    def __init__(self, completed: Completed, timeout: float, *, killed: bool) -> None:
        self.completed, self.killed = completed, killed
        how = "did not heed SIGINT and was killed" if killed else "was stopped"
        super().__init__(f"{_name(completed.argv)} did not end within {timeout:g} s and {how}",
                         "it may wait for hardware or a service; see the journal")


def run(argv: Sequence[str], *, input: bytes | None = None, timeout: float,
        env: Mapping[str, str] | None = None, grace: float = GRACE) -> Completed:
    """Run `argv` to its end and return what came of it, whatever its exit status.

    `input` becomes its whole standard input (default: empty) and is never logged, unlike `argv`:
    secrets go through `input`.  `timeout` and `grace` are seconds.  `env` is added to our own
    environment, in which messages are English (`LC_ALL=C.UTF-8`).  Raises MissingProgram and
    TimedOut.

    A signal that asked us to end is delivered again after the child has ended, to whoever handled
    it before: so this may also raise KeyboardInterrupt, or whatever that handler raises.
    """
    import shlex
    log.debug("Running %s", shlex.join(argv))
    started = time.monotonic()
    with _passing_on_signals() as attach:
        watch = _Watch(_start(argv, input, env), started + timeout, grace)
        attach(watch.stop)
        watch.finish()
    outcome = watch.outcome(tuple(argv), time.monotonic() - started)
    log.debug("%s ended with status %d after %.3f s", _name(argv), outcome.status, outcome.seconds)
    if watch.late:
        raise TimedOut(outcome, timeout, killed=watch.killed)
    return outcome


def _name(argv: Sequence[str]) -> str:
    """`nmstatectl apply` of `/usr/bin/nmstatectl apply --memory-only -`: enough for a message."""
    verb = argv[1] if len(argv) > 1 and argv[1].isalpha() else ""
    return f"{os.path.basename(argv[0])} {verb}".rstrip()


def _start(argv: Sequence[str], data: bytes | None, env: Mapping[str, str] | None,
           ) -> subprocess.Popen[bytes]:
    import subprocess
    stdin = _as_file(data or b"")
    try:
        # preexec_fn is safe here: no other thread of ours runs while a program is started, and what
        # it calls was looked up before the fork.
        return subprocess.Popen(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
            env=_environment(env), start_new_session=True, preexec_fn=_child_setup())
    except OSError as error:
        raise MissingProgram(f"Cannot start {argv[0]}: {error.strerror}",
                             "is its package installed, and is it in this image?") from error
    finally:
        os.close(stdin)


def _as_file(data: bytes) -> int:
    """`data` as a readable file in memory: unlike a pipe it cannot block us, nor break."""
    fd = os.memfd_create("homeport-input", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **ours, "LC_ALL": "C.UTF-8", **(extra or {})}


def _child_setup() -> Callable[[], None]:
    """What happens in the child between fork and exec."""
    parent = os.getpid()
    try:
        import ctypes  # 2 ms; the only way to prctl(2) without another program in between
        prctl: Callable[..., Any] | None = ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        prctl = None  # an image without libffi: a killed homeport then leaves its child running
        log.debug("No ctypes here: a child would outlive us, proceeding anyway")

    def setup() -> None:
        # Ignored signals survive exec, and shells start background jobs with SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
            if os.getppid() != parent:  # we died before the kernel knew what to do about it
                os._exit(os.EX_TEMPFAIL)

    return setup


@contextmanager
def _passing_on_signals() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Turn a request that we end into a call of the attached function, and heed it afterwards.

    Signals that are ignored stay ignored.  Python handles signals in the main thread only: in
    another one this does nothing.
    """
    import threading
    received: list[int] = []
    stops: list[Callable[[], None]] = []

    def note(number: int, _frame: object) -> None:
        received.append(number)
        for stop in stops:
            stop()

    def attach(stop: Callable[[], None]) -> None:
        stops.append(stop)
        if received:  # came while the child was being started
            stop()

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # None: a handler that Python did not install and could not put back
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, note)
    try:
        yield attach
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


class _Watch:
    """A running child: reads what it writes, within limits, and stops it when its time is over.

    Afterwards `late` says that its time was over, `killed` that SIGINT was not enough.
    """

    def __init__(self, child: subprocess.Popen[bytes], deadline: float, grace: float) -> None:
        import selectors
        self.child, self.deadline, self.grace = child, deadline, grace
        self.stdout, self.stderr = bytearray(), bytearray()
        self.truncated = self.stopping = self.late = self.killed = False
        self.selector = selectors.DefaultSelector()
        for stream, keep in ((child.stdout, self._keep_first), (child.stderr, self._keep_last)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ, keep)

    def stop(self) -> None:
        """Ask the child to end, once: a second SIGINT could cut its rollback short."""
        if not self.stopping:
            self.stopping = True
            self.deadline = time.monotonic() + self.grace
            self._signal(signal.SIGINT)

    def finish(self) -> None:
        """Wait for the child to end; stop it, then kill it, when `deadline` has passed."""
        try:
            while not self._has_ended():
                if time.monotonic() < self.deadline:
                    continue
                self.late = True
                if self.stopping:
                    self.killed = True
                    break
                self.stop()
        finally:
            # Also on the way out of an exception: never leave a child that nobody watches.
            self._signal(signal.SIGKILL)
            self.child.wait()
            for stream in (self.child.stdout, self.child.stderr):
                assert stream is not None
                stream.close()
            self.selector.close()

    def outcome(self, argv: tuple[str, ...], seconds: float) -> Completed:
        return Completed(argv, self.child.returncode, bytes(self.stdout), bytes(self.stderr),
                         seconds, self.truncated)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the child and its own children, as a terminal would, unless it is gone."""
        if self.child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, number)

    def _has_ended(self) -> bool:
        """Read for POLL seconds at most; true once the child is gone and all is read."""
        gone = self.child.poll() is not None
        left = 0.0 if gone else max(0.0, min(POLL, self.deadline - time.monotonic()))
        if not self.selector.get_map():  # it closed its output, which it mostly does by ending
            return gone or self._ends_within(left)
        ready = self.selector.select(left)
        for key, _events in ready:
            self._read(key.fileobj, key.data)
        return gone and not ready  # a grandchild that still holds the pipes is none of ours

    def _ends_within(self, seconds: float) -> bool:
        import subprocess
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _read(self, stream: Any, keep: Callable[[bytes], None]) -> None:
        try:
            chunk = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if chunk:
            keep(chunk)
        else:
            self.selector.unregister(stream)

    def _keep_first(self, chunk: bytes) -> None:
        room = STDOUT_LIMIT - len(self.stdout)
        self.truncated |= len(chunk) > room
        self.stdout += chunk[:room]

    def _keep_last(self, chunk: bytes) -> None:
        self.stderr += chunk
        if len(self.stderr) > STDERR_LIMIT:
            self.truncated = True
            del self.stderr[:-STDERR_LIMIT]
