"""What will change, where that is decided by a rule of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from homeport import planning
from homeport.core.document import parse_document
from homeport.core.facts import Facts, Nic, Stage
from homeport.host import nmstatectl, profiles
from homeport.host.ahead import Ahead
from homeport.host.profiles import Ownership
from homeport.host.store import Store
from homeport.machine import Machine
from homeport.report import Report
from homeport.settings import Settings


@pytest.mark.parametrize(("hostname", "there"), [
    ({"running": "berth-7", "config": "berth-7"}, {"config": "berth-7"}),
    ({"running": "berth-7"}, None),
    ({"config": ""}, {"config": ""}),
    (None, None),
])
def test_the_running_host_name_is_not_the_initramfs_s(
    hostname: dict[str, str] | None, there: dict[str, str] | None,
) -> None:
    """NetworkManager there puts back what its /etc/hostname says: nothing could ever be proven."""
    config: dict[str, Any] = {"interfaces": []} | ({"hostname": hostname} if hostname else {})
    assert planning.of_this_stage(Stage.HOST, config) == config
    assert planning.of_this_stage(Stage.INITRD, config) == {"interfaces": []} | ({"hostname": there} if there else {})


def state(*addresses: str) -> dict[str, Any]:
    rows = [{"ip": address, "prefix-length": 24} for address in addresses]
    return {"interfaces": [{"name": "enp1s0", "type": "ethernet", "state": "up", "ipv4": {
        "enabled": bool(rows), "dhcp": False, "address": rows}, "ipv6": {"enabled": False}}]}


@pytest.mark.parametrize("later", ["192.168.122.150", "192.168.122.9"])
def test_a_difference_that_was_seen_ahead_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str,
) -> None:
    """The look was while NetworkManager was still bringing it up, and to fetch the document took seconds."""
    machine = Machine(tmp_path, Settings(), Stage.HOST, Store(tmp_path), Report())
    machine.facts = Facts(nics=(Nic("enp1s0"),))
    machine._manager = SimpleNamespace(version=lambda: "1.52.1", close=lambda: None)  # type: ignore[assignment]
    monkeypatch.setattr(profiles, "whose", lambda *_: Ownership((), override=False))
    monkeypatch.setattr(nmstatectl, "show", lambda _limit: state(later))
    machine.current = Ahead(state)
    plan = planning.make_plan(machine, parse_document(yaml.safe_dump(state("192.168.122.150")).encode()))
    assert plan.in_force == (later == "192.168.122.150")
