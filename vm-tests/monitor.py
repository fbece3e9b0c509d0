"""What the kernel of a machine said about links, addresses and routes: `ip monitor`, kept and read.

Runs in the machine's network namespace but outside the machine, so nothing in there can disturb it.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from namespaces import NetworkNamespace, wait_until


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
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                namespace.argv(
                    ["ip", "-oneline", "-tshort", "monitor", "label", "link", "address", "route"]
                ),
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        wait_until(self._listens, timeout=10, what="ip monitor to listen")

    def _listens(self) -> bool:
        """It is subscribed: a netlink socket of this namespace has groups (the fourth column)."""
        if self._process.poll() is not None:
            raise RuntimeError(f"ip monitor ended: {self.log.read_text()}")
        table = Path(f"/proc/{self._process.pid}/net/netlink").read_text().splitlines()[1:]
        sockets = (line.split() for line in table)
        return any(s[2] == str(self._process.pid) and int(s[3], 16) for s in sockets)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def mark(self) -> int:
        """A point in time, for `events(since=…)`."""
        return self.log.stat().st_size

    def events(self, *, since: int = 0, kind: str = "", nic: str = "") -> list[Event]:
        """What happened since the mark, oldest first; only of one kind or one NIC, if named."""
        lines = self.log.read_bytes()[since:].decode(errors="replace").splitlines()
        found = [event for line in lines if (event := _parse(line))]
        return [e for e in found if kind in ("", e.kind) and re.search(rf"\b{re.escape(nic)}\b", e.text)]


def _parse(line: str) -> Event | None:
    found = re.match(r"^(?:\[[\dT:.-]+\]\s*)?\[(LINK|ADDR|ROUTE)\](Deleted )?(.*)$", line)
    return Event(found[1], bool(found[2]), found[3].strip()) if found else None
