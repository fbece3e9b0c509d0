"""CPU, memory, disks and NICs under the names of label templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from homeport.core.elemental.messages import render_json
from homeport.core.elemental.systemdata import Cpu, Disk, Hardware, system_data_message
from homeport.core.facts import Nic, Smbios

CASE = json.loads((Path(__file__).parents[2] / "data/elemental/tpm/10-C-SystemDataV2").read_bytes())
HARDWARE = Hardware(
    cpus=(Cpu(0, "AuthenticAMD", "AMD EPYC", 2, 4, ("fpu", "vme")),), physical_memory=8 << 30, usable_memory=7 << 30,
    disks=(Disk("sda", 1 << 40, "SSD", "SCSI", model="Disk"),), hostname="vm",
    addresses={"enp1s0": ("192.0.2.7", "2001:db8::7", "fe80::1")})
SMBIOS = Smbios(uuid="u", serial="s", manufacturer="ACME", product="P", board_product="Board")
NICS = (Nic("lo", virtual=True), Nic("enp1s0", mac="52:54:00:aa:00:01", pci="0000:00:03.0"), Nic("bond0", virtual=True))


def leaves(tree: dict[str, Any]) -> list[Any]:
    return [leaf for value in tree.values() for leaf in (leaves(value) if isinstance(value, dict) else [value])]


def test_the_shape_is_that_of_elemental_register() -> None:
    """Each key of a real message that a label can be made of is here, at its place (GPU and memory modules aside)."""
    told = system_data_message(HARDWARE, SMBIOS, NICS)
    assert set(told) == set(CASE)
    for section in ("Product", "BIOS", "BaseBoard", "Runtime"):
        assert set(told[section]) == set(CASE[section])
    assert set(told["Network"]["NICs"]["enp1s0"]) == set(CASE["Network"]["NICs"]["enp1s0"])
    assert set(told["CPU"]) == set(CASE["CPU"])
    assert set(told["CPU"]["Processor"]) == set(CASE["CPU"]["Processor"])
    assert set(told["System Data"]) == set(CASE["System Data"])
    assert set(told["System Data"]["Network"]["enp1s0"]) == set(CASE["System Data"]["Network"]["enp1s0"])


def test_every_leaf_is_text() -> None:
    assert all(isinstance(leaf, str) for leaf in leaves(system_data_message(HARDWARE, SMBIOS, NICS)))


def test_values() -> None:
    told = system_data_message(HARDWARE, SMBIOS, NICS)
    nic = told["Network"]["NICs"]["enp1s0"]
    assert told["Network"]["NICs"]["0"] == nic
    assert told["Network"]["TotalNICs"] == "2"  # the loopback is none
    assert (nic["IPv4Address"], nic["IPv6Address"], nic["IPv6Addresses"]) == (
        "192.0.2.7", "2001:db8::7", {"0": "2001:db8::7", "1": "fe80::1"})
    assert told["Network"]["NICs"]["bond0"]["IsVirtual"] == "true"
    assert (told["CPU"]["TotalCores"], told["CPU"]["TotalThreads"], told["CPU"]["TotalProcessors"]) == ("2", "4", "1")
    assert told["CPU"]["Processor"]["Capabilities"] == "fpu,vme"
    assert told["Storage"]["Disks"]["sda"] == {
        "Name": "sda", "Size": str(1 << 40), "DriveType": "SSD", "StorageController": "SCSI", "Removable": "false",
        "Model": "Disk"}
    assert told["System Data"]["Block Devices"]["sda"]["Size"] == str(1 << 40)


def test_a_machine_that_shows_nothing() -> None:
    told = system_data_message(Hardware(), Smbios(), ())
    assert (told["CPU"]["TotalProcessors"], told["Storage"]["TotalDisks"]) == ("0", "0")
    assert "Processor" not in told["CPU"]


def test_it_is_bounded_whatever_the_machine_has() -> None:
    hardware = Hardware(
        cpus=tuple(Cpu(n, "v" * 999, "m" * 999, 1, 1, ("flag",) * 9999) for n in range(999)),
        disks=tuple(Disk(f"disk{n}", model="m" * 999) for n in range(999)), hostname="h" * 9999)
    nics = tuple(Nic(f"eth{n}", mac="52:54:00:00:00:01") for n in range(999))
    told = system_data_message(hardware, SMBIOS, nics)
    assert (told["Network"]["TotalNICs"], told["Storage"]["TotalDisks"]) == ("64", "64")
    assert len(render_json(told)) < 512 << 10
