"""USB drives that are on their way, in a sysfs as the kernel fills it step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.host.usb import drives_on_their_way

PORT = "sys/devices/pci0000:00/0000:00:05.0/usb1/1-1/1-1:1.0"
UNIT = f"{PORT}/host2/target2:0:0/2:0:0:0"
CARD_READER = f"{PORT}/host2/target2:0:0/2:0:0:1"


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def bind(root: Path, driver: str) -> None:
    """As the kernel does before it asks the driver: the files of every driver's folder, and a link to the interface."""
    folder = root / "sys/bus/usb/drivers" / driver
    for name in ("bind", "unbind", "new_id", "remove_id", "uevent"):
        put(root, f"sys/bus/usb/drivers/{driver}/{name}")
    (root / PORT).mkdir(parents=True)
    (folder / "1-1:1.0").symlink_to(f"../../../../devices/{PORT.partition('devices/')[2]}")


def disk(root: Path, unit: str = UNIT, size: str = "8192", number: int = 0) -> None:
    put(root, f"{unit}/block/sd{'ab'[number]}/size", f"{size}\n")
    put(root, f"{unit}/block/sd{'ab'[number]}/dev", f"8:{16 * number}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "run/udev/control")
    (tmp_path / "run/udev/data").mkdir()
    return tmp_path


@pytest.mark.parametrize("driver", ["usb-storage", "uas", "ums-realtek"])
def test_a_stick_step_by_step(root: Path, driver: str) -> None:
    bind(root, driver)
    assert drives_on_their_way(root)  # the driver has only been told of it
    (root / PORT / "host2/scsi_host/host2").mkdir(parents=True)
    assert drives_on_their_way(root)  # a second without a word: delay_use
    put(root, f"{UNIT}/type", "0\n")
    assert drives_on_their_way(root)  # it has answered, and sd has not looked
    (root / UNIT / "block").mkdir()
    assert drives_on_their_way(root)
    disk(root)
    put(root, f"{UNIT}/block/sda/sda1/dev", "8:1\n")
    assert drives_on_their_way(root)  # udev has not named it
    put(root, "run/udev/data/b8:0")
    assert drives_on_their_way(root)  # nor its partition, whose label may be ours
    put(root, "run/udev/data/b8:1")
    assert not drives_on_their_way(root)


def test_a_card_reader_without_a_card(root: Path) -> None:
    bind(root, "usb-storage")
    put(root, f"{UNIT}/type", "0\n")
    disk(root, size="0")
    assert not drives_on_their_way(root)


def test_an_enclosure_is_no_drive(root: Path) -> None:
    bind(root, "uas")
    put(root, f"{UNIT}/type", "13\n")
    assert not drives_on_their_way(root)


def test_the_second_of_two_units(root: Path) -> None:
    bind(root, "usb-storage")
    put(root, f"{UNIT}/type", "5\n")
    disk(root)
    put(root, "run/udev/data/b8:0")
    put(root, f"{CARD_READER}/type", "0\n")
    assert drives_on_their_way(root)
    disk(root, CARD_READER, number=1)
    put(root, "run/udev/data/b8:16")
    assert not drives_on_their_way(root)


@pytest.mark.parametrize(("device_class", "there", "on_their_way"), [
    ("09", "350", True), ("09", "999", True), ("09", "1000", False), ("09", "86400000", False),
    ("09", "", False),  # a kernel without power management does not tell
    ("00", "350", False),  # a keyboard has nothing to find
])
def test_a_hub_that_was_just_found(root: Path, device_class: str, there: str, on_their_way: bool) -> None:
    """It says what is plugged into it a moment later, and until then there is nothing to be seen of that."""
    hub = "sys/devices/pci0000:00/0000:00:05.0/usb1"
    put(root, f"{hub}/bDeviceClass", f"{device_class}\n")
    put(root, f"{hub}/power/connected_duration", f"{there}\n")
    link = root / "sys/bus/usb/devices/usb1"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../../devices/pci0000:00/0000:00:05.0/usb1")
    assert drives_on_their_way(root) == on_their_way


def test_other_drivers(root: Path) -> None:
    bind(root, "usbhid")
    assert not drives_on_their_way(root)


def test_nothing_at_all(tmp_path: Path) -> None:
    assert not drives_on_their_way(tmp_path)


def test_a_container_sees_the_hosts_usb_and_has_no_udev(tmp_path: Path) -> None:
    bind(tmp_path, "usb-storage")
    assert not drives_on_their_way(tmp_path)
