"""The boot on which nothing has changed: decided in milliseconds, without the rest of the program.

Knows the stamp that a successful run leaves behind, and compares it with this boot. Refuses to know why
anything differs: whatever is unexpected (a setting touched, a keyfile edited, an address missing, this
very file upgraded) is a `False`, and the long way finds out. It imports nothing that costs time: json,
re, subprocess and dataclasses are each dearer than all that is done here.

The stamp is text, a fact a line, fields separated by tabs; a blank line ends it, and the status file
of an unchanged boot follows as it will be published, but for the times:

    homeport-stamp 1
    arguments <the kernel arguments that are ours, joined by spaces>
    as-was    <path> <mtime in ns, or -> <size>       settings, override, markers, program: - is absent
    credential <CRC-32, or - for none>                homeport.assignment, as systemd passes it
    fw-cfg    <CRC-32, or - for none>                 the same from QEMU
    keyfile   <path> <CRC-32 of its bytes>            and it must be a regular file, 0600
    up        <interface> <UUID of the profile that must be active on it>
    address   <interface> <address>
    running   <host name>                             that of the kernel, if the document wants one
    host-name <host name, or empty>                   the configured one, /etc/hostname, likewise
"""

from __future__ import annotations

import os
import time

STAMP = "var/lib/homeport/fastpath"
HEADER = "homeport-stamp 1"
ABSENT = "-\t0"
# NetworkManager started a moment before us; it takes this long to bring a static profile up, with the
# duplicate address detection it insists on. DHCP may take longer: then the long way watches it.
PATIENCE = 5.0
STARTED = "@STARTED@"
FINISHED = "@FINISHED@"
MESSAGE = "homeport: assigned configuration in force: unchanged"
FIRMWARE_FILE = "sys/firmware/qemu_fw_cfg/by_name/opt/io.homeport/assignment/raw"  # sources/fwcfg.py, PATH
# Ours and Elemental's: a different mode must never find the fast path open.
ARGUMENTS = ("homeport.", "elemental.", "rd.cos.", "CDLABEL")


def still_in_force(root: str = "/") -> bool:
    """Whether the persisted assignment is in force; if so, the status file says it and the boot is done.

    Waits at most `PATIENCE` seconds, and only for NetworkManager to finish what it has begun.
    """
    started = time.time()
    try:
        with open(os.path.join(root, STAMP), encoding="utf-8") as file:
            stamp, _, status = file.read().partition("\n\n")
        header, *lines = stamp.split("\n")
        facts = [line.split("\t") for line in lines]
        if header != HEADER or not status or not all(_holds(root, fact) for fact in facts):
            return False
        if not _wait_until_up(root, facts):
            return False
        _publish(root, status.replace(STARTED, repr(started)).replace(FINISHED, repr(time.time())))
    except (OSError, ValueError, IndexError, KeyError):
        return False
    _tell()
    return True


def our_arguments(root: str) -> str:
    """The kernel arguments that can change what homeport does, as one string.

    In a container they are the arguments of PID 1, as for systemd's own proc_cmdline().
    """
    if os.path.exists(os.path.join(root, "run/systemd/container")):
        with open(os.path.join(root, "proc/1/cmdline"), "rb") as file:
            words = file.read().decode(errors="replace").split("\0")[1:]
    else:
        with open(os.path.join(root, "proc/cmdline"), "rb") as file:
            words = file.read().decode(errors="replace").split()
    return " ".join(word for word in words if word.startswith(ARGUMENTS))


def as_was(root: str, path: str) -> str:
    """What makes a file's or folder's contents recognisable without reading them; `-` if it is absent."""
    try:
        info = os.stat(os.path.join(root, path))
    except OSError:
        return ABSENT
    return f"{info.st_mtime_ns}\t{info.st_size}"


def credential() -> str:
    """What tells one assignment passed as a credential from another; `-` if there is none."""
    try:
        with open(os.path.join(os.environ.get("CREDENTIALS_DIRECTORY", ""), "homeport.assignment"), "rb") as file:
            return checksum(file.read())
    except OSError:
        return "-"


def firmware_file(root: str) -> str:
    """The same for an assignment that QEMU passes; its file has no time that would tell."""
    try:
        with open(os.path.join(root, FIRMWARE_FILE), "rb") as file:
            return checksum(file.read())
    except OSError:
        return "-"


def checksum(data: bytes) -> str:
    """CRC-32: against damage and edits, not against root, who may do as root pleases."""
    import zlib
    return str(zlib.crc32(data))


def host_name(root: str) -> str:
    """The configured host name, "" if there is none: the first line that is no comment (hostname(5))."""
    lines = (line.strip() for line in _read(root, "etc/hostname").splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def _holds(root: str, fact: list[str]) -> bool:
    if fact[0] == "as-was":
        return as_was(root, fact[1]) == "\t".join(fact[2:])
    if fact[0] == "arguments":
        return our_arguments(root) == fact[1]
    if fact[0] == "credential":
        return credential() == fact[1]
    if fact[0] == "fw-cfg":
        return firmware_file(root) == fact[1]
    if fact[0] == "running":
        return os.uname().nodename == fact[1]
    if fact[0] == "host-name":
        return host_name(root) == fact[1]
    if fact[0] == "keyfile":
        path = os.path.join(root, fact[1])
        if os.lstat(path).st_mode & 0o177777 != 0o100600:
            return False
        with open(path, "rb") as file:
            return checksum(file.read()) == fact[2]
    return fact[0] in ("up", "address")


def _wait_until_up(root: str, facts: list[list[str]]) -> bool:
    end = time.monotonic() + PATIENCE
    while True:
        waiting = [fact for fact in facts if fact[0] in ("up", "address") and not _is_up(root, fact)]
        if not waiting:
            return True
        if time.monotonic() > end or any(not _may_come_up(root, fact[1]) for fact in waiting):
            return False
        time.sleep(0.01)


def _is_up(root: str, fact: list[str]) -> bool:
    if fact[0] == "up":
        index = _read(root, f"sys/class/net/{fact[1]}/ifindex").strip()
        return f"\nconnection-uuid={fact[2]}\n" in _read(root, f"run/NetworkManager/devices/{index}")
    return _has_address(root, fact[1], fact[2])


def _may_come_up(root: str, interface: str) -> bool:
    try:
        entries = os.listdir(os.path.join(root, "sys/class/net", interface))
    except OSError:
        return True
    # A bridge or a bond has a carrier when it has its ports, and what lies above another interface when that one has.
    if any(entry in ("bridge", "bonding") or entry.startswith("lower_") for entry in entries):
        return True
    # An interface that is down has no readable carrier (EINVAL); NetworkManager may not have come to it yet.
    return _read(root, f"sys/class/net/{interface}/carrier").strip() != "0"


def _has_address(root: str, interface: str, address: str) -> bool:
    """Whether the kernel holds `address`, past duplicate address detection."""
    if ":" in address:
        # net/ipv6/addrconf.c, if6_seq_show: address, index, prefix, scope, flags, name; all in hex but the name.
        for line in _read(root, "proc/net/if_inet6").splitlines():
            digits, _, _, _, flags, name = line.split()
            if name == interface and digits == address.replace(":", ""):
                return not int(flags, 16) & (_TENTATIVE | _DADFAILED)
        return False
    # net/ipv4/fib_trie.c, fib_trie_seq_show: a leaf "|-- 192.0.2.1", then its entries, indented by depth.
    _, _, entries = _read(root, "proc/net/fib_trie").partition(f"|-- {address}\n")
    return "/32 host LOCAL" in entries.partition("--")[0]


# include/uapi/linux/if_addr.h
_TENTATIVE = 0x40
_DADFAILED = 0x08


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _publish(root: str, status: str) -> None:
    folder = os.path.join(root, "run/homeport")
    os.makedirs(folder, 0o755, exist_ok=True)
    with open(os.path.join(folder, ".status.json"), "w", encoding="utf-8") as file:
        file.write(status)
    os.replace(os.path.join(folder, ".status.json"), os.path.join(folder, "status.json"))
    open(os.path.join(folder, "in-force"), "w").close()  # host/store.py, IN_FORCE


def _tell() -> None:
    """The result line, as `host/journal.py` writes it; a journal that is away is no reason to fail."""
    from homeport.host.entry import NOTICE, send_result
    print(MESSAGE, flush=True)
    send_result(MESSAGE, priority=NOTICE, fields={
        "HOMEPORT_RUNG": "assigned", "HOMEPORT_REASON": "unchanged since the last boot", "HOMEPORT_EXIT": "0"})
