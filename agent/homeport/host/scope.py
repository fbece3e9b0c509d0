"""Putting a process of ours aside that cannot end: out of our unit's cgroup, into a scope of its own.

Knows systemd's private socket, which is there without a bus, also in the initramfs; only root may use it. Refuses to
know why the process cannot end.

systemd waits for what is left in a unit's cgroup whenever the unit fails or stops, twice TimeoutStopSec= long, and
SIGKILL does not end a process within a system call that is not interruptible.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jeepney.low_level import Message

SOCKET = "/run/systemd/private"
SECONDS = 5.0  # for systemd to answer
SERIAL = 1
# Microseconds. At switch-off, too, there is nothing to wait for.
STOP_WITHIN = 1_000_000


def put_aside(pid: int, name: str, why: str) -> None:
    """Move process `pid` into the scope `name`.scope; the unit's end does not wait for it. Raises OSError."""
    try:
        from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
        from jeepney.io.blocking import prep_socket
        from jeepney.low_level import Parser
    except ImportError as error:
        raise OSError("no Python module jeepney") from error
    systemd = DBusAddress("/org/freedesktop/systemd1", "org.freedesktop.systemd1", "org.freedesktop.systemd1.Manager")
    properties = [("PIDs", ("au", [pid])), ("Description", ("s", why)), ("TimeoutStopUSec", ("t", STOP_WITHIN)),
                  ("CollectMode", ("s", "inactive-or-failed"))]
    message = new_method_call(systemd, "StartTransientUnit", "ssa(sv)a(sa(sv))",
                              (f"{name}.scope", "fail", properties, []))
    parser = Parser()
    answers: list[Message] = []
    try:
        # Not a DBusConnection: that greets a bus, which this is not.
        with prep_socket(SOCKET, timeout=SECONDS) as line:
            line.settimeout(SECONDS)
            line.sendall(message.serialise(SERIAL))
            while not answers:
                answers = [found for found in parser.feed(_received(line))
                           if found.header.fields.get(HeaderFields.reply_serial) == SERIAL]
    except OSError:
        raise
    except Exception as error:  # jeepney's own, of a systemd that speaks otherwise
        raise OSError(f"systemd does not answer as expected: {error}") from error
    if answers[0].header.message_type is MessageType.error:
        raise OSError(f"systemd refuses it: {' '.join(map(str, answers[0].body))}")


def _received(line: socket.socket) -> bytes:
    data = line.recv(4096)
    if not data:
        raise ConnectionResetError("systemd has hung up")
    return data
