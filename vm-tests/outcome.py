"""What a machine looked like: the report of the check unit, read.

Pure but for reading the report's files.  Each is read when it is asked for, so a report that lacks one
thing still tells the others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Completed:
    """A program that ran in a machine to its end."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str
    seconds: float

    def json(self) -> Any:
        """Its standard output, parsed."""
        return json.loads(self.stdout)

    def __str__(self) -> str:
        text = f"`{' '.join(self.argv)}` gave {self.status} after {self.seconds:.2f} s"
        return "\n".join(filter(None, (text, self.stdout.rstrip(), self.stderr.rstrip())))


class ProgramFailed(AssertionError):
    """A program in a machine ended with another status than 0."""

    def __init__(self, completed: Completed) -> None:
        super().__init__(str(completed))
        self.completed = completed


@dataclass(frozen=True)
class Outcome:
    """One report: of a boot, or of a later look."""

    folder: Path

    def text(self, name: str) -> str:
        """One file of the report as it is: state, failed, address, route, resolv, keyfiles, show, status …"""
        return (self.folder / name).read_text(errors="replace")

    def parsed(self, name: str) -> Any:
        """One JSON file of the report; an empty list if the program had nothing to say."""
        return json.loads(self.text(name) or "[]")

    @property
    def seconds(self) -> float:
        """From the start of systemd to network-online.target."""
        return (self._microseconds("times") - self._microseconds("boot")) / 1e6

    def _microseconds(self, name: str) -> int:
        found = re.search(r"=(\d+)", self.text(name))
        return int(found[1]) if found else 0

    @property
    def failed_units(self) -> list[str]:
        return [line.split()[0] for line in self.text("failed").splitlines() if line.strip()]

    @property
    def status(self) -> dict[str, Any]:
        """/run/homeport/status.json; empty if there was none."""
        return self._status("status")

    @property
    def early(self) -> dict[str, Any]:
        """/run/homeport/initrd-status.json: what homeport did in the initramfs; empty if it did not run there."""
        return self._status("early")

    def _status(self, name: str) -> dict[str, Any]:
        text = self.text(name)
        return dict(json.loads(text)) if text.strip() else {}

    @property
    def resolv(self) -> list[str]:
        """The name servers in /etc/resolv.conf, in order."""
        return re.findall(r"^nameserver\s+(\S+)", self.text("resolv"), re.MULTILINE)

    def addresses(self, nic: str, family: str = "inet") -> list[str]:
        """Global addresses as "192.0.2.1/24"; `family` is inet or inet6."""
        return [
            f"{a['local']}/{a['prefixlen']}"
            for link in self.parsed("address") if link.get("ifname") == nic
            for a in link.get("addr_info", ())
            if a["family"] == family and a["scope"] == "global"
        ]  # fmt: skip

    def ipv6(self, nic: str) -> list[str]:
        """Every IPv6 address, link-local too."""
        return [
            a["local"]
            for link in self.parsed("address") if link.get("ifname") == nic
            for a in link.get("addr_info", ()) if a["family"] == "inet6"
        ]  # fmt: skip

    def routes(self, destination: str = "default", family: str = "inet") -> list[dict[str, Any]]:
        """Routes to `destination` in every table, as `ip -j route` has them; table 254 is "main"."""
        name = "route" if family == "inet" else "route6"
        found = [dict(r) for r in self.parsed(name) if r.get("dst") == destination]
        return [{"table": "main", **r} for r in found]

    @property
    def keyfiles(self) -> dict[str, str]:
        """Files in /etc/NetworkManager/system-connections, each with its mode as `ls` writes it."""
        lines = (line.split() for line in self.text("keyfiles").splitlines()[1:])
        return {" ".join(fields[8:]): fields[0] for fields in lines if len(fields) > 8}
