"""Fixtures of the boot tests, and the report of a failed one.

    def test_something(world, machine):        # a LAN with DHCP off, one machine with the product installed
    def test_two(world, make_machine):         # several machines, or one with other NICs
    def test_whole(world, make_vm):            # whole ones, in QEMU: firmware, TPM, initramfs (vm/machine.py)

`machine.allow(...)` names warnings of our units that are part of the scenario; any other fails the test.
A failed test prints: the scenario, the last step reached, our journal, `nmstatectl show`, where the full
journal is, and the command that runs it again and leaves you logged in (failure.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from configserver import ConfigServer
from container import Machine, Nic
from drives import Drives
from failure import attempt, describe
from firmware import Firmware
from image import Image, make_image
from poolserver import PoolServer, pool, registration
from poolserver import python as server_python
from seed import SEED, Seeded, seed_document
from trees import NotPrepared, layers, prepared_path
from vm.machine import Vm
from world import World


class Scenario:
    """The machines of one test, and what their journals may say."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.machines: list[Machine | Vm] = []
        self.allowed: list[str] = []

    def make(
        self,
        name: str = "",
        *,
        nics: tuple[Nic, ...] = (Nic("enp1s0"),),
        tree: str = "trixie",
        installed: bool = True,
        firmware: Firmware | None = None,
        lossy: bool = False,
        drives: Drives | None = None,
    ) -> Machine:
        machine = Machine(self.world, self._name(name), nics=nics, tree=tree, installed=installed,
                          firmware=firmware, lossy=lossy, drives=drives)  # fmt: skip
        self.machines.append(machine)
        return machine

    def make_vm(self, name: str = "", *, image: Image | None = None, **hardware: Any) -> Vm:
        """Another one, in QEMU; `hardware` as for Vm."""
        machine = Vm(self.world, self._name(name), image or make_image(), **hardware)
        self.machines.append(machine)
        return machine

    def _name(self, name: str) -> str:
        suffix = f"-{len(self.machines) + 1}" if self.machines else ""
        plain = re.sub(r"[^a-z0-9]+", "-", (name or self.name).lower()).strip("-")
        return plain[: 40 - len(suffix)].strip("-") + suffix

    def allow(self, *patterns: str) -> None:
        """Warnings and errors of our units that belong to this scenario, as regular expressions."""
        self.allowed += patterns

    def unexpected(self) -> list[str]:
        """What our units said at warning or worse, in all boots, that nobody announced."""
        return [
            f"{machine.name}: {entry.get('MESSAGE', '')}"
            for machine in self.machines
            for entry in machine.journal("homeport*", priority=4, all_boots=True)
            if not any(re.search(p, entry.get("MESSAGE", "")) for p in self.allowed)
        ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stay", action="store_true", help="after a failed boot test, give a shell in the machine"
    )
    parser.addoption(
        "--log-in", action="store_true", help="after each boot test, failed or not, give a shell in the machine"
    )


@pytest.fixture(scope="session")
def _the_world() -> Iterator[World]:
    if os.geteuid() != 0:
        pytest.skip("a machine is booted by root only")
    for program in ("systemd-nspawn", "dnsmasq", "ip", "nsenter", "setpriv"):
        if not shutil.which(program):
            _missing(f"{program} is not installed (run: make setup)")
    with World() as world:
        yield world


@pytest.fixture(scope="session")
def _installed() -> None:
    """The guest with the product in it, as `make install` puts it there."""
    try:
        layers("trixie")
    except NotPrepared as error:
        _missing(str(error))


def _missing(reason: str) -> None:
    """A tool that is not there skips the tests for a person, and fails them in CI."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def world(_the_world: World) -> Iterator[World]:
    """The LAN at rest: no DHCP, no server, no other hosts; all addresses of the world answer."""
    _the_world.calm_down()
    with _the_world.as_it_was():
        yield _the_world
        _the_world.calm_down()


@pytest.fixture(scope="session")
def _server_installed() -> None:
    """homeport-server, from the tree."""
    try:
        server_python()
    except NotPrepared as error:
        _missing(str(error))


@pytest.fixture
def pool_server(world: World, _server_installed: None) -> Iterator[PoolServer]:
    """homeport-server with a pool of one address, for whoever says a UUID."""
    with PoolServer(world, pool("192.168.122.150"), registration("sys-uuid")) as running:
        yield running


@pytest.fixture
def scenario(world: World, _installed: None, request: pytest.FixtureRequest) -> Iterator[Scenario]:
    """The machines of this test; all are gone when it is over."""
    name = request.node.name.removeprefix("test_")
    scenario = Scenario(world, name)
    request.node.stash[_SCENARIO] = scenario
    yield scenario
    report = request.node.stash.get(_REPORT, None)
    failed = report is None or report.failed
    try:
        if not failed and (words := scenario.unexpected()):
            for machine in scenario.machines:
                machine.keep = True
            text = describe(scenario, str(request.node.nodeid))
            pytest.fail("our units warned of what the test did not expect:\n  "
                        + "\n  ".join(words) + "\n" + text, pytrace=False)  # fmt: skip
    finally:
        for machine in scenario.machines:
            machine.keep = machine.keep or failed
            machine.close()


@pytest.fixture
def make_machine(scenario: Scenario) -> Callable[..., Machine]:
    """make_machine(nics=(Nic("enp1s0"), Nic("enp2s0")), tree="trixie") -> Machine"""
    return scenario.make


@pytest.fixture
def make_vm(world: World, request: pytest.FixtureRequest) -> Callable[..., Vm]:
    """make_vm(nics=(Nic("enp1s0"),), tpm=True, firmware=Firmware(…), image=make_image()) -> Vm, switched off"""
    for program in ("qemu-system-x86_64", "mke2fs", "swtpm"):
        if not shutil.which(program):
            _missing(f"{program} is not installed (run: make setup-tests)")
    try:
        prepared_path("VM_trixie")
    except NotPrepared as error:
        _missing(str(error))
    scenario: Scenario = request.getfixturevalue("scenario")
    return scenario.make_vm


@pytest.fixture
def machine(scenario: Scenario) -> Machine:
    """One machine with one NIC, enp1s0, switched off."""
    return scenario.make()


@pytest.fixture
def allow(scenario: Scenario) -> Callable[..., None]:
    """allow(r"regular expression", …): these warnings of our units belong to the test."""
    return scenario.allow


@pytest.fixture
def drives(tmp_path: Path) -> Iterator[Drives]:
    """Labelled drives for one machine: drives.plug("cidata", files), then make_machine(drives=drives)."""
    with Drives(tmp_path / "drives") as drives:
        yield drives


@pytest.fixture
def server(world: World) -> ConfigServer:
    """A configuration server at http://192.168.122.2 that has no document yet."""
    return world.serve()


@pytest.fixture
def seeded(world: World, server: ConfigServer, machine: Machine) -> Seeded:
    """A machine that came up with the seed case once, from DHCP, and is running."""
    world.dhcp.start()
    return Seeded(machine, server, server.put(SEED, seed_document()))


# The ladder is a warning a rung, a result below the assigned one is a warning, and a boot that could not do
# its job is a failed unit for systemd.
FALLING = ("falling back", r"^homeport: (on DHCP|network left as found|seed|last-known-good)",
           "Failed with result", "Failed to start")  # fmt: skip


@pytest.fixture
def falling(scenario: Scenario) -> None:
    """For a test whose machine goes down the ladder."""
    scenario.allow(*FALLING)


_SCENARIO = pytest.StashKey[Scenario]()
_REPORT = pytest.StashKey[pytest.TestReport]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.when == "call":
        item.stash[_REPORT] = report
    if report.when == "teardown":
        return
    scenario = item.stash.get(_SCENARIO, None)
    if scenario is None:
        return
    if report.failed:
        report.sections.append(("boot test", describe(scenario, item.nodeid)))
    after_each = report.when == "call" and item.config.getoption("--log-in")
    if after_each or (report.failed and item.config.getoption("--stay")):
        _stay(item, scenario)


def _stay(item: pytest.Item, scenario: Scenario) -> None:
    """A shell in each machine that still runs, before the fixtures take it away."""
    capture = item.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else _nothing():
        for machine in scenario.machines:
            print(f"\n{describe(scenario, item.nodeid)}\n\nYou are root in {machine.name}; exit ends it.")
            if isinstance(machine, Vm):
                print(attempt(partial(_log_in, machine)))
            elif machine.running:
                # pytest keeps /dev/null as standard input even while it does not capture.
                with open("/dev/tty", "rb", buffering=0) as terminal:
                    subprocess.run(machine.argv(["/bin/bash", "-l"]), stdin=terminal, check=False)


def _log_in(machine: Vm) -> str:
    machine.shell()
    return ""


def _nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()
