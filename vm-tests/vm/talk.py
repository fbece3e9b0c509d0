"""The two lines to a running machine: its console, and the agent on its second serial port (guest/…/agent)."""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import termios
import time
import tty
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from outcome import Completed


class AgentGone(Exception):
    """The machine has no agent at the moment: it is off, changes its root, or hangs."""


class Console:
    """What the machine wrote on its console, from QEMU's log of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def text(self) -> str:
        """Without colours and other escapes."""
        with suppress(FileNotFoundError):
            text = self.path.read_bytes().decode(errors="replace").replace("\r", "")
            return re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0B]?|\x1bc", "", text)
        return ""

    def sign(self) -> str:
        """The last sign for the test bench on it; "" if there is none yet."""
        signs = re.findall(r"^vm-check: (.*)$", self.text, re.MULTILINE)
        if "Kernel panic" in self.text:
            return "a kernel panic"
        return signs[-1] if signs else ""


class Agent:
    """The agent's end of the line. It says hello once in the initramfs and once in the real root."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._rest = b""
        self._number = 0
        self.where = ""  # "initrd" or "root", once it has said so

    def run(self, argv: Sequence[str], script: str, timeout: float) -> Completed:
        """Run a piece of shell for at most `timeout` seconds; AgentGone if there is nobody to do it."""
        started = time.monotonic()
        self.wait(timeout=timeout)
        self._number += 1
        number = str(self._number)
        encoded = b64encode(script.encode()).decode()
        self._socket.sendall(f"{number} {max(1, round(timeout))} {encoded}\n".encode())
        deadline = time.monotonic() + timeout + 60  # it keeps the limit itself, on another clock
        while True:
            words = self._line(deadline).split(" ")
            if words[0] == number and len(words) == 4:
                out, err = (b64decode(word.rstrip("-")).decode(errors="replace") for word in words[2:])
                return Completed(tuple(argv), int(words[1]), out, err, time.monotonic() - started)

    def wait(self, where: str = "", timeout: float = 300) -> None:
        """Until it has said hello (in the real root, if `where` is "root")."""
        deadline = time.monotonic() + timeout
        while self._pending() or not self.where or where not in ("", self.where):
            self._line(deadline)

    def _pending(self) -> bool:
        return b"\n" in self._rest or bool(select.select([self._socket], [], [], 0)[0])

    def _line(self, deadline: float) -> str:
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                raise AgentGone("the machine's agent says nothing")
            data = self._socket.recv(1 << 20)
            if not data:
                raise AgentGone("the machine is off")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        text = line.decode(errors="replace").strip()
        # The line may begin with what the firmware or a dying agent left on it.
        if found := re.search(r"hello (initrd|root)$", text):
            self.where = found[1]
        return text

    def close(self) -> None:
        self._socket.close()


def connect_terminal(path: Path) -> None:
    """The caller's terminal becomes the machine's, until Ctrl-] or the machine is off."""
    with socket.socket(socket.AF_UNIX) as line, open("/dev/tty", "r+b", buffering=0) as terminal:
        line.connect(str(path))
        before = termios.tcgetattr(terminal)
        tty.setraw(terminal.fileno())
        try:
            line.sendall(b"\n")
            while True:
                ready, _, _ = select.select([line.fileno(), terminal.fileno()], [], [])
                if terminal.fileno() in ready:
                    typed = os.read(terminal.fileno(), 1024)
                    if b"\x1d" in typed or not typed:
                        return
                    line.sendall(typed)
                if line.fileno() in ready:
                    data = line.recv(65536)
                    if not data:
                        return
                    terminal.write(data)
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)
            sys.stdout.flush()
