"""The lower rungs: what a machine stands on when no configuration of ours can be put in force.

Knows the bootstrap profile and how to take our own profiles out of the way, for this boot or for good.
Needs no server, no document and no source.
"""

from __future__ import annotations

import logging
import os
import time

from homeport import steps
from homeport.core.facts import Mode
from homeport.core.keyfile import Keyfile
from homeport.errors import ApplyError, HomeportError
from homeport.host import keyfiles, oem, profiles
from homeport.host.files import remove, write_atomic
from homeport.machine import Machine
from homeport.transaction import clear_stale_checkpoints, recover

log = logging.getLogger(__name__)

# What a DHCP server may take, with a switch port that comes up slowly; the boot goes on after it.
DHCP_WAIT = 30.0
PAUSE = 0.1
# NMDeviceType: ethernet, and veth, which is what a container has for NICs.
ETHERNET = (1, 20)


def left_as_found(machine: Machine) -> None:
    """Somebody's own configuration stands: it is better than what we would guess."""
    found = profiles.standing(machine.manager)
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
    log.info("%s mode: on DHCP", machine.facts.mode)
    if machine.facts.mode is Mode.RESET:
        forget(machine)
    else:
        set_aside(machine)
    dhcp(machine)


def reset_now(machine: Machine) -> None:
    """`homeport reset`: forget what is ours, and only that; DHCP at once and at every boot."""
    steps.read_facts(machine)
    recover(machine)
    forget(machine)
    machine.report.reason = "reset by command"
    try:
        dhcp(machine)
    except HomeportError as error:
        machine.report.fell("dhcp", error)
    machine.report.reached("dhcp")
    steps.report(machine)
    steps.tell_registration(machine, event="reset")


def forget(machine: Machine) -> None:
    """Remove our keyfiles and everything that is remembered. Idempotent, and needs no server."""
    with machine.report.step("forget") as notes:
        keyfiles.sweep_up(machine.root)
        manifest = machine.store.read_manifest()
        # First: with it there the next boot would bring the keyfiles back.
        oem.forget(machine.root)
        removed = keyfiles.remove_owned(machine.root, manifest)
        for path in manifest.other_files:
            remove(machine.root, path)
        machine.store.forget()
        if manifest.beside:
            from homeport.host.reapply import take_back
            take_back(machine.manager, manifest.beside)
        shadows = drop_shadows(machine, manifest.uuids)
        machine.manager.load([f"/{path}" for path in removed] + shadows)
        notes.append(", ".join(removed) or "nothing was ours")
        log.info("forgot the assignment (%d keyfiles)", len(removed))


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
        if active.uuid not in uuids:
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
    profile = profiles.bootstrap(manager)
    if profile is None:
        raise ApplyError("there is no bootstrap profile",
                         "install /usr/lib/NetworkManager/system-connections/homeport-bootstrap.nmconnection")
    cards = ethernet_cards(machine)
    for device in manager.devices():
        if device.interface in cards and device.managed and not device.profile:
            try:
                manager.activate(profile.uuid, device.interface)
            except HomeportError as error:
                log.debug("no DHCP on %s: %s", device.interface, error)
    if manager.startup():
        # NetworkManager-wait-online waits for exactly this, and has not begun: the boot must not wait twice.
        return "NetworkManager is asking for a lease"
    return wait_for_address(machine)


def wait_for_address(machine: Machine) -> str:
    end = time.monotonic() + DHCP_WAIT
    while True:
        up = [device for device in machine.manager.devices() if device.activated and profiles.usable(device)]
        if up:
            return ", ".join(f"{device.interface} {' '.join(device.addresses)}" for device in up)
        if time.monotonic() > end:
            raise ApplyError(f"no DHCP server answered within {DHCP_WAIT:.0f} s",
                             "check the cable and the DHCP server; NetworkManager goes on trying")
        time.sleep(PAUSE)
