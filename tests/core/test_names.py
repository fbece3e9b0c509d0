"""Names that the kernel takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.names import MAX_NAME, fits_kernel, shorten


@pytest.mark.parametrize(("name", "short"), [
    ("eth0", "eth0"),
    ("enp94s0f0np0.25", "enp94s0f0np0.25"),  # 15, just so
    # A golden value: machines that were given a name keep it when the agent is upgraded.
    ("enp94s0f0np0.2507", "enp94-0bca.2507"),
    ("a-very-long-bridge-name", "a-very-lon-9fcd"),
    ("enp94s0f0np0.25071", "enp94s0f0n-7b71"),  # no VLAN's number
    ("enp94s0f0np0.x", "enp94s0f0np0.x"),
    ("ü" * 8, "net-ebd1"),
])
def test_short_names(name: str, short: str) -> None:
    assert shorten(name) == short


@settings(deadline=None)  # finds faults, not busy machines
@given(st.text(min_size=1))
def test_every_name_fits_and_stays(name: str) -> None:
    short = shorten(name)
    assert fits_kernel(short)
    assert shorten(short) == short
    assert len(short.encode("utf-8", "surrogatepass")) <= MAX_NAME


def test_bytes_count_not_characters() -> None:
    assert not fits_kernel("ü" * 8)
    assert fits_kernel(shorten("ü" * 8))


def test_names_that_begin_alike_stay_apart() -> None:
    names = [f"customer-network-{number}" for number in range(200)]
    assert len(set(map(shorten, names))) == len(names)
