"""Many at once, the wrong ones among them, and a server that is killed in the middle."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable

import pytest
import yaml
from tests.server.conftest import Server
from tests.server.machine import CONFIG, Closed, Machine, Rejected, board, register
from tests.server.software_tpm import SoftwareTpm

Make = Callable[..., Server]


def wide(seed: str) -> str:
    """The seed with a pool for a thousand."""
    return seed.replace("192.168.122.150-192.168.122.200", "192.168.120.10-192.168.123.250").replace(
        "prefix: 24", "prefix: 22").replace("prefix-length: 24", "prefix-length: 22")


def all_at_once(server: Server, count: int) -> dict[int, str]:
    """Registrations of machines 0..count-1 at the same time; the address of each that had an answer."""
    given: dict[int, str] = {}
    gate = threading.Barrier(count)

    def one(index: int) -> None:
        gate.wait()
        while True:
            try:
                kind, payload = register(server.registration(), f"uuid-{index:05}", **board(index))
            except (Closed, Rejected, OSError):
                return
            told = yaml.safe_load(payload)
            if kind == CONFIG:
                given[index] = told["ipAddresses"]["inventory-ip"]
                return
            # On a slow computer some are told to come back; never in vain.
            assert "too many machines ask at once" in told["message"]
            time.sleep(told["retry-after"])

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    threading.stack_size(256 * 1024)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given


def test_three_hundred_at_once(make_server: Make, seed: str) -> None:
    """No duplicate, no lost answer; again, and each has the same."""
    server = make_server(files={"seed.yaml": wide(seed)})
    before, started = server.rss(), time.monotonic()
    given = all_at_once(server, 300)
    seconds, after = time.monotonic() - started, server.rss()
    assert len(given) == 300
    assert len(set(given.values())) == 300
    again = all_at_once(server, 100)
    assert again == {index: given[index] for index in range(100)}
    assert after - before < 64, f"{before:.0f} MiB became {after:.0f}"
    print(f"300 registrations in {seconds:.1f} s, {before:.0f} MiB before, {after:.0f} after")


def test_killed_in_the_middle(make_server: Make, seed: str) -> None:
    """What a machine was told holds: after kill -9 each has the address that it was given before."""
    server = make_server(files={"seed.yaml": wide(seed)})
    told: dict[int, str] = {}
    worker = threading.Thread(target=lambda: told.update(all_at_once(server, 60)))
    worker.start()
    server.wait_for(lambda: server.log.count("registered:") >= 15, 60)
    server.kill()
    worker.join()
    assert told
    server.start()
    again = all_at_once(server, 60)
    assert {index: again[index] for index in told} == told
    assert len(set(again.values())) == 60


def test_two_servers_on_one_database(make_server: Make, seed: str) -> None:
    """As while one is being replaced by the next: processes share the database, not the memory."""
    one = make_server(files={"seed.yaml": wide(seed)})
    two = Server(one.nursery, one.folder, one.state, log_name="log-of-two").start()
    try:
        given: dict[str, dict[int, str]] = {}

        def work(name: str, server: Server) -> None:
            given[name] = all_at_once(server, 30)

        threads = [threading.Thread(target=work, args=pair) for pair in (("one", one), ("two", two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert given["one"] == given["two"]
        assert len(set(given["one"].values())) == 30
    finally:
        two.stop()


def open_idle(port: int, count: int, data: bytes = b"") -> list[socket.socket]:
    sockets = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), 30)
        one.sendall(data)
        sockets.append(one)
    return sockets


@pytest.mark.parametrize(("data", "tls"), [
    (b"", False),
    (b"GET /elemental/registration/fire-nodes HTTP/1.1\r\nHost: x\r\n", False),  # never the end of its head
    (b"GET /elemental/registration/fire-nodes HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
     b"Authorization: Bearer PLAINx\r\n\r\n", False),  # upgraded, and then nothing
    (b"", True),  # never a TLS greeting
])
def test_idle_by_the_hundred(make_server: Make, data: bytes, tls: bool) -> None:
    """More than may stay: memory is bounded, machines are served meanwhile, and in the end they are thrown out."""
    server = make_server("--connections", "100", tls=tls)
    before = server.rss()
    idle = open_idle(server.port, 300, data)
    context = server.tls if tls else None
    assert register(server.registration(), "52:54:00:00:00:01", tls=context)[0] == CONFIG
    assert server.get("/healthz").status_code == 200
    assert len(server.files()) < 130
    assert server.rss() - before < 48
    assert "closing those that have not asked" in server.log
    for one in idle:
        one.close()


HOSTILE_FRAMES = {
    "a text frame": (b"\x81\x85\0\0\0\0hello", "a text frame"),
    "an unmasked frame": (b"\x82\x01\x04", ""),
    "reserved bits": (b"\xf2\x81\0\0\0\0\x04", "broken frames"),
    "an unknown opcode": (b"\x83\x81\0\0\0\0\x04", "broken frames"),
    "a continuation of nothing": (b"\x80\x81\0\0\0\0\x04", "broken frames"),
    "a frame that says 2^62 bytes": (b"\x82\xff\x40\0\0\0\0\0\0\0\0\0\0\0", "broken frames"),
    "a frame of 2 MiB": (b"\x82\xff\0\0\0\0\0\x20\0\0\0\0\0\0" + bytes(1 << 21), "broken frames"),
    "a ping of 200 bytes": (b"\x89\xfe\0\xc8\0\0\0\0" + bytes(200), "broken frames"),
    "a close frame with one byte": (b"\x88\x81\0\0\0\0\x03", ""),
    "a cut frame": (b"\x82\xfe\x10\0\0\0\0\0\x02{", "closed"),
}


def test_hostile_frames(make_server: Make) -> None:
    """Each ends its own connection, with a line in the log, and nothing else."""
    server = make_server()
    for name, (data, words) in HOSTILE_FRAMES.items():
        with Machine(server.registration(), f"Bearer PLAIN{name}") as machine:
            machine.receive()
            before = len(server.log)
            try:
                machine.raw(data)
                if name == "a cut frame":
                    machine.socket.shutdown(socket.SHUT_WR)
                elif name != "an unmasked frame":
                    machine.closes()
            except OSError:
                pass
        server.wait_for(lambda name=name, before=before: f"plain {name}" in server.log[before:], 14, name)  # type: ignore[misc]
        assert words in server.log[before:], name
    assert "Traceback" not in server.log
    assert register(server.registration(), "52:54:00:00:00:01")[0] == CONFIG


def test_small_fragments_without_end(make_server: Make) -> None:
    """A message in a million parts is bounded like another."""
    server = make_server()
    before = server.rss()
    with Machine(server.registration(), "Bearer PLAINfragments") as machine:
        machine.receive()
        try:
            machine.raw(b"\x02\x81\0\0\0\0\x0b")
            for _ in range(400):
                machine.raw((b"\x00\xfe\x10\x00\0\0\0\0" + b"x" * 4096) * 10)
            machine.closes()
        except OSError:
            pass
    server.logs("plain fragments")
    assert server.rss() - before < 32


@pytest.mark.parametrize("data", [
    b"\x00\x01\x02" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
    b"POST /reports/x?token=fire-nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
    b"POST /reports/x?token=fire-nodes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS to a server without
])
def test_hostile_http(shared_server: Server, data: bytes) -> None:
    """An answer in the 400s or none, no trace of our code, and the server goes on."""
    with socket.create_connection(("127.0.0.1", shared_server.port), 30) as one:
        one.settimeout(60)
        try:
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
            reply = one.recv(65_536)
        except OSError:
            reply = b""
    assert reply == b"" or re.match(rb"HTTP/1\.[01] 4\d\d ", reply)
    assert b"Traceback" not in reply
    assert b".py" not in reply
    assert shared_server.get("/healthz").status_code == 200


def test_a_tpm_that_is_slow_does_not_hold_up_others(make_server: Make) -> None:
    """Ten that authenticate for seconds, and one that comes meanwhile."""
    server = make_server()
    tpm = SoftwareTpm()
    slow = [Machine(server.registration(), tpm.authorization) for _ in range(10)]
    challenges = [machine.receive() for machine in slow]
    started = time.monotonic()
    assert register(server.registration(), "52:54:00:00:00:01")[0] == CONFIG
    assert time.monotonic() - started < 9  # the ten have 10 s
    for machine, challenge in zip(slow, challenges, strict=True):
        machine.send(tpm.answer(challenge))
        assert machine.receive() == b"\x01"
        machine.close()


def test_a_reader_that_does_not_read(make_server: Make) -> None:
    """It has asked and goes no further; it is dropped, and costs one connection until then."""
    server = make_server()
    machine = Machine(server.registration(), "Bearer PLAINlazy")
    machine.receive()
    machine.send(b"\x04")
    server.logs("(plain lazy)")
    server.wait_for(lambda: sum(name.startswith("socket:") for name in server.files()) <= 4, 15, "its end")
    machine.close()


def test_an_orderly_stop(make_server: Make) -> None:
    server = make_server()
    register(server.registration(), "52:54:00:00:00:01")
    assert server.stop() == 0
    machine, = json.loads(server.run("list", "--json").text)["machines"]
    assert machine["addresses"][0]["address"] == "192.168.122.150"
