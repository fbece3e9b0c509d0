"""Waiting for a TPM whose driver is late: only where one may come, and once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from homeport.host import tpmdevice
from homeport.host.tpmdevice import await_tpm

NODE, TABLE, BUSY = "dev/tpmrm0", "sys/firmware/acpi/tables/TPM2", "run/udev/queue"
OLD = "sys/class/tpm/tpm0/device/caps"


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


class Clock:
    """Time that passes only while somebody waits; `then` happens with the third pause."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.now, self.pauses, self.then = 0.0, 0, then

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        if self.pauses == 3:
            self.then()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    made = Clock(lambda: None)
    monkeypatch.setattr(tpmdevice, "time", made)  # not everybody's: other threads sleep, too
    return made


@pytest.mark.parametrize("sign", [TABLE, BUSY, "sys/class/tpm/tpm0/tpm_version_major"])
def test_a_late_driver_is_waited_for(tmp_path: Path, clock: Clock, sign: str) -> None:
    make(tmp_path, sign)
    clock.then = lambda: make(tmp_path, NODE)
    assert await_tpm(tmp_path) == ""
    assert clock.pauses == 3


def test_udev_that_is_done_has_found_none(tmp_path: Path, clock: Clock) -> None:
    make(tmp_path, BUSY)
    clock.then = (tmp_path / BUSY).unlink
    assert "no TPM that the kernel knows" in await_tpm(tmp_path)
    assert clock.pauses == 3


@pytest.mark.parametrize("signs", [(), (OLD, TABLE, BUSY), (NODE, BUSY)])
def test_nobody_waits_for_nothing(tmp_path: Path, clock: Clock, signs: tuple[str, ...]) -> None:
    """No TPM, a TPM 1.2, or one that is there."""
    make(tmp_path, *signs)
    await_tpm(tmp_path)
    assert clock.pauses == 0


@pytest.mark.parametrize(("versions", "nodes", "found"), [
    ({"tpm0": "2"}, ["tpm0", "tpmrm0"], "dev/tpmrm0"),
    # A TPM 1.2 has a node, and no resource manager.
    ({"tpm0": "1", "tpm1": "2"}, ["tpm0", "tpm1", "tpmrm1"], "dev/tpmrm1"),
    ({"tpm1": "2"}, ["tpm1", "tpmrm1"], "dev/tpmrm1"),
    # By number, and not by name; the first that there is a way to.
    ({"tpm0": "1", "tpm10": "2", "tpm2": "2"}, ["tpmrm10", "tpmrm2"], "dev/tpmrm2"),
    ({"tpm0": "2", "tpm1": "2"}, ["tpmrm1"], "dev/tpmrm1"),
    # In a container, which sees its host's and is lent another.
    ({"tpm0": "1"}, ["tpmrm0"], "dev/tpmrm0"),
    ({"tpm0": "1", "tpm1": "2"}, ["tpmrm0"], "dev/tpmrm0"),
    ({}, ["tpmrm0"], "dev/tpmrm0"),
])
def test_the_first_tpm_2(tmp_path: Path, versions: dict[str, str], nodes: list[str], found: str) -> None:
    """Wherever a TPM 1.2 is beside it."""
    for chip, version in versions.items():
        make(tmp_path, f"sys/class/tpm/{chip}/tpm_version_major", f"sys/class/tpm/tpmrm{chip[3:]}/dev")
        (tmp_path / f"sys/class/tpm/{chip}/tpm_version_major").write_text(version + "\n")
    make(tmp_path, *(f"dev/{node}" for node in nodes))
    assert (tpmdevice.why_absent(tmp_path), tpmdevice.device(tmp_path)) == ("", found)


def test_the_one_beside_an_old_one_may_come(tmp_path: Path, clock: Clock) -> None:
    make(tmp_path, OLD, "sys/class/tpm/tpm1/tpm_version_major")
    assert "made no /dev/tpmrm1 for it" in tpmdevice.why_absent(tmp_path)
    clock.then = lambda: make(tmp_path, "dev/tpmrm1")
    assert await_tpm(tmp_path) == ""
    assert clock.pauses == 3


def test_the_wait_has_an_end_and_is_not_repeated(tmp_path: Path, clock: Clock) -> None:
    make(tmp_path, TABLE)
    assert "says its firmware" in await_tpm(tmp_path)
    assert tpmdevice.WAIT <= clock.now < tpmdevice.WAIT + 1
    assert "says its firmware" in await_tpm(tmp_path)
    assert clock.now < tpmdevice.WAIT + 1


def test_less_patience(tmp_path: Path, clock: Clock) -> None:
    """What must be over sooner has less of it."""
    make(tmp_path, TABLE)
    await_tpm(tmp_path, 0.5)
    assert 0.5 <= clock.now < 1
