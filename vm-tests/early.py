"""The initramfs's part of a boot in a container: before systemd starts, with folders of its own, and without a kernel.

    before_systemd(machine)          # homeport's three units in their order, as an initramfs would run them
    …; machine.boot(…)               # and then the real root

What an emulated machine is needed for (drives by udev, dracut, another NetworkManager's units) is not here; what
homeport does to /run and to the real root is.
"""

from __future__ import annotations

from container import Machine

# The real root is at /sysroot; what the initramfs keeps is in memory, and NetworkManager there has no profiles but
# those that homeport gives it.
_EARLY = """\
#!/bin/sh
set -u
homeport() {{ echo "+ homeport $*"; /usr/bin/homeport "$@"; echo "+ $?"; }}
early() {{
    mkdir -p /sysroot
    mount --bind / /sysroot
    # An initramfs has an /etc of its own: what is written there does not reach the real root by itself.
    mount -t tmpfs -o mode=0755 tmpfs /mnt
    cp -a /etc/. /mnt/
    mount --move /mnt /etc
    for folder in /etc/NetworkManager/system-connections /var/lib/homeport /usr/lib/NetworkManager/system-connections
    do
        mount -t tmpfs -o mode=0700 tmpfs $folder
    done
    mkdir -p /run/NetworkManager/system-connections
    {before}
    homeport prepare
    if [ -e /run/NetworkManager/initrd/neednet ]; then
        mkdir -p /run/dbus
        dbus-daemon --system --fork --print-pid >/run/dbus.pid
        NetworkManager --no-daemon & manager=$!
        if [ -e /run/homeport/initrd ]; then homeport boot --stage initrd; fi
    fi
    {between}
    if [ -e /run/homeport/handover ]; then homeport handover; fi
    if [ -e /run/dbus.pid ]; then
        kill $manager $(cat /run/dbus.pid)
        wait
        rm -rf /run/dbus /run/dbus.pid
    fi
    homeport handover --clean
    ls -l /run/NetworkManager/system-connections /run/NetworkManager/devices /run/homeport
}}
if [ "${{1-}}" = inside ]; then early; else exec unshare --mount --propagation private "$0" inside; fi
"""


def before_systemd(machine: Machine, *, before: str = "", between: str = "") -> None:
    """In each boot from now on. `before` is shell that runs before homeport does, `between` before the handover."""
    bootstrap = "usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection"
    machine.write("/usr/lib/homeport/homeport-bootstrap.nmconnection", machine.read(f"/{bootstrap}"))
    machine.write("/usr/lib/vm-check/early", _EARLY.format(before=before or ":", between=between or ":"), 0o755)


def log(machine: Machine) -> str:
    """What it said in this boot."""
    return machine.read("/run/early.log")
