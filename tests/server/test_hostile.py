"""Machines and strangers that mean harm: what one can take from the others, and what reaches a person's eyes."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping

import pytest
from tests.server.conftest import Server
from tests.server.machine import CONFIG, ERROR, Closed, Machine, board, register

Make = Callable[..., Server]
TOKEN = {"Authorization": "Bearer fire-nodes"}
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def test_nobody_brings_more_than_he_can_have_to_say(make_server: Make) -> None:
    """Pings without end, which are in no message and so in no message's limit."""
    server = make_server()
    before = server.rss()
    with Machine(server.registration(), "Bearer PLAINpinger") as machine:
        machine.receive()
        with pytest.raises((OSError, Closed)):
            for _ in range(4_000):
                machine.raw((b"\x89\xfd\0\0\0\0" + b"x" * 125) * 10)
            machine.closes()
            raise Closed(False)
    server.logs("more than 1536 KiB in one connection; closed")
    assert server.rss() - before < 32
    assert register(server.registration(), "52:54:00:00:00:01")[0] == CONFIG


def test_a_frame_is_weighed_while_it_comes(make_server: Make) -> None:
    """One that says it has 2^62 bytes, and begins to send them."""
    server = make_server()
    before = server.rss()
    with Machine(server.registration(), "Bearer PLAINgiant") as machine:
        machine.receive()
        with pytest.raises((OSError, Closed)):
            machine.raw(b"\x82\xff\x40\0\0\0\0\0\0\0\0\0\0\0")
            for _ in range(64):
                machine.raw(bytes(1 << 20))
            machine.closes()
            raise Closed(False)
    server.logs("plain giant")
    assert server.rss() - before < 32


def test_who_has_no_token_holds_no_place(make_server: Make) -> None:
    """Reports that never come, by the dozen: each is sent away at once, and a machine finds room."""
    server = make_server("--connections", "20")
    head = b"POST /reports/x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 30) as one:
        one.sendall(head)
        started = time.monotonic()
        assert one.recv(100).startswith(b"HTTP/1.1 401 ")
        assert time.monotonic() - started < 9  # at once, not after the 10 s that all of it may take
    others = [socket.create_connection(("127.0.0.1", server.port), 30) for _ in range(19)]
    for other in others:
        other.sendall(head)
    assert server.get("/healthz").status_code == 200
    for other in others:
        other.close()


def ask(server: Server, source: str, machine: str, headers: dict[str, str]) -> int:
    """The status that a client at this address of the loopback gets."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, 10, source_address=(source, 0))
    connection.request("GET", f"/assignments/{machine}", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_who_has_no_token_cannot_use_up_a_machines_turns(make_server: Make) -> None:
    server = make_server()
    strangers = [ask(server, "127.0.0.2", "52:54:00:00:00:01", {}) for _ in range(30)]
    assert set(strangers) == {401, 429}
    assert ask(server, "127.0.0.1", "52:54:00:00:00:01", TOKEN) == 200


def test_a_machine_that_registers_without_end_is_told_to_wait(make_server: Make) -> None:
    """And nobody else."""
    server = make_server()
    told = [register(server.registration(), "52:54:00:00:00:01", **board(1)) for _ in range(14)]
    assert [kind for kind, _ in told[:10]] == [CONFIG] * 10
    kind, payload = told[-1]
    assert kind == ERROR
    assert b"this machine asks too often, come back in " in payload
    assert b"pending: true" in payload
    assert register(server.registration(), "52:54:00:00:00:02", **board(2))[0] == CONFIG


def test_what_machines_say_is_shown_harmless(make_server: Make) -> None:
    """No terminal obeys what a machine calls itself, its board or its troubles."""
    server = make_server()
    said = board(1, serial=f"SN{EVIL}7")
    annotations = {f"a{EVIL}": EVIL, "homeport.rung": "dhcp", "homeport.reason": f"broken{EVIL}"}
    kind, _ = register(server.registration(), "52:54:00:00:00:01", annotations=annotations,
                       labels={f"l{EVIL}": EVIL}, **said)
    assert kind == CONFIG
    (name,) = (one["name"] for one in json.loads(server.run("list", "--json").text)["machines"])
    report = {"rung": f"dhcp{EVIL}", "reason": EVIL, "addresses": [EVIL]}
    status = _post(server, "52:54:00:00:00:01", report)
    assert status == 204
    for output in (server.run("list").text, server.run("show", name).text, server.log):
        assert "\x1b" not in output
        assert "\x9b" not in output
        assert "\x07" not in output


def _post(server: Server, machine: str, report: Mapping[str, object]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, 10)
    connection.request("POST", f"/reports/{machine}", json.dumps(report), TOKEN)
    return connection.getresponse().status


@pytest.mark.parametrize("serial", ["../../../etc/shadow", "..", "/etc/x\0y", "a\nb: c", "$(reboot)", "é" * 300])
def test_a_name_is_a_name(make_server: Make, seed: str, serial: str) -> None:
    """Whatever a machine puts into the machineName's template: a host name comes out, or a refusal."""
    server = make_server(files={"seed.yaml": seed.replace("test-btrfs-${System Information/UUID}",
                                                          "${System Information/Serial Number}")})
    kind, payload = register(server.registration(), "52:54:00:00:00:01", **board(1, serial=serial))
    if kind == ERROR:
        assert b"leaves nothing that can be a name" in payload
        return
    (machine,) = json.loads(server.run("list", "--json").text)["machines"]
    assert all(char.isascii() and (char.isalnum() or char in "-.") for char in machine["name"])
    assert machine["name"][0].isalnum()
    server.run("export")
