"""Whose profile an interface runs on: ours, the image's bootstrap, an administrator's, or none.

Knows NetworkManager's devices and profiles and our manifest. Changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from homeport.host.networkmanager import Device, Manager, Profile
from homeport.host.store import Manifest

# The id of the profile that the image ships: bootstrap, recovery and reset are this one (design.md, 2.2).
BOOTSTRAP = "homeport-bootstrap"

# Loopback and link-local: nobody is reached through them from elsewhere.
LOCAL = ("127.", "169.254.", "fe80:", "::1/")

RUN_FOLDER = "/run/NetworkManager/system-connections/"


@dataclass(frozen=True)
class Ownership:
    """The wanted interfaces whose active profile is not ours, and whether nmstate must make new ones for them.

    A stranger's profile must come back as it was when ours goes, so nmstate may not edit it. Nor may ours
    begin as a copy of the bootstrap profile, with its metrics; but where some are ours already, to replace
    those would interrupt them, and the copy is the lesser evil.
    """

    foreign: tuple[str, ...]
    override: bool


def whose(manager: Manager, manifest: Manifest, config: Mapping[str, Any],
          also: Collection[str] = ()) -> Ownership:
    """By the manifest; `also` are UUIDs of other profiles that are ours."""
    devices = {device.interface: device for device in manager.devices()}
    foreign, strangers, ours = [], False, False
    for interface in config.get("interfaces", ()):
        if interface.get("state", "up") != "up":
            continue
        device = devices.get(interface["name"])
        if device is not None and (device.profile in manifest.uuids or device.profile in also):
            ours = True
            continue
        foreign.append(interface["name"])
        strangers |= device is not None and bool(device.profile) and device.profile_id != BOOTSTRAP
    return Ownership(tuple(foreign), strangers or (bool(foreign) and not ours))


def bootstrap(manager: Manager) -> Profile | None:
    return next((profile for profile in manager.profiles() if profile.id == BOOTSTRAP), None)


def standing(manager: Manager) -> list[Device]:
    """Devices that carry an address by a profile that is not the bootstrap: somebody's configuration."""
    return [device for device in manager.devices()
            if device.profile and device.profile_id not in (BOOTSTRAP, "lo") and usable(device)]


def usable(device: Device) -> bool:
    """Whether the device is up with an address that reaches beyond its own link."""
    return device.interface != "lo" and any(
        not address.startswith(LOCAL) for address in device.addresses)


def addresses_now() -> list[str]:
    """"interface address/prefix" of everything but the loopback, as the kernel has it.

    Not as NetworkManager shows it: it hears of an address a moment later. Raises OSError.
    """
    from homeport.host.proof.kernel import read_network
    network = read_network()
    return [f"{link.name} {address.ip}/{address.prefix}" for link in network.links if link.name != "lo"
            for address in network.addresses if address.index == link.index]


def persisted_set(profiles: Iterable[Profile], devices: Iterable[Device], wanted: Iterable[str], *,
                  before: Collection[str] | None, ours: Collection[str] = (), loopback: bool = False) -> list[Profile]:
    """The profiles that make up what is in force for the `wanted` interfaces.

    Those that are active on them; for one that is down, the profile that names it; what came into memory
    with the apply and has no device of its own (an Open vSwitch port, a peer), or was kept so far; and that
    of the `loopback`, if it is needed. `before` are the UUIDs that were in memory before the apply, None if
    nothing was applied: then nothing came. `ours` are the UUIDs of those kept so far. What NetworkManager
    only mirrors is nobody's.
    """
    names = set(wanted) | ({"lo"} if loopback else set())
    active = {device.profile for device in devices if device.interface in names}
    covered = {device.interface for device in devices if device.interface in names and device.profile}

    def belongs(profile: Profile) -> bool:
        if profile.uuid in active:
            return True
        if profile.interface_name in names:
            return profile.interface_name not in covered and (
                profile.uuid in ours or profile.filename.startswith(RUN_FOLDER))
        if profile.uuid in ours:
            return profile.type == "ovs-port"
        return before is not None and profile.filename.startswith(RUN_FOLDER) and profile.uuid not in before

    return [profile for profile in profiles if not profile.external and belongs(profile)]


def by_name(profiles: Iterable[Profile], interfaces: Mapping[str, str] = MappingProxyType({})) -> dict[str, Profile]:
    """Each under the name of its interface; under its own id where that name has several (Open vSwitch).

    One that is for a card by its MAC names no interface: `interfaces` says by UUID which that is.
    """
    named = [(profile.interface_name or interfaces.get(profile.uuid, ""), profile) for profile in profiles]
    count = Counter(name for name, _ in named)
    return {name if count[name] == 1 and name else profile.id: profile for name, profile in named}
