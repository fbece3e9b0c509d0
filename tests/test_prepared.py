"""Profiles made before NetworkManager ran: what is remembered of them, and when they stay or go."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.initramfs import in_run, profile, put

from homeport import boot, prepared
from homeport.core.facts import Stage
from homeport.errors import ApplyError, HomeportError, Unreachable
from homeport.host import keyfiles
from homeport.host.files import write_atomic
from homeport.host.nm.values import DeviceState
from homeport.host.store import PREPARED, PREPARED_DOCUMENT, Manifest, OwnedFile, Store
from homeport.machine import Machine
from homeport.prepared import Prepared
from homeport.report import Report
from homeport.settings import Settings
from homeport.sources import Reply

DOCUMENT = b"interfaces: []\n"
REPLY = Reply(DOCUMENT, source="drive", url="HOMEPORT/homeport.yaml", etag="1", content_type="text/yaml")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, Settings(), Stage.HOST, Store(tmp_path), Report())


def test_written_and_read(tmp_path: Path) -> None:
    """For root only; what is read is what was written, and gives back the reply."""
    old = os.umask(0o077)
    try:
        written = prepared.write(tmp_path, prepared.of_reply("assigned", REPLY), DOCUMENT, {"enp1s0": profile()})
    finally:
        os.umask(old)
    assert prepared.read(tmp_path) == written
    assert written.reply(prepared.document(tmp_path)) == REPLY
    machine = Machine(tmp_path, Settings(), Stage.HOST, Store(tmp_path), Report())
    assert prepared.is_prepared(machine, REPLY)
    assert not prepared.is_prepared(machine, Reply(b"other"))
    (file,) = written.profiles
    assert in_run(tmp_path) == ["homeport-enp1s0.nmconnection"]
    assert (tmp_path / file.path).read_text() == profile().render()
    for path, mode in ((file.path, 0o600), (PREPARED, 0o600), (PREPARED_DOCUMENT, 0o600),
                       ("run/NetworkManager", 0o755), ("run/homeport", 0o755)):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == mode
    prepared.forget(tmp_path)
    assert prepared.read(tmp_path) is None


@pytest.mark.parametrize("error", [
    OSError(28, "No space left on device"), RuntimeError("a bug"), KeyboardInterrupt("a signal"),
], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("last", ["enp2s0.nmconnection", PREPARED])
def test_written_as_a_whole_or_not_at_all(
    tmp_path: Path, error: BaseException, last: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NetworkManager would start with half of a network."""
    def full(root: Path, path: str, data: bytes, mode: int = 0o600) -> None:
        if path.endswith(last):
            raise error
        write_atomic(root, path, data, mode)
    monkeypatch.setattr(prepared, "write_atomic", full)
    with pytest.raises(type(error), match=str(error.args[-1])):
        prepared.write(tmp_path, prepared.of_reply("assigned", REPLY), DOCUMENT,
                       {"enp1s0": profile(), "enp2s0": profile("enp2s0")})
    assert in_run(tmp_path) == [] and prepared.read(tmp_path) is None


def test_a_record_that_cannot_be_taken_away_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first fault is told, not what came of tidying up behind it."""
    def failing(root: Path, path: str, data: bytes, mode: int = 0o600) -> None:
        if path.endswith(".nmconnection"):
            raise RuntimeError("a bug")
        write_atomic(root, path, data, mode)

    def stuck(*_: object) -> bool:
        raise OSError(5, "Input/output error")
    monkeypatch.setattr(prepared, "write_atomic", failing)
    monkeypatch.setattr(prepared, "remove", stuck)
    with pytest.raises(RuntimeError, match="a bug"):
        prepared.write(tmp_path, prepared.of_reply("assigned", REPLY), DOCUMENT, {"enp1s0": profile()})


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"rung": "assigned"}', "nonsense", '{"profiles": 3}',
                                  '{"rung": "assigned", "profiles": [{"x": 1}]}'])
def test_a_record_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    put(tmp_path, PREPARED, text)
    assert prepared.read(tmp_path) is None


class Manager:
    """What of NetworkManager is asked; `shadowed` are the UUIDs that have a file in /etc below."""

    def __init__(self, devices: list[Any], shadowed: tuple[str, ...] = ()) -> None:
        self.listed, self.shadowed = devices, shadowed
        self.calls: list[Any] = []

    def devices(self) -> list[Any]:
        return self.listed

    def load(self, paths: list[str]) -> None:
        self.calls.append(("load", *paths))

    def profile(self, uuid: str) -> Any:
        return SimpleNamespace(interface_name="") if uuid in self.shadowed else None

    def activate(self, uuid: str, interface: str | None) -> None:
        self.calls.append(("activate", uuid))

    def close(self) -> None:
        pass


def on(interface: str, uuid: str) -> Any:
    return SimpleNamespace(interface=interface, profile=uuid, state=DeviceState.ACTIVATED)


def test_taken_away(machine: Machine) -> None:
    """The file goes, and NetworkManager is told; a file of ours in /etc that it hid is in force again."""
    record = prepared.write(machine.root, Prepared("assigned"), DOCUMENT,
                            {"enp1s0": profile(), "enp2s0": profile("enp2s0")})
    first, second = record.profiles
    etc = put(machine.root, "etc/NetworkManager/system-connections/homeport-enp1s0.nmconnection", "x")
    machine.store.write_manifest(Manifest(keyfiles=(OwnedFile(str(etc).lstrip("/"), "", first.uuid, "enp1s0"),)))
    machine._manager = manager = Manager([on("enp1s0", first.uuid)], shadowed=(first.uuid,))  # type: ignore[assignment]
    machine._protected = frozenset()
    prepared.drop(machine)
    assert in_run(machine.root) == [] and prepared.read(machine.root) is None
    assert manager.calls == [("load", str(etc), f"/{first.path}", f"/{second.path}"), ("activate", first.uuid)]


def test_taken_away_is_gone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks next must not find its addresses: until then it is waited."""
    record = prepared.write(machine.root, Prepared("assigned"), DOCUMENT, {"enp1s0": profile()})
    card = on("enp1s0", record.profiles[0].uuid)
    changes = [DeviceState.DEACTIVATING, DeviceState.DISCONNECTED, DeviceState.PREPARE, DeviceState.IP_CONFIG,
               DeviceState.ACTIVATED]

    def next_state(_seconds: float) -> None:
        card.state = changes.pop(0) if changes else card.state
    monkeypatch.setattr(time, "sleep", next_state)
    machine._manager = Manager([card])  # type: ignore[assignment]
    machine._protected = frozenset()
    card.state = DeviceState.DEACTIVATING
    prepared.drop(machine)
    assert card.state is DeviceState.ACTIVATED


def test_taken_away_without_a_networkmanager(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come later, and must not start with them then."""
    prepared.write(machine.root, Prepared("assigned"), DOCUMENT, {"enp1s0": profile()})

    def absent(_: Machine) -> Any:
        raise ApplyError("NetworkManager does not answer")
    monkeypatch.setattr(Machine, "manager", property(absent))
    machine._protected = frozenset()
    prepared.drop(machine)
    assert in_run(machine.root) == [] and prepared.read(machine.root) is None


def test_not_from_under_the_root(machine: Machine) -> None:
    record = prepared.write(machine.root, Prepared("assigned"), DOCUMENT,
                            {"enp1s0": profile(), "enp2s0": profile("enp2s0")})
    machine._manager = Manager([on("enp1s0", record.profiles[0].uuid)])  # type: ignore[assignment]
    machine._protected = frozenset({"enp1s0"})
    prepared.drop(machine)
    assert in_run(machine.root) == ["homeport-enp1s0.nmconnection"]


@pytest.mark.parametrize(("rung", "on_prepared", "proven", "persisted", "outcome"), [
    ("assigned", True, True, True, "handed on"),
    ("last-known-good", True, True, True, "handed on"),
    ("assigned", True, True, False, "stays"),  # a disk that takes nothing
    ("seed", True, True, False, "stays"),
    ("assigned", False, True, True, "goes"),  # another document took its place
    ("last-known-good", False, True, False, "goes"),
    ("dhcp", False, False, False, "goes"),
    ("left-as-found", False, False, False, "goes"),
    ("left-as-found", False, True, False, "stays"),  # a refresh that got nowhere
])
def test_settled(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, rung: str, on_prepared: bool, proven: bool, persisted: bool,
    outcome: str,
) -> None:
    done = []
    monkeypatch.setattr(prepared, "drop", lambda _: done.append("goes"))
    monkeypatch.setattr(prepared, "hand_on", lambda _: done.append("handed on"))
    machine.prepared = Prepared("assigned", proven=proven)
    machine.on_prepared, machine.report.rung, machine.report.persisted = on_prepared, rung, persisted
    boot.settle(machine)
    assert done == ([] if outcome == "stays" else [outcome])


@pytest.mark.parametrize(("fails", "proven", "gone"), [
    ("assigned", False, True), ("assigned", True, False), ("last-known-good", False, False), ("seed", False, False),
])
def test_the_rung_that_it_is_for_does_not_hold(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, fails: str, proven: bool, gone: bool,
) -> None:
    done: list[Machine] = []
    monkeypatch.setattr(prepared, "drop", done.append)
    machine.prepared = Prepared("assigned", proven=proven)
    error: HomeportError = ApplyError("refused") if fails == "assigned" else Unreachable("no answer")
    boot.step_down(machine, fails, error)
    assert bool(done) == gone


def test_a_dry_run_takes_nothing_away(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Machine] = []
    monkeypatch.setattr(prepared, "drop", done.append)
    machine.dry_run, machine.prepared = True, Prepared("assigned")
    boot.step_down(machine, "assigned", ApplyError("refused"))
    boot.settle(machine)
    assert done == []


def test_what_was_not_kept_of_it_goes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    record = prepared.write(machine.root, Prepared("assigned"), DOCUMENT,
                            {"enp1s0": profile(), "enp2s0": profile("enp2s0")})
    machine.prepared = record
    machine.store.write_manifest(Manifest(keyfiles=record.profiles[:1]))
    machine._manager = manager = Manager([])  # type: ignore[assignment]
    machine._protected = frozenset()
    prepared.hand_on(machine)
    assert prepared.read(machine.root) is None
    assert manager.calls == [("load", f"/{record.profiles[1].path}")]
    assert keyfiles.RUN in record.profiles[0].path
