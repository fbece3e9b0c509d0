"""What cannot name a machine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.junk import hostname_fault, mac_fault, serial_fault, tpm_hash_fault, uuid_fault


@pytest.mark.parametrize(("uuid", "reason"), [
    ("", "there is none"),
    ("00000000-0000-0000-0000-000000000000", "one byte repeated"),
    ("ffffffff-ffff-ffff-ffff-ffffffffffff", "one byte repeated"),
    ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "one byte repeated"),
    ("fefefefe-fefe-fefe-fefe-fefefefefefe", "one byte repeated"),
    ("03000200-0400-0500-0006-000700080009", "vendor's sample"),
    ("00020003-0004-0005-0006-000700080009", "vendor's sample"),
    ("4C4C4544-0000-2010-8020-80C04F202020", "vendor's sample"),  # Dell without a service tag
    ("12345678-1234-5678-90ab-cddeefaabbcc", "vendor's sample"),
    ("Unspecified", "says for nothing"),
    ("None", "says for nothing"),
    ("Not Settable", "says for nothing"),
    ("unknown", "says for nothing"),  # what Elemental sends when it cannot read the file
    ("4c4c4544-0042-3010-8051", "not a UUID"),
    ("4c4c4544-0042-3010-8051-b4c04f56443g", "not a UUID"),
])
def test_junk_uuids(uuid: str, reason: str) -> None:
    assert reason in uuid_fault(uuid)


@pytest.mark.parametrize("uuid", [
    "4c4c4544-0042-3010-8051-b4c04f564432",
    "00000000-0000-0000-0000-ac1f6b000001",  # Supermicro: zeros and a MAC, and still one machine's
    "00000000-0000-4000-8000-000000000001",
])
def test_sound_uuids(uuid: str) -> None:
    assert uuid_fault(uuid) == ""


@pytest.mark.parametrize("serial", [
    "", " ", "None", "Default string", "default  STRING", "To be filled by O.E.M.", "To Be Filled By O.E.M. ",
    "System Serial Number", "Not Specified", "Not Available", "Not Applicable", "N/A", "O.E.M.", "INVALID",
    "0123456789", "123456789", "1234567890", "12345678901234567890", "0000000000", "XXXXXXXX", "xxxx-xxxx",
    "........", "-", "<empty>", "SN", "A1", "unknown", "Unspecified", "Chassis Serial Number", "0x00000000",
    "SSN-String", "123-456-789",
])
def test_junk_serials(serial: str) -> None:
    assert serial_fault(serial)


@pytest.mark.parametrize("serial", [
    "SN-0001", "CZJ1234567", "7XQKD53", "VMware-56 4d 12 34", "GoogleCloud-0123", "4711",
    "Default-7",  # begins like junk, and is not
    "1234567891",  # begins to count, and is a number of its own
])
def test_sound_serials(serial: str) -> None:
    assert serial_fault(serial) == ""


def test_the_others() -> None:
    assert mac_fault("") and mac_fault("00:00:00:00:00:00") and not mac_fault("52:54:00:12:34:56")
    assert tpm_hash_fault("") and tpm_hash_fault("ab") and tpm_hash_fault("0" * 64)
    assert not tpm_hash_fault("01" * 32)
    assert hostname_fault("") and hostname_fault("LocalHost") and not hostname_fault("node-1")


@settings(deadline=None)  # finds faults, not busy machines
@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    for judge in (uuid_fault, serial_fault, mac_fault, tpm_hash_fault, hostname_fault):
        if text != "":
            try:
                judge(text)
            except ValueError:
                assert judge is mac_fault  # which is told normalised MACs only
