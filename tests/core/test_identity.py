"""Who a machine is, how that is known, and what was not believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.facts import Facts, Nic, Smbios
from homeport.core.identity import Identity, TpmFact, identify, needs_tpm, parse_override, physical_macs

UUID = "4c4c4544-0042-3010-8051-b4c04f564432"
HASH = "759d02b8cdfad743082ac528214a5b00cb3d6079aaa2b6bb35d87209e36f1fdb"
TABLE = "/sys/firmware/dmi/tables/DMI"
TPM = "the TPM's RSA endorsement key (ek-rsa2048-template)"


def card(name: str, mac: str, **more: object) -> Nic:
    return replace(Nic(name, mac=mac, permanent_mac=mac, addr_assign_type=0), **more)  # type: ignore[arg-type]


FACTS = Facts(
    smbios=Smbios(uuid=UUID, serial="SN-0001", provenance=TABLE), hostname="node-1",
    nics=(card("eth1", "52:54:00:00:00:02"), card("eth0", "52:54:00:00:00:01")))


def without(uuid: str = "", serial: str = "", nics: tuple[Nic, ...] = ()) -> Facts:
    return replace(FACTS, smbios=Smbios(uuid=uuid, serial=serial, provenance=TABLE), nics=nics)


@pytest.mark.parametrize(("facts", "tpm_hash", "kind", "value", "provenance"), [
    (FACTS, HASH, "tpm", HASH, TPM),
    (FACTS, "", "smbios-uuid", UUID, f"{TABLE}, system UUID"),
    (without(serial="SN-0001"), "", "smbios-serial", "SN-0001", f"{TABLE}, system serial number"),
    (without(nics=FACTS.nics), "", "mac", "52:54:00:00:00:01", "permanent MAC of eth0"),
])
def test_the_first_sound_fact(facts: Facts, tpm_hash: str, kind: str, value: str, provenance: str) -> None:
    identity = identify(facts, tpm=TpmFact(tpm_hash, TPM))
    assert (identity.kind, identity.value) == (kind, value)
    assert provenance in identity.provenance


def test_the_order_is_the_setting_s() -> None:
    identity = identify(FACTS, order=("mac", "smbios-uuid"))
    assert (identity.kind, identity.rejected) == ("mac", ())
    assert identify(FACTS, order=("color", "mac")).rejected == ("color: not a kind of identity",)


def test_junk_is_refused_with_its_reason_and_never_a_field() -> None:
    facts = without("00000000-0000-0000-0000-000000000000", "Default string", FACTS.nics[:1])
    identity = identify(facts, tpm=TpmFact())
    assert (identity.kind, identity.value) == ("mac", "52:54:00:00:00:02")
    assert identity.rejected == (
        "tpm: no endorsement key was read",
        "smbios-uuid: 00000000-0000-0000-0000-000000000000 is one byte repeated",
        "smbios-serial: 'Default string' is what firmware says for nothing")
    assert dict(identity.fields) == {"mac": "52:54:00:00:00:02", "hostname": "node-1"}


def test_a_tpm_that_does_not_answer_is_passed_over_with_its_reason() -> None:
    identity = identify(FACTS, tpm=TpmFact(fault="This machine's TPM cannot derive the endorsement key: it is busy"))
    assert identity.kind == "smbios-uuid"
    assert identity.rejected == ("tpm: This machine's TPM cannot derive the endorsement key: it is busy",)
    assert "tpmhash" not in identity.fields


@pytest.mark.parametrize(("facts", "how", "wanted"), [
    (FACTS, {}, True),  # it comes first
    (FACTS, {"order": ("smbios-uuid", "tpm")}, False),
    (without(serial="SN-0001"), {"order": ("smbios-uuid", "tpm", "mac")}, True),  # what came before is not sound
    (FACTS, {"order": ("smbios-uuid", "mac")}, False),
    (FACTS, {"override": "serial:X"}, False),
    (replace(FACTS, identity_override="serial:X"), {}, False),
    (FACTS, {"override": "serial:X", "templates": ("https://cfg.example/{tpmhash}",)}, True),
    (FACTS, {"order": ("mac",), "templates": ("/etc/x/{uuid}",)}, False),
])
def test_the_tpm_is_asked_only_if_it_matters(facts: Facts, how: dict[str, Any], wanted: bool) -> None:
    assert needs_tpm(facts, **how) is wanted


def test_nothing_is_invented() -> None:
    identity = identify(Facts())
    assert (identity.kind, identity.value, identity.provenance) == ("none", "", "")
    assert len(identity.rejected) == 4
    assert (dict(identity.fields), dict(identity.match_facts)) == ({}, {})


def test_what_a_document_may_match() -> None:
    identity = identify(FACTS, tpm=TpmFact(HASH, TPM))
    assert dict(identity.match_facts) == {
        "uuid": (UUID,), "serial": ("SN-0001",), "hostname": ("node-1",), "tpmhash": (HASH,),
        "mac": ("52:54:00:00:00:01", "52:54:00:00:00:02")}


@pytest.mark.parametrize(("nics", "mac"), [
    # Elemental's choice: the smallest of the physical cards whose MAC is their own
    ((card("b", "52:54:00:00:00:02"), card("a", "52:54:00:00:00:01")), "52:54:00:00:00:01"),
    ((card("br0", "02:00:00:00:00:01", virtual=True, kind="bridge"), card("a", "52:54:00:00:00:01")),
     "52:54:00:00:00:01"),
    # addr_assign_type says that the current MAC is made up or set by somebody, and there is no other
    ((Nic("a", mac="52:54:00:00:00:01", addr_assign_type=1),), ""),
    ((Nic("a", mac="52:54:00:00:00:01", addr_assign_type=3),), ""),
    ((Nic("a", mac="52:54:00:00:00:01", addr_assign_type=None),), ""),
    # an old kernel that doesn't tell permanent MACs
    ((Nic("a", mac="52:54:00:00:00:01", addr_assign_type=0),), "52:54:00:00:00:01"),
    # a port of a bond has the bond's MAC, set, and its own all the same
    ((Nic("a", mac="52:54:00:00:00:99", permanent_mac="52:54:00:00:00:01", addr_assign_type=3),),
     "52:54:00:00:00:01"),
    # the USB end of a BMC: the same on every machine of the kind
    ((card("usb0", "02:00:00:00:00:01", usb=True), card("a", "52:54:00:00:00:01")), "52:54:00:00:00:01"),
    ((card("usb0", "02:00:00:00:00:01", usb=True),), ""),
    ((card("usb0", "00:e0:4c:00:00:01", usb=True),), "00:e0:4c:00:00:01"),  # a real USB card
    ((card("a", "00:00:00:00:00:00"),), ""),
    ((card("a", "00:00:00:00:00:00"), card("b", "52:54:00:00:00:01")), "52:54:00:00:00:01"),  # nor in the way
    ((), ""),
])
def test_the_mac_that_names_a_machine(nics: tuple[Nic, ...], mac: str) -> None:
    assert identify(replace(Facts(), nics=nics)).value == mac
    assert identify(replace(Facts(), nics=nics[::-1])).value == mac


def test_virtual_cards_are_not_the_machine_s() -> None:
    nics = (*FACTS.nics, card("bond0", "52:54:00:00:00:01", virtual=True, kind="bond"),
            card("veth0", "52:54:00:00:00:77", virtual=True, kind="veth"))
    assert physical_macs(nics) == ("52:54:00:00:00:01", "52:54:00:00:00:02")


@pytest.mark.parametrize(("text", "field", "value"), [
    (f"uuid:{UUID.upper()}", "uuid", UUID),
    ("smbios-uuid: {4C4C4544-0042-3010-8051-B4C04F564432}", "uuid", UUID),
    (UUID, "uuid", UUID),
    ("4c4c4544004230108051b4c04f564432", "uuid", UUID),
    ("mac:A0-36-9F-0B-C1-0D", "mac", "a0:36:9f:0b:c1:0d"),
    ("a0:36:9f:0b:c1:0d", "mac", "a0:36:9f:0b:c1:0d"),  # not of the kind "a0"
    ("serial:SN:1", "serial", "SN:1"),
    ("SN-7", "serial", "SN-7"),
    ("serial:None", "serial", "None"),  # junk, but a person wrote it
    ("Rack 7:12", "serial", "Rack 7:12"),
    ("hostname:node-7", "hostname", "node-7"),
    (f"tpm:{HASH.upper()}", "tpmhash", HASH),
])
def test_overrides(text: str, field: str, value: str) -> None:
    assert parse_override(text) == (field, value)
    identity = identify(FACTS, override=text)
    assert (identity.kind, identity.value, identity.provenance) == (
        "override", value, "kernel argument homeport.identity=")
    assert identity.fields[field] == value
    # the rest is the machine's own
    assert identity.fields["hostname"] == ("node-7" if field == "hostname" else "node-1")


def test_the_file_counts_and_the_kernel_argument_wins() -> None:
    facts = replace(FACTS, identity_override="serial:FILE")
    identity = identify(facts)
    assert (identity.value, identity.provenance) == ("FILE", "/etc/homeport/identity")
    assert identify(facts, override="serial:KERNEL").value == "KERNEL"


@pytest.mark.parametrize("text", ["uuid:4c4c4544", "mac:nonsense", "tpm:abc", "serial:", "uuid:", "a\x1b[0m"])
def test_an_override_that_cannot_be_understood_leaves_no_identity(text: str) -> None:
    """The hardware's own could be another machine's: that is why people write overrides."""
    identity = identify(replace(FACTS, identity_override=text))
    assert (identity.kind, identity.value, dict(identity.fields)) == ("none", "", {})
    assert identity.rejected[0].startswith("/etc/homeport/identity: ")


def test_it_reads_well() -> None:
    assert str(identify(FACTS)) == f"smbios-uuid {UUID} ({TABLE}, system UUID)"
    assert str(Identity()) == "no identity"


@settings(deadline=None)  # finds faults, not busy machines
@given(st.text(), st.text(), st.text(), st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_it_never_raises(uuid: str, serial: str, hostname: str, override: str, tpm: str, order: list[str]) -> None:
    facts = Facts(smbios=Smbios(uuid=uuid, serial=serial), hostname=hostname)
    identify(facts, override=override, tpm=TpmFact(tpm), order=(*order, "mac"))
