"""A link-local address is for a card that is on its way and has no address; nothing else is touched."""

from __future__ import annotations

from typing import Any, cast

import pytest

from homeport.host.linklocal import take_address
from homeport.host.networkmanager import Device, Manager
from homeport.host.nm.values import DeviceState


class Recorder:
    """A NetworkManager with these devices, that remembers what is reapplied."""

    def __init__(self, *devices: Device, version: str = "1.52.1") -> None:
        self.found = devices
        self.is_version = version
        self.reapplied: list[tuple[str, Any, int, bool]] = []

    def version(self) -> str:
        return self.is_version

    def devices(self) -> tuple[Device, ...]:
        return self.found

    def applied(self, path: str) -> tuple[dict[str, Any], int]:
        return {"connection": {"id": ("s", "homeport-bootstrap")}, "ipv4": {"method": ("s", "auto")}}, 7

    def reapply(self, path: str, settings: Any, version: int, *, preserve: bool) -> None:
        self.reapplied.append((path, settings, version, preserve))


def device(name: str, state: int = DeviceState.IP_CONFIG, *addresses: str) -> Device:
    return Device(f"/{name}", name, state=state, addresses=addresses)


@pytest.mark.parametrize(("devices", "taken"), [
    ((device("ens3"), device("ens4")), "ens3"),
    ((device("ens4"), device("ens3")), "ens3"),  # the machine's order, not NetworkManager's
    ((device("ens3", DeviceState.UNAVAILABLE), device("ens4")), "ens4"),
    ((device("ens3", DeviceState.ACTIVATED, "fe80::1/64"),), "ens3"),
    ((device("ens3", DeviceState.ACTIVATED, "192.0.2.7/24"),), ""),
    ((device("wg0"),), ""),
    ((), ""),
])
def test_who_gets_one(devices: tuple[Device, ...], taken: str) -> None:
    manager = Recorder(*devices)
    assert take_address(cast(Manager, manager), ["ens3", "ens4"]) == taken
    assert [path for path, *_ in manager.reapplied] == [f"/{taken}"] * bool(taken)


# 1.42 loses IPv6 for good if it is to keep what others added.
@pytest.mark.parametrize(("version", "preserve"), [("1.52.1", True), ("1.42.4", False)])
def test_nothing_else_is_changed(version: str, preserve: bool) -> None:
    manager = Recorder(device("ens3"), version=version)
    take_address(cast(Manager, manager), ["ens3"])
    assert manager.reapplied == [("/ens3", {
        "connection": {"id": ("s", "homeport-bootstrap")},
        "ipv4": {"method": ("s", "auto"), "link-local": ("i", 3)}}, 7, preserve)]
