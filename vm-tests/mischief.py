"""What a test puts into a guest to make a bad day repeatable: programs in the way, units in between.

Each is written on the machine's disk before it boots. Knows the guest's folders and homeport's programs by
their names; knows nothing of what a test then expects.
"""

from __future__ import annotations

from pathlib import Path

import killer
from container import Machine
from namespaces import wait_until

NM = "org.freedesktop.NetworkManager"
NM_OBJECT = "/org/freedesktop/NetworkManager"

# Ahead of the real one in PATH. /run/homeport is what the sandbox of homeport.service lets be written.
_HELD_APPLY = """\
#!/bin/sh
real=/usr/bin/nmstatectl
if [ "$1" != apply ] || [ -e /run/homeport/held ]; then exec $real "$@"; fi
$real "$@" <&0 &
pid=$!
until CONDITION; do kill -0 $pid || break; done
kill -STOP $pid
touch /run/homeport/held
while [ ! -e /run/homeport/go ]; do sleep 0.05; done
kill -CONT $pid
wait $pid
"""
CAME_BETWEEN = "/run/homeport/came-between"
_CONDITIONS = {
    "checkpoint": f"busctl get-property {NM} {NM_OBJECT} {NM} Checkpoints | grep -q '^ao 1'",
    "profile": "ls /run/NetworkManager/system-connections | grep -qv ^lo",
}


def hold_apply(machine: Machine, at: str = "checkpoint") -> None:
    """The first apply of each boot stands still once it has made its checkpoint, or its profile; see `go_on`."""
    machine.write("/usr/local/bin/nmstatectl", _HELD_APPLY.replace("CONDITION", _CONDITIONS[at]), 0o755)


def wait_until_held(machine: Machine) -> None:
    wait_until(lambda: machine.exists("/run/homeport/held"), what="the apply to be held")


def go_on(machine: Machine) -> None:
    machine.sh("touch /run/homeport/go")


def another_comes_between(machine: Machine, profile: str, nic: str) -> None:
    """After the first apply of each boot another profile is put on a card, as NetworkManager 1.42 may do by itself."""
    machine.write("/usr/local/bin/nmstatectl", f"""#!/bin/sh
/usr/bin/nmstatectl "$@" <&0
status=$?
if [ "$1" = apply ] && [ ! -e {CAME_BETWEEN} ]; then
    touch {CAME_BETWEEN}
    nmcli --wait 0 connection up {profile} ifname {nic} >/dev/null
fi
exit $status
""", 0o755)


def before_homeport(machine: Machine, script: str) -> None:
    """Run a piece of shell in each boot, when NetworkManager has started and homeport.service has not."""
    machine.write("/usr/local/lib/before-homeport", f"#!/bin/sh\nset -eu\n{script}", 0o755)
    machine.write("/etc/systemd/system/before-homeport.service", (
        "[Unit]\nAfter=NetworkManager.service\nBefore=homeport.service\n"
        "[Service]\nType=oneshot\nExecStart=/usr/local/lib/before-homeport\n"))
    drop_in(machine, "homeport.service", "[Unit]\nWants=before-homeport.service\n", name="before")


def stop_at_points(machine: Machine) -> None:
    """homeport runs under killer.py, in its units too."""
    machine.write("/usr/local/lib/killer", Path(killer.__file__).read_text(), 0o755)
    for unit, verb in (("homeport", "boot --stage host"), ("homeport-refresh", "refresh")):
        program = f"/usr/local/lib/killer {verb}"
        drop_in(machine, f"{unit}.service", f"[Service]\nExecStart=\nExecStart={program}\n", "killer")


def order(machine: Machine, verb: str, how: str, where: str) -> None:
    """The next run of `homeport VERB` is killed ("kill") or stands still ("hold") at this point."""
    machine.write(killer.ORDER, f"{verb}\t{how}\t{where}\n")


def no_order(machine: Machine) -> None:
    machine.on_disk(killer.ORDER).unlink()


def no_refresh(machine: Machine) -> None:
    """What the boot's own run came to stays: nothing is asked again after it."""
    mask(machine, "homeport-refresh.service")


def mask(machine: Machine, unit: str) -> None:
    link = machine.on_disk(f"/etc/systemd/system/{unit}")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/dev/null")


def patient_dhcp(machine: Machine) -> None:
    """Whoever waits for DHCP (or an advertisement) of the bootstrap profile that nobody answers does so for ever."""
    path = "/usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection"
    text = machine.read(path)
    patient = text.replace("-timeout=30\n", "-timeout=3000\n")
    assert patient.count("-timeout=3000\n") == 3, text
    machine.write(path, patient, 0o600)


def read_only_etc(machine: Machine) -> None:
    """/etc cannot be written to from the start of each boot on; as on such images, resolv.conf is in /run."""
    _early(machine, "read-only-etc", "mount --bind /etc /etc; mount -o remount,bind,ro /etc")
    _resolv_in_run(machine)


def full_var_lib(machine: Machine) -> None:
    """In each boot /var/lib is a file system of its own, empty but for /var/lib/homeport, without a byte left."""
    # -p: systemd-tmpfiles is at work meanwhile.
    _early(machine, "full-var-lib", (
        "mount -t tmpfs -o size=64k,mode=755 full /var/lib; mkdir -p -m 700 /var/lib/homeport; "
        "mkdir -p /var/lib/NetworkManager; cat /dev/zero >/var/lib/full || true"))


def _early(machine: Machine, name: str, script: str) -> None:
    """Run a piece of shell before anything else of the boot."""
    machine.write(f"/usr/local/lib/{name}", f"#!/bin/sh\nset -eu\n{script}\n", 0o755)
    machine.write(f"/etc/systemd/system/{name}.service", (
        "[Unit]\nDefaultDependencies=no\nAfter=local-fs.target\nBefore=sysinit.target\n"
        f"[Service]\nType=oneshot\nExecStart=/usr/local/lib/{name}\n"))
    drop_in(machine, "sysinit.target", f"[Unit]\nRequires={name}.service\n", name)


def _resolv_in_run(machine: Machine) -> None:
    link = machine.on_disk("/etc/resolv.conf")
    link.unlink(missing_ok=True)
    link.symlink_to("/run/NetworkManager/resolv.conf")


def drop_in(machine: Machine, unit: str, text: str, name: str = "test") -> None:
    machine.write(f"/etc/systemd/system/{unit}.d/{name}.conf", text)


def checkpoints(machine: Machine) -> int:
    """How many checkpoints NetworkManager holds."""
    return int(machine.run(["busctl", "get-property", NM, NM_OBJECT, NM, "Checkpoints"]).stdout.split()[1])
