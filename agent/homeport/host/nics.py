"""The network cards of this machine, and waiting for those that are still to come.

Knows rtnetlink (names, MACs, permanent MACs, kinds, carrier) and sysfs (bus, driver, whether a device is
virtual), and when udev is done with a card: before that its name may still change.  Works without udev
(containers) and without pyudev.  Refuses to know which card a document means: `core/nics.py`.

The values come from the kernel even where udev has them too (ID_PATH, ID_NET_DRIVER): udev's are missing in
a container, and importing pyudev costs more than everything here.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from homeport.core.facts import Nic
from homeport.core.links import Link, dump_request, parse_links

SYSFS = "sys/class/net"
ARPHRD = {1: "ethernet", 32: "infiniband", 772: "loopback"}  # include/uapi/linux/if_arp.h
RTMGRP_LINK = 1
RECEIVE = 1 << 18  # bytes: a dump comes in pieces of at most 32 KiB
DUMP_LIMIT = 5.0  # seconds; it takes one millisecond
# Even if an event is lost, whoever waits looks again after this time, in seconds.
LOOK_AGAIN = 1.0


def read_nics(root: Path = Path("/")) -> tuple[Nic, ...]:
    """All network interfaces, by index; cards that udev has not finished with are not there yet.

    Below another `root` than the running system's only what stands in its sysfs.  Never raises.
    """
    links = _ask_kernel() if root == Path("/") else None
    if links is None:
        links = _links_of_sysfs(root)
    nics = [_nic(root, link, links) for link in links]
    there = [nic for nic in nics if nic.virtual or _is_settled(root, nic)]
    return tuple(sorted(there, key=lambda nic: nic.index))


def wait_for(predicate: Callable[[tuple[Nic, ...]], bool], deadline: float,
             root: Path = Path("/")) -> tuple[Nic, ...]:
    """The network interfaces once `predicate` is true of them, or those that are there at `deadline`.

    `deadline` is on the clock of time.monotonic(), in seconds.
    """
    with Watch() as watch:
        while True:
            nics = read_nics(root)
            if predicate(nics) or not watch.wait(deadline):
                return nics


def wait_for_change(deadline: float) -> bool:
    """Wait until it is worth reading the NICs again; false once `deadline` (time.monotonic()) has passed.

    The first call in a process returns at once: what happened before somebody was watching is not lost.
    """
    global _watch
    if _watch is None:
        _watch = Watch()
        return time.monotonic() < deadline
    return _watch.wait(deadline)


class Watch:
    """Listens for links that appear, change or are renamed, and for cards that udev is done with."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._monitor: Any = None
        try:
            link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            link.setblocking(False)
            link.bind((0, RTMGRP_LINK))
            self._sockets.append(link)
            self._monitor = _udev_monitor()
        except OSError:
            pass  # then `wait` only looks again from time to time

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for each in self._sockets:
            each.close()
        self._sockets, self._monitor = [], None

    def wait(self, deadline: float) -> bool:
        """True after an event (or `LOOK_AGAIN` seconds, in case one was lost), false past `deadline`."""
        import select
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        files: list[Any] = [*self._sockets, *([self._monitor] if self._monitor else [])]
        ready, _, _ = select.select(files, [], [], min(left, LOOK_AGAIN))
        for each in ready:
            self._drain(each)
        return time.monotonic() < deadline

    def _drain(self, each: Any) -> None:
        """Take all that is queued: a burst of events is one reason to look."""
        if each is self._monitor:
            while each.poll(timeout=0):
                pass
            return
        try:
            while each.recv(RECEIVE):
                pass
        except OSError:
            pass  # empty; or ENOBUFS: events were lost, and we look anyway


_watch: Watch | None = None


def _udev_monitor() -> Any:
    """A pyudev monitor of cards that udev has processed, None where there is no udev or no pyudev."""
    if not os.path.exists("/run/udev/control"):
        return None
    try:
        import pyudev
        monitor = pyudev.Monitor.from_netlink(pyudev.Context())
        monitor.filter_by("net")
        monitor.start()
    except (ImportError, OSError):  # OSError also for a missing libudev.so.1
        return None
    return monitor


def _ask_kernel() -> list[Link] | None:
    """All links of this network namespace, None if the kernel does not say."""
    links: list[Link] = []
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as file:
            file.settimeout(DUMP_LIMIT)
            file.bind((0, 0))
            file.send(dump_request())
            done = False
            while not done:
                found, done = parse_links(file.recv(RECEIVE))
                links += found
    except OSError:
        return None
    return links


def _links_of_sysfs(root: Path) -> list[Link]:
    """The same from sysfs, which knows permanent MACs only of ports of a bond."""
    try:
        names = sorted(os.listdir(root / SYSFS))
    except OSError:
        return []
    links = []
    for name in names:
        index = _number(_attribute(root, name, "ifindex"))
        if index is not None:  # bonding_masters is a plain file
            up = (_number(_attribute(root, name, "flags"), 16) or 0) & 1
            carrier = _attribute(root, name, "carrier") if up else ""
            links.append(Link(
                index=index, name=name, hardware=_number(_attribute(root, name, "type")) or 0,
                mac=_without_zeros(_attribute(root, name, "address")),
                carrier=carrier == "1" if carrier else None))
    return links


def _nic(root: Path, link: Link, links: list[Link]) -> Nic:
    # sysfs may show another network namespace than the one that we are in.
    shown = _number(_attribute(root, link.name, "ifindex")) == link.index
    assigned = _number(_attribute(root, link.name, "addr_assign_type")) if shown else None
    device = os.path.realpath(root / SYSFS / link.name / "device") if shown else ""
    virtual = _is_virtual(root, link, shown)
    usb = any(part.startswith("usb") and part[3:].isdigit() for part in device.split("/"))
    permanent = link.permanent_mac or _without_zeros(
        _attribute(root, link.name, "bonding_slave/perm_hwaddr") if shown else "")
    if not permanent and assigned == 0 and not virtual:
        permanent = link.mac
    return Nic(
        name=link.name, index=link.index, mac=link.mac, permanent_mac=permanent,
        addr_assign_type=assigned, pci="" if usb else _pci_address(device), driver=_driver(device),
        kind=_kind(root, link, links, virtual), carrier=link.carrier, virtual=virtual, usb=usb)


def _driver(device: str) -> str:
    path = os.path.join(device, "driver")
    return os.path.basename(os.path.realpath(path)) if device and os.path.exists(path) else ""


def _is_virtual(root: Path, link: Link, shown: bool) -> bool:
    if shown:
        return "/devices/virtual/net/" in os.path.realpath(root / SYSFS / link.name)
    return bool(link.kind) or ARPHRD.get(link.hardware) == "loopback"


def _kind(root: Path, link: Link, links: list[Link], virtual: bool) -> str:
    if link.kind:
        return link.kind
    uevent = _attribute(root, link.name, "uevent")
    devtype = [line[8:] for line in uevent.splitlines() if line.startswith("DEVTYPE=")]
    if devtype:
        return devtype[0]
    if not virtual and _is_failover_port(link, links):
        return "failover-port"
    plain = ARPHRD.get(link.hardware, f"arphrd-{link.hardware}")
    return "virtual" if virtual and plain == "ethernet" else plain


def _is_failover_port(link: Link, links: list[Link]) -> bool:
    """Whether the kernel itself drives this card as a part of another with the same MAC.

    So a VF below a Hyper-V or virtio card (net_failover): only the upper one is to be configured.
    """
    return any(upper.index == link.master and upper.mac == link.mac and not upper.kind for upper in links)


def _is_settled(root: Path, nic: Nic) -> bool:
    """Whether the name of a card is its last one: udev renames a card, then writes it to its database."""
    return not (root / "run/udev/control").exists() or (root / f"run/udev/data/n{nic.index}").exists()


def _pci_address(device: str) -> str:
    """The last PCI function in a device's path: also of a virtio device below it."""
    found = [part for part in device.split("/") if _looks_like_pci(part)]
    return found[-1] if found else ""


def _looks_like_pci(part: str) -> bool:
    domain, _, rest = part.partition(":")
    bus, _, slot = rest.partition(":")
    number, _, function = slot.partition(".")
    return all(_number(field, 16) is not None for field in (domain, bus, number, function)) and len(bus) == 2


def _attribute(root: Path, name: str, attribute: str) -> str:
    """A file of a network device; "" if it is not there or has no value now (carrier while down: EINVAL)."""
    try:
        with open(root / SYSFS / name / attribute, encoding="ascii", errors="replace") as file:
            return file.read(4096).strip()
    except (OSError, ValueError):
        return ""


def _number(text: str, base: int = 10) -> int | None:
    try:
        return int(text, base)
    except ValueError:
        return None


def _without_zeros(mac: str) -> str:
    return mac.lower() if mac.strip("0:") else ""
