"""An IPv4 link-local address (RFC 3927) beside whatever a card is trying: the way to a metadata service where there is
no DHCP.

NetworkManager gives it, for this activation only: no profile is made or changed, and the assignment's own activation
takes it away again.  Needs NetworkManager 1.40.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from homeport.host.nm.values import DeviceState
from homeport.host.reapply import can_preserve

if TYPE_CHECKING:
    from homeport.host.networkmanager import Manager

ENABLED = 3  # NM_SETTING_IP4_LL_ENABLED


def take_address(manager: Manager, cards: Sequence[str]) -> str:
    """The first of `cards` that is being activated and has no IPv4 address gets one; its name, "" if none can.

    The address itself comes some seconds later, when nobody else has claimed it. Raises ApplyError.
    """
    devices = {device.interface: device for device in manager.devices()}
    for name in cards:
        device = devices.get(name)
        if device is None or not DeviceState.PREPARE <= device.state <= DeviceState.ACTIVATED:
            continue
        if not any("." in address for address in device.addresses):
            settings, version = manager.applied(device.path)
            settings["ipv4"] = {**settings.get("ipv4", {}), "link-local": ("i", ENABLED)}
            manager.reapply(device.path, settings, version, preserve=can_preserve(manager))
            return name
    return ""
