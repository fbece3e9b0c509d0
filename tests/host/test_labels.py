"""All drives with one label, by udev's database, in the same order at every boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.host import labels

USB = "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host6/target6:0:0/6:0:0:0/block"
SATA = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block"
NVME = "pci0000:00/0000:01:00.0/nvme/nvme0"


def plug(root: Path, number: str, place: str, *links: str, label: str = "HOMEPORT", removable: str = "0") -> None:
    """A block device as the kernel and udev show it."""
    folder = root / "sys/devices" / place
    folder.mkdir(parents=True)
    (root / "sys/dev/block").mkdir(parents=True, exist_ok=True)
    (root / "sys/dev/block" / number).symlink_to(folder)
    (folder / "removable").write_text(f"{removable}\n")
    database = root / "run/udev/data" / f"b{number}"
    database.parent.mkdir(parents=True, exist_ok=True)
    database.write_text("".join(f"{line}\n" for line in (
        "S:disk/by-uuid/1234", *(f"S:disk/by-path/{link}" for link in links), f"S:disk/by-label/{label}", "I:1234",
        "E:ID_FS_TYPE=vfat", f"E:ID_FS_LABEL={label}", "G:systemd", "V:1")))


@pytest.mark.parametrize("names", [("sda", "sdb"), ("sdb", "sda")])
def test_what_is_plugged_in_goes_first(tmp_path: Path, names: tuple[str, str]) -> None:
    """Whatever the kernel has called them."""
    plug(tmp_path, "8:1", f"{SATA}/{names[0]}", "pci-0000:00:17.0-ata-1")
    plug(tmp_path, "8:17", f"{USB}/{names[1]}", "pci-0000:00:14.0-usb-0:2:1.0-scsi-0:0:0:0")
    assert labels.drives(tmp_path, "HOMEPORT") == [f"dev/{names[1]}", f"dev/{names[0]}"]


@pytest.mark.parametrize("names", [("sda", "sdb"), ("sdb", "sda")])
def test_by_the_way_there(tmp_path: Path, names: tuple[str, str]) -> None:
    plug(tmp_path, "8:0", f"{SATA}/{names[0]}", "pci-0000:00:17.0-ata-1")
    plug(tmp_path, "8:16", f"{SATA.replace('ata1', 'ata2')}/{names[1]}", "pci-0000:00:17.0-ata-2")
    assert labels.drives(tmp_path, "HOMEPORT") == [f"dev/{names[0]}", f"dev/{names[1]}"]


def test_a_disc_and_one_without_a_path(tmp_path: Path) -> None:
    plug(tmp_path, "259:0", f"{NVME}/nvme0n1")
    plug(tmp_path, "11:0", f"{SATA}/sr0", removable="1")
    plug(tmp_path, "104:0", "pci0000:00/cciss!c0d0")
    plug(tmp_path, "8:0", f"{USB}/sda", label="homeport")
    plug(tmp_path, "8:16", f"{USB}/sdb", label="HOMEPORT2")
    assert labels.drives(tmp_path, "HOMEPORT") == ["dev/sr0", "dev/cciss/c0d0", "dev/nvme0n1"]


def test_a_drive_is_one_with_its_partitions(tmp_path: Path) -> None:
    """As an image for discs on a stick has them; two partitions are two."""
    plug(tmp_path, "8:0", f"{USB}/sda")
    plug(tmp_path, "8:1", f"{USB}/sda/sda1")
    assert labels.drives(tmp_path, "HOMEPORT") == ["dev/sda"]
    plug(tmp_path, "8:17", f"{USB}/sdb/sdb1", "b-part1")
    plug(tmp_path, "8:18", f"{USB}/sdb/sdb2", "b-part2")
    assert labels.drives(tmp_path, "HOMEPORT") == ["dev/sdb1", "dev/sdb2", "dev/sda"]


def test_what_is_gone_and_what_is_damaged(tmp_path: Path) -> None:
    assert labels.drives(tmp_path, "HOMEPORT") == []
    plug(tmp_path, "8:0", f"{USB}/sda")
    (tmp_path / "sys/dev/block/8:0").unlink()
    (tmp_path / "run/udev/data/b8:16").write_bytes(b"\xff\0\n" * 9)
    (tmp_path / "run/udev/data/b8:32").mkdir()
    (tmp_path / "run/udev/data/n2").write_text("S:disk/by-label/HOMEPORT\n")
    assert labels.drives(tmp_path, "HOMEPORT") == []
