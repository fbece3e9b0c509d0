"""The bench of the virtual machines itself, without a boot: KVM, slots, images, what a failure prints, the way in."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

import failure
import image
from container import BootFailed
from namespaces import wait_until
from vm import machine as whole
from vm import qemu, slots
from vm.machine import Vm
from vm.talk import AgentGone

KERNEL = Path("/no/kernel")
HERE = Path(__file__).parent


# KVM

class Kvm:
    """A host with a /dev/kvm and a QEMU whose guest does as it is told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        (folder / "kvm").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.setattr(qemu, "KVM", str(folder / "kvm"))
        monkeypatch.setattr(qemu, "QEMU", str(folder / "qemu"))
        monkeypatch.setattr(qemu, "FIRST_WORDS", 0.3)
        self.guest("exit 1")

    def guest(self, script: str, version: str = "7.2") -> None:
        """What its guests do from now on; `$console` is where they write."""
        program = self.folder / "qemu"
        program.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then echo "QEMU {version}"; exit; fi
echo start >>{self.folder}/starts
for word; do case $word in file:*) console=${{word#file:}};; esac; done
{script}
""")
        program.chmod(0o755)
        qemu._version.cache_clear()

    @property
    def starts(self) -> int:
        """How many guests were tried."""
        file = self.folder / "starts"
        return len(file.read_text().split()) if file.exists() else 0


@pytest.fixture
def kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kvm:
    return Kvm(tmp_path, monkeypatch)


SPEAKS = 'echo "Kernel panic - not syncing: VFS" >$console; exec sleep 60'


def test_kvm_is_tried_once_and_remembered(kvm: Kvm) -> None:
    """Until QEMU is another one, whatever a guest would do now."""
    kvm.guest(SPEAKS)
    assert qemu.probe_kvm(KERNEL)
    kvm.guest("exit 1")
    assert qemu.probe_kvm(KERNEL)
    assert kvm.starts == 1
    kvm.guest("exit 1", version="7.3")
    assert not qemu.probe_kvm(KERNEL)
    assert not qemu.probe_kvm(KERNEL)
    assert kvm.starts == 2


def test_kvm_that_opens_and_hangs_is_none(kvm: Kvm) -> None:
    kvm.guest("exec sleep 60")
    assert not qemu.probe_kvm(KERNEL)
    assert not qemu.probe_kvm(KERNEL)
    assert kvm.starts == 1


def test_no_kvm_is_neither_tried_nor_remembered(kvm: Kvm) -> None:
    """It may come: a module loaded, a right given."""
    kvm.guest(SPEAKS)
    (kvm.folder / "kvm").unlink()
    assert not qemu.probe_kvm(KERNEL)
    assert kvm.starts == 0
    (kvm.folder / "kvm").touch()
    assert qemu.probe_kvm(KERNEL)


def test_a_damaged_memory_is_replaced(kvm: Kvm) -> None:
    note = kvm.folder / "cache/homeport/kvm"
    note.parent.mkdir(parents=True)
    note.write_text("\n")
    kvm.guest(SPEAKS)
    assert qemu.probe_kvm(KERNEL)
    assert note.read_text().endswith(": works\n")


# Slots

@pytest.fixture
def slot_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(slots, "_FOLDER", tmp_path)
    return tmp_path


def test_the_third_machine_waits(slot_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = slots.take(), slots.take()
    waited = []

    def give_back_while_waiting(seconds: float) -> None:
        waited.append(seconds)
        first.give_back()

    monkeypatch.setattr(slots, "time", SimpleNamespace(sleep=give_back_while_waiting))
    third = slots.take()
    assert len(waited) == 1
    second.give_back()
    third.give_back()
    assert len(list(slot_folder.iterdir())) == slots.SLOTS


def test_a_slot_is_not_left_to_a_child(slot_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU of a machine that hangs must not keep it."""
    monkeypatch.setattr(slots, "SLOTS", 1)
    monkeypatch.setattr(slots, "time", SimpleNamespace(sleep=pytest.fail))
    slot = slots.take()
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        slot.give_back()
        slots.take().give_back()
    finally:
        child.kill()
        child.wait()


# Images

class Made:
    """What was made for some image."""

    def __init__(self, folder: Path) -> None:
        self.kernel, self.initramfs, self.root = folder / "kernel", folder / "initramfs", folder / "root"


def test_an_image_in_use_is_not_swept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one test process runs, others come and go, each with another state of the repository."""
    key, locks = "", list[IO[str]]()
    monkeypatch.setattr(image, "KEPT", tmp_path)
    monkeypatch.setattr(image, "prepared_path", Path)
    monkeypatch.setattr(image, "_fill", lambda *arguments: None)
    monkeypatch.setattr(image, "_key", lambda *arguments: key)
    monkeypatch.setattr(image, "_in_use", locks)
    for number in range(6):
        key = f"state-{number}"
        folder = image._make.__wrapped__(image._Kind("trixie", False, False, False, False, ())).folder
        os.utime(folder, (number, number))
        if number:  # whose process has ended
            locks.pop().close()
    assert sorted(folder.suffix for folder in tmp_path.glob("trixie.*")) == [
        ".state-0", *(f".state-{number}" for number in range(6 - image.KEEP, 6))]
    locks.pop().close()


def test_two_processes_want_the_same_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One makes it, the other waits for that."""
    wanted = Made(tmp_path)
    other = threading.Thread(target=whole.base_disk, args=[wanted])
    made = []

    def make(tree: Path, disk: Path) -> None:
        made.append(tree)
        if len(made) == 1:
            other.start()
            wait_until(lambda: len(made) > 1 or waits_for_a_lock(), timeout=30, what="the other one to come")
        disk.touch()

    monkeypatch.setattr(whole, "make_disk", make)
    assert whole.base_disk(wanted).exists()
    other.join()
    assert made == [wanted.root]


def waits_for_a_lock() -> bool:
    """Some thread of this process (proc_locks(5): an arrow)."""
    words = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(word[1] == "->" and word[5] == str(os.getpid()) for word in words)


# A machine that does not start

@pytest.mark.vm
def test_qemu_that_does_not_start(
    make_vm: Callable[..., Vm], slot_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Says so, gives its slot and cables back, and can be switched on again."""
    monkeypatch.setattr(slots, "SLOTS", 1)
    machine = make_vm()
    monkeypatch.setattr(qemu, "QEMU", "/bin/false")
    for _ in range(2):
        with pytest.raises(BootFailed, match="QEMU did not start"):
            machine.start()
    machine.power_cut()
    monkeypatch.setattr(slots, "time", SimpleNamespace(sleep=pytest.fail))
    slots.take().give_back()
    links = machine.world.namespace.argv(["ip", "-o", "link"])
    taps = subprocess.run(links, capture_output=True, text=True, check=True).stdout
    assert f"tap{os.getpid() % 100000}-" not in taps


# What a failure prints

class Told(Vm):
    """A machine that is nothing but what it tells."""

    def __init__(self, files: dict[str, str], story: str = "") -> None:
        self.name, self.boots, self.folder = "told", 1, Path("/told")
        self.journal_folder = self.folder / "journal"
        self._files, self._story = files, story

    @property
    def running(self) -> bool:
        return False

    def read(self, path: str) -> str:
        if path in self._files:
            return self._files[path]
        raise FileNotFoundError(path)

    def story(self, *, all_boots: bool = False) -> str:
        return self._story


class One:
    """A scenario with one machine."""

    def __init__(self, machine: Vm) -> None:
        self.name, self.machines = "one", [machine]


def status(step: str, reason: str) -> str:
    return json.dumps({"steps": [{"name": "facts"}, {"name": step}], "exit": 75, "rung": "dhcp", "reason": reason})


REAL, INITRD = "/run/homeport/status.json", "/run/homeport/initrd-status.json"


@pytest.mark.parametrize(("files", "story", "words"), [
    ({REAL: status("prove", "no carrier"), INITRD: status("fetch", "timeout")}, "",
     "prove (exit 75, rung dhcp: no carrier)"),
    # Before the real root's is written: the initramfs is where it failed.
    ({INITRD: status("fetch", "timeout")}, "", "in the initramfs: fetch (exit 75, rung dhcp: timeout)"),
    ({REAL: "{"}, "<6> facts: active\n<4> fetch: no answer", "no status file; the last word: <4> fetch: no answer"),
    ({}, "", "none (no status file, nothing in our journal)"),
])
def test_last_step(files: dict[str, str], story: str, words: str) -> None:
    assert f"last step reached: {words}\n" in failure.describe(One(Told(files, story)), "test_x")


def test_a_machine_that_answers_no_more_does_not_end_the_report() -> None:
    class Mute(Told):
        def read(self, path: str) -> str:
            raise AgentGone("the machine's agent says nothing")

    assert "(AgentGone: the machine's agent says nothing)" in failure.describe(One(Mute({})), "test_x")


@pytest.mark.parametrize(("node", "command"), [
    ("vm-tests/test_80_vm.py::test_from_the_initramfs", "make vm-shell SCENARIO=from_the_initramfs"),
    ("vm-tests/test_85_vm_full.py::test_suite[forky]", "make vm-shell SCENARIO='suite[forky]'"),
    ("vm-tests/test_85_vm_full.py::test_suite[a b=c]", "make vm-shell SCENARIO=suite"),
])
def test_command_to_run_it_again(node: str, command: str) -> None:
    assert failure.describe(One(Told({})), node).endswith(f"\n  {command}")
    # A container is entered as before.
    assert failure.again(node, virtual=False).startswith(f"{sys.executable} -m pytest --stay")


# The way in by hand

STAY = '''
import conftest, pytest
from container import BootFailed
from test_79_vm_bench import Told

class Machine(Told):
    def shell(self):
        print("LOGGED IN")
        if FAILS:
            raise BootFailed("it does not boot again")

@pytest.fixture
def scenario(request):
    made = conftest.Scenario(None, "x")
    made.machines.append(Machine({}))
    request.node.stash[conftest._SCENARIO] = made

def test_passes(scenario):
    pass

def test_fails(scenario):
    assert False
'''


@pytest.mark.parametrize(("option", "fails", "logins"), [
    ("--log-in", False, 2), ("--stay", False, 1), ("--stay", True, 1), ("--showlocals", False, 0)])
def test_logged_in_after_a_test(tmp_path: Path, option: str, fails: bool, logins: int) -> None:
    """After each with --log-in, which is `make vm-shell`; after a failed one with --stay; whatever becomes of it."""
    (tmp_path / "test_stay.py").write_text(f"FAILS = {fails}\n{STAY}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "-c", "/dev/null",
         "--rootdir", str(tmp_path), option, str(tmp_path / "test_stay.py")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"})  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("LOGGED IN") == logins
    assert ("BootFailed: it does not boot again" in done.stdout) == fails
    assert "make vm-shell SCENARIO=fails" in done.stdout


def test_the_terminal_becomes_the_machines_console(tmp_path: Path) -> None:
    """What is typed goes there, what it says is shown; Ctrl-] ends it, and nothing else is left of it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "console"))
        listener.listen()
        child, terminal = pty.fork()
        if not child:
            code = "from vm import talk; import sys; talk.connect_terminal(talk.Path(sys.argv[1]))"
            argv = [sys.executable, "-c", code, str(tmp_path / "console")]
            os.execve(sys.executable, argv, {**os.environ, "PYTHONPATH": str(HERE)})
        listener.settimeout(30)
        machine, _ = listener.accept()
        with machine:
            machine.settimeout(30)
            assert machine.recv(1) == b"\n"  # so that the machine shows its prompt
            machine.sendall(b"root@vm:/# ")
            shown = b""
            while b"root@vm:/# " not in shown:
                shown += os.read(terminal, 100)
            os.write(terminal, b"\x03")  # Ctrl-C is the machine's, too
            assert machine.recv(1) == b"\x03"
            os.write(terminal, b"\x1d")
            assert machine.recv(1) == b""
        assert os.waitpid(child, 0)[1] == 0
        os.close(terminal)
