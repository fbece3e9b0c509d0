"""What is plugged into a machine besides its disk, its NICs and its TPM, in QEMU's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firmware import Firmware

from . import qemu


@dataclass(frozen=True)
class Hardware:
    """Files as drives and as USB sticks, by serial number; SMBIOS type 11 strings; fw_cfg files as name -> text; the
    clock.
    """

    drives: Mapping[str, Path] = field(default_factory=dict)
    sticks: Mapping[str, Path] = field(default_factory=dict)  # of image "metal": the cloud kernel knows no USB
    strings: Sequence[str] = ()
    fw_cfg: Mapping[str, str] = field(default_factory=dict)
    clock: str = "utc"  # or a date: what the battery-backed clock says at power-on
    smbios: str = ""  # QEMU's own words for a type 1 table, in place of the firmware's

    def words(self, firmware: Firmware, folder: Path) -> list[str]:
        words = ["-smbios", self.smbios or _system(firmware)]
        if firmware.chassis_asset_tag:
            words += ["-smbios", f"type=3,asset={qemu.escaped(firmware.chassis_asset_tag)}"]
        for text in self.strings:
            words += ["-smbios", f"type=11,value={qemu.escaped(text)}"]
        for number, (name, text) in enumerate(self.fw_cfg.items()):
            file = folder / f"fw_cfg-{number}"
            file.write_text(text)
            words += ["-fw_cfg", f"name={name},file={file}"]
        for name, image in self.drives.items():
            words += qemu.drive(name, image)
        return words + qemu.sticks(self.sticks)


def _system(firmware: Firmware) -> str:
    uuid = f",uuid={firmware.uuid}" if firmware.uuid else ""
    return (f"type=1,manufacturer={qemu.escaped(firmware.manufacturer)},product={qemu.escaped(firmware.product)},"
            f"serial={qemu.escaped(firmware.serial)}{uuid}")
