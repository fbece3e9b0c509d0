"""Linux namespaces by hand: a private mount namespace for this process, network namespaces by descriptor.

Knows unshare(2) and setns(2) and how to run programs and code inside a network namespace.  Knows nothing
of machines, bridges or tests.  Whatever is made here vanishes with the process that made it.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

T = TypeVar("T")

PATIENCE = 60.0  # seconds until a wait was in vain

_libc = ctypes.CDLL(None, use_errno=True)
_mounts_are_private = False


def _call(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def make_mounts_private() -> None:
    """Give this process (and what it starts from now on) a mount namespace of its own, once.

    Must run on the main thread: unshare(2) works on the calling thread alone, and only threads and
    programs started by it afterwards see the new namespace.
    """
    global _mounts_are_private
    if _mounts_are_private:
        return
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("make the first World or Machine on the main thread")
    _call("unshare", CLONE_NEWNS)
    _call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    _mounts_are_private = True


def in_thread(function: Callable[[], T]) -> T:
    """Run `function` on a thread of its own and give back what it returns or raises."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class NetworkNamespace:
    """A network namespace that lives as long as this object, or a program inside it, does."""

    def __init__(self, fd: int = -1) -> None:
        """A new one, with `lo` up; or the one that `fd` is open on."""
        self._fd = fd if fd >= 0 else in_thread(self._make)
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"
        if fd < 0:
            self.ip("link", "set", "lo", "up")

    @classmethod
    def of_process(cls, pid: int) -> NetworkNamespace:
        """The namespace that a process lives in."""
        return cls(os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    @staticmethod
    def _make() -> int:
        _call("unshare", CLONE_NEWNET)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> NetworkNamespace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` inside."""
        return ["nsenter", f"--net={self.path}", "--", *argv]

    def run(self, argv: Sequence[str], *, check: bool = True, timeout: float = PATIENCE) -> str:
        """Run a program inside, give back its standard output; its complaint is in the error raised."""
        done = subprocess.run(
            self.argv(argv), capture_output=True, text=True, timeout=timeout, check=False
        )
        if check and done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(argv)} gave {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout

    def ip(self, *arguments: str, check: bool = True) -> str:
        """`ip ARGUMENTS` inside."""
        return self.run(["ip", *arguments], check=check)

    def call(self, function: Callable[[], T]) -> T:
        """Run Python code inside (on a thread of its own); sockets made there stay there."""

        def work() -> T:
            _call("setns", self._fd, CLONE_NEWNET)
            return function()

        return in_thread(work)

    def listen(self, address: str, port: int) -> socket.socket:
        """A listening TCP socket inside, usable from any thread."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET

        def work() -> socket.socket:
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(64)
            return listener

        return self.call(work)


def wait_until(
    condition: Callable[[], T], *, timeout: float = PATIENCE, what: str, every: float = 0.05
) -> T:
    """Poll until `condition()` is true and give it back; TimeoutError names `what` was waited for.

    The time is there to end what hangs: a wait that succeeds is no slower for it, whatever else the machine does.
    """
    import time

    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(every)
