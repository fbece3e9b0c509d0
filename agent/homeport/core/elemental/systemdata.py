"""The system data message: CPU, memory, disks and NICs under the names that Elemental's label templates use.

Two trees in one (spec/elemental.md, 5.2): the present one, and below "System Data" the one of old templates.
All leaves are text. Bounded, whatever the machine has: a template needs one disk, not a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.core.facts import Nic, Smbios

MOST = 64  # of CPUs, disks and NICs each
LONGEST = 256  # characters of one text; 4096 for the capabilities of a CPU
LONGEST_LIST = 4096

Tree = dict[str, Any]


@dataclass(frozen=True)
class Cpu:
    """One socket."""

    number: int = 0
    vendor: str = ""
    model: str = ""
    cores: int = 0
    threads: int = 0
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Disk:
    """One whole block device, its `size` in bytes; `kind` and `controller` are ghw's words ("SSD", "NVMe")."""

    name: str
    size: int = 0
    kind: str = "Unknown"
    controller: str = "Unknown"
    removable: bool = False
    model: str = ""


@dataclass(frozen=True)
class Hardware:
    """What the kernel shows of this machine beside SMBIOS; memory in bytes.

    `addresses` are those of each NIC by its name, without prefix.
    """

    cpus: tuple[Cpu, ...] = ()
    physical_memory: int = 0
    usable_memory: int = 0
    disks: tuple[Disk, ...] = ()
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hostname: str = ""
    bios_vendor: str = ""
    bios_version: str = ""
    bios_date: str = ""
    board_version: str = ""
    board_asset_tag: str = ""
    chassis_vendor: str = ""
    chassis_version: str = ""
    chassis_type: str = ""


def system_data_message(hardware: Hardware, smbios: Smbios, nics: Sequence[Nic]) -> Tree:
    """What is told. `nics` may have the loopback in it; it is left out."""
    cards = [nic for nic in nics if nic.name != "lo"][:MOST]
    cpus, disks = hardware.cpus[:MOST], hardware.disks[:MOST]
    tree = {
        "Product": {
            "Family": smbios.family, "Name": smbios.product, "Vendor": smbios.manufacturer,
            "SerialNumber": smbios.serial, "UUID": smbios.uuid, "SKU": smbios.sku, "Version": smbios.version},
        "BIOS": {"Vendor": hardware.bios_vendor, "Version": hardware.bios_version, "Date": hardware.bios_date},
        "BaseBoard": {
            "AssetTag": hardware.board_asset_tag, "Product": smbios.board_product,
            "SerialNumber": smbios.board_serial, "Vendor": smbios.board_manufacturer,
            "Version": hardware.board_version},
        "Chassis": {
            "AssetTag": smbios.chassis_asset_tag, "SerialNumber": smbios.chassis_serial,
            "Type": hardware.chassis_type, "Vendor": hardware.chassis_vendor, "Version": hardware.chassis_version},
        "Memory": {"TotalPhysicalBytes": str(hardware.physical_memory),
                   "TotalUsableBytes": str(hardware.usable_memory)},
        "CPU": _cpus(cpus),
        "GPU": {},
        "Network": {"TotalNICs": str(len(cards)), "NICs": _nics(cards, hardware.addresses)},
        "Storage": {"TotalDisks": str(len(disks)), "Disks": _by_number_and_name(
            [(disk.name, _disk(disk)) for disk in disks])},
        "Runtime": {"Hostname": hardware.hostname},
        "System Data": _as_it_was(hardware, cpus, disks, cards),
    }
    return _bounded(tree)


def _cpus(cpus: Sequence[Cpu]) -> Tree:
    tree: Tree = {
        "TotalCores": str(sum(cpu.cores for cpu in cpus)), "TotalThreads": str(sum(cpu.threads for cpu in cpus)),
        "TotalProcessors": str(len(cpus))}
    if cpus:
        tree["Processors"] = {str(at): {
            "Capabilities": ",".join(cpu.capabilities), "ID": str(cpu.number), "Model": cpu.model,
            "NumCores": str(cpu.cores), "NumThreads": str(cpu.threads), "Vendor": cpu.vendor,
        } for at, cpu in enumerate(cpus)}
        tree["Processor"] = tree["Processors"]["0"]
    return tree


def _nics(nics: Sequence[Nic], addresses: Mapping[str, tuple[str, ...]]) -> Tree:
    return _by_number_and_name([(nic.name, {
        "Name": nic.name, "MacAddress": nic.mac, "IsVirtual": _yes(nic.virtual), "PCIAddress": nic.pci,
        "Speed": "", "Duplex": "", "SupportedLinkModes": "", "SupportedPorts": "", "AdvertisedLinkModes": "",
        **_addresses("IPv4", [a for a in addresses.get(nic.name, ()) if ":" not in a]),
        **_addresses("IPv6", [a for a in addresses.get(nic.name, ()) if ":" in a]),
    }) for nic in nics])


def _addresses(family: str, addresses: Sequence[str]) -> Tree:
    return {f"{family}Address": addresses[0] if addresses else "",
            f"{family}Addresses": {str(at): address for at, address in enumerate(addresses[:MOST])}}


def _disk(disk: Disk) -> Tree:
    return {"Name": disk.name, "Size": str(disk.size), "DriveType": disk.kind, "Removable": _yes(disk.removable),
            "StorageController": disk.controller, "Model": disk.model}


def _by_number_and_name(entries: Sequence[tuple[str, Tree]]) -> Tree:
    """Each entry twice, as templates may say either."""
    return {str(at): entry for at, (_, entry) in enumerate(entries)} | dict(entries)


def _as_it_was(hardware: Hardware, cpus: Sequence[Cpu], disks: Sequence[Disk], nics: Sequence[Nic]) -> Tree:
    first = cpus[0] if cpus else Cpu()
    return {
        "Memory": {"Total Physical Bytes": str(hardware.physical_memory),
                   "Total Usable Bytes": str(hardware.usable_memory)},
        "CPU": {"Total Cores": str(sum(cpu.cores for cpu in cpus)), "Total Threads": str(sum(
            cpu.threads for cpu in cpus)), "Model": first.model, "Vendor": first.vendor},
        "GPU": {},
        "Network": {"Number Interfaces": str(len(nics)), **{nic.name: {
            "Name": nic.name, "MacAddress": nic.mac, "IsVirtual": _yes(nic.virtual)} for nic in nics}},
        "Block Devices": {"Number Devices": str(len(disks)), **{disk.name: {
            "Size": str(disk.size), "Name": disk.name, "Drive Type": disk.kind,
            "Storage Controller": disk.controller, "Removable": _yes(disk.removable),
        } for disk in disks}},
        "Runtime": {"Hostname": hardware.hostname},
    }


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _bounded(tree: Tree) -> Tree:
    return {key[:LONGEST]: _bounded(value) if isinstance(value, dict) else value[
        :LONGEST_LIST if key == "Capabilities" else LONGEST] for key, value in tree.items()}
