"""A software TPM on this machine: swtpm(8) behind a Unix socket, and tpm2-tools to ask it the same questions.

    with Swtpm(folder) as tpm:
        tpm.socket                       # put it, or a link to it, where /dev/tpmrm0 is looked for
        tpm.tool("tpm2_getcap", "handles-transient")

Knows nothing of homeport.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

from namespaces import wait_until


def missing(*tools: str) -> str:
    """Why there can be no software TPM here, or not these of tpm2-tools; "" if there can."""
    absent = [program for program in ("swtpm", *tools) if not shutil.which(program)]
    return f"{', '.join(absent)} not installed (run: make setup)" if absent else ""


class Disk(Protocol):
    """A container's."""

    def write(self, path: str, text: str, mode: int = 0o644) -> None: ...

    def on_disk(self, path: str) -> Path: ...


class Swtpm:
    """A TPM 2.0 whose state is in `folder`: the same folder is the same TPM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "tpm"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def control(self) -> Path:
        """The other socket, where tpm2-tools look for it, and the only one that QEMU wants."""
        return self.folder / "tpm.ctrl"

    def start(self) -> None:
        """Switch it on."""
        self._start("--server", f"type=unixio,path={self.socket}", "--flags", "not-need-init,startup-clear")
        wait_until(self.socket.exists, what="swtpm to start")

    def start_for_qemu(self) -> None:
        """Switch it on for an emulated machine, which brings its own line to it."""
        self._start()

    def _start(self, *arguments: str) -> None:
        (self.folder / "state").mkdir(parents=True, exist_ok=True)
        for old in (self.socket, self.control):
            old.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            ["swtpm", "socket", "--tpm2", "--tpmstate", f"dir={self.folder}/state",
             "--ctrl", f"type=unixio,path={self.control}", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        wait_until(self.control.exists, what="swtpm to start")

    def stop(self) -> None:
        """Switch it off; what it holds in memory is gone."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It is on and answers nobody."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def plug_into(self, container: Disk) -> None:
        """The TPM of a container whose disk holds `folder`: from its next boot on there is a /dev/tpmrm0."""
        inside = f"/{self.socket.relative_to(container.on_disk('/'))}"
        container.write("/etc/tmpfiles.d/tpm.conf", f"L+ /dev/tpmrm0 - - - - {inside}\n")

    def tool(self, *argv: str) -> str:
        """What one of tpm2-tools prints; RuntimeError with its words if it fails."""
        done = subprocess.run(argv, cwd=self.folder, check=False, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TPM2TOOLS_TCTI": f"swtpm:path={self.socket}"})  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)} gave {done.returncode}: {done.stderr}")
        return done.stdout

    def __enter__(self) -> Swtpm:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
