"""A disk on the network: tgt, an iSCSI target that is a program, in the world's network namespace.

    with Target(world, root) as target:              # `root`: a tree that has tgt
        target.offer(image)                          # a file, as the one LUN of the one target
        machine.boot(*target.arguments)
        target.sessions()
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

from namespaces import wait_until
from trees import mount
from world import SERVER, World

NAME = "iqn.2026-11.test.bench:root"


class Target:
    """See the head of this module."""

    def __init__(self, world: World, root: Path) -> None:
        self.world, self.root = world, root
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """For the kernel command line, in place of root= on a disk."""
        return (f"netroot=iscsi:{SERVER}::::{NAME}", "rd.iscsi.initiator=iqn.2026-11.test.bench:machine",
                "rd.iscsi.firmware=0")

    def offer(self, image: Path) -> None:
        """This file is the disk from now on."""
        inside = self.root / "mnt/disk.img"
        inside.touch()
        mount("--bind", str(image), str(inside))
        self._ask("--lld", "iscsi", "--op", "new", "--mode", "target", "--tid", "1", "-T", NAME)
        self._ask("--lld", "iscsi", "--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1",
                  "-b", "/mnt/disk.img")
        self._ask("--lld", "iscsi", "--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")

    def sessions(self) -> str:
        """Who is logged in, in tgtadm's words, addresses included."""
        return self._ask("--lld", "iscsi", "--op", "show", "--mode", "target")

    def _ask(self, *arguments: str) -> str:
        done = subprocess.run(["chroot", str(self.root), "tgtadm", *arguments], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"tgtadm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def __enter__(self) -> Target:
        mount("--rbind", "/dev", str(self.root / "dev"))
        mount("-t", "proc", "proc", str(self.root / "proc"))
        (self.root / "run/tgtd").mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self.world.namespace.argv(["setpriv", "--pdeathsig", "KILL", "--", "chroot", str(self.root), "tgtd",
                                       "--foreground", "--iscsi", f"portal={SERVER}:3260"]),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="tgtd to answer")
        return self

    def _answers(self) -> bool:
        try:
            self.sessions()
        except RuntimeError:
            return False
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        for name in ("mnt/disk.img", "proc", "dev"):
            subprocess.run(["umount", "--recursive", str(self.root / name)], check=False, capture_output=True)
