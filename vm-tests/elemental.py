"""What a machine of Rancher Elemental has beside the product: its mode, its config.yaml, and an /etc from /oem.

    make_elemental(machine, server.bootstrap())     # config.yaml in /oem, and what /oem says is replayed at each boot
    make_live(machine, server.bootstrap())          # config.yaml where the live medium has it
    set_mode(machine, "recovery")                   # as the initramfs leaves it in /run
    ask_for_reset(machine)                          # what the operator's plan puts there before a reset

For any machine whose disk can be written while it is off. Knows the places and no more of Elemental than they need;
in a VM the mode may as well be a kernel argument, `elemental.mode=recovery`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

CONFIG = "/oem/registration/config.yaml"
OEM = "/oem/elemental-network.yaml"
RESET_PLAN = "/oem/reset-cloud-config.yaml"
LIVE_CONFIG = "/run/initramfs/live/livecd-cloud-config.yaml"

_MEDIUM = "/usr/local/share/livecd-cloud-config.yaml"

# What elemental-setup-initramfs does with the files in /oem: /etc is empty at each boot until they are written into
# it. No more of it than they use.
_REPLAY = """\
import glob, os, subprocess, yaml
for old in glob.glob("/etc/NetworkManager/system-connections/*"):
    os.unlink(old)
for name in sorted(glob.glob("/oem/*.yaml")):
    for stage in (yaml.safe_load(open(name)) or {}).get("stages", {}).get("initramfs", ()):
        if subprocess.run(["sh", "-c", stage.get("if", "true")]).returncode == 0:
            for file in stage.get("files", ()):
                with open(file["path"], "w") as out:
                    os.chmod(file["path"], file["permissions"])
                    out.write(file["content"])
"""
_UNIT = """\
[Unit]
Description=Write what /oem says into /etc
DefaultDependencies=no
After=local-fs.target systemd-tmpfiles-setup.service
Before=NetworkManager.service basic.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /usr/local/lib/replay.py
[Install]
WantedBy=sysinit.target
"""


class Disk(Protocol):
    """A machine, as far as it is needed here."""

    def write(self, path: str, text: str, mode: int = 0o644) -> None: ...

    def on_disk(self, path: str) -> Path: ...


def make_elemental(machine: Disk, config: str, mode: str = "active") -> None:
    """An installed Elemental machine that registers as `config` says; it is off."""
    machine.write(CONFIG, config, 0o600)
    machine.write("/usr/local/lib/replay.py", _REPLAY)
    machine.write("/etc/systemd/system/replay.service", _UNIT)
    wants = machine.on_disk("/etc/systemd/system/sysinit.target.wants/replay.service")
    wants.parent.mkdir(parents=True, exist_ok=True)
    if not wants.is_symlink():
        wants.symlink_to("/etc/systemd/system/replay.service")
    set_mode(machine, mode)


def make_live(machine: Disk, config: str) -> None:
    """The live medium: nothing in /oem yet, `config` where the medium is mounted."""
    machine.write(_MEDIUM, config)
    set_mode(machine, "live", f"C {LIVE_CONFIG} 0644 - - - {_MEDIUM}\n")


def set_mode(machine: Disk, mode: str, more: str = "") -> None:
    """What the initramfs leaves in /run for the mode that was booted."""
    machine.write("/etc/tmpfiles.d/elemental.conf",
                  f"d /run/elemental 0755\nf /run/elemental/{mode}_mode 0644 - - - 1\n{more}")


def ask_for_reset(machine: Disk) -> None:
    """The next boot, into recovery, is a reset."""
    machine.write(RESET_PLAN, "name: reset\n", 0o600)
    set_mode(machine, "recovery")
