"""What homeport has to do in the initramfs, decided from the kernel command line and the settings alone.

Knows the arguments of dracut and of NetworkManager's generator (dracut.cmdline(7), nm-initrd-generator(8)): which ask
for a network there, which are a network of the user's own, and what the root file system is.  Refuses to look at
the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeport.core.cmdline import parse
from homeport.core.facts import Mode
from homeport.core.mac import normalise_mac

Arguments = Sequence[tuple[str, str | None]]

# Whoever gives one of these has said what the network of the initramfs is.
USERS_OWN = ("ip", "bond", "team", "bridge", "vlan", "rd.route", "nameserver", "ifname", "rd.znet", "rd.zdev", "fcoe")
# NVMe over Fabrics: where its servers are. Over Fibre Channel it is no network of ours.
NVME = ("rd.nvmf.discover", "rd.nvmf.connect")
# The network stands in the firmware's table.
FIRMWARE = ("rd.iscsi.firmware", "rd.iscsi.ibft")
NO = ("0", "no", "off", "false", "n")
# root= and netroot= of these kinds: the file system is read over the network for as long as the machine runs.
STANDING = ("nfs", "nfs4", "iscsi", "nbd", "fcoe", "cifs", "nvmf")
# These only begin on the network, or the server is not known before.
PASSING = ("dhcp", "live:http", "live:https", "live:ftp", "live:tftp", "http", "https", "ftp", "tftp")
# The kinds of a root= that is a device here.
BY_LINK = {"LABEL": "label", "UUID": "uuid", "PARTLABEL": "partlabel", "PARTUUID": "partuuid", "ID": "id"}


@dataclass(frozen=True)
class Decision:
    """What the initramfs is to do: nothing; look for a document that is here; or bring the network up as well."""

    look: bool
    network: bool
    reason: str


@dataclass(frozen=True)
class RootDevice:
    """A root file system on a device: where udev shows it, and how it is to be mounted."""

    path: str
    fstype: str = ""
    options: str = ""


def decide(setting: str, mode: Mode, cmdline: str, firmware: str = "") -> Decision:
    """`setting` is homeport.initrd=, `firmware` a table of the firmware's with a network in it, "" if there is none.
    The reason is for people: it says which argument or setting decided.
    """
    arguments = parse(cmdline)
    if setting == "off":
        return Decision(False, False, "homeport.initrd=off")
    if users := users_own(arguments):
        return Decision(False, False, f"the network here is that of the kernel argument {users}")
    if firmware:
        return Decision(False, False, f"the network here is that of the firmware's table {firmware}")
    wanted = "homeport.initrd=always" if setting == "always" else needs_network(arguments)
    if wanted:
        return Decision(mode in (Mode.ACTIVE, Mode.PASSIVE), True, wanted)
    if mode not in (Mode.ACTIVE, Mode.PASSIVE):
        return Decision(False, False, f"{mode} mode")
    return Decision(True, False, "nothing here needs the network")


def users_own(arguments: Arguments) -> str:
    """The argument by which somebody configures the network of the initramfs, as written; "" if there is none."""
    for name, value in arguments:
        if value and (name in USERS_OWN or (name in NVME and not value.startswith("fc,"))):
            return f"{name}={value}"
        if name in FIRMWARE and switch(arguments, name):
            return name
    return ""


def switch(arguments: Arguments, wanted: str) -> bool | None:
    """What an argument that is a yes or a no says. None if it is not given.

    The last one counts, for dracut (getargbool) as for NetworkManager's generator: the words of an image come first.
    """
    return next((_is_yes(value) for name, value in reversed(arguments) if name == wanted), None)


def needs_network(arguments: Arguments) -> str:
    """The argument that asks for a network in the initramfs, as written; "" if there is none."""
    for name, value in arguments:
        text = value or ""
        if name == "rd.neednet" and _is_yes(value) and switch(arguments, name):
            return name + (f"={text}" if text else "")
        if name in ("netroot", "nfsroot") and text:
            return _shown(name, text)
        if name == "root" and (_is_kind(text, STANDING) or _is_kind(text, PASSING) or text == "/dev/nfs"):
            return _shown(name, text)
    return ""


def standing_on_network(arguments: Arguments) -> str:
    """The argument by which the root file system is on the network for good, as written but for a password; "" if none
    says so.
    """
    for name, value in arguments:
        text = value or ""
        kind = text.removeprefix("live:")
        if name in ("root", "netroot") and (_is_kind(kind, STANDING) or text == "/dev/nfs"):
            return _shown(name, text)
        if text and (name == "nfsroot" or (name in NVME and not text.startswith("fc,"))):
            return f"{name}={text}"
        if name in FIRMWARE and switch(arguments, name):
            return name
    return ""


def servers(argument: str) -> tuple[str, ...]:
    """The addresses that a `standing_on_network` argument names; empty if it names none, or by name only.

    `nfs:192.0.2.1:/root`, `iscsi:@192.0.2.1::::iqn…`, `iscsi:192.0.2.1::…`, `nbd:[2001:db8::1]:root`;
    `tcp,192.0.2.1,,4420` of NVMe's.
    """
    import ipaddress
    found = []
    name, _, rest = argument.partition("=")
    for word in [part.strip("[]") for part in rest.split(",")[1:2]] if name in NVME else _host_words(rest):
        try:
            found.append(str(ipaddress.ip_address(word)))
        except ValueError:
            continue
    return tuple(dict.fromkeys(found))


def boot_mac(arguments: Arguments) -> str:
    """The card that the firmware booted from (BOOTIF=01-aa-…), "" if it is not said or not to be heeded."""
    if switch(arguments, "rd.bootif") is False:
        return ""
    value = next((value for name, value in reversed(arguments) if name == "BOOTIF" and value), "")
    parts = value.replace("-", ":").split(":")
    try:
        return normalise_mac(":".join(parts[-6:])) if len(parts) in (6, 7) else ""
    except ValueError:
        return ""


def root_device(arguments: Arguments) -> RootDevice | None:
    """The device of the root file system; None if it is not on one, or on one that has to be unlocked, made, or reached
    over the network first (`why_no_device`).
    """
    path = "" if why_no_device(arguments) else _device_path(arguments)
    if not path:
        return None
    fstype = _last(arguments, "rootfstype")
    # Any of several is found out by trying, as the kernel does.
    return RootDevice(path, "" if fstype == "auto" or "," in fstype else fstype, _last(arguments, "rootflags"))


def why_no_device(arguments: Arguments) -> str:
    """Why the kernel line names no device that could be looked at before the root file system is; "" if it does."""
    root = _last(arguments, "root")
    for name, value in arguments:
        if name.startswith(("rd.luks", "luks.")) and _is_yes(value):
            return f"encrypted and not open yet: {name}"
    if said := standing_on_network(arguments):
        return f"on the network: {said}"
    if not root:
        return "no root= on the kernel line"
    if root.removeprefix("block:").startswith("/dev/mapper/"):
        return f"encrypted, or made of parts, and not there yet: root={root}"
    return "" if _device_path(arguments) else f"not on a device that is here now: root={root}"


def _device_path(arguments: Arguments) -> str:
    root = _last(arguments, "root").removeprefix("block:")
    kind, equals, value = root.partition("=")
    if equals and kind.upper() in BY_LINK and value:
        return f"/dev/disk/by-{BY_LINK[kind.upper()]}/{value.strip(chr(34))}"
    if root.startswith("/dev/") and not root.startswith(("/dev/mapper/", "/dev/nfs", "/dev/ram", "/dev/nbd")):
        return root
    return ""


def _last(arguments: Arguments, wanted: str) -> str:
    return next((value for name, value in reversed(arguments) if name == wanted and value), "")


def _is_yes(value: str | None) -> bool:
    """An argument without a value is one, as dracut's getargbool has it."""
    return (value or "1").lower() not in NO


def _shown(name: str, text: str) -> str:
    """The argument as written, but for a name and a password before an @: `iscsi:user:password@192.0.2.1::…`."""
    kind, colon, rest = text.partition(":")
    secret, at, where = rest.rpartition("@")
    if kind.removeprefix("live:") in ("iscsi", "cifs") and secret.strip("/"):
        text = f"{kind}{colon}{'//' if rest.startswith('//') else ''}***{at}{where}"
    return f"{name}={text}"


def _is_kind(text: str, kinds: Sequence[str]) -> bool:
    return any(text == kind or text.startswith(f"{kind}:") for kind in kinds)


def _host_words(text: str) -> Iterator[str]:
    """What may be a host in `kind:…`: what stands in brackets, and what stands between colons, after an @ too."""
    rest = text
    while "[" in rest:
        inside, closed, rest = rest.partition("[")[2].partition("]")
        if closed:
            yield inside
    for word in text.replace("//", ":").split(":"):
        yield word.rpartition("@")[2].partition("/")[0].partition(",")[0]
