#!/usr/bin/python3 -I
"""homeport, killed or held at one point of its story. Runs in the guest, in place of the real program.

    killer.py boot --stage host          as /usr/bin/homeport, with the installed zipapp's own code

Points are whatever a crash could fall between: the begin and end of each step, every change of a file, every
fsync, every program that is started, every call that changes something in NetworkManager. They are found
while the program runs, by Python's audit events and three wrapped functions, so new code has points of its
own accord. Each is noted in /run/homeport. /etc/kill-at says where to stop: a verb of the command
line, "kill" or "hold", and a point, separated by tabs.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PYZ = "/usr/lib/homeport/homeport.pyz"
ORDER = "/etc/kill-at"
POINTS = "/run/homeport/points-of-"  # and the verb
HELD = "/run/homeport/held"
# What only looks: a crash around it is a crash between its neighbours.
LOOKING = {"show", "version", "policy"}
ASKING = re.compile(r"^(Get|List|Introspect|Ping)")
RANDOM = re.compile(r"\.homeport-[0-9a-f]{16}\.tmp")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

_seen: Counter[str] = Counter()
_busy = False
_how, _where, _log = "", "", -1


def main() -> int:
    global _how, _where, _log
    os.makedirs("/run/homeport", exist_ok=True)
    _log = os.open(POINTS + sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    _how, _where = read_order(sys.argv[1])
    sys.path.insert(0, PYZ)
    sys.argv[0] = PYZ
    wrap()
    sys.addaudithook(on_event)
    from homeport.__main__ import main as homeport
    return homeport()


def read_order(verb: str) -> tuple[str, str]:
    try:
        with open(ORDER, encoding="utf-8") as file:
            wanted, how, where = file.read().rstrip("\n").split("\t")
    except FileNotFoundError:
        return "", ""
    return (how, where) if wanted == verb else ("", "")


def wrap() -> None:
    from homeport.host.nm.bus import Bus
    from homeport.report import Report
    fsync, call, step = os.fsync, Bus.call, Report.step

    def pointed_fsync(fd: int) -> None:
        point(f"fsync {path_of(fd)}")
        fsync(fd)

    def pointed_call(self: Bus, path: str, interface: str, method: str, *rest: Any, **more: Any) -> Any:
        looks = bool(ASKING.match(method))
        if not looks:
            point(f"call {method}")
        answer = call(self, path, interface, method, *rest, **more)
        if not looks:
            point(f"called {method}")
        return answer

    @contextmanager
    def pointed_step(self: Report, name: str) -> Iterator[list[str]]:
        point(f"begin {name}")
        with step(self, name) as notes:
            yield notes
        point(f"end {name}")

    os.fsync = pointed_fsync  # type: ignore[assignment]
    Bus.call = pointed_call  # type: ignore[method-assign]
    Report.step = pointed_step  # type: ignore[method-assign]


def on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Every change of a file, and every program: Python says so just before it happens."""
    if event == "open":
        # A number is a file that is open already.
        if isinstance(arguments[0], str) and arguments[2] & WRITING and not arguments[0].startswith("/dev/"):
            point(f"write {arguments[0]}")
    elif event == "os.rename":
        point(f"rename to {path_of(arguments[3], arguments[1])}")
    elif event == "os.remove":
        point(f"remove {path_of(arguments[1], arguments[0])}")
    elif event == "subprocess.Popen":
        words = [os.fsdecode(word) for word in arguments[1]]
        if words[1:2] and words[1] not in LOOKING:
            program = f"{os.path.basename(words[0])} {words[1]}"
            point(f"run {program}")
            point(f"during {program}", later=0.06)


def path_of(fd: int, name: Any = "") -> str:
    folder = os.readlink(f"/proc/self/fd/{fd}") if fd >= 0 else ""
    return os.path.join(folder, os.fsdecode(name)) if name else folder


def point(name: str, later: float = 0) -> None:
    """Note the point, and stop here if this is the one: at once, or so many seconds later."""
    global _busy
    if _busy or threading.current_thread() is not threading.main_thread():
        return
    _busy = True
    name = RANDOM.sub("TEMPORARY", name)
    _seen[name] += 1
    if _seen[name] > 1:
        name += f" ({_seen[name]})"
    os.write(_log, f"{name}\n".encode())
    if name == _where:
        if later:
            threading.Timer(later, stop).start()
        else:
            stop()
    _busy = False


def stop() -> None:
    os.close(os.open(HELD, os.O_WRONLY | os.O_CREAT, 0o644))
    os.kill(os.getpid(), signal.SIGKILL if _how == "kill" else signal.SIGSTOP)


if __name__ == "__main__":
    sys.exit(main())
