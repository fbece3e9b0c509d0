"""An initramfs and a real root as folders: what the tests of prepare, handover and tidy have in common."""

from __future__ import annotations

from pathlib import Path

from homeport.core.facts import Stage
from homeport.core.keyfile import Keyfile, own_profile, stable_uuid
from homeport.host import keyfiles
from homeport.host.store import Manifest, OwnedFile, Store
from homeport.machine import Machine
from homeport.report import Report
from homeport.settings import read_settings

BOOT_ID = "5d4bd4e6-0000-4000-8000-000000000001"
DOCUMENT = """\
interfaces:
- name: enp1s0
  type: ethernet
  state: up
  ipv4: {enabled: true, address: [{ip: 192.0.2.5, prefix-length: 24}]}
  ipv6: {enabled: false}
"""
GENERATED = ("[connection]\nid=Wired Connection\nuuid=99999999-0000-4000-8000-000000000000\ntype=ethernet\n"
             "[user]\norg.freedesktop.NetworkManager.origin=nm-initrd-generator\n")
BOOTSTRAP = ("[connection]\nid=homeport-bootstrap\nuuid=308909ec-dda8-593d-9459-0ea1837da121\ntype=ethernet\n"
             "[user]\norg.freedesktop.NetworkManager.origin=homeport\n")


def put(root: Path, path: str, text: str, mode: int = 0o600) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def make(root: Path, cmdline: str = "") -> Machine:
    """An initramfs with one card, enp1s0, and this kernel command line."""
    put(root, "proc/cmdline", cmdline + "\n")
    put(root, "proc/self/mountinfo", "24 1 8:1 / / rw - rootfs rootfs rw\n")
    put(root, "proc/sys/kernel/random/boot_id", BOOT_ID + "\n")
    put(root, "usr/lib/homeport/homeport-bootstrap.nmconnection", BOOTSTRAP)
    card = root / "sys/devices/pci0000:00/0000:00:03.0/net/enp1s0"
    for name, value in {"ifindex": "2", "address": "52:54:00:00:00:01", "type": "1", "addr_assign_type": "0",
                        "flags": "0x1002", "uevent": "INTERFACE=enp1s0\n"}.items():
        put(card, name, value)
    (root / "sys/class/net").mkdir(parents=True, exist_ok=True)
    if not (root / "sys/class/net/enp1s0").is_symlink():
        (root / "sys/class/net/enp1s0").symlink_to(card)
    settings = read_settings(root, cmdline, {"nic-wait": "0.2s"})
    machine = Machine(root, settings, Stage.INITRD, Store(root), Report(stage="initrd", boot_id=BOOT_ID))
    machine.ends = machine.started + 20
    return machine


def profile(name: str = "enp1s0", address: str = "192.0.2.5/24", uuid: str = "") -> Keyfile:
    text = f"[connection]\ntype=ethernet\ninterface-name={name}\n[ipv4]\nmethod=manual\naddress1={address}\n"
    return own_profile(text, uuid=uuid or stable_uuid("machine", name), name=name, nic=None, tags={})


def keep(root: Path, document: str = DOCUMENT, *, address: str = "192.0.2.5/24", revision: str = "r1",
         names: tuple[str, ...] = ("enp1s0",)) -> Manifest:
    """As if this document had been proven below `root` and kept."""
    store, made = Store(root), {name: profile(name, address) for name in names}
    written = keyfiles.write_profiles(root, made)
    manifest = Manifest(
        revision=revision, source="url", url="http://cfg.example/x", etag='"1"', complete=True,
        keyfiles=tuple(OwnedFile(file.path, file.fingerprint, file.uuid, file.name) for file in written))
    store.keep_document(document.encode())
    store.write_manifest(manifest)
    return manifest


def in_run(root: Path) -> list[str]:
    folder = root / keyfiles.RUN
    return sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
