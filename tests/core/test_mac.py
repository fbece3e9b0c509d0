"""MAC addresses in every spelling."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.mac import is_locally_administered, is_usable_mac, normalise_mac

MAC = "a0:36:9f:0b:c1:0d"


@pytest.mark.parametrize("text", [
    "a0:36:9f:0b:c1:0d", "A0:36:9F:0B:C1:0D", "a0-36-9f-0b-c1-0d", "A0369F0BC10D", "a036.9f0b.c10d", f" {MAC}\n"])
def test_spellings(text: str) -> None:
    assert normalise_mac(text) == MAC


def test_infiniband() -> None:
    long = ":".join(["80", "00"] * 10)
    assert normalise_mac(long.upper().replace(":", "-")) == long


@pytest.mark.parametrize("text", [
    "", "a0:36:9f:0b:c1", f"{MAC}:00", "a0:36:9f:0b:c1:0g", "a0:36:9f:0b:c1-0d", "a:0:36:9f:0b:c1:0d",
    "a036.9f0b.c1.0d", "0:36:9f:0b:c1:d", "::::::", "a0 36 9f 0b c1 0d", "٠٠:36:9f:0b:c1:0d"])
def test_what_is_no_mac(text: str) -> None:
    with pytest.raises(ValueError, match="52:54:00"):
        normalise_mac(text)


@settings(deadline=None)  # finds faults, not busy machines
@given(st.binary(min_size=6, max_size=6), st.sampled_from([":", "-", "", "."]), st.booleans())
def test_every_spelling_of_every_mac_is_one(raw: bytes, separator: str, upper: bool) -> None:
    width = 4 if separator == "." else 2
    text = separator.join(raw.hex()[at:at + width] for at in range(0, 12, width))
    assert normalise_mac(text.upper() if upper else text) == raw.hex(":")


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_mac_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert normalise_mac(normalise_mac(text)) == normalise_mac(text)


@pytest.mark.parametrize(("mac", "local", "usable"), [
    ("52:54:00:12:34:56", True, True),  # QEMU's
    ("a0:36:9f:0b:c1:0d", False, True),
    ("00:00:00:00:00:00", False, False),
    ("ff:ff:ff:ff:ff:ff", True, False),
    ("01:00:5e:00:00:01", False, False),  # multicast
])
def test_what_a_mac_says(mac: str, local: bool, usable: bool) -> None:
    assert is_locally_administered(mac) is local
    assert is_usable_mac(mac) is usable
