"""What NetworkManager says, as values.

The numbers are those of NetworkManager's public header (libnm-core-public/nm-dbus-interface.h:
NMDeviceState, NMDeviceStateReason, NMActiveConnectionState, NMSettingsConnectionFlags, NMDeviceType),
which are stable API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

Variants = Mapping[str, tuple[str, Any]]  # an a{sv} as jeepney gives it
Settings = dict[str, dict[str, tuple[str, Any]]]  # a{sa{sv}}: a profile's settings
# The same once more, in a form without attributes; NetworkManager believes it more than the other one.
LEGACY = {"addresses": "address-data", "address-labels": "address-data", "routes": "route-data"}


class DeviceState(IntEnum):
    UNKNOWN = 0
    UNMANAGED = 10
    UNAVAILABLE = 20
    DISCONNECTED = 30
    PREPARE = 40
    CONFIG = 50
    NEED_AUTH = 60
    IP_CONFIG = 70
    IP_CHECK = 80
    SECONDARIES = 90
    ACTIVATED = 100
    DEACTIVATING = 110
    FAILED = 120


class ActiveState(IntEnum):
    UNKNOWN = 0
    ACTIVATING = 1
    ACTIVATED = 2
    DEACTIVATING = 3
    DEACTIVATED = 4


class ProfileFlags(IntFlag):
    """NMSettingsConnectionFlags. External: NetworkManager only mirrors what another program configured."""

    UNSAVED = 1
    NM_GENERATED = 2
    VOLATILE = 4
    EXTERNAL = 8


# Reasons that explain a device that is not up; the rest are shown by number (NMDeviceStateReason).
REASONS = {
    5: "the IP configuration could not be made",
    6: "the IP configuration expired",
    15: "DHCP could not start", 16: "DHCP failed", 17: "DHCP client failed",
    36: "the device was removed",
    38: "the profile was removed",
    39: "a user disconnected it",
    40: "no cable, or the other end is down",
    50: "its controller's connection failed",
    51: "its base device is missing or down",
    53: "its controller's connection failed",
    60: "a new activation replaced this one",
    61: "its base device changed",
    67: "an address is already in use by another host",
}


@dataclass(frozen=True)
class Device:
    """A network device. `addresses` are `IP/PREFIX`; `profile` is the active profile's UUID, "" if none."""

    path: str
    interface: str
    type: int = 0
    state: int = 0
    reason: int = 0
    managed: bool = True
    mac: str = ""
    permanent_mac: str = ""
    profile: str = ""
    profile_id: str = ""
    addresses: tuple[str, ...] = ()

    @property
    def activated(self) -> bool:
        return self.state == DeviceState.ACTIVATED

    @property
    def why(self) -> str:
        """The state in words, with the reason where there is one worth telling."""
        try:
            state = DeviceState(self.state).name.lower().replace("_", " ")
        except ValueError:
            state = f"state {self.state}"
        reason = REASONS.get(self.reason, f"reason {self.reason}" if self.reason > 1 else "")
        return f"{state}: {reason}" if reason and not self.activated else state


@dataclass(frozen=True)
class Active:
    """An activation of a profile (one per device for a `multi-connect=multiple` profile)."""

    path: str
    uuid: str
    id: str
    type: str
    state: int
    profile: str  # object path of the profile
    interfaces: tuple[str, ...] = ()
    external: bool = False


@dataclass(frozen=True)
class Profile:
    """A profile NetworkManager holds; `filename` is "" for one that has none."""

    path: str
    uuid: str
    id: str
    type: str
    interface_name: str
    filename: str
    flags: int

    @property
    def unsaved(self) -> bool:
        """It lives in memory or /run only, or differs from its file in /etc."""
        return bool(self.flags & ProfileFlags.UNSAVED)

    @property
    def external(self) -> bool:
        return bool(self.flags & ProfileFlags.EXTERNAL)


def text(values: Variants, name: str) -> str:
    value = values.get(name, ("s", ""))[1]
    return value if isinstance(value, str) else ""


def number(values: Variants, name: str) -> int:
    value = values.get(name, ("u", 0))[1]
    return int(value) if isinstance(value, int) else 0


def addresses(values: Variants) -> tuple[str, ...]:
    """`IP/PREFIX` of an IP4Config's or IP6Config's AddressData."""
    rows = values.get("AddressData", ("aa{sv}", []))[1]
    return tuple(f"{text(row, 'address')}/{number(row, 'prefix')}" for row in rows)


def without_legacy(settings: Settings) -> Settings:
    """As they may be given back: with the old form beside it a route's table would be forgotten."""
    return {name: {key: value for key, value in section.items() if LEGACY.get(key) not in section}
            for name, section in settings.items()}
