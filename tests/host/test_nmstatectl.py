"""host/nmstatectl.py: against a program that records what it is given, and the real one where it is there."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bed import nmstatectl as real
from homeport.errors import ApplyError, NotAllowed
from homeport.host import nmstatectl
from homeport.host.nmstate_texts import explain, mask, secrets_of
from homeport.host.nmstatectl import CheckpointPending, NmstateUnavailable, NoCheckpoint, NotCaptured
from homeport.rendering import checked_texts

Fake = Callable[[str], Path]

NIC = {"name": "enp1s0", "type": "ethernet", "state": "up"}
STATIC = {**NIC, "ipv4": {"enabled": True, "address": [{"ip": "192.0.2.1", "prefix-length": 24}]}}
ROUTE = {"destination": "0.0.0.0/0", "next-hop-interface": "enp1s0", "next-hop-address": "192.0.2.254"}
ABSENT = {"state": "absent", "next-hop-interface": "enp1s0"}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A program as nmstatectl that records arguments and input, then does what `script` says."""

    def make(script: str = "") -> Path:
        program = tmp_path / "nmstatectl"
        program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/argv\ncat >{tmp_path}/input\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setenv("NMSTATECTL", str(program))
        return tmp_path

    return make


@pytest.mark.parametrize(("options", "arguments"), [
    ({}, "apply --memory-only --no-verify --no-commit --timeout 60 -"),
    ({"checkpoint_seconds": 90, "override": True},
     "apply --memory-only --override-iface --no-verify --no-commit --timeout 90 -"),
    # a timeout without --no-commit would only warn
    ({"memory_only": False, "commit": True, "verify": True}, "apply -"),
])
def test_apply_arguments(fake: Fake, options: dict[str, Any], arguments: str) -> None:
    folder = fake("")
    nmstatectl.apply({"interfaces": [NIC]}, **options)
    assert (folder / "argv").read_text().strip() == arguments
    assert json.loads((folder / "input").read_text()) == {"interfaces": [NIC]}


@pytest.mark.parametrize(("state", "routes"), [
    ({"interfaces": [STATIC], "routes": {"config": [ROUTE]}}, [ABSENT, ROUTE]),
    ({"interfaces": [STATIC]}, [ABSENT]),
    ({"interfaces": [STATIC], "routes": None}, [ABSENT]),
    # no IP and no route in the document: what it has is not the document's business
    ({"interfaces": [NIC]}, None),
    ({"interfaces": [NIC], "routes": {"config": [ROUTE]}}, [ABSENT, ROUTE]),
    ({"interfaces": [{**STATIC, "state": "down"}]}, None),
    # a policy is for nmstate to resolve first
    ({"capture": {}, "desired": {"interfaces": [STATIC]}}, None),
    ({"hostname": {"config": "a"}}, None),
])
def test_routes_are_replaced(state: dict[str, Any], routes: list[Any] | None) -> None:
    before = json.dumps(state)
    changed = nmstatectl.replacing_routes(state)
    assert changed.get("routes") == ({"config": routes} if routes else state.get("routes"))
    assert json.dumps(state) == before


# Every text was provoked once on nmstatectl 2.2.62 with NetworkManager 1.52.
@pytest.mark.parametrize(("text", "kind", "words"), [
    ("NmstateError: Bug: CheckpointConflict: Another checkpoint exists, please wait its timeout or destroy it",
     CheckpointPending, "unfinished change of another program"),
    ("NmstateError: Bug: NotFound: Not active checkpoints", NoCheckpoint, "the checkpoint is gone"),
    ("NmstateError: Bug: Manager(InvalidArguments): checkpoint /org/freedesktop/NetworkManager/Checkpoint/1 does not "
     "exist", NoCheckpoint, "was restarted meanwhile"),
    ("NmstateError: Bug: DbusConnectionError: org.freedesktop.DBus.Error.ServiceUnknown: The name "
     "org.freedesktop.NetworkManager was not provided by any .service files",
     NmstateUnavailable, "does not answer on the system bus"),
    ("NmstateError: Bug: DbusConnectionError: I/O error: Connection refused (os error 111)",
     NmstateUnavailable, "does not answer"),
    ("NmstateError: PermissionError: org.freedesktop.DBus.Error.AccessDenied", NotAllowed, "does not allow it"),
    ("NmstateError: InvalidArgument: Ethernet interface eth9 does not exists", ApplyError,
     "there is no network interface eth9 "),
    ("NmstateError: InvalidArgument: Desired interface x has `identifier: mac-address` with MAC address "
     "02:00:00:00:00:99, but no interface is holding that MAC address", ApplyError,
     "no network interface has the MAC address 02:00:00:00:00:99"),
    ("NmstateError: InvalidArgument: Desired interface x has `identifier: pci-address` with PCI address "
     "0000:00:99.0, but no interface is holding that PCI address", ApplyError, "PCI address 0000:00:99.0"),
    ("NmstateError: InvalidArgument: Controller interface bond0 is holding unknown port eth8", ApplyError,
     "bond0 has a port eth8, which does not exist"),
    ("NmstateError: InvalidArgument: Route 'destination: 0.0.0.0/0 next-hop-interface: eth7': next hop "
     "interface eth7 not found", ApplyError, "a route leads through eth7"),
    ("NmstateError: InvalidArgument: Connection(InvalidProperty):connection.interface-name: 'averyveryverylong"
     "name': interface name is longer than 15 characters", ApplyError, "averyveryverylongname is longer"),
    ("NmstateError: DependencyError: Manager(MissingPlugin):NetworkManager plugin for 'ovs-bridge' unavailable",
     ApplyError, "lacks its plugin for ovs-bridge"),
    ("NmstateError: Bug: Device(CreationFailed): enp1s0.7 failed to create resources: Failed to create VLAN "
     "interface 'enp1s0.7' for 'enp1s0.7': Operation not supported", ApplyError, "kernel module for its type"),
    ("NmstateError: Bug: Manager(UnknownDevice): Failed to find a compatible device for this connection",
     ApplyError, "is its base interface there"),
    ("Provide file is not valid NetworkState or NetworkPolicy: interfaces: unknown field `foo` at line 1 "
     "column 16", ApplyError, "does not read the document: interfaces: unknown field `foo` ("),
    ("NmstateError: InvalidArgument: Desired MTU 1000000 for interface enp1s0 is bigger than maximum allowed "
     "MTU 65535", ApplyError, "configuration: Desired MTU 1000000"),
    ("NmstateError: PolicyError: route with 'destination=0.0.0.0/0' not found\n"
     '| routes.running.destination=="0.0.0.0/0"\n| .......^', NotCaptured,
     "the policy captures a route with 'destination=0.0.0.0/0', and there is none"),
    ("NmstateError: Bug: something new", ApplyError, "nmstate says: something new"),
    ("", ApplyError, "exit status 1, without a word"),
])  # fmt: skip
def test_error_texts(text: str, kind: type[Exception], words: str) -> None:
    log = "[2026-11-30T19:20:17Z INFO  nmstatectl] Nmstate version: 2.2.62\n"
    error = explain("apply", 1, log + text + "\n")
    assert type(error) is kind
    assert words in str(error)
    assert "Bug" not in str(error)


def test_rollback_without_a_checkpoint_is_no_error(fake: Fake) -> None:
    folder = fake('echo "NmstateError: Bug: NotFound: Not active checkpoints" >&2; exit 1')
    assert nmstatectl.rollback() is False
    with pytest.raises(NoCheckpoint, match="Cannot keep the configuration"):
        nmstatectl.commit()
    assert (folder / "argv").read_text().split() == ["rollback", "commit"]
    fake("")
    assert nmstatectl.rollback() is True


def test_a_manager_that_is_not_ready_is_waited_for(fake: Fake, tmp_path: Path) -> None:
    unknown = "NmstateError: Bug: DbusConnectionError: org.freedesktop.DBus.Error.UnknownMethod: no object"
    fake(f'test $(wc -l <{tmp_path}/argv) -gt 2 || {{ echo "{unknown}" >&2; exit 1; }}')
    nmstatectl.apply({"interfaces": [NIC]})
    assert (tmp_path / "argv").read_text().count("apply") == 3


def test_a_bad_document_is_not_tried_twice(fake: Fake, tmp_path: Path) -> None:
    fake('echo "NmstateError: InvalidArgument: Ethernet interface eth9 does not exists" >&2; exit 1')
    with pytest.raises(ApplyError):
        nmstatectl.apply({"interfaces": [NIC]})
    assert (tmp_path / "argv").read_text().count("apply") == 1


def test_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NMSTATECTL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    started = time.monotonic()
    with pytest.raises(NmstateUnavailable, match=r"no program nmstatectl .*install nmstate"):
        nmstatectl.commit()
    assert time.monotonic() - started < 8  # as for a NetworkManager that is about to come


def test_a_stalled_child_is_stopped_with_sigint(fake: Fake, tmp_path: Path) -> None:
    fake(f"trap 'echo int >{tmp_path}/signal; exit 1' INT\nwhile :; do sleep 0.05; done")
    started = time.monotonic()
    with pytest.raises(ApplyError, match=r"did not end in 3 s and was stopped .*VLAN on a base"):
        nmstatectl.apply({"interfaces": [NIC]}, timeout=3)
    assert time.monotonic() - started < 60
    assert (tmp_path / "signal").read_text() == "int\n"


def test_secrets_stay_out_of_log_and_error(fake: Fake, caplog: pytest.LogCaptureFixture) -> None:
    """A parse error of nmstate quotes the value at fault."""
    caplog.set_level(logging.DEBUG)
    state = {"interfaces": [{**NIC, "802.1x": {"identity": "me", "private-key-password": "hunter2"}}]}
    fake("echo 'Provide file is not valid NetworkState or NetworkPolicy: interfaces: invalid type: string "
         "\"hunter2\", expected a map' >&2; exit 1")
    with pytest.raises(ApplyError) as caught:
        nmstatectl.apply(state)
    assert "hunter2" not in str(caught.value) + caplog.text
    assert '"***"' in caplog.text
    assert secrets_of(state) == {"hunter2"}


@pytest.mark.parametrize(("text", "masked"), [
    ("password: hunter2 and more", "password: *** and more"),
    ('"phase2-password":"a b",', '"phase2-password":***,'),
    ("psk=0123", "psk=***"),
    ("nothing of that kind", "nothing of that kind"),
])
def test_masking(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("answer", ["", "[]", "{"])
def test_show_of_nonsense(fake: Fake, answer: str) -> None:
    fake(f"echo '{answer}'")
    with pytest.raises(ApplyError, match="nmstatectl wrote"):
        nmstatectl.show()


@pytest.mark.parametrize("ask", [
    nmstatectl.show, nmstatectl.commit, nmstatectl.rollback, lambda limit: nmstatectl.gc({}, limit),
    lambda limit: nmstatectl.resolve_policy({}, limit), lambda limit: checked_texts({}, limit),
])
def test_each_has_the_limit_that_is_given(fake: Fake, ask: Callable[[float], object]) -> None:
    fake("exec sleep 20")
    with pytest.raises(ApplyError, match=r"did not end in 0\.2 s"):
        ask(0.2)


def test_an_absent_networkmanager_is_not_waited_for_any_longer(fake: Fake, tmp_path: Path) -> None:
    fake("echo 'NmstateError: PluginFailure: NameHasNoOwner' >&2; exit 1")
    with pytest.raises(NmstateUnavailable):
        nmstatectl.commit(0.3)
    assert (tmp_path / "argv").read_text().count("commit") <= 5  # ten a second


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    if not real():
        pytest.skip("no nmstatectl (run: make setup)")
    monkeypatch.setenv("NMSTATECTL", real())


@pytest.mark.usefixtures("program")
def test_the_real_one_reads_json() -> None:
    assert nmstatectl.version() == "2.2.62"  # another version: measure again what this module knows
    state = {"interfaces": [{**STATIC, "description": "Größe: 'x' \"y\" \\ \u2028"}],
             "routes": {"config": [ROUTE]}}
    ((name, text),) = nmstatectl.gc(state)
    assert name == "enp1s0.nmconnection"
    assert "address0=192.0.2.1/24" in text
    assert "Größe: 'x' \"y\"" in text


@pytest.mark.usefixtures("program")
def test_gc_of_nothing_and_of_a_bad_document() -> None:
    assert nmstatectl.gc({}) == []
    with pytest.raises(ApplyError, match=r"Cannot make keyfiles: .*unknown field `foo`"):
        nmstatectl.gc({"interfaces": [{**NIC, "foo": 1}]})
