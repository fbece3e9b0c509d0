"""A process between us and the TPM, which can be left behind when the TPM hangs.

The kernel has no limit of ours for a TPM (drivers/char/tpm/tpm-dev-common.c, Linux 6.1 to 7.2). While a command
runs, which it lets one do for two minutes, and CreatePrimary for five (tpm2-cmd.c), poll() on the device waits for
the lock that the command holds, and close() and exit wait for the command itself; no signal ends that wait, SIGKILL
neither. So nobody touches the device but a child of ours, to which we speak through a socket, with our own limits.

A child that does not answer in time is killed, which counts as soon as the kernel lets it go, and put into a scope of
its own (scope.py): systemd waits for what is left in a unit's cgroup when the unit fails or stops, in spite of
KillMode=mixed, and twice TimeoutStopSec= at that (homeport.service: two minutes). Where it cannot be put aside, that
is the limit. It holds nothing of ours: its only open files are the device, its end of the socket and /dev/null. At
switch-root systemd does not wait for it; when the machine is switched off, systemd waits ten seconds.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import Protocol

from homeport.core.tpm import wire
from homeport.host.scope import put_aside

log = logging.getLogger(__name__)

# Seconds to open the device, and to give it back; the kernel needs milliseconds.
OPENING, PARTING = 5.0, 2.0
PAUSE = 0.002
_SECONDS, _STATUS = struct.Struct("d"), struct.Struct("i")


class Transport(Protocol):
    """A way to the TPM. Raises OSError; TimeoutError after `seconds`, and then it cannot be used again."""

    def exchange(self, command: bytes, seconds: float) -> bytes: ...

    def close(self) -> None: ...


class Apart:
    """The transport that `connect` makes, in a process of its own. Raises what `connect` does, as OSError."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._child = os.fork()
        if not self._child:
            _live(connect, theirs)
        theirs.close()
        try:
            self._answer(OPENING)
        except OSError:
            self.close()
            raise

    def exchange(self, command: bytes, seconds: float) -> bytes:
        self._line.sendall(_SECONDS.pack(seconds) + command)
        return self._answer(seconds)

    def _answer(self, seconds: float) -> bytes:
        waiting = select.poll()
        waiting.register(self._line, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            self._abandon()
            raise TimeoutError
        data = self._line.recv(_STATUS.size + wire.LARGEST)
        if len(data) < _STATUS.size:
            raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
        (status,) = _STATUS.unpack_from(data)
        if status:
            raise OSError(status, os.strerror(status))
        return data[_STATUS.size:]

    def close(self) -> None:
        self._line.close()
        end = time.monotonic() + PARTING
        while self._child:
            if self._is_over():
                self._child = 0
            elif time.monotonic() > end:
                self._abandon()
            else:
                time.sleep(PAUSE)

    def _is_over(self) -> bool:
        with contextlib.suppress(ChildProcessError):  # somebody else has waited for it
            return os.waitpid(self._child, os.WNOHANG)[0] != 0
        return True

    def _abandon(self) -> None:
        child, self._child = self._child, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        try:
            put_aside(child, f"homeport-tpm-{child}", "A command that the TPM does not finish")
        except OSError as error:
            log.debug("the process that waits for the TPM stays in our unit: %s", error)


def _live(connect: Callable[[], Transport], line: socket.socket) -> None:
    """The child, from birth to death."""
    try:
        _let_go(line.fileno())
        _serve(connect, line)
    finally:
        # Whatever comes, nothing of the parent's goes on in here.
        os._exit(0)


def _let_go(ours: int) -> None:
    """Hold nothing of the parent's: no terminal, no lock, no bus, no place in a file system."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != ours:
            with contextlib.suppress(OSError):  # the one of this listing
                os.close(int(name))


def _serve(connect: Callable[[], Transport], line: socket.socket) -> None:
    """Answer with a status, 0 or an errno, and what the TPM said; until the other side has had enough."""
    transport: Transport | None = None
    try:
        transport = connect()
        line.sendall(_STATUS.pack(0))
        while asked := line.recv(_SECONDS.size + wire.LARGEST):
            (seconds,) = _SECONDS.unpack_from(asked)
            line.sendall(_STATUS.pack(0) + transport.exchange(asked[_SECONDS.size:], seconds))
    except OSError as error:
        number = errno.ETIMEDOUT if isinstance(error, TimeoutError) else error.errno
        with contextlib.suppress(OSError):
            line.sendall(_STATUS.pack(number or errno.EIO))
    if transport:
        transport.close()
