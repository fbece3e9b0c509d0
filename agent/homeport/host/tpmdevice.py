"""Whether this machine has a TPM that the kernel lets us use, known at the price of a look.

Apart from `tpm.py`, which knows how to speak to it: most machines that boot have none, and need none of that.
"""

from __future__ import annotations

import os

Where = str | os.PathLike[str]

# The kernel's resource manager: other programs use the TPM at the same time.
DEVICE = "dev/tpmrm0"
SYSFS = "sys/class/tpm"


def why_absent(root: Where = "/") -> str:
    """Why the machine below `root` has no TPM for us; "" if it has one."""
    if os.path.exists(os.path.join(root, DEVICE)):
        return ""
    try:
        names = sorted(os.listdir(os.path.join(root, SYSFS)))
    except OSError:
        names = []
    chips = [name for name in names if name.startswith("tpm") and not name.startswith("tpmrm")]
    for chip in chips:
        folder = os.path.join(root, SYSFS, chip)
        # tpm_version_major is since Linux 5.10; before, `caps` was a TPM 1.2's alone.
        if _first_line(os.path.join(folder, "tpm_version_major")) == "1" or os.path.exists(
                os.path.join(folder, "device/caps")):
            return "This machine's TPM is a TPM 1.2, and a TPM 2.0 is needed"
    if chips:
        return f"This machine has a TPM, but the kernel has made no /{DEVICE} for it"
    return "This machine has no TPM that the kernel knows"


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline(64).strip()
    except OSError:
        return ""
