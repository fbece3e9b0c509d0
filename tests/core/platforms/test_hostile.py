"""Whatever stands in metadata, the worst that comes of it is that they are refused, and soon."""

from __future__ import annotations

import json
import random
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from homeport.core import platforms
from homeport.core.document import check_document
from homeport.core.facts import Nic
from homeport.core.platformnames import NAMES
from homeport.core.platforms.attributes import attributes, hostname
from homeport.core.yamlsafe import read_yaml
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError
from homeport.sources.platforms import saved

CASES = sorted((Path(__file__).parents[2] / "data" / "platforms").iterdir())
ODD: list[Any] = [
    None, "", 0, -1, 1.5, True, "x", "::1", "0.0.0.0/0", "fe80::1%x", "300.1.2.3", [], {}, [[]], [{}], {"a": 1},
    "00:00:5e:00:53:01", "eth0", "a\nb", "é" * 70, 2**70, "64", "255.255.0.255", "255.255.255.255", "0.0.0.0/32",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0" * 5000, "9" * 5000, "1e9", "yes", "fe80::1%", "::1%eth0/64",
    [["x"]], {"version": 2}, "\u0660", "\x00", "[", "<html>", float("inf")]


def changed(value: Any, chance: random.Random) -> Any:
    """The tree with one value somewhere replaced, dropped or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.2:
            return [*value, value[place]]
        return [*value[:place], changed(value[place], chance), *value[place + 1:]]
    return chance.choice(ODD)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_metadata_with_something_odd_in_them(case: Path) -> None:
    platform = platforms.find(max((name for name in NAMES if case.name.startswith(f"{name}-")), key=len))
    assert platform is not None
    whole = dict(saved.read(platform, case / "metadata"))
    nics = tuple(Nic(**nic) for nic in json.loads((case / "machine.json").read_text())["nics"])
    chance = random.Random(case.name)
    for _ in range(20 if whole else 1):
        files = dict(whole)
        for path, data in whole.items():
            if data is not None and chance.random() < 0.5:
                tree = read_yaml(data.decode()).value
                odd = changed(tree, chance)
                files[path] = odd.encode() if isinstance(odd, str) else json.dumps(odd).encode()
        attributes(platform, files)
        hostname(platform, files)
        try:
            made = platforms.make(platform, files, platforms.Situation(nics, servers=(ip_address("192.0.2.53"),)))
        except DocumentError as error:
            assert all(complaint.found or complaint.wanted for complaint in error.complaints)
            continue
        check_document(render_yaml(made.tree).encode())


@pytest.mark.parametrize("key", ["a\n<3>homeport: all is well", "a\x1b]0;x\x07", "a\u2028b", "k" * 5000])
def test_notes_are_lines_of_ours(key: str) -> None:
    """What the metadata call something makes no line in the journal, and nothing that a terminal obeys."""
    platform = platforms.find("nocloud")
    assert platform is not None
    card = {"match": {"macaddress": "00:00:5e:00:53:01"}, "dhcp4": True, key: 1}
    config = {"version": 2, "ethernets": {f"eth0{key}": card}, key: {}}
    made = platforms.make(platform, {"network-config": json.dumps(config).encode()}, platforms.Situation(
        (Nic(name="ens3", mac="00:00:5e:00:53:01"),)))
    assert len(made.notes) > 1 and all(note.isprintable() and len(note) <= 301 for note in made.notes)


def seconds(case: str, files: dict[str, Any]) -> float:
    platform = platforms.find(case)
    assert platform is not None
    data = {path: json.dumps(tree).encode() for path, tree in files.items()}
    assert sum(map(len, data.values())) <= 512 << 10
    started = time.process_time()
    platforms.make(platform, data, platforms.Situation())
    return time.process_time() - started


def test_as_much_as_a_service_may_say_takes_seconds_at_most() -> None:
    name = "openstack/latest/network_data.json"
    link = {"id": "l", "type": "phy", "ethernet_mac_address": "00:00:5e:00:53:01"}
    routes = [{"network": f"10.{a}.{b}.0", "netmask": "24", "gateway": f"198.51.{a}.{b}"}
              for a in range(28) for b in range(256)]
    network = {"type": "ipv4", "link": "l", "ip_address": "192.0.2.1/24", "routes": routes}
    assert seconds("openstack", {name: {"links": [link], "networks": [network]}}) < 5
    many = [{"type": "ipv4", "link": "l", "ip_address": f"10.{a}.{b}.1/24"} for a in range(28) for b in range(256)]
    assert seconds("openstack", {name: {"links": [link], "networks": many}}) < 5
    cards = [{"mac": f"02:00:00:00:{a:02x}:{b:02x}", "type": "private",
              "ipv4": {"ip_address": f"10.{a}.{b}.1", "netmask": "24"}} for a in range(14) for b in range(256)]
    assert seconds("digitalocean", {"metadata/v1.json": {"interfaces": {"private": cards}}}) < 5
