"""Drives by label, as udev shows them below a root."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.core.platforms.networkdata import DRIVE, NAME
from homeport.core.platforms.nocloud import DRIVE as CIDATA
from homeport.core.platforms.shape import NotThere
from homeport.errors import DocumentError, SourceError
from homeport.sources.platforms.drive import Session, labels

IMAGES = Path(__file__).parents[2] / "data" / "drives"


def plug_in(root: Path, image: str, label: str, damage: bool = False) -> None:
    """As udev does it: the label is a relative link to the device."""
    data = lzma.decompress((IMAGES / f"{image}.xz").read_bytes())
    (root / "dev/disk/by-label").mkdir(parents=True, exist_ok=True)
    (root / "dev/sr0").write_bytes(data[:40 * 2048 - 1] if damage else data)
    (root / "dev/disk/by-label" / label).symlink_to("../../sr0")


@pytest.mark.parametrize(("image", "label"), [
    ("proxmox-rock-ridge.iso", "cidata"), ("cloud-localds-joliet-rock.iso", "CIDATA"), ("fat12.img", "cidata")])
def test_nocloud(tmp_path: Path, image: str, label: str) -> None:
    plug_in(tmp_path, image, label)
    session = Session(CIDATA, tmp_path)
    assert (session.read()["network-config"] or b"").startswith(b"version: 1\n")
    assert session.place == f"/dev/disk/by-label/{label}"
    assert labels(tmp_path) == {label}


@pytest.mark.parametrize("image", ["kubevirt.iso", "fat32.img"])
def test_config_drive(tmp_path: Path, image: str) -> None:
    plug_in(tmp_path, image, "config-2")
    assert NAME in Session(DRIVE, tmp_path).read()


def test_a_file_system_of_another_kind_is_another_platforms(tmp_path: Path) -> None:
    """IBM Cloud classic is vfat; an ISO with that label is OpenStack's."""
    plug_in(tmp_path, "kubevirt.iso", "config-2")
    with pytest.raises(NotThere, match="config-2 as vfat"):
        Session(replace(DRIVE, kinds=("vfat",)), tmp_path).read()


def test_no_drive(tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="drive labelled cidata or CIDATA"):
        Session(CIDATA, tmp_path).read()
    assert labels(tmp_path) == frozenset()


def test_a_drive_of_that_label_without_the_files(tmp_path: Path) -> None:
    plug_in(tmp_path, "kubevirt.iso", "cidata")
    with pytest.raises(NotThere):
        Session(CIDATA, tmp_path).read()


def test_a_damaged_drive_is_no_absent_one(tmp_path: Path) -> None:
    plug_in(tmp_path, "kubevirt.iso", "config-2", damage=True)
    with pytest.raises(DocumentError, match="the drive /dev/disk/by-label/config-2"):
        Session(DRIVE, tmp_path).read()


def test_a_link_that_leads_to_something_else(tmp_path: Path) -> None:
    (tmp_path / "dev/disk/by-label/cidata").mkdir(parents=True)
    with pytest.raises(SourceError, match="Is a directory"):
        Session(CIDATA, tmp_path).read()
