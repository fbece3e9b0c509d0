"""A machine that really boots: systemd, D-Bus, NetworkManager and nmstatectl in a container.

    with World() as world, Machine(world, "seed") as machine:
        boot = machine.boot("homeport.config=http://192.168.122.2/seed.yaml")   # to network-online
        boot.seconds, boot.status["rung"], boot.addresses("enp1s0"), boot.routes(), boot.resolv
        machine.run(["nmcli", "connection"]).stdout   # in the running machine; status != 0 raises
        machine.look()                                # the same report as `boot`, of now
        machine.read("/etc/x"), machine.write("/etc/x", "text")   # running or switched off
        machine.monitor.events(kind="ADDR")           # what its kernel said since power-on (monitor.py)
        machine.power_off(); machine.boot()           # the disk is kept: a reboot
        machine.power_cut(); machine.boot()           # everything killed at once; Machine(lossy=True)
                                                      # then has only what was fsynced

    boot(*arguments, credentials={"homeport.assignment": text}, deadline=90, wait=True)
    Machine(world, name, nics=(Nic("enp1s0", mac="…", lan=world.lan),), tree="trixie", installed=True,
            firmware=Firmware(uuid="…", serial="…"),     # Firmware() is a machine without SMBIOS
            drives=drives)                               # labelled drives (drives.py)

Arguments of `boot` are the kernel command line of the container.  A boot is good when the check unit in
the guest, ordered after network-online.target, has written its report: never silence.  Emergency mode,
the end of systemd, and the deadline end it with BootFailed, whose text shows the console.

The only module that knows systemd-nspawn, cgroups, ptys and deadlines.
"""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cgroup import Cgroup
from disk import LossyDisk
from drives import Drives
from firmware import Firmware, firmware_of
from monitor import Monitor
from namespaces import PATIENCE, NetworkNamespace, wait_until
from outcome import Completed, Outcome, ProgramFailed
from trees import Overlay, layers, work_folder
from world import Cable, Lan, World

# Seconds for a program in a machine: homeport itself waits up to 60 s for another homeport, and then has work to do.
TO_ITS_END = 240.0
# Seconds for a boot: less than a source that does not answer has by default.
ONLINE = 90.0
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class BootFailed(AssertionError):
    """The machine did not come up; the text says how far it got."""


@dataclass(frozen=True)
class Nic:
    """A NIC that is there from the start.  Without a MAC it has one made of the machine's name.

    `below`: of a virtual machine, and the name of the NIC with the same MAC whose kernel driver this one is to carry.
    """

    name: str
    mac: str = ""
    lan: Lan | None = None
    plugged: bool = True
    below: str = ""


class Machine:
    """See the head of this module."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        nics: Sequence[Nic] = (Nic("enp1s0"),),
        tree: str = "trixie",
        installed: bool = True,
        firmware: Firmware | None = None,
        lossy: bool = False,
        drives: Drives | None = None,
    ) -> None:
        self.world = world
        self.drives = drives
        self.name = name
        self.nics = tuple(nics)
        self.folder = work_folder() / name
        self.folder.mkdir(parents=True)
        self.report = self.folder / "report"
        self.journal_folder = self.folder / "journal"
        self.firmware = firmware or firmware_of(name)
        self.firmware.write(self.folder / "dmi")
        self.report.mkdir()
        self.journal_folder.mkdir()
        self._layers = layers(tree, installed=installed)
        self._disk = LossyDisk(self.folder) if lossy else None
        self._overlay = self._mount_disk()
        self.root = self._overlay.path
        self.boots = 0
        self.cables: dict[str, Cable] = {}
        self.namespace: NetworkNamespace | None = None
        self.monitor: Monitor  # of this boot, or of the last one; there as soon as there is a namespace
        self.keep = False
        self._process: subprocess.Popen[bytes] | None = None
        self._cgroup = Cgroup(f"homeport-{os.getpid()}-{name}")
        self._leader = 0
        self._console = _Console()
        self.write("/etc/machine-id", hashlib.sha256(name.encode()).hexdigest()[:32] + "\n")
        self.write("/etc/hostname", name + "\n")

    @property
    def _disk_folder(self) -> Path:
        return (self._disk.path if self._disk else self.folder) / "disk"

    def _mount_disk(self) -> Overlay:
        return Overlay(self._layers, self._disk_folder, self._disk_folder.with_name("work"), self.folder / "root")

    # Booting and switching off

    def boot(
        self,
        *arguments: str,
        credentials: Mapping[str, str] | None = None,
        deadline: float = ONLINE,
        wait: bool = True,
    ) -> Outcome:
        """Switch on and wait until the machine is online, at most `deadline` seconds; BootFailed otherwise.

        With `wait=False` an empty Outcome comes back at once; `wait_online()` is the other half.
        """
        self.start(*arguments, credentials=credentials)
        return self.wait_online(deadline) if wait else Outcome(self.report / "online")

    def start(self, *arguments: str, credentials: Mapping[str, str] | None = None) -> None:
        """Switch on; do not wait for anything."""
        assert not self.running, f"{self.name} is running already"
        self._release()
        self.boots += 1
        for old in self.report.iterdir():
            shutil.rmtree(old)
        self._cgroup.make()
        master, slave = pty.openpty()
        command = self._nspawn(arguments, credentials or {})
        # pdeathsig: nothing of a machine outlives the tests, however they end.
        self._process = subprocess.Popen(
            self._cgroup.argv(["setpriv", "--pdeathsig", "KILL", "--", *command]),
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._console = _Console(master, self.folder / f"console-{self.boots}.log")
        namespace = NetworkNamespace.of_process(self.leader())
        self.monitor = Monitor(namespace, self.folder / f"events-{self.boots}.log")
        self.namespace = namespace
        for nic in self.nics:
            self.add_nic(nic)
        (self.report / "nics").mkdir()

    def _nspawn(self, arguments: Sequence[str], credentials: Mapping[str, str]) -> list[str]:
        return [
            "systemd-nspawn", "--quiet", f"--directory={self.root}", "--private-network",
            # No systemd-machined, no unit: the host may have neither, nor a usable cgroup tree for them.
            "--register=no", "--keep-unit", f"--machine={self.name}", f"--hostname={self.name}",
            "--kill-signal=SIGRTMIN+3",
            # Nothing of the host's gets in.
            "--resolv-conf=off", "--timezone=off", "--link-journal=no",
            f"--bind={self.report}:/run/vm-check",
            *(self.drives.binds() if self.drives else []),
            *([f"--bind-ro={self.folder}/dmi:/sys/firmware/dmi/tables"] if self.firmware.uuid else []),
            # On the host's disk, so that it can be read after a power cut, and by people.
            f"--bind={self.journal_folder}:/var/log/journal",
            *(f"--set-credential={name}:{_escape(text)}" for name, text in credentials.items()),
            "/usr/lib/vm-check/init", *arguments,
        ]  # fmt: skip

    def wait_online(self, deadline: float = ONLINE) -> Outcome:
        """Wait until the check unit has reported; BootFailed if the boot ends in any other way."""
        good, bad = self.report / "online", self.report / "emergency"

        def settled() -> str:
            if good.exists():
                return "online"
            if bad.exists():
                return "emergency mode"
            return "" if self.running else "the end of systemd"

        try:
            how = wait_until(settled, timeout=deadline, what="network-online.target")
        except TimeoutError:
            how = f"nothing within {deadline:g} s"
        if how != "online":
            self.keep = True
            raise BootFailed(
                f"{self.name}, boot {self.boots}: wanted network-online.target, came to {how}\n"
                f"--- end of the console ({self._console.path})\n{self.console[-4000:]}"
            )
        return Outcome(good)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def power_off(self, timeout: float = PATIENCE) -> None:
        """Switch off as a person would, and wait until it is off."""
        if not self.running:
            return
        # Not while units are still starting: a program that is stopped in its first milliseconds says so in
        # the journal. What waits for a dead server is not waited for.
        self.run(["timeout", "3", "systemctl", "is-system-running", "--wait"], check=False)
        self.run(["systemctl", "--no-block", "poweroff"])
        try:
            wait_until(lambda: not self.running, timeout=timeout, what=f"{self.name} to power off")
        except TimeoutError as error:
            self.keep = True
            self.power_cut()
            raise BootFailed(f"{error}\n--- end of the console\n{self.console[-4000:]}") from error
        self._release()

    def power_cut(self) -> None:
        """Kill everything in the machine at once.

        What was written stays written; but a `lossy` machine's disk has only what was synced.
        """
        saved = None
        if self._process:
            if self._disk and self.running:
                self._cgroup.freeze()
                saved = self._disk.remember()
            self._cgroup.kill()
            self._process.kill()
            self._process.wait()
        self._release()
        if self._disk and saved:
            self._overlay.unmount()
            self._disk.fall_back_to(saved)
            self._overlay = self._mount_disk()

    def _release(self) -> None:
        """What one boot leaves behind besides the disk: NICs, namespace, cgroup, console."""
        if self._process:
            self._process.wait()
            self._process = None
        self._leader = 0
        self._console.close()
        if self.boots and self.namespace:
            self.monitor.stop()
        for cable in self.cables.values():
            cable.remove()
        self.cables.clear()
        if self.namespace:
            self.namespace.close()
            self.namespace = None
        self._cgroup.remove()

    # NICs

    def add_nic(self, nic: Nic) -> Cable:
        """Give the machine a NIC; it may be running."""
        assert self.namespace, "a machine that is off has no network namespace: start it first"
        mac = nic.mac or mac_of(self.name, nic.name)
        cable = (nic.lan or self.world.lan).plug(self.namespace, nic.name, mac)
        self.cables[nic.name] = cable
        if not nic.plugged:
            cable.unplug()
        return cable

    # A person at this machine

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command line, for the host, that runs `argv` as root in the running machine."""
        leader = str(self.leader())
        return ["nsenter", "--target", leader, "--mount", "--uts", "--ipc", "--net", "--pid",
                "--root", "--wd", "--", "/usr/bin/env", "-i", f"PATH={GUEST_PATH}", "HOME=/root",
                "LANG=C.UTF-8", f"TERM={os.environ.get('TERM', 'dumb')}", *argv]  # fmt: skip

    def run(
        self,
        argv: Sequence[str],
        *,
        check: bool = True,
        timeout: float = TO_ITS_END,
        input: str = "",
    ) -> Completed:
        """Run a program as root in the running machine, for at most `timeout` seconds.

        ProgramFailed, with its output, if it ends with a status other than 0 and `check` is true.
        """
        started = time.monotonic()
        done = subprocess.run(
            self.argv(argv), input=input, capture_output=True, text=True, timeout=timeout,
            check=False, errors="replace",
        )  # fmt: skip
        seconds = time.monotonic() - started
        completed = Completed(tuple(argv), done.returncode, done.stdout, done.stderr, seconds)
        if check and done.returncode != 0:
            raise ProgramFailed(completed)
        return completed

    def sh(self, script: str, *, check: bool = True, timeout: float = TO_ITS_END) -> Completed:
        """`run` for a piece of shell, which with `check` ends with the first command that fails."""
        return self.run(["/bin/sh", "-ec" if check else "-c", script], check=check, timeout=timeout)

    def leader(self) -> int:
        """The host's process id of the machine's systemd."""
        if not self._leader:
            self._leader = wait_until(
                lambda: self._find_leader() or (not self.running and -1),
                what=f"process 1 of {self.name}",
            )  # fmt: skip
            if self._leader < 0:
                raise BootFailed(f"{self.name} did not start:\n{self.console}")
        return self._leader

    def _find_leader(self) -> int:
        for process in self._cgroup.processes():
            try:
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue
            namespaced = re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE)
            # Before it is our init it is a part of nspawn that may not have its namespaces yet.
            if namespaced and not os.readlink(f"/proc/{process}/exe").endswith("nspawn"):
                return process
        return 0

    def wait(self, script: str, *, timeout: float = PATIENCE) -> None:
        """Wait until a piece of shell succeeds in the machine."""
        wait_until(
            lambda: self.sh(script, check=False).status == 0,
            timeout=timeout, what=f"`{script}` in {self.name}", every=0.1,
        )  # fmt: skip

    def look(self) -> Outcome:
        """The machine as it is now, in the form of a boot's report."""
        self.run(["/usr/lib/vm-check/report", "/run/vm-check/now"])
        return Outcome(self.report / "now")

    # Its disk

    def on_disk(self, path: str) -> Path:
        """Where a file of the machine is seen from the host (not what is in its /run, /tmp, /proc)."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """A file's text; FileNotFoundError if there is none.  In a running machine, /run too."""
        if self.running and path.startswith(("/run/", "/proc/", "/sys/", "/tmp/")):
            done = self.run(["cat", path], check=False)
            if done.status != 0:
                raise FileNotFoundError(path)
            return done.stdout
        return self.on_disk(path).read_text(errors="replace")

    def exists(self, path: str) -> bool:
        if self.running:
            return self.run(["test", "-e", path], check=False).status == 0
        return self.on_disk(path).exists()

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file on the machine's disk, folders included; `mode` as for chmod."""
        file = self.on_disk(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def copy_disk(self) -> Path:
        """A copy of the disk as it is now, of a machine that is off; for `put_disk_back`."""
        assert not self.running, f"{self.name} is running"
        copy = self.folder / f"disk-after-{self.boots}"
        subprocess.run(["cp", "--archive", self._disk_folder, copy], check=True)
        return copy

    def put_disk_back(self, copy: Path) -> None:
        """The disk is again as it was at `copy_disk`, all of it synced; the machine is off."""
        assert not self.running, f"{self.name} is running"
        self._overlay.unmount()
        shutil.rmtree(self._disk_folder)
        subprocess.run(["cp", "--archive", copy, self._disk_folder], check=True)
        subprocess.run(["sync", "--file-system", self._disk_folder], check=True)
        self._overlay = self._mount_disk()

    # What it said

    @property
    def console(self) -> str:
        """The console of this boot (or of the last one), without colours and other escapes."""
        return self._console.text

    def says(self, *words: str) -> str:
        """Wait until a line of this boot's console has all these words; that line."""
        def line() -> str:
            # The last one may still be on its way.
            lines = self.console.split("\n")[:-1]
            return next((line for line in lines if all(word in line for word in words)), "")

        return wait_until(line, what=f"{' … '.join(words)!r} on the console of {self.name}")

    def journal(
        self, *units: str, boot: int = 0, priority: int = 7, all_boots: bool = False
    ) -> list[dict[str, str]]:
        """Journal entries of this boot (-1: the one before) as journalctl's JSON, oldest first.

        `units` may be patterns; without any, everything.  `priority` 4 is warnings and worse.
        """
        if self.running:
            self.run(["journalctl", "--sync"], check=False)
        argv = ["journalctl", f"--directory={self.journal_folder}", "--output=json", "--all",
                f"--priority={priority}", *([] if all_boots else [f"--boot={boot}"]),
                *(f"--unit={unit}" for unit in units)]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
        return [_plain(json.loads(line)) for line in done.stdout.splitlines() if line.strip()]

    def story(self, *, all_boots: bool = False) -> str:
        """Our units' journal of this boot, to read."""
        lines = self.journal("homeport*", all_boots=all_boots)
        return "\n".join(f"<{e.get('PRIORITY', '?')}> {e.get('MESSAGE', '')}" for e in lines)

    def close(self) -> None:
        """Switch off without ceremony and forget the disk (unless `keep`)."""
        self.power_cut()
        self._overlay.unmount()
        if self._disk:
            self._disk.unmount()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Console:
    """Our end of the machine's terminal: reads for ever, keeps everything in a file."""

    def __init__(self, master: int = -1, path: Path = Path("/dev/null")) -> None:
        self.path = path
        self._master = master
        self._bytes = bytearray()
        self._thread: threading.Thread | None = None
        if master >= 0:
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()

    def _read(self) -> None:
        with self.path.open("wb", buffering=0) as log:
            while True:
                try:
                    data = os.read(self._master, 65536)
                except OSError:
                    return  # EIO: the last program with this terminal is gone.
                if not data:
                    return
                self._bytes += data
                log.write(data)

    @property
    def text(self) -> str:
        text = bytes(self._bytes).decode(errors="replace").replace("\r", "")
        return re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0B]?", "", text)

    def close(self) -> None:
        if self._thread:
            self._thread.join(timeout=5)
            os.close(self._master)
            self._thread = None


def mac_of(machine: str, nic: str) -> str:
    """A locally administered MAC, the same in every boot of this machine."""
    digest = hashlib.sha256(f"{machine}/{nic}".encode()).hexdigest()
    return "52:54:00:" + ":".join(digest[i : i + 2] for i in (0, 2, 4))


def _escape(text: str) -> str:
    """For --set-credential=, which reads C escapes."""
    return "".join(c if c.isprintable() and c != "\\" else f"\\x{ord(c):02x}" for c in text)


def _plain(entry: dict[str, object]) -> dict[str, str]:
    """journalctl gives bytes that are not UTF-8 as a list of numbers, and repeated fields as a list."""
    return {
        k: bytes(v).decode(errors="replace") if isinstance(v, list) and v and isinstance(v[0], int)
        else str(v)
        for k, v in entry.items()
    }  # fmt: skip
