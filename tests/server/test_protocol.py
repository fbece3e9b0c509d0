"""The registration protocol as machines see it: the contract of spec/elemental.md, 1 and 7, over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
import yaml
from tests.server.conftest import Server
from tests.server.machine import (
    CONFIG,
    ERROR,
    GET,
    READY,
    UPDATE,
    VERSION,
    Closed,
    Machine,
    Rejected,
    board,
    register,
)
from tests.server.software_tpm import SoftwareTpm, another_key, new_key

from homeport.core.document import parse_document

Make = Callable[..., Server]
MAC_CASE = Path(__file__).parents[1] / "data" / "elemental" / "mac"


@pytest.fixture(name="server")
def _server(shared_server: Server) -> Server:
    return shared_server


def plain(server: Server, identity: str = "52:54:00:aa:00:01") -> Machine:
    machine = Machine(server.registration(), f"Bearer PLAIN{identity}")
    assert machine.receive() == bytes((READY,))
    return machine


def message(payload: bytes) -> str:
    return str(yaml.safe_load(payload)["message"])


def test_a_tpm_registers_and_registers_again(server: Server) -> None:
    tpm = SoftwareTpm(ek=another_key(new_key(), 100))
    kind, first = register(server.registration(), tpm, **board(100))
    assert kind == CONFIG
    assert parse_document(first).config["interfaces"][0]["ipv4"]["address"][0]["ip"].startswith("192.168.122.")
    assert register(server.registration(), tpm, update=True, **board(100)) == (CONFIG, first)
    # `--reset` of a machine that is known still: as new, with the same address.
    assert register(server.registration(), tpm, **board(100)) == (CONFIG, first)
    assert f"tpm {tpm.digest[:16]}" in server.log


def test_recorded_messages_of_elemental_register(server: Server) -> None:
    """What the real one said, said again."""
    with plain(server) as machine:
        assert machine.say(VERSION, (MAC_CASE / "04-C-Version").read_bytes()) == b"\x05\x0c"
        for kind, name in ((2, "06-C-SMBIOS"), (11, "08-C-SystemDataV2"), (9, "10-C-Annotations")):
            assert machine.say(kind, (MAC_CASE / name).read_bytes()) == bytes((READY,))
        reply = machine.say(GET)
        assert reply[0] == CONFIG
        assert not machine.closes().frame


@pytest.mark.parametrize(("version", "agreed", "kind", "network"), [
    (5, 5, None, False),
    (6, 6, None, False),
    (7, 7, CONFIG, False),
    (11, 11, CONFIG, False),
    (12, 12, CONFIG, True),
    (200, 12, CONFIG, True),
])
def test_versions(server: Server, version: int, agreed: int, kind: int | None, network: bool) -> None:
    with plain(server, f"version-{version}") as machine:
        assert machine.say(VERSION, bytes((version,))) == bytes((VERSION, agreed))
        reply = machine.say(GET)
        assert not machine.closes().frame
    if kind is None:  # before there were types: the configuration as such
        assert reply.startswith(b"elemental:")
    else:
        assert reply[0] == kind
    assert ("configurator" in yaml.safe_load(reply if kind is None else reply[1:])) == network


def test_without_a_version(server: Server) -> None:
    """The least that is legal: a machine from before there were versions."""
    with plain(server, "no-version") as machine:
        assert machine.say(GET).startswith(b"elemental:")


@pytest.mark.parametrize(("data", "words"), [
    (b"\x05\x04", "protocol version 4"),
    (b"\x05", "a version of 0 bytes"),
    (b"\x05\x0c\x00", "a version of 2 bytes"),
    (b"", "an empty message"),
    (b"\x0c", "type 12, which is not for machines"),
    (b"\x01", "type 1, which is not for machines"),
    (b"\x07", "type 7, which is not for machines"),
    (b"\x0d", "type 13, which does not exist"),
    (b"\xff", "type 255, which does not exist"),
    (b"\x02{", "SMBIOS: no JSON"),
    (b"\x02", "SMBIOS: no JSON"),
    (b"\x02[]", "SMBIOS: JSON, but no object"),
    (b"\x02\xff\xfe", "SMBIOS: bytes that are not UTF-8"),
    (b"\x0b" + b'{"a":' * 100 + b"1" + b"}" * 100, "SystemDataV2: more than 64 levels"),
    (b"\x0b" + b"[" * 200_000, "SystemDataV2: no JSON"),
    (b'\x0b{"a": NaN}', "NaN is no JSON number"),
    (b'\x0b{"a": "\\ud800"}', "half a surrogate pair"),
    (b'\x03{"a": 2}', "Labels: a int as value of 'a'"),
    (b"\x03", "Labels: no JSON"),
    (b'\x09{"a": {}}', "Annotations: a dict as value of 'a'"),
])
def test_a_message_that_is_not_answered(server: Server, data: bytes, words: str) -> None:
    """The connection ends, as with the operator; the reason is in the log, with phase and message."""
    with plain(server, "wrong-messages") as machine:
        machine.send(data)
        assert not machine.closes().frame
    server.logs(words)
    line = next(line for line in server.log.splitlines() if words in line)
    assert "registration failed in phase 'version'" in line
    assert "plain wrong-messages" in line


@pytest.mark.parametrize(("authorization", "words"), [
    ("", "no Authorization header"),
    ("Basic YTpi", "neither Bearer TPM nor Bearer PLAIN"),
    ("Bearer PLAIN", "a plain identity of 0 characters"),
    ("Bearer TPM", "its token cannot be accepted"),
    ("Bearer TPM%%%", "no base64"),
    (SoftwareTpm(attributes=0).authorization, "it need not be of a TPM"),
])
def test_authentication_fails_after_the_upgrade(server: Server, authorization: str, words: str) -> None:
    with Machine(server.registration(), authorization) as machine:
        closed = machine.closes()
    assert not closed.frame
    server.logs(words)


def test_a_wrong_answer_to_the_challenge(server: Server) -> None:
    tpm = SoftwareTpm()
    with Machine(server.registration(), tpm.authorization) as machine:
        machine.receive()
        machine.send(b'{"Secret": "AAAA"}\n')
        assert not machine.closes().frame
    server.logs("its answer is wrong")


def test_a_replayed_answer(server: Server) -> None:
    tpm = SoftwareTpm()
    with Machine(server.registration(), tpm.authorization) as machine:
        answer = tpm.answer(machine.receive())
        machine.send(answer)
        assert machine.receive() == bytes((READY,))
    with Machine(server.registration(), tpm.authorization) as machine:
        machine.receive()
        machine.send(answer)
        machine.closes()
    server.logs("its answer is wrong")


def test_a_message_in_place_of_the_answer(server: Server) -> None:
    with Machine(server.registration(), SoftwareTpm().authorization) as machine:
        machine.receive()
        machine.send(b"\x04")
        machine.closes()
    server.logs("its answer cannot be read")


def test_an_unknown_token(server: Server) -> None:
    with pytest.raises(Rejected) as refused:
        Machine(server.registration("nothing-here"), "Bearer PLAINx")
    assert refused.value.status == 404
    assert refused.value.body == "failed to find machine registration with registration token nothing-here\n"


def test_the_bootstrap_file(server: Server) -> None:
    """Without an upgrade: what is baked into an image."""
    reply = requests.get(server.registration(), timeout=60)
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert yaml.safe_load(reply.text) == {"elemental": {"registration": {"url": server.registration()}}}
    assert "Python" not in reply.headers["Server"]


def test_an_update_of_a_machine_that_is_not_known(server: Server) -> None:
    kind, payload = register(server.registration(), "never-seen", update=True)
    assert (kind, message(payload)) == (ERROR, "MachineInventory not found")
    with plain(server, "never-seen-either") as machine:  # before there were errors: silence
        machine.say(VERSION, b"\x07")
        machine.send(bytes((UPDATE,)))
        machine.closes()


@pytest.mark.parametrize(("identity", "words"), [
    ("unknown", "cannot read its own identity"),
    ("03000200-0400-0500-0006-000700080009", "cannot name one machine"),
    ("00:00:00:00:00:00", "cannot name one machine"),
    ("ff:ff:ff:ff:ff:ff", "cannot name one machine"),
])
def test_an_identity_that_many_have(server: Server, identity: str, words: str) -> None:
    kind, payload = register(server.registration(), identity)
    assert kind == ERROR
    assert words in message(payload)


def test_a_registration_that_wants_a_tpm(server: Server) -> None:
    kind, payload = register(server.registration("only-tpm"), "52:54:00:aa:00:02")
    assert (kind, message(payload)) == (ERROR, "this registration wants a TPM (auth: tpm)")
    assert register(server.registration("only-tpm"), SoftwareTpm(ek=another_key(new_key(), 101)))[0] == CONFIG


def test_messages_in_any_order_and_twice(server: Server) -> None:
    """The operator enforces none; a message of 5 KB and one of fragments are messages like others."""
    machine_board = board(102)
    with plain(server, "any-order") as machine:
        assert machine.say(11, machine_board["system"] | {"filler": "x" * 5_000}) == bytes((READY,))
        assert machine.say(VERSION, b"\x0c") == b"\x05\x0c"
        assert machine.say(2, machine_board["smbios"]) == bytes((READY,))
        assert machine.say(2, machine_board["smbios"]) == bytes((READY,))
        assert machine.say(GET)[0] == CONFIG


def test_exhausted_and_served_again(make_server: Make, seed: str) -> None:
    """The machine is told that it is not ready, and why; then it is."""
    server = make_server(files={"seed.yaml": seed.replace("192.168.122.200", "192.168.122.150")})
    assert register(server.registration(), "first")[0] == CONFIG
    kind, payload = register(server.registration(), "second")
    told = yaml.safe_load(payload)
    assert kind == ERROR
    assert told["message"].startswith("not ready: inventory-ip: no address of InClusterIPPool/")
    assert (told["pending"], told["retry-after"]) == (True, 10)
    assert "PENDING: inventory-ip: no address" in server.run("list").text
    assert "must wait: inventory-ip: no address" in server.log
    assert server.run("release", "first").text == "released 192.168.122.150\n"
    assert register(server.registration(), "second")[0] == CONFIG


def test_reset_and_report_by_annotation(make_server: Make) -> None:
    """A machine with a TPM has no other way to tell; a reset without Get gives its address back."""
    server = make_server()
    tpm = SoftwareTpm()
    register(server.registration(), tpm, annotations={"homeport.revision": "r1", "homeport.rung": "assigned"})
    register(server.registration(), tpm, annotations={"homeport.revision": "r1", "homeport.rung": "assigned"})
    assert "rung: assigned" in server.run("show", tpm.digest).text
    with Machine(server.registration(), tpm.authorization) as machine:
        machine.prove(tpm)
        machine.receive()
        machine.say(VERSION, b"\x0c")
        assert machine.say(9, {"homeport.event": "reset"}) == bytes((READY,))
    server.logs("reported")
    assert "inventory-ip" not in server.run("list").text


def test_ten_seconds_for_all_of_it(server: Server) -> None:
    """A machine that says something every other second gets no longer than one that is silent.

    Nor does one that only connects; all of them wait here together.
    """
    idle = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(20)]
    silent = Machine(server.registration(), "Bearer PLAINsilent")
    started = time.monotonic()
    with plain(server, "slow") as machine:
        try:
            while time.monotonic() - started < 40:
                machine.say(VERSION, b"\x0c")
                time.sleep(1.5)
        except (Closed, ConnectionError):
            pass
        assert 9 < time.monotonic() - started < 30
    server.logs("(plain slow) at fleet-default/fire-nodes: registration failed in phase 'data': not done in 10 s")
    server.logs("(plain silent) at fleet-default/fire-nodes: registration failed in phase 'version': not done in 10 s")
    assert not silent.closes().frame
    assert [one.recv(1) for one in idle] == [b""] * 20
    server.logs("connections that asked for nothing in 12 s (127.0.0.1)")
