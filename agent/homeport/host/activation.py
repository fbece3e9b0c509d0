"""Keyfiles of an assignment in force, by NetworkManager alone, under a checkpoint as nmstate would make it.

Knows the order: checkpoint, files in /run, loaded, activated. What is in /run is gone after a reboot, so that
nothing unproven stays; who commits or rolls back is `transaction.py`.  Knows too what may come between nmstate's
activating and the profile being up.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping

from homeport.core.keyfile import Keyfile, file_name
from homeport.errors import ApplyError, HomeportError
from homeport.host.files import make_dir, write_atomic
from homeport.host.networkmanager import Manager, Profile
from homeport.host.nm.values import DeviceState
from homeport.host.profiles import RUN_FOLDER

log = logging.getLogger(__name__)

PAUSE = 0.05  # seconds between looks at what NetworkManager is doing
TAKING_BACK = 10.0  # seconds; what is on no profile by then is for the proof to tell of
COMING_BACK = 15.0  # seconds until what is taken down is gone: as long as scripts of a site's may take ("pre-down")
COMING_UP = 3.0  # seconds, of them, for what comes instead; DHCP that nobody answers takes longer, and changes nothing
# From one profile to the next, which is to be seen only when it is there.
ON_THE_WAY = (DeviceState.DISCONNECTED, DeviceState.DEACTIVATING)
LEAVING = (DeviceState.PREPARE, DeviceState.CONFIG, DeviceState.DEACTIVATING)
CHANGING = (*LEAVING, DeviceState.IP_CONFIG, DeviceState.IP_CHECK, DeviceState.SECONDARIES)
# These exist; all other types NetworkManager makes a device for.
CARDS = ("ethernet", "infiniband", "wifi")


def bring_up(manager: Manager, keyfiles: Mapping[str, Keyfile], interfaces: Mapping[str, str], *,
             checkpoint_seconds: int, timeout: float) -> None:
    """Put `keyfiles` (name -> profile, ours) in force on `interfaces` (name -> kernel name).

    Raises ApplyError; the checkpoint is there then, and whoever called rolls it back.
    """
    manager.create_checkpoint(checkpoint_seconds)
    make_dir("/", RUN_FOLDER, 0o755)
    paths = {name: f"{RUN_FOLDER}{file_name(name)}" for name in keyfiles}
    for name, keyfile in keyfiles.items():
        write_atomic("/", paths[name], keyfile.render().encode())
    _, refused = manager.load(list(paths.values()))
    if refused:
        names = ", ".join(name for name, path in paths.items() if path in refused)
        raise ApplyError(f"NetworkManager refuses the keyfile {names}",
                         "its journal says which setting; `homeport check` finds most")
    waiting = {}
    for name in sorted(keyfiles, key=lambda name: _rank(keyfiles[name])):
        uuid = keyfiles[name].raw("connection", "uuid") or ""
        card = interfaces[name] if keyfiles[name].raw("connection", "type") in CARDS else None
        try:
            manager.activate(uuid, card)
        except HomeportError as error:
            raise ApplyError(f"NetworkManager does not activate the keyfile {name}: {error.message}",
                             "its journal says why") from error
        waiting[interfaces[name]] = uuid
    _wait(manager, waiting, timeout)


def _rank(keyfile: Keyfile) -> int:
    """Ports after what they are ports of, and what is made on top of a card after the card."""
    if keyfile.raw("connection", "master"):
        return 2
    return 0 if keyfile.raw("connection", "type") in CARDS else 1


def _wait(manager: Manager, waiting: dict[str, str], timeout: float) -> None:
    """Until each interface is up by its profile. Raises ApplyError with those that are not."""
    end = time.monotonic() + timeout
    while True:
        up = {device.interface: device.profile for device in manager.devices() if device.activated}
        left = [name for name, uuid in waiting.items() if up.get(name) != uuid]
        if not left:
            return
        if time.monotonic() > end:
            raise ApplyError(f"not up within {timeout:.0f} s: {', '.join(sorted(left))}",
                             "rolled back; the journal of NetworkManager says what it waited for")
        time.sleep(PAUSE)


def take_back(manager: Manager, interfaces: Collection[str]) -> None:
    """Where NetworkManager's own choice has come between, activate again what nmstate has activated.

    nmstate takes a profile down before it takes a route out of it (NetworkManager before 1.52) or changes its table
    (2.2.62, apply.rs: gen_nm_conn_need_to_deactivate_first).  For a card without profile NetworkManager finds another
    at once; where nmstate's order to activate ours arrives just then, both are under way, and the other is the last
    (1.42: once in fifty times on a busy machine).  nmstate waits for neither, and says that all is well.
    """
    made = _in_memory_alone(manager, interfaces)
    end = time.monotonic() + TAKING_BACK
    while time.monotonic() < end:
        unsettled = False
        for device in manager.devices():
            ours = made.get(device.interface)
            if ours is None:
                continue
            if device.state in ON_THE_WAY:
                unsettled = True
            elif device.profile not in ("", ours.uuid):
                log.info("NetworkManager has put %s on %s meanwhile, activating %s again",
                         device.interface, device.profile_id, ours.id)
                manager.activate(ours.uuid, device.interface)
                unsettled = True
        if not unsettled:
            return
        time.sleep(PAUSE)


def come_back(manager: Manager, interfaces: Collection[str], seconds: float = COMING_BACK) -> None:
    """Wait until what has been taken down on these is gone, and what was activated instead is up if that is soon.

    Meanwhile the kernel has what goes: whoever plans would take its addresses for somebody's, and keep them.
    """
    started, quiet = time.monotonic(), 0
    while quiet < 2 and (passed := time.monotonic() - started) < seconds:
        awaited = CHANGING if passed < COMING_UP else LEAVING
        changing = any(device.state in awaited for device in manager.devices() if device.interface in interfaces)
        quiet = 0 if changing else quiet + 1
        time.sleep(PAUSE)


def _in_memory_alone(manager: Manager, interfaces: Collection[str]) -> dict[str, Profile]:
    """By interface the profile in /run, where nmstate's `--memory-only` puts them, if there is just one for it."""
    found: dict[str, list[Profile]] = {}
    for profile in manager.profiles():
        if profile.interface_name in interfaces and profile.filename.startswith(RUN_FOLDER):
            found.setdefault(profile.interface_name, []).append(profile)
    return {name: profiles[0] for name, profiles in found.items() if len(profiles) == 1}
