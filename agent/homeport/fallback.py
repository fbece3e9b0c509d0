"""The lower rungs: what a machine stands on when no configuration of ours can be put in force.

Knows the bootstrap profile and how to take our own profiles out of the way, for this boot or for good.
Needs no server, no document and no source.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from homeport import asking, inforce, prepared
from homeport.core.cmdline import parse
from homeport.core.facts import Mode, Stage
from homeport.core.initrd import boot_mac
from homeport.core.keyfile import Keyfile, KeyfileError
from homeport.errors import ApplyError, HomeportError, NoAssignment
from homeport.host import keyfiles, oem, profiles, sidefiles
from homeport.host.files import make_dir, read_file, remove, write_atomic
from homeport.host.networkmanager import Profile
from homeport.host.store import LIMIT
from homeport.machine import Machine
from homeport.prepare import is_generated
from homeport.report import RESET
from homeport.transaction import clear_stale_checkpoints, recover

log = logging.getLogger(__name__)

# What a DHCP server may take, with a switch port that comes up slowly; the boot goes on after it.
DHCP_WAIT = 30.0
PAUSE = 0.1
# Keys of a generated profile that are only there because somebody asked for them.
WISHES = ("dhcp-client-id", "dhcp-vendor-class-identifier", "dhcp-dscp", "ignore-auto-dns")
# Not in NetworkManager's own folder: in an initramfs it would start because a profile is there.
BOOTSTRAP_OF_IMAGE = "usr/lib/homeport/homeport-bootstrap.nmconnection"
# NMDeviceType: ethernet, and veth, which is what a container has for NICs.
ETHERNET = (1, 20)


def seed_as_it_is(machine: Machine) -> None:
    """The seed that this boot came up with, where asking again has brought nothing better: it stays what it is."""
    before = machine.store.read_status() or {}
    if before.get("rung") != "seed" or before.get("boot_id") != machine.report.boot_id:
        raise NoAssignment("no seed is in force")
    machine.on_prepared = machine.prepared is not None and machine.prepared.rung == prepared.SEED
    machine.report.source, machine.report.revision = str(before.get("source")), str(before.get("revision"))
    log.info("the seed stays in force: %s", machine.report.source)


def left_as_found(machine: Machine) -> None:
    """Somebody's own configuration stands: it is better than what we would guess."""
    found = profiles.standing(machine.manager)
    found += [device for device in machine.manager.devices()
              if device.interface in machine.protected and device not in found and device.addresses]
    if not found:
        raise ApplyError("nothing else is in force")
    log.info("left as found: %s", ", ".join(f"{device.interface} by {device.profile_id}" for device in found))


def dhcp(machine: Machine) -> None:
    """The bootstrap profile on every NIC that nothing else runs on; waits a bounded time for a lease."""
    with machine.report.step("dhcp") as notes:
        notes.append(start_dhcp(machine))


def dhcp_by_mode(machine: Machine) -> None:
    """DHCP because the mode asks for it: reset forgets the assignment, recovery and live only for this boot."""
    machine.report.reason = f"{machine.facts.mode} mode ({machine.facts.mode_reason})"
    prepared.drop(machine)
    log.info("%s mode: on DHCP", machine.facts.mode)
    if machine.facts.mode is Mode.RESET:
        forget(machine)
    else:
        set_aside(machine)
    dhcp(machine)


def reset_now(machine: Machine) -> None:
    """`homeport reset`: forget what is ours, and only that; DHCP at once and at every boot."""
    asking.read_facts(machine)
    recover(machine)
    prepared.drop(machine)
    forget(machine)
    machine.report.reason = RESET
    try:
        dhcp(machine)
    except HomeportError as error:
        machine.report.fell("dhcp", error)
    machine.report.reached("dhcp")
    inforce.report(machine)
    inforce.tell_registration(machine, event="reset")


def forget(machine: Machine) -> None:
    """Remove our keyfiles and everything that is remembered. Idempotent, and needs no server."""
    with machine.report.step("forget") as notes:
        keyfiles.sweep_up(machine.root)
        manifest = machine.store.read_manifest()
        standing = under_the_root(machine)
        # First: with it there the next boot would bring the keyfiles back.
        oem.forget(machine.root)
        removed = keyfiles.remove_owned(machine.root, manifest)
        for path in manifest.other_files:
            remove(machine.root, path)
        # Before the manifest, which alone knows them.
        beside = sidefiles.forget(machine.root, manifest.side_files)
        machine.store.forget()
        if manifest.beside:
            from homeport.host.reapply import take_back
            take_back(machine.manager, manifest.beside)
        shadows = drop_shadows(machine, manifest.uuids)
        machine.manager.load([path for path in (*(f"/{path}" for path in removed), *shadows)
                              if path not in standing])
        notes.append(", ".join([*removed, *beside]) or "nothing was ours")
        log.info("forgot the assignment (%d keyfiles)", len(removed))


def under_the_root(machine: Machine) -> frozenset[str]:
    """The files of the profiles on the cards that the root file system stands on: gone from disk they are forgotten at
    the next boot; NetworkManager must not hear of it in this one.
    """
    if not machine.protected:
        return frozenset()
    held = {device.profile for device in machine.manager.devices() if device.interface in machine.protected}
    return frozenset(profile.filename for profile in machine.manager.profiles() if profile.uuid in held)


def drop_shadows(machine: Machine, uuids: frozenset[str]) -> list[str]:
    """Remove what NetworkManager holds of our profiles in /run; the paths, to be loaded (and so unloaded)."""
    paths = [profile.filename for profile in machine.manager.profiles()
             if profile.uuid in uuids and profile.filename.startswith(profiles.RUN_FOLDER)]
    for path in paths:
        os.unlink(path)
    return paths


def set_aside(machine: Machine) -> None:
    """Take our profiles out of force for this boot: a copy in /run that does not connect hides each.

    /run is empty at the next boot, and the assignment is in force again.
    """
    manager = machine.manager
    ours = [profile for profile in manager.profiles() if profile.uuid in machine.store.read_manifest().uuids]
    if not ours:
        return
    with machine.report.step("set aside") as notes:
        clear_stale_checkpoints(machine)
        paths = []
        for profile in ours:
            with open(profile.filename, encoding="utf-8") as file:
                quiet = Keyfile.parse(file.read()).set("connection", "autoconnect", "false")
            paths.append(f"{profiles.RUN_FOLDER}{os.path.basename(profile.filename)}")
            write_atomic("/", paths[-1], quiet.render().encode())
        manager.load(paths)
        give_way(machine, {profile.uuid for profile in ours})
        notes.append(", ".join(profile.id for profile in ours))


def give_way(machine: Machine, uuids: set[str]) -> None:
    """Take these profiles down; a card goes straight to the bootstrap profile.

    To deactivate a card's profile would also tell NetworkManager to leave the card alone from now on.
    """
    manager = machine.manager
    bootstrap, cards = profiles.bootstrap(manager), ethernet_cards(machine)
    for active in manager.active_profiles():
        if active.uuid not in uuids or machine.protected & set(active.interfaces):
            continue
        card = next((name for name in active.interfaces if name in cards), None)
        if card and bootstrap:
            manager.activate(bootstrap.uuid, card)
        else:
            manager.deactivate(active.path)


def ethernet_cards(machine: Machine) -> set[str]:
    """The interfaces that can ask for a lease: cards; in a container, which has none, its ends of cables."""
    return {nic.name for nic in machine.facts.nics if not nic.virtual} or {
        device.interface for device in machine.manager.devices() if device.type in ETHERNET}


def start_dhcp(machine: Machine) -> str:
    """Raises ApplyError if there is no way to DHCP, or no lease within `DHCP_WAIT` seconds."""
    manager = machine.manager
    profile = bring_bootstrap(machine)
    if profile is None:
        raise ApplyError("there is no bootstrap profile",
                         "install /usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection")
    cards = ethernet_cards(machine)
    for device in manager.devices():
        if device.interface in cards - machine.protected and device.managed and not device.profile:
            try:
                manager.activate(profile.uuid, device.interface)
            except HomeportError as error:
                log.debug("no DHCP on %s: %s", device.interface, error)
    if manager.startup():
        # NetworkManager-wait-online waits for exactly this, and has not begun: the boot must not wait twice.
        return "NetworkManager is asking for a lease"
    return wait_for_address(machine)


def bring_bootstrap(machine: Machine) -> Profile | None:
    """The bootstrap profile; in the initramfs, which starts without it if it can, it is put into place now."""
    found = profiles.bootstrap(machine.manager)
    if found is not None or machine.stage is not Stage.INITRD:
        return found
    path = put_bootstrap(machine)
    machine.manager.load([f"/{path}"])
    return profiles.bootstrap(machine.manager)


def put_bootstrap(machine: Machine) -> str:
    """The image's bootstrap profile, where NetworkManager looks in the initramfs; bound to the card that the machine
    booted from, if the firmware says which (BOOTIF=). Raises ApplyError if the image has none.
    """
    data = read_file(machine.root, BOOTSTRAP_OF_IMAGE, LIMIT)
    if data is None:
        raise ApplyError("there is no bootstrap profile in this initramfs", f"it would be /{BOOTSTRAP_OF_IMAGE}")
    profile = Keyfile.parse(data.decode())
    if mac := boot_mac(parse(machine.facts.cmdline)):
        profile = profile.set_raw("ethernet", "mac-address", mac.upper())
    for family, key, value in dhcp_wishes(machine.root):
        profile = profile.set_raw(family, key, value)
    for folder, mode in (("run/NetworkManager", 0o755), (keyfiles.RUN, 0o700)):
        make_dir(machine.root, folder, mode)
    path = f"{keyfiles.RUN}/{profiles.BOOTSTRAP}.nmconnection"
    write_atomic(machine.root, path, profile.render().encode())
    return path


def dhcp_wishes(root: Path) -> Iterator[tuple[str, str, str]]:
    """What the kernel line wants of DHCP (rd.net.dhcp.client-id=, rd.peerdns=, ...), as the generator understood it."""
    folder = root / keyfiles.RUN
    for file in sorted(folder.glob("*.nmconnection")) if folder.is_dir() else ():
        if is_generated(root, f"{keyfiles.RUN}/{file.name}"):
            try:
                made = Keyfile.parse(file.read_text(encoding="utf-8", errors="replace"))
            except KeyfileError:
                continue
            for family in ("ipv4", "ipv6"):
                for key in WISHES:
                    if value := made.raw(family, key):
                        yield family, key, value


def wait_for_address(machine: Machine) -> str:
    patience = machine.patience(DHCP_WAIT)
    end = time.monotonic() + patience
    while True:
        up = [device for device in machine.manager.devices() if device.activated and profiles.usable(device)]
        if up:
            return ", ".join(f"{device.interface} {' '.join(device.addresses)}" for device in up)
        if time.monotonic() > end:
            raise ApplyError(f"no DHCP server answered within {patience:.0f} s",
                             "check the cable and the DHCP server; NetworkManager goes on trying")
        time.sleep(PAUSE)
