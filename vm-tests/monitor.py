"""What the kernel of a machine said about links, addresses and routes: `ip monitor`, kept and read.

Runs in the machine's network namespace but outside the machine, so nothing in there can disturb it.

What the kernel said is in the log a little later, on a busy machine much later.  So before the log is read, one more
event is made, a route that comes and goes in a table that nothing looks at: once that is in the log, all before it is.
"""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from namespaces import NetworkNamespace, wait_until

# No machine's document has this table, and no rule leads to it.
_TABLE = "3141592653"
_NOTHING = "203.0.113.255"


@dataclass(frozen=True)
class Event:
    """One message: `kind` is LINK, ADDR or ROUTE; `deleted` if something went away."""

    kind: str
    deleted: bool
    text: str

    def __str__(self) -> str:
        return f"[{self.kind}] {'deleted ' if self.deleted else ''}{self.text}"


class Monitor:
    """Listens from the moment it is made until `stop`."""

    def __init__(self, namespace: NetworkNamespace, log: Path) -> None:
        self.log = log
        self._namespace = namespace
        self._numbers = itertools.count(1)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                namespace.argv(
                    ["ip", "-oneline", "-tshort", "monitor", "label", "link", "address", "route"]
                ),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        wait_until(self._listens, what="ip monitor to listen")

    def _listens(self) -> bool:
        """It is subscribed: a netlink socket of this namespace has groups (the fourth column)."""
        if self._process.poll() is not None:
            raise RuntimeError(f"ip monitor ended: {self.log.read_text()}")
        table = Path(f"/proc/{self._process.pid}/net/netlink").read_text().splitlines()[1:]
        sockets = (line.split() for line in table)
        return any(s[2] == str(self._process.pid) and int(s[3], 16) for s in sockets)

    def stop(self) -> None:
        """The last that the namespace said is in the log."""
        try:
            self._catch_up()
        finally:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def standing_still(self, seconds: float) -> Iterator[None]:
        """The listener gets no processor for so long, as on a busy machine."""
        goes_on = threading.Timer(seconds, self._process.send_signal, [signal.SIGCONT])
        self._process.send_signal(signal.SIGSTOP)
        goes_on.start()
        yield
        goes_on.join()

    def _catch_up(self) -> None:
        """Until the log has all that has happened; nothing more comes once it has been stopped."""
        if self._process.poll() is not None:
            return
        route = ["blackhole", _NOTHING, "table", _TABLE, "metric", str(next(self._numbers))]
        self._namespace.ip("route", "add", *route)
        self._namespace.ip("route", "delete", *route)
        sentinel = re.compile(rf"^.*\[ROUTE\]Deleted {' '.join(map(re.escape, route))}\b".encode(), re.MULTILINE)
        wait_until(lambda: sentinel.search(self.log.read_bytes()), what="ip monitor to keep up", every=0.01)

    def mark(self) -> int:
        """A point in time, for `events(since=…)`."""
        self._catch_up()
        return self.log.stat().st_size

    def events(self, *, since: int = 0, kind: str = "", nic: str = "") -> list[Event]:
        """What happened since the mark, oldest first; only of one kind or one NIC, if named."""
        self._catch_up()
        lines = self.log.read_bytes()[since:].decode(errors="replace").splitlines()
        found = [event for line in lines if (event := _parse(line))]
        return [e for e in found if kind in ("", e.kind) and re.search(rf"\b{re.escape(nic)}\b", e.text)]


def _parse(line: str) -> Event | None:
    found = re.match(r"^(?:\[[\dT:.-]+\]\s*)?\[(LINK|ADDR|ROUTE)\](Deleted )?(.*)$", line)
    if not found or f"table {_TABLE} " in found[3]:
        return None
    return Event(found[1], bool(found[2]), found[3].strip())
