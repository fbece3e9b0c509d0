"""What homeport is compared with, run beside it on the same machine: Afterburn and nm-cloud-setup, as released.

Knows how they are started and what they leave.  They are made by `tools/setup peer-afterburn
peer-nm-cloud-setup`, for `make test-peers` alone.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from container import Machine
from metadata import Case, Served
from trees import prepared_path
from world import DHCP_DNS

FOLDER = "/opt/peers"
DRIVE = "/run/drive"
KINDS = {"ibmcloud-classic": "vfat"}  # the file system of a platform's drive, if it is not iso9660
SHIM = Path(__file__).parent / "clouds" / "mount.c"


def install_afterburn(machine: Machine) -> None:
    """Onto the machine's disk, with what gives it drives where the kernel has no file system for them."""
    folder = machine.on_disk(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(prepared_path("PEER_afterburn"), folder / "afterburn")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "mount.so", SHIM, "-ldl"], check=True)
    # What it asks for labels, without udev's database: the links that udev would have made.
    machine.write("/usr/local/bin/blkid", BLKID, 0o755)
    # Where it looks for the DNS servers that DHCP gave: those of networkd.
    machine.write("/etc/tmpfiles.d/netif.conf",
                  f"d /run/systemd/netif\nf /run/systemd/netif/state - - - - DNS={DHCP_DNS}\n")


BLKID = """#!/bin/sh
for label; do :; done
[ -e /dev/disk/by-label/"$label" ] || exit 2
echo /dev/disk/by-label/"$label"
"""


def install_nm_cloud_setup(machine: Machine) -> None:
    folder = machine.on_disk(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(prepared_path("PEER_nm_cloud_setup"), folder / "nm-cloud-setup")


@dataclass(frozen=True)
class Said:
    """What a program makes of a platform: profiles by file name, attributes, host name; "" and {} for nothing.

    `refused` is what it said where it failed.
    """

    profiles: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    hostname: str = ""
    refused: dict[str, str] = field(default_factory=dict)


def check_in(machine: Machine, served: Served, command: str) -> dict[str, frozenset[str]]:
    """What the platform is told when this machine has booted, or how that failed."""
    served.told.clear()
    done = machine.sh(command, check=False)
    failed = [] if done.status == 0 else [f"failed: {done.stderr.strip().splitlines()[-1]}"]
    return {"check-in": frozenset([*served.told, *failed])}


def afterburns_check_in(case: Case) -> str:
    return f"{_environment(case)} {FOLDER}/afterburn --provider {case.afterburn} --check-in"


def homeports_check_in(case: Case) -> str:
    return f"homeport metadata --check-in {_settings(case)}"


def afterburn(machine: Machine, case: Case) -> Said:
    """Each output by a run of its own: one that fails does not hide the others."""
    refused = {}
    for what in ("networkmanager-profiles", "attributes", "hostname"):
        done = machine.sh(f"rm -rf /tmp/said/{what}; mkdir -p /tmp/said; {_environment(case)} "
                          f"{FOLDER}/afterburn --provider {case.afterburn} --{what} /tmp/said/{what}",
                          check=False, timeout=120)
        if done.status != 0:
            refused[what] = done.stderr.strip()
    return Said(_profiles(machine), _attributes(machine), _text(machine, "/tmp/said/hostname").strip(), refused)


def _environment(case: Case) -> str:
    variables = {"SSL_CERT_FILE": "/etc/peers-ca.pem"}
    if case.drive:
        variables |= {"LD_PRELOAD": f"{FOLDER}/mount.so", "DRIVE_FOLDER": DRIVE,
                      "DRIVE_TYPE": KINDS.get(case.name, "iso9660")}
    return "env " + " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def homeport(machine: Machine, case: Case) -> Said:
    """The same of homeport: attributes and host name; its profiles are rendered from `document`."""
    refused = {}
    for what in ("attributes", "hostname"):
        done = machine.sh(f"rm -f /tmp/said/{what}; mkdir -p /tmp/said; "
                          f"homeport metadata {_settings(case)} --{what} /tmp/said/{what}", check=False)
        if done.status != 0:
            refused[what] = done.stderr.strip()
    return Said({}, _attributes(machine), _text(machine, "/tmp/said/hostname").strip(), refused)


def document(machine: Machine, case: Case) -> str:
    """The assignment that homeport makes of the platform, as `homeport fetch` shows it."""
    return machine.sh(f"homeport fetch {_settings(case)}").stdout


def _settings(case: Case) -> str:
    return f"--sources platform --platform {case.platform} --ca /etc/peers-ca.pem --deadline 10s"


def plug_in(machine: Machine, case: Case) -> None:
    """The drive: its image where udev shows it, for homeport, and its files in a folder, for the shim."""
    machine.sh(f"rm -rf {DRIVE} /dev/disk/by-label; mkdir -p {DRIVE} /dev/disk/by-label")
    if not case.drive:
        return
    folder = machine.folder / "drive"
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in case.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    image = machine.folder / "drive.img"
    make_image(folder, image, case.drive, KINDS.get(case.name, "iso9660"))
    # Into the running machine's own /run and /dev, which no path from outside leads to.
    archive = subprocess.run(["tar", "-c", "-C", str(machine.folder), "drive", "drive.img"], check=True,
                             capture_output=True).stdout
    subprocess.run(machine.argv(["sh", "-c", f"cd /run && tar -x && mv drive.img /dev/disk/by-label/{case.drive}"]),
                   input=archive, check=True)


def make_image(folder: Path, image: Path, label: str, kind: str) -> None:
    image.unlink(missing_ok=True)
    if kind == "iso9660":
        _run("genisoimage", "-quiet", "-R", "-J", "-V", label, "-o", str(image), str(folder))
    else:
        _run("truncate", "--size=1M", str(image))
        _run("mkfs.vfat", "-n", label, str(image))
        _run("mcopy", "-s", "-i", str(image), *map(str, folder.iterdir()), "::")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")


def _profiles(machine: Machine) -> dict[str, str]:
    names = machine.sh("ls /tmp/said/networkmanager-profiles 2>/dev/null", check=False).stdout.split()
    return {name: _text(machine, f"/tmp/said/networkmanager-profiles/{name}") for name in names}


def _attributes(machine: Machine) -> dict[str, str]:
    """As systemd reads them."""
    pairs = (line.split("=", 1) for line in _text(machine, "/tmp/said/attributes").splitlines() if "=" in line)
    return {name: shlex.split(value)[0] if value else "" for name, value in pairs}


def _text(machine: Machine, path: str) -> str:
    return machine.sh(f"cat {path} 2>/dev/null", check=False).stdout


def nm_cloud_setup(machine: Machine, case: Case) -> str:
    """One run, as its unit starts it; what it logged. It always ends with status 0."""
    done = machine.sh(f"{command_of_nm_cloud_setup(machine, case)} 2>&1")
    return done.stdout


def command_of_nm_cloud_setup(machine: Machine, case: Case) -> str:
    provider = case.nm_cloud_setup
    # NetworkManager knows no permanent MAC of a virtual card: its own hook for tests tells which is which.
    nics = ";".join(f"{nic.name}={nic.mac}" for nic in machine.nics)
    variables = {f"NM_CLOUD_SETUP_{provider}": "yes", "NM_CLOUD_SETUP_LOG": "DEBUG",
                 "NM_CLOUD_SETUP_MAP_INTERFACES": nics}
    if provider == "GCP":  # its name needs a DNS server of Google's
        variables["NM_CLOUD_SETUP_GCP_HOST"] = "http://169.254.169.254"
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    return f"env {environment} {FOLDER}/nm-cloud-setup"
