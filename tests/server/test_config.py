"""The configuration message, byte by byte as the Go client reads it, and as homeport reads it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from homeport.core.addresses import Address
from homeport.core.document import parse_document
from homeport_server.elemental.config import render_config, render_error
from homeport_server.manifests.networks import Network
from homeport_server.manifests.registrations import Registration
from homeport_server.manifests.sets import read_manifests
from homeport_server.outcome import Assigned, Waiting

DATA = Path(__file__).parents[1] / "data"
MANIFESTS, _faults = read_manifests({"seed.yaml": (DATA / "server" / "seed.yaml").read_bytes()})
SEED = MANIFESTS.registrations[0]
ADDRESSES = {"inventory-ip": Address("192.168.122.150", 24, "192.168.122.1")}
ASSIGNED = Assigned("m", "ns", SEED.network, ADDRESSES)


def load(registration: Registration = SEED, assigned: Assigned = ASSIGNED, version: int = 12) -> dict[str, Any]:
    tree = yaml.safe_load(render_config(registration, "https://s/elemental/registration/t", "PEM\n", assigned, version))
    assert isinstance(tree, dict)
    return tree


def decoded(raws: dict[str, Any]) -> dict[str, Any]:
    """As spec/elemental.md, 1.6 says: `{raw: [bytes], object: null}`."""
    for value in raws.values():
        assert set(value) == {"raw", "object"}
        assert value["object"] is None
        assert all(isinstance(byte, int) for byte in value["raw"])
    return {key: json.loads(bytes(value["raw"])) for key, value in raws.items()}


def test_the_seed_is_what_the_operator_sends() -> None:
    """Beside tokens, secrets and our own `revision`."""
    real = yaml.safe_load((DATA / "elemental" / "tpm" / "update-17-S-Config").read_text())
    ours = load()
    assert ours.pop("revision").startswith("sha256:")
    assert decoded(ours.pop("config")) == decoded(real.pop("config"))
    assert set(real["elemental"].pop("system-agent")) >= {"token"}  # of a Rancher that is not here
    assert set(ours["elemental"]["registration"]) == set(real["elemental"]["registration"]) == {"url", "ca-cert"}
    assert {key: value for key, value in ours.items() if key != "elemental"} == {
        key: value for key, value in real.items() if key != "elemental"}


def test_it_begins_as_the_operators_does() -> None:
    assert render_config(SEED, "u", "", ASSIGNED, 12).startswith(b"elemental:\n")


def test_an_old_client_gets_no_network() -> None:
    assert set(load(version=11)) == {"elemental"}


def test_no_network_no_keys() -> None:
    assert set(load(assigned=Assigned("m", "ns"))) == {"elemental"}


def test_what_the_operator_passes_on() -> None:
    registration = replace(
        SEED, cloud_config={"users": [{"name": "root", "passwd": "ä<b>"}], "on: e": 1},
        elemental={"install": {"device": "/dev/sda", "reboot": True}, "reset": {"enabled": True},
                   "registration": {"auth": "mac", "emulate-tpm": True, "emulated-tpm-seed": -1, "no-toolkit": True}})
    tree = load(registration)
    assert tree["elemental"]["install"] == {"device": "/dev/sda", "reboot": True}
    assert tree["elemental"]["reset"] == {"enabled": True}
    assert tree["elemental"]["registration"] == {
        "url": "https://s/elemental/registration/t", "ca-cert": "PEM\n", "auth": "mac", "emulate-tpm": True,
        "emulated-tpm-seed": -1}
    assert decoded(tree["cloud-config"]) == {"users": [{"name": "root", "passwd": "ä<b>"}], "on: e": 1}


def test_prefix_and_gateway_are_filled_for_those_who_cannot() -> None:
    """Go knows `{name}` alone; it stays, for Go to fill."""
    config = {"interfaces": [{"name": "e", "ip": "{a}", "prefix-length": "{a.prefix}", "via": "{a.gateway}, {b}"}]}
    network = Network("nmstate", config, {"a": "p"})
    tree = load(assigned=Assigned("m", "ns", network, {"a": Address("192.0.2.9", 24, "192.0.2.1")}))
    assert decoded(tree["config"]) == {
        "interfaces": [{"name": "e", "ip": "{a}", "prefix-length": 24, "via": "192.0.2.1, {b}"}]}
    assert tree["ipAddresses"] == {"a": "192.0.2.9"}


def test_keyfiles_stay_text() -> None:
    keyfile = "[connection]\nid=e\n[ipv4]\naddress1={a}/{a.prefix},{a.gateway}\n"
    tree = load(assigned=Assigned("m", "ns", Network("nmconnections", {"e": keyfile}, {"a": "p"}),
                                  {"a": Address("192.0.2.9", 24, "192.0.2.1")}))
    assert decoded(tree["config"]) == {"e": "[connection]\nid=e\n[ipv4]\naddress1={a}/24,192.0.2.1\n"}


def test_homeport_reads_both_shapes_as_the_same() -> None:
    message = parse_document(render_config(SEED, "u", "", ASSIGNED, 12))
    plain = parse_document(json.dumps(ASSIGNED.document).encode())
    assert message.config == plain.config
    assert message.config["interfaces"][0]["ipv4"]["address"][0]["ip"] == "192.168.122.150"
    assert message.revision == plain.revision == ASSIGNED.revision
    assert plain.addresses["inventory-ip"] == ADDRESSES["inventory-ip"]


def test_the_revision_names_what_is_assigned_and_nothing_else() -> None:
    assert Assigned("other", "ns", SEED.network, ADDRESSES).revision == ASSIGNED.revision
    moved = {"inventory-ip": Address("192.168.122.151", 24, "192.168.122.1")}
    assert Assigned("m", "ns", SEED.network, moved).revision != ASSIGNED.revision
    assert Assigned("m", "ns", replace(SEED.network, proof=["gateway"]), ADDRESSES).revision != ASSIGNED.revision


def test_errors() -> None:
    assert yaml.safe_load(render_error("MachineInventory not found")) == {"message": "MachineInventory not found"}
    assert yaml.safe_load(render_error(Waiting("m", "none is free", 7))) == {
        "message": "not ready: none is free", "pending": True, "retry-after": 7}
