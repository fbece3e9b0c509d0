"""A machine that really boots: QEMU, firmware, dracut's initramfs, its own kernel; the way in of this package.

    with World() as world, Vm(world, "seed", image) as machine:
        boot = machine.boot("homeport.config=http://192.168.122.2/seed.yaml")     # to network-online
        boot.status["rung"], boot.addresses("enp1s0"), boot.routes(), boot.resolv
        machine.run(["nmcli", "connection"]).stdout, machine.look(), machine.read("/etc/x")
        machine.wire("enp1s0").dhcp()                 # what this machine sent in this boot
        machine.power_off(); machine.boot()           # the disk is kept: a reboot
        machine.power_cut(); machine.boot()           # what the guest's kernel had not written is lost

The same verbs as container.Machine has. A boot is good when the check unit, ordered after network-online.target, has
put its sign on the console: never silence. Emergency mode, a panic, the end of QEMU and the deadline end it with
BootFailed, whose text shows the console.

A NIC is called enp<N>s0 and sits in slot N, from 1 to 4; its MAC is permanent.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from container import BootFailed, Nic
from firmware import Firmware, firmware_of
from namespaces import wait_until
from outcome import Completed, Outcome, ProgramFailed
from swtpm import Swtpm
from trees import work_folder
from world import World

from . import furnish, qemu, slots
from .cables import Cables, slot_of
from .disk import Disk, make_disk
from .furnish import Bootable
from .hardware import Hardware
from .journal import entries, read_journal, story_of
from .talk import Agent, AgentGone, Console, connect_terminal
from .wire import Capture

DEADLINE = 420.0  # seconds for a boot without KVM, on a busy machine; 60 is usual
# Quiet consoles, off instead of a shell; then what saves time without KVM: the BPF one of the security modules costs
# 5 s to set up, memory need not be wiped, the emulated clock is a sound one, and systemd's own lines are many.
# no_timer_check: on a busy host the emulated timer may be too late for a test that ends in a panic.
_ARGUMENTS = (
    "root=LABEL=root", "rw", "console=ttyS0", "quiet", "loglevel=4", "systemd.show_status=0", "panic=-1", "rd.shell=0",
    "lsm=landlock", "mitigations=off", "fsck.mode=skip", "init_on_alloc=0", "tsc=reliable", "rcupdate.rcu_expedited=1",
    "audit=0", "nowatchdog", "no_timer_check", "systemd.log_color=0", "systemd.log_level=notice",
)  # fmt: skip


class Vm:
    """See the head of this module."""

    def __init__(self, world: World, name: str, image: Bootable, *, nics: Sequence[Nic] = (Nic("enp1s0"),),
                 firmware: Firmware | None = None, tpm: bool = False, memory: int = 1024) -> None:
        self.world, self.name, self.image, self.memory = world, name, image, memory
        self.nics = tuple(nics)
        self.firmware = firmware or firmware_of(name)
        self.hardware = Hardware()
        self.remote = False  # its disk is not plugged in: the test offers it on the network
        self.initrd_files: dict[str, tuple[str, int]] = {}
        self.folder = work_folder() / name
        self.folder.mkdir(parents=True)
        self.journal_folder = self.folder / "journal"
        self.disk = Disk(base_disk(image), self.folder / "disk.img")
        self.tpm = Swtpm(self.folder / "tpm") if tpm else None
        self.cables = Cables(world, name)
        self.boots, self.keep = 0, False
        self.seconds: list[float] = []  # of each boot, from power-on to its sign
        self.arguments: tuple[str, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: Agent | None = None
        self._monitor: qemu.Monitor | None = None  # of this boot
        self._slot: slots.Slot | None = None
        self._console = Console(Path("/dev/null"))
        furnish.root(self.disk.mount(), name)

    # Booting and switching off

    def boot(self, *arguments: str, deadline: float = DEADLINE, wait: bool = True) -> Outcome:
        """Switch on and wait until the machine is online, at most `deadline` seconds; BootFailed otherwise."""
        self.start(*arguments)
        return self.wait_online(deadline) if wait else Outcome(self.folder / "report")

    def start(self, *arguments: str) -> None:
        """Switch on; do not wait for anything."""
        assert not self.running, f"{self.name} is running already"
        self._release()
        self.disk.unmount()
        self._slot = slots.take()
        self.boots += 1
        self.arguments = arguments
        self._started = time.monotonic()
        if self.tpm:
            self.tpm.start_for_qemu()
        initramfs = self.folder / "initramfs"
        initramfs.write_bytes(furnish.initramfs(self.image, self.initrd_files))
        argv = qemu.command_line(
            kernel=self.image.kernel, initramfs=initramfs, arguments=[*_ARGUMENTS, *arguments], folder=self.folder,
            kvm=qemu.probe_kvm(self.image.kernel), memory=self.memory, clock=self.hardware.clock)
        argv += self.hardware.words(self.firmware, self.folder) + self.cables.plug(self.nics)
        argv += [] if self.remote else qemu.drive("root", self.disk.image)
        argv += qemu.tpm(self.tpm.control) if self.tpm else []
        self._console = Console(self.folder / f"console-{self.boots}.log")
        log = (self.folder / "qemu.log").open("wb")
        # pdeathsig: nothing of a machine outlives the tests, however they end.
        self._process = subprocess.Popen(
            self.world.namespace.argv(["setpriv", "--pdeathsig", "KILL", "--", *argv]),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        log.close()
        wait_until(lambda: self._socket_there() or not self.running, what="QEMU to start")
        if self._process.poll() is not None:
            raise BootFailed(f"QEMU did not start: {(self.folder / 'qemu.log').read_text()}")
        with suppress(FileNotFoundError):
            self._console.path.unlink()
        os.link(self.folder / "console.log", self._console.path)
        self._agent = Agent(self.folder / "agent")
        self._monitor = qemu.Monitor(self.folder / "qmp")
        for nic in self.nics:
            # On QEMU's command line such a card could never be given back once it has been taken out.
            if nic.below:
                self.cables.plug_in(nic, self.monitor)
            if not nic.plugged:
                self.set_cable(nic.name, plugged=False)

    def _socket_there(self) -> bool:
        return (self.folder / "qmp").exists() and (self.folder / "console.log").exists()

    def mac(self, nic: str) -> str:
        """The permanent MAC of a NIC, by its name: the same in every boot."""
        return self.cables.mac(next((each for each in self.nics if each.name == nic), Nic(nic)))

    def wire(self, nic: str) -> Capture:
        """What went over the cable of a NIC in this boot, or in the last one."""
        return self.cables.wires[nic]

    def wait_online(self, deadline: float = DEADLINE) -> Outcome:
        """Wait for the check unit's sign; BootFailed if the boot ends in any other way."""

        def settled() -> str:
            return self._console.sign() or ("" if self.running else "the end of QEMU")

        try:
            how = wait_until(settled, timeout=deadline, what="network-online.target", every=0.2)
        except TimeoutError:
            how = f"nothing within {deadline:g} s"
        if how != "online":
            raise self._failed(f"wanted network-online.target, came to {how}")
        self.seconds.append(round(time.monotonic() - self._started, 1))
        return self.look()

    def _failed(self, what: str) -> BootFailed:
        self.keep = True
        journal = ""
        if self.running:
            with suppress(AgentGone, OSError):
                journal = self.sh("journalctl -b --no-pager -o short-monotonic | tail -n 150", timeout=60).stdout
        return BootFailed(f"{self.name}, boot {self.boots}: {what}\n--- end of the console ({self._console.path})\n"
                          f"{self.console[-6000:]}\n--- end of the journal\n{journal}")  # fmt: skip

    @property
    def monitor(self) -> qemu.Monitor:
        """QEMU's own, of a machine that was switched on."""
        assert self._monitor, f"{self.name} is off"
        return self._monitor

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def power_off(self, timeout: float = 180) -> None:
        """Switch off as a person would, and wait until it is off."""
        if not self.running:
            return
        with suppress(AgentGone):
            self.sh("systemctl --no-block poweroff", check=False)
        try:
            wait_until(lambda: not self.running, timeout=timeout, what=f"{self.name} to power off", every=0.1)
        except TimeoutError as error:
            failed = self._failed(str(error))
            self.power_cut()
            raise failed from error
        self._release()

    def power_cut(self) -> None:
        """The machine is off at once: what its kernel had not written yet is lost."""
        if self._process:
            self._process.kill()
        self._release()

    def _release(self) -> None:
        """What one boot leaves behind besides the disk and the captures."""
        if self._process:
            self._process.wait()
            self._process = None
        if self._monitor:
            self._monitor.close()
            self._monitor = None
        if self._agent:
            self._agent.close()
            self._agent = None
        if self.tpm:
            self.tpm.stop()
        self.cables.remove()
        for name in ("qmp", "agent", "console", "console.log"):
            (self.folder / name).unlink(missing_ok=True)
        if self._slot:
            self._slot.give_back()
            self._slot = None

    # NICs

    def add_nic(self, nic: Nic) -> None:
        """Plug a NIC into the running machine."""
        self.nics = (*self.nics, nic)
        self.cables.plug_in(nic, self.monitor)

    def remove_nic(self, name: str) -> None:
        """Take a NIC out of the running machine; back when its kernel has let go of it."""
        card = f"nic{slot_of(name)}"
        self.monitor.ask("device_del", id=card)
        wait_until(lambda: card not in self.monitor.devices(), timeout=120, what=f"{self.name} to let go of {name}")
        self.nics = tuple(nic for nic in self.nics if nic.name != name)
        self.cables.take_out(name, self.monitor)

    def set_cable(self, nic: str, *, plugged: bool) -> None:
        """Pull the cable of a NIC, or plug it in again."""
        self.monitor.ask("set_link", name=f"nic{slot_of(nic)}", up=plugged)

    # A person at this machine

    def run(self, argv: Sequence[str], *, check: bool = True, timeout: float = 120) -> Completed:
        """Run a program as root in the running machine; ProgramFailed if it fails and `check` is true."""
        completed = self._ask(argv, shlex.join(argv), timeout)
        if check and completed.status != 0:
            raise ProgramFailed(completed)
        return completed

    def sh(self, script: str, *, check: bool = True, timeout: float = 120) -> Completed:
        """`run` for a piece of shell."""
        completed = self._ask(["sh", "-c", script], script, timeout)
        if check and completed.status != 0:
            raise ProgramFailed(completed)
        return completed

    def _ask(self, argv: Sequence[str], script: str, timeout: float) -> Completed:
        if not self._agent:
            raise AgentGone(f"{self.name} is off")
        return self._agent.run(argv, script, timeout)

    def wait(self, script: str, *, timeout: float = 120, every: float = 1) -> None:
        """Wait until a piece of shell succeeds in the machine."""
        wait_until(lambda: self.sh(script, check=False).status == 0, timeout=timeout, every=every,
                   what=f"`{script}` in {self.name}")

    def wait_for_agent(self, where: str = "initrd", timeout: float = DEADLINE) -> None:
        """Until the machine is so far that it can be asked: in the initramfs, or in the real root ("root")."""
        assert self._agent
        self._agent.wait(where, timeout)

    def look(self) -> Outcome:
        """The machine as it is now, in the form of a boot's report."""
        report = self.folder / f"report-{self.boots}-{time.monotonic_ns()}"
        report.mkdir()
        script = "/usr/lib/vm-check/report /run/vm-check/now; cd /run/vm-check/now && tail -n +1 -- *"
        _unpack(self.sh(script).stdout, report)
        return Outcome(report)

    def shell(self) -> None:
        """The caller's terminal as this machine's console, with a root shell on it; Ctrl-] ends it.

        A machine that is off is switched on again, as it was the last time.
        """
        if not self.running:
            self.boot(*self.arguments)
        self.sh("systemctl start vm-shell", check=False)
        print("(Ctrl-] leaves the console)")
        connect_terminal(self.folder / "console")

    # Its disk

    def on_disk(self, path: str) -> Path:
        """Where a file of the machine is seen from here; the machine is off."""
        assert not self.running, f"{self.name} is running"
        return self.disk.mount() / path.lstrip("/")

    def read(self, path: str) -> str:
        """A file's text, of the machine as it runs or of its disk; FileNotFoundError if there is none."""
        if self.running:
            done = self.run(["cat", path], check=False)
            if done.status != 0:
                raise FileNotFoundError(path)
            return done.stdout
        return self.on_disk(path).read_text(errors="replace")

    def exists(self, path: str) -> bool:
        try:
            self.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file on the disk of a machine that is off, folders included."""
        file = self.on_disk(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def write_in_initrd(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file over the image's, from the next boot on."""
        self.initrd_files[path] = (text, mode)

    # What it said

    @property
    def console(self) -> str:
        return self._console.text

    def journal(self, *units: str, boot: int = 0, priority: int = 7, all_boots: bool = False) -> list[dict[str, str]]:
        """Journal entries as journalctl's JSON, oldest first: initramfs and real root; `units` may be patterns."""
        if self.running:
            self.sh("journalctl --sync", check=False)
            done = self.sh(f"journalctl -o json {entries(units, boot, priority, all_boots)}", check=False)
            return read_journal(done.stdout)
        words = entries(units, boot, priority, all_boots)
        script = f"journalctl --directory={self.on_disk('/var/log/journal')} -o json {words}"
        here = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        return read_journal(here.stdout)

    def story(self, *, all_boots: bool = False) -> str:
        """Our units' journal, to read."""
        return story_of(self.journal("homeport*", all_boots=all_boots))

    def close(self) -> None:
        """Switch off without ceremony and forget the disk (unless `keep`: then its journal is copied out, too)."""
        self.power_cut()
        if self.keep:
            with suppress(RuntimeError, OSError):
                shutil.copytree(self.on_disk("/var/log/journal"), self.journal_folder, dirs_exist_ok=True)
        self.disk.unmount()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Vm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


def base_disk(image: Bootable) -> Path:
    """The image's root as a file system, made once, also by two processes that want it at the same time."""
    path = image.initramfs.with_name("root.img")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            make_disk(image.root, path)
    return path


def _unpack(text: str, folder: Path) -> None:
    """`tail -n +1 -- *`: each file's text after a line with its name."""
    for part in ("\n" + text).split("\n==> ")[1:]:
        name, _, body = part.partition(" <==\n")
        (folder / name).write_text(body)
