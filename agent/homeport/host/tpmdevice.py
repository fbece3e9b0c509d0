"""Whether this machine has a TPM that the kernel lets us use, known at the price of a look, or of a short wait.

Apart from `tpm.py`, which knows how to speak to it: most machines that boot have none, and need none of that.
"""

from __future__ import annotations

import os
import time

from homeport.host.files import Where, attribute

# The kernel's resource manager: other programs use the TPM at the same time. There is one for each TPM 2.0, by its
# number (drivers/char/tpm/tpm-chip.c); number 0 also where nothing is known of TPMs but that node: in a container.
MANAGER = "dev/tpmrm"
DEVICE = f"{MANAGER}0"
SYSFS = "sys/class/tpm"
# The firmware's word that there is a TPM 2.0 (TCG ACPI Specification), driver or not.
FIRMWARE_TABLE = "sys/firmware/acpi/tables/TPM2"
UDEV_BUSY = "run/udev/queue"
WAIT = 5.0  # seconds for a driver that is still to be loaded
PAUSE = 0.05

_waited: set[str] = set()


def await_tpm(root: Where = "/", seconds: float = WAIT) -> str:
    """`why_absent`, once a TPM that may be still to come has had `seconds`: once for all who ask in this process.

    It may if the firmware or the kernel knows of one, or while udev loads drivers.
    """
    end = time.monotonic() + (0 if os.fspath(root) in _waited else seconds)
    while (absent := why_absent(root)) and _may_come(root) and time.monotonic() < end:
        _waited.add(os.fspath(root))
        time.sleep(PAUSE)
    return absent


def device(root: Where = "/") -> str:
    """The device of the first TPM 2.0 below `root`, whether or not it is there: a TPM 1.2 may have a lower number."""
    wanted = [f"{MANAGER}{number}" for number, chip in _chips(root) if not _is_old(chip)]
    there = (node for node in (*wanted, DEVICE) if os.path.exists(os.path.join(root, node)))
    return next(there, wanted[0] if wanted else DEVICE)


def _may_come(root: Where) -> bool:
    if _all_are_old(root):
        return False
    return bool(_chips(root)) or any(os.path.exists(os.path.join(root, sign)) for sign in (FIRMWARE_TABLE, UDEV_BUSY))


def why_absent(root: Where = "/") -> str:
    """Why the machine below `root` has no TPM for us; "" if it has one."""
    node = device(root)
    if os.path.exists(os.path.join(root, node)):
        return ""
    if _all_are_old(root):
        return "This machine's TPM is a TPM 1.2, and a TPM 2.0 is needed"
    if _chips(root):
        return f"This machine has a TPM, but the kernel has made no /{node} for it"
    if os.path.exists(os.path.join(root, FIRMWARE_TABLE)):
        return "This machine has a TPM, says its firmware, but the kernel has no driver for it"
    return "This machine has no TPM that the kernel knows"


def _chips(root: Where) -> list[tuple[int, str]]:
    """Number and folder of those that the kernel has a driver for, of whichever version, the lowest number first."""
    folder = os.path.join(root, SYSFS)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted((int(name.removeprefix("tpm")), os.path.join(folder, name)) for name in names
                  if name.startswith("tpm") and name.removeprefix("tpm").isdecimal())


def _all_are_old(root: Where) -> bool:
    chips = _chips(root)
    return bool(chips) and all(_is_old(chip) for _, chip in chips)


def _is_old(chip: str) -> bool:
    # tpm_version_major is since Linux 5.10; before, `caps` was a TPM 1.2's alone.
    return (attribute(os.path.join(chip, "tpm_version_major")) == "1"
            or os.path.exists(os.path.join(chip, "device/caps")))
