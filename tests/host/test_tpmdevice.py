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
