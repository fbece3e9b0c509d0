"""QEMU as a program: its command line, its monitor, and whether this machine's KVM really runs a guest.

Knows nothing of what is booted.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

QEMU = "qemu-system-x86_64"
KVM = "/dev/kvm"
PORTS = 4  # slots for NICs
# Seconds for a guest under KVM to say its first words; it takes one.
FIRST_WORDS = 8.0


def probe_kvm(kernel: Path) -> bool:
    """Whether a guest runs here under KVM: /dev/kvm may open and the guest still hang, so one is booted.

    Takes up to 8 s; the answer is remembered until the host's kernel or QEMU is another one.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return False
    note = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "homeport" / "kvm"
    host = f"{platform.release()} {_version()}"
    with suppress(OSError):
        remembered, _, answer = note.read_text().strip().rpartition(": ")
        if remembered == host:
            return answer == "works"
    works = _kernel_talks(kernel)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"{host}: {'works' if works else 'does not work'}\n")
    return works


@functools.cache
def _version() -> str:
    done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else ""


def _kernel_talks(kernel: Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        console = Path(folder, "console")
        console.touch()
        argv = [QEMU, "-nodefaults", "-display", "none", "-M", "q35,accel=kvm", "-cpu", "host", "-m", "256",
                "-no-reboot", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1", "-serial", f"file:{console}"]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(round(FIRST_WORDS * 10)):
                # It has no root file system: that it says so is the sign of life.
                if b"Kernel panic" in console.read_bytes():
                    return True
                if process.poll() is not None:
                    break
                time.sleep(0.1)
            return b"Kernel panic" in console.read_bytes()
        finally:
            process.kill()
            process.wait()


def command_line(*, kernel: Path, initramfs: Path, arguments: Sequence[str], folder: Path, kvm: bool,
                 memory: int, clock: str) -> list[str]:
    """QEMU without NICs, drives and firmware strings; sockets and the console's file are in `folder`."""
    accelerator = ["-M", "q35,accel=kvm,sata=off", "-cpu", "host"] if kvm else [
        # Not "max": the guest would load what it has no use for. No SVM for the same reason.
        "-M", "q35,accel=tcg,sata=off", "-cpu", "qemu64,-svm"]
    return [
        QEMU, "-nodefaults", "-no-user-config", "-display", "none", *accelerator,
        # One processor without KVM: with two, one may run into a breakpoint that the kernel of the other has just put
        # into its own code and taken out again (jump labels), which is a panic now and then.
        "-smp", "2" if kvm else "1", "-m", str(memory), "-no-reboot", "-rtc", f"base={clock}",
        "-kernel", str(kernel), "-initrd", str(initramfs), "-append", " ".join(arguments),
        "-chardev", f"socket,id=console,path={folder}/console,server=on,wait=off,logfile={folder}/console.log",
        "-serial", "chardev:console",
        "-chardev", f"socket,id=agent,path={folder}/agent,server=on,wait=off", "-serial", "chardev:agent",
        "-qmp", f"unix:{folder}/qmp,server=on,wait=off",
        "-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng",
        # A NIC in the slot N is enp<N>s0: the root ports come first, so their buses are 1, 2, …
        *(word for port in range(1, PORTS + 1)
          for word in ("-device", f"pcie-root-port,id=port{port},chassis={port},slot={port},addr={port + 1:#x}")),
    ]  # fmt: skip


def drive(name: str, image: Path, *, read_only: bool = False) -> list[str]:
    """A virtio disk; what the guest has written is in the file although nobody syncs it here."""
    flag = ",readonly=on" if read_only else ""
    return ["-drive", f"file={image},if=none,id={name},format=raw,cache=unsafe{flag}",
            "-device", f"virtio-blk-pci,drive={name},serial={name}"]  # fmt: skip


def sticks(images: Mapping[str, Path]) -> list[str]:
    """A USB controller with these plugged in, name -> file; nothing if there are none."""
    words = ["-device", "qemu-xhci,id=usb"] if images else []
    for name, image in images.items():
        words += ["-drive", f"file={image},if=none,id={name},format=raw,cache=unsafe",
                  "-device", f"usb-storage,bus=usb.0,drive={name},serial={name},removable=on"]  # fmt: skip
    return words


def tpm(control: Path) -> list[str]:
    """A TPM 2.0 behind swtpm's control socket."""
    return ["-chardev", f"socket,id=tpm,path={control}", "-tpmdev", "emulator,id=tpm0,chardev=tpm",
            "-device", "tpm-tis,tpmdev=tpm0"]  # fmt: skip


def nic(number: int, port: int, tap: str, mac: str, *, above: bool = False) -> list[str]:
    """A card and its cable; one that may have another with the same MAC below it, or not."""
    return ["-netdev", f"tap,id=net{number},ifname={tap},script=no,downscript=no",
            # A card has a speed; without one a bond of LACP takes no port.
            "-device", nic_device(number, port, mac) + ",speed=10000,duplex=full" + ",failover=on" * above]  # fmt: skip


def nic_device(number: int, port: int, mac: str, *, below: int = 0) -> str:
    """A card; if it is `below` the one with this number, QEMU shows it when that one's driver says that it can carry
    another (docs/system/virtio-net-failover.rst), and the kernel takes only one that is PCI's own there, not a virtio
    one (net_failover_slave_pre_register in drivers/net/net_failover.c).
    """
    driver, pair = ("vmxnet3", f",failover_pair_id=nic{below}") if below else ("virtio-net-pci", "")
    # No ROM: nobody boots from the network here.
    return f"{driver},id=nic{number},netdev=net{number},mac={mac},bus=port{port},romfile={pair}"


def escaped(text: str) -> str:
    """A value in an option: QEMU doubles its commas."""
    return text.replace(",", ",,")


class Monitor:
    """QEMU's own monitor (QMP)."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(path))
        self._stream = self._socket.makefile("rwb")
        self._stream.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: Any) -> Any:
        """RuntimeError with QEMU's words if it refuses."""
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        self._stream.flush()
        while line := self._stream.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"QEMU: {command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]
        raise RuntimeError(f"QEMU is gone ({command})")

    def devices(self) -> set[str]:
        """The ids of what is plugged in."""
        return {each["name"] for each in self.ask("qom-list", path="/machine/peripheral")}

    def close(self) -> None:
        with suppress(OSError):
            self._stream.close()
        self._socket.close()
