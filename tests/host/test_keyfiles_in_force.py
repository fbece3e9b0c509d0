"""What we keep comes up again: real NetworkManagers, restarted over our keyfiles with the NICs renamed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bed import Bed, beds, missing
from homeport.core.facts import Nic
from homeport.core.keyfile import own_profiles, parse
from homeport.host import keyfiles, nmstatectl
from namespaces import wait_until

TREES = beds()
MACS = {"eth0": "02:00:00:00:00:10", "eth1": "02:00:00:00:00:11"}
RUN = "run/NetworkManager"
STATE: dict[str, Any] = {
    "interfaces": [
        {"name": "eth1", "type": "ethernet", "state": "up",
         "ipv4": {"enabled": True, "address": [{"ip": "10.1.0.1", "prefix-length": 24}]},
         "ipv6": {"enabled": True, "address": [{"ip": "2001:db8::1", "prefix-length": 64}]}},
        {"name": "mv0", "type": "mac-vlan", "state": "up",
         "mac-vlan": {"base-iface": "eth1", "mode": "bridge", "promiscuous": True},
         "ipv4": {"enabled": True, "address": [{"ip": "10.3.0.1", "prefix-length": 24}]}, "ipv6": {"enabled": False}},
        {"name": "br0", "type": "linux-bridge", "state": "up",
         "bridge": {"options": {"stp": {"enabled": False}}, "port": [{"name": "eth0"}]},
         "ipv4": {"enabled": True, "address": [{"ip": "10.4.0.1", "prefix-length": 24}]}, "ipv6": {"enabled": False}},
    ],
    "routes": {"config": [{"destination": "10.66.0.0/16", "route-type": "blackhole"}]},
    "route-rules": {"config": [
        {"family": "ipv4", "ip-from": "10.3.0.1/32", "route-table": 254, "priority": 30200},
        {"family": "ipv4", "route-table": 254, "priority": 30350, "suppress-prefix-length": 0}]},
}  # fmt: skip


@pytest.fixture(params=sorted(TREES) or ["host"])
def bed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bed]:
    tree = TREES.get(request.param, Path("/"))
    if missing(tree):
        pytest.skip(missing(tree))
    with Bed(tmp_path, tree, nics=tuple(MACS), profiles={}) as bed:
        monkeypatch.setenv("NMSTATECTL", bed.nmstatectl)
        for name, mac in MACS.items():
            bed.run("ip", "link", "set", name, "address", mac)
        start(bed)
        yield bed


def start(bed: Bed) -> None:
    bed.start_manager()
    wait_until(lambda: "running" in ask(bed, "nmcli", "-g", "running", "general"), what="NetworkManager")


def ask(bed: Bed, *argv: str) -> str:
    try:
        return bed.run(*argv)
    except RuntimeError:
        return ""


def boot_again(bed: Bed, *changes: str) -> None:
    """NetworkManager anew over bare NICs, as after a reboot; `changes` are made to the links before."""
    bed.stop_manager()
    for link in ("mv0", "br0"):
        ask(bed, "ip", "link", "del", link)
    for leftover in ("rule del priority 30200", "rule del priority 30350", "route del blackhole 10.66.0.0/16"):
        ask(bed, "ip", *leftover.split())
    for name in MACS:
        bed.run("ip", "addr", "flush", "dev", name)
        bed.run("ip", "link", "set", name, "down")
    for change in changes:
        bed.run("ip", "link", "set", *change.split())
    shutil.rmtree(bed.root / RUN)
    (bed.root / RUN).mkdir()
    start(bed)


def shows(bed: Bed, command: str, text: str) -> None:
    """Wait until `ip COMMAND` says so: what a profile brings comes one after the other."""
    wait_until(lambda: text in bed.run("ip", *command.split()), what=f"{text!r} in `ip {command}`")


def addresses(bed: Bed) -> dict[str, set[str]]:
    links = json.loads(bed.run("ip", "-json", "addr"))
    return {link["ifname"]: {f"{item['local']}/{item['prefixlen']}" for item in link["addr_info"]
                             if item["scope"] == "global" and not item.get("tentative")} for link in links}


def kept(bed: Bed) -> dict[str, str]:
    """Makes what nmstate left in memory ours, on disk; interface -> text."""
    texts = {}
    for path in (bed.root / RUN / "system-connections").iterdir():
        profile = parse(path.read_text())
        if not profile.raw(".nmmeta", "nm-generated"):
            texts[profile.get("connection", "interface-name") or path.stem] = path.read_text()
    uuids = {name: parse(text).raw("connection", "uuid") or "" for name, text in texts.items()}
    profiles = own_profiles(texts, uuids=uuids, tags={"revision": "1"},
                            nics=[Nic(name, permanent_mac=mac) for name, mac in MACS.items()])
    keyfiles.write_profiles(bed.root, profiles)
    return {name: profile.render() for name, profile in profiles.items()}


def test_renamed_nics_come_up_with_all_that_stands_on_them(bed: Bed) -> None:
    nmstatectl.apply(STATE, checkpoint_seconds=60)
    nmstatectl.commit()
    assert {"eth0", "eth1", "mv0", "br0"} <= set(kept(bed))
    boot_again(bed, "eth1 name lan9", "eth0 name eth1")      # the other one's former name, too
    want = {"lan9": {"10.1.0.1/24", "2001:db8::1/64"}, "mv0": {"10.3.0.1/24"}, "br0": {"10.4.0.1/24"}, "eth1": set()}
    wait_until(lambda: want.items() <= addresses(bed).items(), what="the addresses")
    shows(bed, "link show eth1", "master br0")
    shows(bed, "route", "blackhole 10.66.0.0/16")
    shows(bed, "rule", "30200:\tfrom 10.3.0.1 lookup main")
    shows(bed, "rule", "30350:\tfrom all lookup main")


def test_a_rule_of_no_address_is_there_while_any_nic_is(bed: Bed) -> None:
    nmstatectl.apply(STATE, checkpoint_seconds=60)
    nmstatectl.commit()
    kept(bed)
    for name in ("homeport-lo", "homeport-eth1", "homeport-mv0"):
        (bed.root / keyfiles.ETC / f"{name}.nmconnection").unlink(missing_ok=True)
    boot_again(bed)
    wait_until(lambda: addresses(bed).get("br0") == {"10.4.0.1/24"}, what="br0")
    shows(bed, "rule", "30350:\tfrom all lookup main")


def test_online_means_that_static_addresses_passed_duplicate_detection(bed: Bed) -> None:
    state = {"interfaces": STATE["interfaces"][:1]}
    nmstatectl.apply(state, checkpoint_seconds=60)
    nmstatectl.commit()
    kept(bed)
    boot_again(bed)
    bed.run("nm-online", "-s", "-q", "-t", "60")
    assert addresses(bed)["eth1"] == {"10.1.0.1/24", "2001:db8::1/64"}


def test_kept_again_is_the_same_text(bed: Bed) -> None:
    """Unchanged means that nothing is rewritten: nmstate drops our settings when it edits a profile of ours."""
    nmstatectl.apply(STATE, checkpoint_seconds=60)
    nmstatectl.commit()
    first = kept(bed)
    boot_again(bed)
    want = {"eth1": {"10.1.0.1/24", "2001:db8::1/64"}, "mv0": {"10.3.0.1/24"}, "br0": {"10.4.0.1/24"}}
    wait_until(lambda: want.items() <= addresses(bed).items(), what="the addresses")
    nmstatectl.apply(STATE, checkpoint_seconds=60)
    nmstatectl.commit()
    again = kept(bed)
    assert again and {name: text for name, text in first.items() if name in again} == again
