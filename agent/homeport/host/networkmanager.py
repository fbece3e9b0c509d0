"""NetworkManager over D-Bus: what it holds, what is active, checkpoints, files, global DNS.

Every call has a limit. Knows NetworkManager's objects
(https://networkmanager.dev/docs/api/latest/spec.html); refuses to know what a profile of ours looks like
and where files go.
The settings of a profile are read without its secrets, and nothing of them is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from homeport.host.nm.bus import CALL_SECONDS, SERVICE, Bus, BusError, NotReady
from homeport.host.nm.values import (
    Active,
    Device,
    Profile,
    Settings,
    Variants,
    addresses,
    number,
    text,
    without_legacy,
)

__all__ = ["Active", "BusError", "Device", "Manager", "NotReady", "Profile"]

logger = logging.getLogger(__name__)

_ROOT = "/org/freedesktop/NetworkManager"
_SETTINGS = f"{_ROOT}/Settings"
_CONNECTION = f"{SERVICE}.Settings.Connection"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_OBJECTS = "/org/freedesktop"

GlobalDns = dict[str, tuple[str, Any]]
"""The property GlobalDnsConfiguration as it came; empty: there is none, and the profiles' own DNS counts."""

_UPDATE2_TO_DISK = 0x1
_UPDATE2_NO_REAPPLY = 0x40
_EXTERNAL = 0x80  # NM_ACTIVATION_STATE_FLAG_EXTERNAL


class Manager:
    """NetworkManager, as a context manager: `with Manager() as manager: manager.wait_ready(deadline)`.

    Any method raises NotReady (no bus, no NetworkManager, no answer in time), NotAllowed, or BusError.
    """

    def __init__(self, timeout: float = CALL_SECONDS) -> None:
        self._timeout = timeout
        self._bus = Bus()

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._bus.close()

    # -- itself --

    def version(self) -> str:
        return str(self._get(_ROOT, SERVICE, "Version"))

    def startup(self) -> bool:
        """True until every device has settled after NetworkManager's start (as `nm-online -s`)."""
        return bool(self._get(_ROOT, SERVICE, "Startup"))

    def wait_ready(self, deadline: float) -> str:
        """The version, once NetworkManager's *object* answers (its name is owned before that).

        `deadline` is a time.monotonic() value; past it, the last NotReady is raised.
        """
        pause = 0.01
        while True:
            left = deadline - time.monotonic()
            try:
                return str(self._get(_ROOT, SERVICE, "Version", timeout=min(self._timeout, max(left, 0.05))))
            except NotReady:
                if left <= 0:
                    raise
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(2 * pause, 0.2)

    # -- global DNS --

    def global_dns(self) -> GlobalDns:
        return dict(self._get(_ROOT, SERVICE, "GlobalDnsConfiguration"))

    def set_global_dns(self, value: GlobalDns) -> None:
        """Put `value` in force, and on disk in NetworkManager-intern.conf.

        {} takes both away: then the DNS of the active profiles counts.  No event on any device.
        """
        self._set(_ROOT, SERVICE, "GlobalDnsConfiguration", ("a{sv}", value))

    # -- checkpoints --

    def checkpoints(self) -> tuple[str, ...]:
        return tuple(self._get(_ROOT, SERVICE, "Checkpoints"))

    def create_checkpoint(self, seconds: int) -> str:
        """A checkpoint of all devices, that rolls back by itself after so many seconds; its path.

        A rollback deletes profiles and disconnects devices that are new since (NM_CHECKPOINT_CREATE_FLAG 2 and 4),
        as it does with nmstate's.
        """
        return str(self._call(_ROOT, SERVICE, "CheckpointCreate", "aouu", [], seconds, 2 | 4)[0])

    def rollback_checkpoint(self, path: str, timeout: float = 60.0) -> dict[str, int]:
        """Device path -> NMRollbackResult, 0 being OK. Activations that it starts are not waited for."""
        return dict(self._call(_ROOT, SERVICE, "CheckpointRollback", "o", path, timeout=timeout)[0])

    def destroy_checkpoint(self, path: str) -> None:
        self._call(_ROOT, SERVICE, "CheckpointDestroy", "o", path)

    def adjust_timeout(self, path: str, seconds: int) -> None:
        """The checkpoint rolls back by itself `seconds` from now."""
        self._call(_ROOT, SERVICE, "CheckpointAdjustRollbackTimeout", "ou", path, seconds)

    # -- devices and activations --

    def devices(self) -> list[Device]:
        """All real devices, with the addresses and the profile that each has (one call)."""
        objects = self._objects()
        return [_device(path, objects) for path, faces in objects.items()
                if f"{SERVICE}.Device" in faces and faces[f"{SERVICE}.Device"].get("Real", ("b", True))[1]]

    def device(self, interface: str) -> Device | None:
        return next((device for device in self.devices() if device.interface == interface), None)

    def active_profiles(self) -> list[Active]:
        objects = self._objects()
        face = f"{SERVICE}.Connection.Active"
        return [_active(path, faces[face], objects) for path, faces in objects.items() if face in faces]

    def applied(self, device: str) -> tuple[Settings, int]:
        """The profile of a device's activation as it is applied now, and the version of that."""
        settings, version = self._call(device, f"{SERVICE}.Device", "GetAppliedConnection", "u", 0)
        return dict(settings), int(version)

    def reapply(self, device: str, settings: Settings, version: int, *, preserve: bool = True) -> None:
        """Change what is applied, if it is still `version` (0: whatever it is); the profile stays as it is.

        What others added stays, too (NM_DEVICE_REAPPLY_FLAGS_PRESERVE_EXTERNAL_IP; before 1.42 there is no such flag),
        but not in IPv6, which NetworkManager starts anew (measured with 1.42 and 1.52). Without `preserve` nothing of
        others stays: 1.42 loses IPv6 for good if it is to preserve (no link-local address, no DHCPv6; 1.52 doesn't).
        """
        settings = without_legacy(settings)
        try:
            self._call(device, f"{SERVICE}.Device", "Reapply", "a{sa{sv}}tu", settings, version, int(preserve))
        except BusError as error:
            if not preserve or not error.name.endswith(".InvalidArguments"):
                raise
            self._call(device, f"{SERVICE}.Device", "Reapply", "a{sa{sv}}tu", settings, version, 0)

    def lease_option(self, name: str) -> str:
        """What a DHCPv4 lease in force says under NetworkManager's name for an option; "" if none says anything."""
        face = f"{SERVICE}.DHCP4Config"
        options = [dict(faces[face].get("Options", ("a{sv}", {}))[1]) for faces in self._objects().values()
                   if face in faces]
        return next((text(each, name) for each in options if text(each, name)), "")

    def activate(self, uuid: str, interface: str | None = None) -> str:
        """Start activating; the path of the activation. It is not waited for."""
        profile = self._profile_path(uuid)
        device = "/"
        if interface:
            device = str(self._call(_ROOT, SERVICE, "GetDeviceByIpIface", "s", interface)[0])
        return str(self._call(_ROOT, SERVICE, "ActivateConnection", "ooo", profile, device, "/",
                              timeout=30.0)[0])

    def deactivate(self, active_path: str) -> None:
        self._call(_ROOT, SERVICE, "DeactivateConnection", "o", active_path)

    # -- profiles and their files --

    def profiles(self) -> list[Profile]:
        return list(self._profiles())

    def profile(self, uuid: str) -> Profile | None:
        return next((profile for profile in self._profiles() if profile.uuid == uuid), None)

    def profile_settings(self, uuid: str) -> Settings:
        """The profile's settings, without secrets."""
        return self._settings_of(self._profile_path(uuid))

    def load(self, paths: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
        """Read these keyfiles anew, by absolute path: (all well, those that NetworkManager refuses).

        A path whose file is gone is unloaded: its profile ends, and goes down, unless NetworkManager has
        *loaded* another file of the same UUID.  A refused file does no harm to the profile that is in force.
        """
        done, failures = self._call(_SETTINGS, f"{SERVICE}.Settings", "LoadConnections", "as", list(paths))
        return bool(done), tuple(failures)

    def reload(self) -> None:
        """Read every keyfile folder again; profiles whose file changed or went are changed or go."""
        self._call(_SETTINGS, f"{SERVICE}.Settings", "ReloadConnections")

    def save(self, uuid: str) -> None:
        """Write a profile from memory or /run to /etc, under NetworkManager's own file name."""
        self._call(self._profile_path(uuid), _CONNECTION, "Save")

    def delete(self, uuid: str) -> None:
        """Remove a profile and its file; it is taken down where it is active."""
        self._call(self._profile_path(uuid), _CONNECTION, "Delete")

    def update(self, uuid: str, settings: Settings) -> None:
        """Replace the settings, on disk, without touching what is active."""
        self._call(self._profile_path(uuid), _CONNECTION, "Update2", "a{sa{sv}}ua{sv}",
                   settings, _UPDATE2_TO_DISK | _UPDATE2_NO_REAPPLY, {})

    def save_hostname(self, name: str) -> None:
        """Write the configured host name, "" for none; what runs now is nmstate's to set."""
        self._call(_SETTINGS, f"{SERVICE}.Settings", "SaveHostname", "s", name)

    def reload_dns(self) -> None:
        """Write resolv.conf again (NM_MANAGER_RELOAD_FLAG_DNS_RC)."""
        self._call(_ROOT, SERVICE, "Reload", "u", 0x2)

    def reload_config(self) -> None:
        """Read NetworkManager.conf and its drop-ins again (NM_MANAGER_RELOAD_FLAG_CONF)."""
        self._call(_ROOT, SERVICE, "Reload", "u", 0x1)

    # -- hands --

    def _call(self, path: str, interface: str, method: str, signature: str = "", *body: Any,
              timeout: float | None = None) -> tuple[Any, ...]:
        return self._bus.call(path, interface, method, signature, body, timeout=timeout or self._timeout)

    def _get(self, path: str, interface: str, name: str, timeout: float | None = None) -> Any:
        return self._call(path, _PROPERTIES, "Get", "ss", interface, name, timeout=timeout)[0][1]

    def _set(self, path: str, interface: str, name: str, value: tuple[str, Any]) -> None:
        self._call(path, _PROPERTIES, "Set", "ssv", interface, name, value)

    def _objects(self) -> dict[str, dict[str, Variants]]:
        return dict(self._call(_OBJECTS, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")[0])

    def _settings_of(self, path: str) -> Settings:
        return dict(self._call(path, _CONNECTION, "GetSettings")[0])

    def _profile_path(self, uuid: str) -> str:
        return str(self._call(_SETTINGS, f"{SERVICE}.Settings", "GetConnectionByUuid", "s", uuid)[0])

    def _profiles(self) -> Iterator[Profile]:
        for path in self._call(_SETTINGS, f"{SERVICE}.Settings", "ListConnections")[0]:
            values = self._call(path, _PROPERTIES, "GetAll", "s", _CONNECTION)[0]
            names = self._settings_of(path)["connection"]
            yield Profile(path, text(names, "uuid"), text(names, "id"), text(names, "type"),
                          text(names, "interface-name"), text(values, "Filename"), number(values, "Flags"))


def _device(path: str, objects: dict[str, dict[str, Variants]]) -> Device:
    faces = objects[path]
    values = faces[f"{SERVICE}.Device"]
    state, reason = values.get("StateReason", ("(uu)", (0, 0)))[1]
    active = objects.get(text(values, "ActiveConnection"), {}).get(f"{SERVICE}.Connection.Active", {})
    found: list[str] = []
    for family in ("4", "6"):
        config = objects.get(text(values, f"Ip{family}Config"), {})
        found += addresses(config.get(f"{SERVICE}.IP{family}Config", {}))
    wired = faces.get(f"{SERVICE}.Device.Wired", {})
    return Device(path, text(values, "Interface"), number(values, "DeviceType"), state, reason,
                  bool(values.get("Managed", ("b", True))[1]), text(values, "HwAddress").lower(),
                  text(wired, "PermHwAddress").lower(), text(active, "Uuid"), text(active, "Id"),
                  tuple(found))


def _active(path: str, values: Variants, objects: dict[str, dict[str, Variants]]) -> Active:
    names = tuple(text(objects[device][f"{SERVICE}.Device"], "Interface")
                  for device in values.get("Devices", ("ao", []))[1] if device in objects)
    return Active(path, text(values, "Uuid"), text(values, "Id"), text(values, "Type"),
                  number(values, "State"), text(values, "Connection"), names,
                  bool(number(values, "StateFlags") & _EXTERNAL))
