"""The NICs of a virtual machine: a tap in the world for each, on its LAN, and everything that goes over it recorded.

A NIC is called enp<N>s0 and sits in slot N, from 1 to 4.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence

from container import Nic, mac_of
from world import World

from . import qemu
from .wire import Capture

_numbers = itertools.count(1)


class Cables:
    """Those of one machine, in one boot after the other."""

    def __init__(self, world: World, machine: str) -> None:
        self.world, self.machine = world, machine
        self.wires: dict[str, Capture] = {}  # by NIC, of this boot or the last one
        self._taps: list[str] = []

    def plug(self, nics: Sequence[Nic]) -> list[str]:
        """QEMU's arguments for all of them, but for those below another, which are for `plug_in`."""
        uppers = {nic.below for nic in nics}
        return [word for nic in nics if not nic.below for word in qemu.nic(
            slot_of(nic.name), slot_of(nic.name), self._tap(nic), self.mac(nic), above=nic.name in uppers)]  # fmt: skip

    def plug_in(self, nic: Nic, monitor: qemu.Monitor) -> None:
        """One into a machine that runs."""
        number, tap = slot_of(nic.name), self._tap(nic)
        monitor.ask("netdev_add", type="tap", id=f"net{number}", ifname=tap, script="no", downscript="no")
        below = slot_of(nic.below) if nic.below else 0
        driver, *pairs = qemu.nic_device(number, number, self.mac(nic), below=below).split(",")
        monitor.ask("device_add", driver=driver, **dict(pair.split("=", 1) for pair in pairs))

    def take_out(self, name: str, monitor: qemu.Monitor) -> None:
        """The cable of one that is no longer there."""
        monitor.ask("netdev_del", id=f"net{slot_of(name)}")
        self.wires[name].stop()

    def mac(self, nic: Nic) -> str:
        """The same in every boot."""
        return nic.mac or mac_of(self.machine, nic.name)

    def _tap(self, nic: Nic) -> str:
        lan = nic.lan or self.world.lan
        tap = f"tap{os.getpid() % 100000}-{next(_numbers)}"
        lan.namespace.ip("tuntap", "add", "dev", tap, "mode", "tap")
        lan.namespace.ip("link", "set", tap, "master", lan.bridge, "up")
        self._taps.append(tap)
        self.wires[nic.name] = Capture(lan.namespace, tap)
        return tap

    def remove(self) -> None:
        for wire in self.wires.values():
            wire.stop()
        for tap in self._taps:
            self.world.namespace.ip("link", "delete", tap, check=False)
        self._taps = []


def slot_of(nic: str) -> int:
    """enp2s0 is in slot 2."""
    number = nic.removeprefix("enp").removesuffix("s0")
    assert number.isdigit() and 1 <= int(number) <= qemu.PORTS, f"a NIC of a VM is called enp1s0 to enp4s0, not {nic}"
    return int(number)
