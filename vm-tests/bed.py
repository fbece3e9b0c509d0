"""A NetworkManager of one's own in a second, without systemd: private network, mount and UTS namespaces.

    with Bed(tmp_path, tree) as bed:
        bed.start_manager()

Nothing of the host is seen or changed: /run, /etc, /tmp and /var/lib inside are empty tmpfs; /sys is
read-only, so NetworkManager does not wait for udev; the bus is a dbus-daemon of the bed. The tree below is
the host's own root or a guest tree, and cannot be written to. NICs are veth pairs whose far ends
(`peer-NIC`) are in a network namespace of their own, `bed.peer`.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from namespaces import NetworkNamespace, wait_until
from trees import prepared

NM_CONF = """[main]
plugins=keyfile
no-auto-default=*
dhcp=internal
hostname-mode=none
"""
# As the image ships it: multi-connect=3 is "multiple", one profile for every NIC.
BOOTSTRAP = """[connection]
id=homeport-bootstrap
uuid=6b1d0c1e-5d5e-4f6b-9b0a-0d2f6a3e9f00
type=ethernet
autoconnect-priority=-900
multi-connect=3
[ethernet]
[ipv4]
method=auto
may-fail=true
dhcp-client-id=mac
dhcp-timeout=45
[ipv6]
method=auto
may-fail=true
ra-timeout=30
"""
_SETUP = r"""
set -e
root=$1 tree=$2 bus=$3 profiles=$4 etc=$5
mount --bind "$tree" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys"
cp "$tree/etc/passwd" "$tree/etc/group" "$tree/etc/nsswitch.conf" "$etc/"
for folder in run etc tmp var/lib usr/lib/NetworkManager/system-connections; do
    [ -d "$root/$folder" ] || folder=$(dirname "$folder")
    mount -t tmpfs -o mode=755 tmpfs "$root/$folder"
done
mkdir -p "$root/etc/NetworkManager/system-connections" "$root/etc/NetworkManager/dispatcher.d"
mkdir -p "$root/run/dbus" "$root/run/NetworkManager" "$root/var/lib/NetworkManager"
mkdir -p "$root/usr/lib/NetworkManager/system-connections"
cp "$etc"/* "$root/etc/"
mv "$root/etc/NetworkManager.conf" "$root/etc/NetworkManager/"
mount --bind "$bus" "$root/run/dbus"
find "$profiles" -type f -exec cp -p {} "$root/usr/lib/NetworkManager/system-connections/" \;
hostname bed
ip link set lo up
exec sleep infinity
"""


def nmstatectl() -> str:
    """The nmstatectl that the set-up made, or the machine's own; "" if there is none."""
    found = prepared().get("NMSTATECTL") or shutil.which("nmstatectl") or ""
    return found if os.path.exists(found) else ""


def beds() -> dict[str, Path]:
    """Roots with a NetworkManager in them, by name: the guest trees, and the host's own."""
    trees = {name[6:].lower(): Path(path) for name, path in prepared().items() if name.startswith("GUEST_")}
    return {name: tree for name, tree in {**trees, "host": Path("/")}.items() if not missing(tree)}


def missing(tree: Path) -> str:
    """Why no bed can be made over `tree`; "" if one can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces"
    absent = [name for name in ("usr/sbin/NetworkManager", "usr/bin/dbus-daemon") if not (tree / name).exists()]
    if absent:
        return f"no {absent[0]} in {tree}"
    return "" if nmstatectl() else "no nmstatectl (run: make setup)"


class Bed:
    def __init__(self, work: Path, tree: Path = Path("/"), nics: Sequence[str] = ("enp1s0",),
                 profiles: Mapping[str, str] | None = None) -> None:
        self.work, self.tree, self.nics = work, tree, tuple(nics)
        self.profiles = {"homeport-bootstrap": BOOTSTRAP} if profiles is None else dict(profiles)
        self.peer = NetworkNamespace()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._manager: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Bed:
        try:
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._end()

    @property
    def bus(self) -> str:
        """For DBUS_SYSTEM_BUS_ADDRESS."""
        return f"unix:path={self.work}/bus/system_bus_socket"

    @property
    def root(self) -> Path:
        """The root inside, seen from outside (its mounts are private)."""
        return Path(f"/proc/{self.pid}/root{self.work}/root")

    @property
    def nmstatectl(self) -> str:
        """For NMSTATECTL: a program that runs it inside; outside it would write to the host's /etc."""
        shim = self.work / "nmstatectl"
        if not shim.exists():
            shutil.copy(nmstatectl(), self.root / "tmp/nmstatectl")
            shim.write_text(f'#!/bin/sh\nexec {" ".join(self.argv(["/tmp/nmstatectl"]))} "$@"\n')
            shim.chmod(0o755)
        return str(shim)

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command line that runs `argv` inside."""
        return ["nsenter", "-t", str(self.pid), "-n", "-m", "-u", "chroot", str(self.work / "root"),
                "env", "-u", "DBUS_SYSTEM_BUS_ADDRESS", *argv]

    def run(self, *argv: str) -> str:
        done = subprocess.run(self.argv(argv), capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(argv)} gave {done.returncode}: {done.stderr}")
        return done.stdout

    def start_manager(self) -> None:
        self._manager = self._spawn(self.argv(["NetworkManager", "--debug", "--log-level=INFO"]), "nm.log")

    def stop_manager(self, number: int = 15) -> None:
        assert self._manager
        self._manager.send_signal(number)
        self._manager.wait(10)

    def write_profile(self, name: str, text: str, folder: str = "etc/NetworkManager") -> str:
        """A keyfile as NetworkManager wants it (0600); its path inside."""
        path = f"{folder}/system-connections/{name}.nmconnection"
        (self.root / path).touch(0o600)
        (self.root / path).write_text(text)
        return f"/{path}"

    def serve_dhcp(self, nic: str = "enp1s0", dns: str = "192.168.122.53") -> None:
        """192.168.122.1/24 on the far end of a NIC, with leases from .50 to .60."""
        end = f"peer-{nic}"[:15]
        self.peer.ip("addr", "add", "192.168.122.1/24", "dev", end)
        self._spawn(self.peer.argv([
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", f"--interface={end}",
            "--bind-interfaces", "--no-ping", "--dhcp-range=192.168.122.50,192.168.122.59,1h",
            f"--dhcp-option=option:dns-server,{dns}", "--dhcp-option=option:router,192.168.122.1",
            f"--dhcp-leasefile={self.work}/leases", "--user=root", f"--pid-file={self.work}/dnsmasq.pid",
        ]), "dnsmasq.log")  # fmt: skip

    def watch(self) -> Watch:
        """From now on, once what is going on has come to its end."""
        watch = Watch(self)
        watch.events(quiet=1.0)
        return watch

    def log(self, name: str = "nm.log") -> str:
        return (self.work / name).read_text(errors="replace")

    def _make(self) -> None:
        for name in ("root", "bus", "profiles", "etc"):
            (self.work / name).mkdir(parents=True)
        (self.work / "etc/NetworkManager.conf").write_text(NM_CONF)
        (self.work / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
        for name, text in self.profiles.items():
            file = self.work / f"profiles/{name}.nmconnection"
            file.touch(0o600)
            file.write_text(text)
        folders = [str(folder) for folder in (self.work / "root", self.tree, self.work / "bus",
                                              self.work / "profiles", self.work / "etc")]
        self.pid = self._spawn(["unshare", "-n", "-m", "-u", "--propagation", "private",
                                "sh", "-c", _SETUP, "bed", *folders], "bed.log").pid
        wait_until(self._is_made, what=f"the bed, see {self.work}/bed.log")
        for nic in self.nics:
            end = f"peer-{nic}"[:15]
            self.peer.ip("link", "add", end, "type", "veth", "peer", "name", nic, "netns", str(self.pid))
            self.peer.ip("link", "set", end, "up")
        self._spawn(self.argv(["dbus-daemon", "--system", "--nofork", "--nopidfile"]), "dbus.log")
        wait_until((self.work / "bus/system_bus_socket").exists, what="the bus")

    def _is_made(self) -> bool:
        return Path(f"/proc/{self.pid}/cmdline").read_bytes() == b"sleep\0infinity\0"

    def _spawn(self, argv: Sequence[str], log: str) -> subprocess.Popen[bytes]:
        with open(self.work / log, "ab") as out:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._processes.append(process)
        return process

    def _end(self) -> None:
        for process in reversed(self._processes):
            if process.poll() is None:
                process.kill()
            process.wait(10)
        self.peer.close()


# RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE
EVENT_GROUPS = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
EVENT_NAMES = {16: "link", 17: "link gone", 20: "address", 21: "address gone", 24: "route", 25: "route gone"}


class Watch:
    """The kernel's events inside, on links, addresses and routes (rtnetlink(7))."""

    def __init__(self, bed: Bed) -> None:
        self._socket = NetworkNamespace.of_process(bed.pid).call(self._open)

    def _open(self) -> socket.socket:
        file = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        file.bind((0, EVENT_GROUPS))
        return file

    def events(self, quiet: float = 0.3) -> list[str]:
        """What happened since the last call; asked once nothing has happened for `quiet` seconds."""
        found: list[str] = []
        self._socket.settimeout(quiet)
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except TimeoutError:
                return found
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                found.append(EVENT_NAMES.get(kind, str(kind)))
                data = data[(length + 3) & ~3:]
