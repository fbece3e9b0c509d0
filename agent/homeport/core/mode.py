"""How this machine was booted, from what Elemental leaves behind and what the person at the console says.

Knows Elemental's marker files and kernel arguments (elemental-toolkit: dracut 20elemental-sysroot, yip
stage rootfs.before).  Refuses to look at the disk: it is told which markers exist.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from homeport.core.cmdline import parse
from homeport.core.facts import Mode

FOLDERS = ("/run/elemental", "/run/cos")
# With several markers the one counts that puts least in force: a wrong DHCP can be mended remotely.
MARKED = (Mode.RECOVERY, Mode.LIVE, Mode.PASSIVE, Mode.ACTIVE)
RESET_PLAN = "/oem/reset-cloud-config.yaml"
LIVE_ARGUMENTS = ("elemental.disable", "rd.cos.disable")
# Every file that `find_mode` may ask for.
MARKERS = (*(f"{folder}/{mode}_mode" for folder in FOLDERS for mode in MARKED), RESET_PLAN)


def find_mode(setting: str | None, cmdline: str, markers: Container[str]) -> tuple[Mode, str]:
    """The mode, and why in words.

    The setting wins (None, "" and "auto" say nothing), then the marker files, which exist from the start
    of the initrd on, then the kernel arguments; without any of them the machine is active.
    """
    if setting and setting != "auto" and setting in list(Mode):
        return Mode(setting), f"the setting homeport.mode={setting}"
    for mode, reason in (*_by_markers(markers), *_by_arguments(cmdline)):
        if mode is Mode.RECOVERY and RESET_PLAN in markers:
            return Mode.RESET, f"{reason} and {RESET_PLAN} exists"
        return mode, reason
    return Mode.ACTIVE, "nothing says otherwise"


def _by_markers(markers: Container[str]) -> Iterator[tuple[Mode, str]]:
    for folder in FOLDERS:
        for mode in MARKED:
            if f"{folder}/{mode}_mode" in markers:
                yield mode, f"{folder}/{mode}_mode exists"


def _by_arguments(cmdline: str) -> Iterator[tuple[Mode, str]]:
    arguments = parse(cmdline)
    for name, value in arguments:
        if name == "elemental.mode" and value in MARKED:
            yield Mode(value), f"kernel argument elemental.mode={value}"
    for name, value in arguments:
        if name in LIVE_ARGUMENTS or "CDLABEL" in name or "CDLABEL" in (value or ""):
            yield Mode.LIVE, f"kernel argument {name}{'' if value is None else f'={value}'}"
