"""Which platform a machine is on: what a person says, what firmware and drives say; nobody is asked.

A link-local address is asked only on a machine that is known to be where it answers: on any other network
whoever has that address could hand out configurations.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from homeport.core import cmdline as kernel
from homeport.core.facts import Smbios
from homeport.core.platformnames import NAMES
from homeport.core.platforms import PLATFORMS, Platform, find, nocloud, nocloudnet
from homeport.errors import SettingsError

AUTO = "auto"
IGNITION = "ignition.platform.id"
# A label of a drive, and whose it is if nothing else is known.
LABELS = {"cidata": "nocloud", "CIDATA": "nocloud", "config-2": "openstack", "CONFIG-2": "openstack"}
DATA_SOURCE = "ds"


@dataclass(frozen=True)
class Candidate:
    """A platform that this machine may be on; `surely`: somebody said so, so its metadata must be there."""

    platform: Platform
    reason: str
    surely: bool = False


def recognise(setting: str, cmdline: str, smbios: Smbios, labels: Container[str]) -> list[Candidate]:
    """In the order in which they are to be asked; whoever names one wants no other.

    What Ignition calls a platform and is none of ours ("metal", "qemu") says nothing.  Raises SettingsError
    for a `setting` that is none, and for a seed that asks for what the machine hasn't.
    """
    if setting != AUTO:
        named = find(setting)
        if named is None:
            raise SettingsError(f"there is no platform {setting!r}", f"known are {', '.join(NAMES)}")
        told = _told_nocloud(cmdline, smbios) if named is nocloud.PLATFORM else []
        return [replace(each, surely=True) for each in told[:1]] or [
            Candidate(named, "the setting platform=", surely=True)]
    given = next((value for name, value in kernel.parse(cmdline) if name == IGNITION and value), "")
    if given and (named := find(given)):
        return [Candidate(named, f"the kernel argument {IGNITION}={given}", surely=True)]
    told = _told_nocloud(cmdline, smbios)
    if told and told[0].surely:
        return told[:1]
    found = told + [Candidate(platform, "SMBIOS") for platform in PLATFORMS if platform.is_here(smbios)]
    names = {LABELS[label]: None for label in LABELS if label in labels}
    known = [platform for name in names if (platform := find(name))]
    return found + [Candidate(platform, "the label of a drive") for platform in known
                    if all(platform.name != candidate.platform.name for candidate in found)]


def _told_nocloud(cmdline: str, smbios: Smbios) -> list[Candidate]:
    """NoCloud, where the kernel command line or the serial number has cloud-init's words for it."""
    texts = [f"{DATA_SOURCE}={value}" for name, value in kernel.parse(cmdline) if name == DATA_SOURCE and value]
    found = [Candidate(nocloudnet.platform(argument, smbios), "the kernel argument ds=nocloud", surely=True)
             for text in texts if (argument := nocloudnet.find_argument(text))]
    argument = nocloudnet.find_argument(smbios.serial)
    return found + ([Candidate(nocloudnet.platform(argument, smbios), "ds=nocloud in the SMBIOS serial number")]
                    if argument else [])
