"""What the machine says of itself, as values. Who reads them is `host/`; what they mean is `identity.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Mode(StrEnum):
    """How this machine was booted; only active and passive put an assignment in force."""

    ACTIVE = "active"
    PASSIVE = "passive"
    RECOVERY = "recovery"
    RESET = "reset"
    LIVE = "live"


class Stage(StrEnum):
    INITRD = "initrd"
    HOST = "host"


@dataclass(frozen=True)
class Nic:
    """One network interface as the kernel shows it.

    MACs are lower case with colons, "" if there is none.  `permanent_mac` is the burnt-in one (ethtool
    ETHTOOL_GPERMADDR / netlink IFLA_PERM_ADDRESS), which a bond does not change.  `addr_assign_type` is
    the kernel's NET_ADDR_* (include/uapi/linux/netdevice.h): 0 permanent, 1 random, 2 stolen, 3 set.
    `pci` is the PCI address ("0000:00:03.0"), `driver` the bound kernel driver, `kind` the uevent DEVTYPE
    or rtnetlink kind ("ethernet", "bond", "bridge", "vlan", "veth", ...), `carrier` None if unknown
    (the link is down).  `virtual` is true for what lives under /sys/devices/virtual/net.
    """

    name: str
    index: int = 0
    mac: str = ""
    permanent_mac: str = ""
    addr_assign_type: int | None = None
    pci: str = ""
    driver: str = ""
    kind: str = "ethernet"
    carrier: bool | None = None
    virtual: bool = False
    usb: bool = False


@dataclass(frozen=True)
class Smbios:
    """SMBIOS strings as they stand in the table (junk included), "" where absent.

    `uuid` is lower case with dashes, in the byte order of the table's version (DSP0134, 7.2.1).
    `provenance` says where they were read: "/sys/firmware/dmi/tables/DMI" or "/sys/class/dmi/id".
    """

    uuid: str = ""
    serial: str = ""
    manufacturer: str = ""
    product: str = ""
    version: str = ""
    sku: str = ""
    family: str = ""
    board_serial: str = ""
    board_manufacturer: str = ""
    board_product: str = ""
    chassis_serial: str = ""
    chassis_asset_tag: str = ""
    provenance: str = ""


@dataclass(frozen=True)
class Facts:
    """Everything that was read of this machine before anything was decided."""

    smbios: Smbios = Smbios()
    nics: tuple[Nic, ...] = ()
    cmdline: str = ""
    mode: Mode = Mode.ACTIVE
    mode_reason: str = ""
    stage: Stage = Stage.HOST
    hostname: str = ""
    machine_id: str = ""
    identity_override: str = ""
    notes: tuple[str, ...] = field(default=())
