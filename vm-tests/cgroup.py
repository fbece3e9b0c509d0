"""A cgroup for one machine, on hosts with cgroup v1, hybrid or v2.

systemd in the guest needs cgroup v2.  In this process's private mount namespace /sys/fs/cgroup becomes a
plain cgroup2 mount whatever the host has there; the host's own view stays as it was.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from namespaces import make_mounts_private, wait_until

MOUNT = Path("/sys/fs/cgroup")


@functools.cache
def mount_cgroup2() -> None:
    """Make /sys/fs/cgroup a cgroup2 mount for this process and what it starts."""
    make_mounts_private()
    if (MOUNT / "cgroup.controllers").exists():
        return
    # Lazily: programs of the host keep files open below it.
    subprocess.run(["umount", "--recursive", "--lazy", str(MOUNT)], check=True)
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", str(MOUNT)], check=True)


class Cgroup:
    """One cgroup at the top of the tree."""

    def __init__(self, name: str) -> None:
        mount_cgroup2()
        self.path = MOUNT / name

    def make(self) -> None:
        self.path.mkdir(exist_ok=True)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` in it from its first instruction on."""
        return ["/bin/sh", "-c", 'echo $$ >"$0" && exec "$@"', f"{self.path}/cgroup.procs", *argv]

    def processes(self) -> Iterator[int]:
        """Process ids of the host, of everything in it."""
        for folder, _, _ in os.walk(self.path):
            try:
                yield from map(int, (Path(folder) / "cgroup.procs").read_text().split())
            except OSError:
                continue  # The group went away while we walked.

    def freeze(self) -> None:
        """Let nothing in it run any more."""
        (self.path / "cgroup.freeze").write_text("1")
        events = self.path / "cgroup.events"
        wait_until(lambda: "frozen 1" in events.read_text(), what="the machine to stand still")

    def kill(self) -> None:
        """SIGKILL for everything in it, at one stroke (Linux 5.14)."""
        if self.path.exists():
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Remove it and all below it; what is dying in there is waited for."""
        if not self.path.exists():
            return
        wait_until(self._remove, what=f"the processes in {self.path} to end")

    def _remove(self) -> bool:
        for folder, _, _ in os.walk(self.path, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True
