"""What is kept beside the profiles, and when nothing has to be written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.initramfs import DOCUMENT, profile, put

from homeport import fastpath, persist
from homeport.core.document import Assignment
from homeport.core.facts import Stage
from homeport.core.plan import Plan
from homeport.errors import ApplyError, PersistError
from homeport.host.store import STAMP, Manifest, Store
from homeport.machine import Machine
from homeport.report import Report
from homeport.settings import Settings
from homeport.sources import Reply

UUID = "6646c89f-7855-4649-ab91-71873b00fd5a"
REPLY = Reply(DOCUMENT.encode(), source="url", url="http://cfg.example/x")
LINK = "etc/systemd/network/98-nmstate-enp1s0.link"
SCRIPT = "etc/NetworkManager/dispatcher.d/nmstate-enp1s0-down.sh"


class Manager:
    """NetworkManager, which writes host names below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.saved: list[str] = []
        self.error: ApplyError | None = None

    def save_hostname(self, name: str) -> None:
        if self.error:
            raise self.error
        self.saved.append(name)
        put(self.root, "etc/hostname", f"{name}\n", 0o644)

    def devices(self) -> list[Any]:
        return [SimpleNamespace(interface="enp1s0", profile=UUID)]

    def profiles(self) -> list[Any]:
        return []

    def load(self, paths: list[str]) -> tuple[bool, tuple[str, ...]]:
        return True, ()

    def reload_dns(self) -> None:
        pass


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(persist, "our_keyfiles", lambda *_: {"enp1s0": (UUID, profile(uuid=UUID))})
    put(tmp_path, "proc/cmdline", "quiet\n")
    machine = Machine(tmp_path, Settings(), Stage.HOST, Store(tmp_path), Report())
    machine._manager = Manager(tmp_path)  # type: ignore[assignment]
    return machine


def saved(machine: Machine) -> list[str]:
    return machine.manager.saved  # type: ignore[attr-defined,no-any-return]


def plan(hostname: dict[str, str] | None = None, **interface: Any) -> Plan:
    desired: dict[str, Any] = {"interfaces": [{"name": "enp1s0", "type": "ethernet", "state": "up", **interface}]}
    return Plan(assignment=Assignment(config=desired, configurator="nmstate", addresses={}, revision="r1"),
                desired=desired | ({"hostname": hostname} if hostname else {}))


def stamp(machine: Machine) -> list[str]:
    return (machine.root / STAMP).read_text().partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("again", [False, True])
def test_the_host_name_is_kept_also_where_nothing_else_is_new(machine: Machine, again: bool) -> None:
    """The initramfs has handed over all of it but the name, or somebody has set another one."""
    wanted = plan({"config": "berth-7", "running": "berth-7.example"})
    if again:
        persist.write_all(machine, wanted, REPLY)
        put(machine.root, "etc/hostname", "another\n", 0o644)
    assert (persist.write_all(machine, wanted, REPLY) == "unchanged") == again
    assert fastpath.host_name(str(machine.root)) == "berth-7"
    assert {"running\tberth-7.example", "host-name\tberth-7"} <= set(stamp(machine))
    assert machine.store.read_manifest().hostname == "berth-7"
    # As it is already: nobody is asked to write it again.
    before = list(saved(machine))
    assert persist.write_all(machine, wanted, REPLY) == "unchanged"
    assert saved(machine) == before


def test_no_host_name_is_nobodys(machine: Machine) -> None:
    """It stays as it is, and does not make the next boot look at everything."""
    put(machine.root, "etc/hostname", "theirs\n", 0o644)
    persist.write_all(machine, plan(), REPLY)
    assert saved(machine) == [] and machine.store.read_manifest().hostname is None
    assert not [line for line in stamp(machine) if line.startswith(("running", "host-name"))]


@pytest.mark.parametrize("again", [False, True])
def test_a_host_name_that_cannot_be_kept_is_no_reason_to_go_down_the_ladder(machine: Machine, again: bool) -> None:
    """All of it is in force and proven."""
    if again:
        persist.write_all(machine, plan({"config": "berth-7"}), REPLY)
        put(machine.root, "etc/hostname", "another\n", 0o644)
    machine.manager.error = ApplyError("hostnamed is masked")  # type: ignore[attr-defined]
    with pytest.raises(PersistError, match="the host name berth-7 cannot be kept: hostnamed is masked"):
        persist.write_all(machine, plan({"config": "berth-7"}), REPLY)


@pytest.mark.parametrize(("interface", "expected"), [
    ({"alt-names": [{"name": "uplink0"}]}, [LINK]),
    ({"dispatch": {"post-deactivation": "true"}, "alt-names": [{"name": "uplink0"}]}, [LINK, SCRIPT]),
    ({}, []),  # lies there for somebody else
])
@pytest.mark.parametrize("whose", ["new", "kept", "there before", "not nmstate's"])
def test_files_beside_are_remembered_and_watched(
    machine: Machine, interface: dict[str, Any], expected: list[str], whose: str,
) -> None:
    marked = whose != "not nmstate's"
    put(machine.root, LINK, f"{'# Generated by nmstate' * marked}\n[Link]\n", 0o644)
    if "dispatch" in interface:
        put(machine.root, SCRIPT, f"#!/bin/sh\n{'## NMSTATE DISPATCH SCRIPT START' * marked}\n", 0o755)
    if whose == "kept":
        machine.store.write_manifest(Manifest(side_files=(LINK, SCRIPT)))
    elif whose != "there before":
        machine.new_side_files = frozenset({LINK, SCRIPT})
    if whose in ("there before", "not nmstate's"):
        expected = []
    persist.write_all(machine, plan(**interface), REPLY)
    assert list(machine.store.read_manifest().side_files) == expected
    watched = [line.split("\t")[1] for line in stamp(machine) if line.startswith("as-was")]
    assert [path for path in watched if path in (LINK, SCRIPT)] == expected
