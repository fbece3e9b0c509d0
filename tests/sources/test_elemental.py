"""The elemental source against a strict server, hostile ones, and the settings that lead to it."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from namespaces import wait_until

pytest.importorskip("cryptography")
pytest.importorskip("wsproto")

from wsproto.events import BytesMessage, Ping, TextMessage

from homeport import sources
from homeport.core.document import understand_document
from homeport.core.identity import Identity
from homeport.errors import (
    DocumentError,
    NoAssignment,
    Pending,
    RefusedBySource,
    SourceError,
    Unconfigured,
    Unreachable,
)
from homeport.host import tpm
from homeport.host.store import REGISTRATION_CA, Manifest, Store
from homeport.settings import Settings
from homeport.sources import Reply, elemental
from homeport.sources.elemental import shown
from homeport.sources.patience import Clock
from registration import READY, Operator, Talk, Told, make_credential, read_token, render_challenge
from swtpm import Swtpm, missing

CASES = Path(__file__).parents[1] / "data/elemental"
PENDING = (CASES / "tpm/15-S-Config").read_bytes()
COMPLETE = (CASES / "tpm/update-17-S-Config").read_bytes()
MAC = "52:54:00:aa:bb:cc"
UUID = "4c4c4544-0042-3010-8051-b4c04f564432"
WHO = Identity("override", MAC, "a test", (), {"mac": MAC, "uuid": UUID})


@pytest.fixture
def operator() -> Iterator[Operator]:
    with Operator() as server:
        yield server
        assert server.faults == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "var/lib/homeport").mkdir(parents=True)
    return tmp_path


class Hurried:
    """The real clock, but nobody sleeps long."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.clock = Clock(sleep=self._sleep, chance=lambda: 0.5)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 2))
        time.sleep(min(seconds, 0.01))


class Asking:
    """Registers the way a boot does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hurried = Hurried()
        self.lines: list[str] = []

    def __call__(self, url: str = "", auth: str = "mac", *, who: Identity = WHO, within: float = 20.0,
                 **settings: Any) -> Reply:
        return sources.fetch(self.settings(url, auth, **settings), who, root=self.root, clock=self.hurried.clock,
                             deadline=time.monotonic() + within, progress=self.lines.append)

    def settings(self, url: str, auth: str = "mac", **more: Any) -> Settings:
        return Settings({"sources": ("elemental",), "registration": url, "registration_auth": auth, **more})


@pytest.fixture
def ask(root: Path) -> Asking:
    return Asking(root)


# Registrations

@pytest.mark.parametrize(("auth", "hash"), [
    ("mac", "ce2fab7981d534866b8aa2c23205ee2a31096a2dd1361a8d210392b999b911ca"),
    ("sys-uuid", "e6bc893ff1c7c2cb028e172879424d578495581397b9b37210436fcc6bd9c229"),
])
def test_by_what_anyone_may_say(operator: Operator, ask: Asking, auth: str, hash: str) -> None:
    operator.documents = [COMPLETE]
    reply = ask(operator.url(), auth)
    assert operator.told[0].hash == hash
    assert (reply.source, reply.over_network, reply.label) == (
        "elemental", True, f"elemental {operator.url().removesuffix('/t0ken')}")
    assert understand_document(reply.data).config["interfaces"][0]["name"] == "enp1s0"


def test_by_tpm(operator: Operator, ask: Asking, tmp_path: Path) -> None:
    """A software TPM in the place of /dev/tpmrm0; asked twice, its keys are made once, and given back."""
    if why := missing("tpm2_getcap"):
        pytest.skip(why)
    with Swtpm(tmp_path / "tpm") as chip:
        (ask.root / "dev").mkdir()
        (ask.root / "dev/tpmrm0").symlink_to(chip.socket)
        try:
            wanted = tpm.the_tpm(ask.root).endorsement_key().hash
            ask(operator.url(), "tpm")
            ask(operator.url(), "tpm")
        finally:
            tpm.give_back()
        assert chip.tool("tpm2_getcap", "handles-transient") + chip.tool("tpm2_getcap", "handles-loaded-session") == ""
    first, second = operator.told
    assert first.hash == second.hash == wanted
    assert first.authorization == second.authorization


def test_by_an_emulated_tpm(operator: Operator, ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    ask(operator.url(), "emulated-tpm")
    ask(operator.url(), "emulated-tpm")
    assert operator.told[0].hash == operator.told[1].hash
    assert operator.told[0].messages["annotations"]["auth"] == "emulated-tpm"
    assert "not the identity that elemental-register would have" in caplog.text


def test_without_a_tpm_it_is_no_other_machine(operator: Operator, ask: Asking) -> None:
    """Nothing is said in its place: a MAC proves nothing, and would be another machine to the server."""
    with pytest.raises(SourceError, match="has no TPM that the kernel knows"):
        ask(operator.url(), "tpm")
    assert operator.connections == 0


@pytest.mark.parametrize(("auth", "words"), [
    ("mac", "no network card with a permanent one"), ("sys-uuid", "Cannot register by SMBIOS UUID: there is none")])
def test_a_machine_that_has_not_what_it_takes(operator: Operator, ask: Asking, auth: str, words: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.host.nics.read_nics", lambda _root: ())
    with pytest.raises(SourceError, match=words):
        ask(operator.url(), auth, who=Identity())
    assert operator.connections == 0


def test_what_is_told(operator: Operator, ask: Asking) -> None:
    """Of the machine, of its system, of its last assignment; labels from both of Elemental's files."""
    put(ask.root, "etc/os-release", "ID=sl-micro\n")
    put(ask.root, "etc/elemental/labels.yaml", "site: north\nrack: 7\n")
    put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
        "url": operator.url(), "auth": "mac", "labels": {"Rack": "9"}}}}))
    store = Store(ask.root)
    store.write_manifest(Manifest(revision="41", complete=True))
    store.write_status({"rung": "assigned", "result": "ok", "reason": "", "complaints": []})
    ask(auth="")
    messages = operator.told[0].messages
    assert messages["annotations"] == {
        "auth": "mac", "os.id": "sl-micro", "registration-ip": "127.0.0.1", "homeport.revision": "41",
        "homeport.rung": "assigned", "homeport.result": "ok", "reg-version": messages["annotations"]["reg-version"]}
    assert messages["labels"] == {"site": "north", "rack": "9"}
    assert set(messages) == {"smbios", "system data", "annotations", "labels"}
    assert operator.told[0].order == [5, 2, 11, 9, 3, 4]


def test_no_smbios_if_the_registration_says_so(operator: Operator, ask: Asking) -> None:
    put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
        "url": operator.url(), "auth": "mac", "no-smbios": True}}}))
    ask(auth="")
    assert operator.told[0].order == [5, 9, 4]


def test_a_registered_machine_does_not_register_anew(operator: Operator, ask: Asking) -> None:
    put(ask.root, "oem/registration/state.yaml", "initialRegistration: 2026-11-30T16:48:00Z\n")
    with pytest.raises(NoAssignment, match="does not know this machine any more"):
        ask(operator.url())
    operator.known.add("ce2fab7981d534866b8aa2c23205ee2a31096a2dd1361a8d210392b999b911ca")
    ask(operator.url())
    assert operator.told[0].order[:2] == [5, 10]


@pytest.mark.parametrize("newest", [None, 5, 6, 8, 11, 12])
def test_every_version_of_the_server(operator: Operator, ask: Asking, newest: int | None) -> None:
    """One that knows none closes the connection when it hears of one; the next attempt says nothing of it."""
    operator.newest = newest
    assert ask(operator.url()).data == b"elemental: {}\n"
    assert operator.told[-1].version == (newest or 0)
    assert operator.connections == (2 if newest is None else 1)


# Not yet

def test_pending_is_for_whoever_knows_what_the_machine_stands_on(operator: Operator, ask: Asking) -> None:
    """The answer without addresses is a document, and its open placeholder says so; nothing waits here."""
    operator.documents = [PENDING, COMPLETE]
    with pytest.raises(Pending, match="inventory-ip"):
        understand_document(ask(operator.url()).data)
    assert understand_document(ask(operator.url()).data).revision.startswith("sha256:")
    assert ask.hurried.slept == []


def test_a_server_that_runs_into_its_own_deadline(operator: Operator, ask: Asking, monkeypatch: pytest.MonkeyPatch,
                                                  ) -> None:
    """Condition absent: it closes at ten seconds without a word, which looks like a fault of the network."""
    monkeypatch.setattr("homeport.core.elemental.verdicts.ITS_LIMIT", 0.4)

    def talk(talk: Talk) -> None:
        original = talk.send
        talk.send = lambda data, **more: time.sleep(0.5) if data[:1] == b"\x07" else original(data, **more)  # type: ignore[method-assign]
        operator.serve(talk)

    operator.talk = talk
    with pytest.raises(Pending, match="has no network configuration for this machine yet"):
        ask(operator.url())
    assert operator.connections == 1


@pytest.mark.parametrize(("words", "kind"), [
    ("NewtworkConfig not ready", Pending), ("MachineInventory not found", NoAssignment),
    ("MachineInventory creation failed: x already exists", RefusedBySource)])
def test_the_server_s_words_decide(operator: Operator, ask: Asking, words: str, kind: type[SourceError]) -> None:
    operator.talk = saying(operator, 4, f"\x08message: '{words}'\n".encode())
    with pytest.raises(kind, match=words):
        ask(operator.url())


def test_a_race_in_the_server_is_run_again_at_once(operator: Operator, ask: Asking) -> None:
    conflict = b"\x08message: 'MachineInventory update failed: Operation cannot be fulfilled on x'\n"
    turns = [saying(operator, 4, conflict), saying(operator, 4, conflict), operator.serve]
    operator.talk = lambda talk: turns.pop(0)(talk)
    ask(operator.url())
    assert ask.hurried.slept == [0.1, 0.1]


def saying(operator: Operator, kind: int, answer: bytes) -> Callable[[Talk], None]:
    """The protocol, until a message of this kind comes."""
    def talk(talk: Talk) -> None:
        talk.accept()
        talk.send(READY)
        told = Told()
        while True:
            data = talk.receive()
            if data[0] == kind:
                talk.send(answer)
                return
            talk.send(operator.reply(data, told))
    return talk


def test_homeport_server_says_not_yet_in_its_own_way(operator: Operator, ask: Asking) -> None:
    operator.talk = saying(operator, 4, b"\x08message: 'not ready: no free address'\npending: true\nretry-after: 10\n")
    with pytest.raises(Pending, match="no free address") as caught:
        ask(operator.url())
    assert caught.value.retry_after == 10.0


# Told only

def test_the_outcome_is_told(operator: Operator, ask: Asking) -> None:
    """Elemental keeps annotations of a machine that goes on to ask; the answer is not looked at."""
    Store(ask.root).write_manifest(Manifest(revision="42", complete=True))
    operator.documents = [b"no configuration at all"]
    elemental.tell(ask.settings(operator.url()), WHO, root=ask.root, within=30.0)
    assert operator.told[0].messages["annotations"]["homeport.revision"] == "42"
    assert operator.told[0].order[-1] == 4


def test_a_reset_is_told_and_nothing_asked_for(operator: Operator, ask: Asking) -> None:
    heard: list[Any] = []
    operator.heard = heard.append
    elemental.tell(ask.settings(operator.url()), WHO, root=ask.root, event="reset", within=30.0)
    wait_until(lambda: bool(heard), what="the server to hear it")
    assert heard[0]["homeport.event"] == "reset"
    assert operator.told == []  # no GET came


def test_telling_is_tried_once(operator: Operator, ask: Asking) -> None:
    operator.talk = lambda talk: talk.accept()
    with pytest.raises(Unreachable, match="while it authenticated"):
        elemental.tell(ask.settings(operator.url()), WHO, root=ask.root, within=30.0)
    assert operator.connections == 1


# Not at all

def test_a_token_that_is_none(operator: Operator, ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NoAssignment, match=r"has no such registration \(404\)") as caught:
        ask(operator.url("s3cret"))
    assert "s3cret" not in str(caught.value) + "".join(caught.value.__notes__) + caplog.text + "".join(ask.lines)


@pytest.mark.parametrize(("phase", "kind", "words", "connections"), [
    # Three times, for a server that stumbles looks the same.
    ("authentication", RefusedBySource, "closed the connection while it authenticated this machine (as the MAC", 3),
    (2, Unreachable, "closed the connection when sent the SMBIOS data", None),
    (9, Unreachable, "closed the connection when sent the annotations", None),
    (4, Unreachable, "closed the connection instead of sending the configuration", None),
])
def test_a_silent_close_is_explained(operator: Operator, ask: Asking, phase: int | str, kind: type[SourceError],
                                     words: str, connections: int | None) -> None:
    def talk(talk: Talk) -> None:
        talk.accept()
        if phase == "authentication":
            return
        talk.send(READY)
        while (data := talk.receive())[0] != phase:
            talk.send(operator.reply(data, told))

    told = Told()
    operator.talk = talk
    with pytest.raises(kind) as caught:
        ask(operator.url(), within=2.0)
    assert words in caught.value.message
    assert caught.value.hint
    assert connections is None or operator.connections == connections


def test_nobody_there(ask: Asking) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:\d+/x: connection refused \(\d+ attempt"):
        ask(f"http://127.0.0.1:{port}/x/t0ken", within=4.0)
    assert len(ask.lines) >= 2
    assert "asking again in" in ask.lines[0]
    assert "t0ken" not in "".join(ask.lines)


# Hostile peers

FLOOD = b"x" * (1 << 16)


def drip(talk: Talk) -> None:
    """The longest header of a frame, byte by byte: it never comes to what it announces."""
    for byte in b"\x02\x7f" + bytes(6) + b"\xff\xff":
        talk.sock.sendall(bytes([byte]))
        time.sleep(0.06)


def forever(send: Callable[[Talk], None]) -> Callable[[Talk], None]:
    def talk(talk: Talk) -> None:
        talk.accept()
        while True:
            send(talk)
    return talk


@pytest.mark.parametrize(("talk", "kind", "words"), [
    # Whole messages and parts of one, without end: what is kept of them is bounded.
    (forever(lambda talk: talk.send_event(BytesMessage(data=FLOOD, message_finished=False))), SourceError,
     "sends more than 512 KiB, while it authenticated"),
    (forever(lambda talk: talk.send_event(TextMessage(data="x"))), Unreachable, "a text message"),
    (forever(lambda talk: talk.send(b"")), Unreachable, "an empty message came while it authenticated"),
    (forever(lambda talk: talk.send(b"\x07elemental: {}")), Unreachable, "'config' came while it authenticated"),
    (forever(lambda talk: talk.send(b"\xfe")), Unreachable, "a message of the unknown kind 254"),
    (forever(lambda talk: talk.send_event(Ping(payload=b"x" * 100))), Unreachable, "no answer within"),
    (forever(lambda talk: talk.send_event(BytesMessage(data=b"", message_finished=False))), Unreachable,
     "no answer within"),
    # Frames that are none.
    (forever(lambda talk: talk.sock.sendall(b"\xff" * 100)), Unreachable, "what came is not a websocket"),
    (forever(lambda talk: talk.sock.sendall(b"\x82\x7f" + b"\xff" * 8)), Unreachable, "not a websocket"),
    (forever(lambda talk: talk.sock.sendall(b"\x82\xfe\x00")), Unreachable, "not a websocket"),  # masked, by a server
    (forever(lambda talk: time.sleep(9)), Unreachable, "no answer within"),
    (forever(drip), Unreachable, "no answer within"),
    # Instead of an upgrade.
    (lambda talk: talk.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                    b"Sec-WebSocket-Accept: AAAA\r\n\r\n"), Unreachable, "not a websocket"),
    (lambda talk: talk.sock.sendall(b"SSH-2.0-OpenSSH\r\n"), Unreachable, "before it spoke"),
    (lambda talk: talk.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + FLOOD), SourceError,
     "answers 200 instead of speaking"),
    (lambda talk: talk.sock.sendall(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99999), Unreachable, "not a websocket"),
    (lambda talk: talk.sock.sendall(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), Unreachable, "answers 503"),
    (lambda talk: talk.sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n"), SourceError, "answers 302"),
    (lambda talk: None, Unreachable, "closed the connection before it spoke"),
], ids=range(19))
def test_hostile_servers(operator: Operator, ask: Asking, monkeypatch: pytest.MonkeyPatch,
                         talk: Callable[[Talk], None], kind: type[SourceError], words: str) -> None:
    monkeypatch.setattr("homeport.core.elemental.verdicts.WINDOW", 0.4)
    operator.talk = talk
    started = time.monotonic()
    with pytest.raises(kind) as caught:
        ask(operator.url(), within=3.0)
    assert words in caught.value.message
    assert time.monotonic() - started < 30  # and not for ever


def test_the_configuration_a_byte_at_a_time(operator: Operator, ask: Asking) -> None:
    """Slow, but within the window; and fragments of one byte are one message."""
    operator.documents = [COMPLETE]
    original = Talk.send

    def talk(talk: Talk) -> None:
        talk.send = lambda data, **more: original(talk, data, fragment=1)  # type: ignore[method-assign]
        operator.serve(talk)

    operator.talk = talk
    assert understand_document(ask(operator.url()).data).config


@pytest.mark.parametrize("challenge", [
    b"", b"{}", b"\x01", b'{"EC":{"Credential":"AAA=","Secret":"AAA="}}', b"x" * 5000,
    "for another key",
], ids=range(6))
def test_bad_challenges(operator: Operator, ask: Asking, challenge: bytes | str) -> None:
    def talk(talk: Talk) -> None:
        talk.accept()
        _parts, key, _hash = read_token(talk.headers["authorization"].removeprefix("Bearer TPM"))
        talk.send(challenge if isinstance(challenge, bytes) else render_challenge(
            make_credential(key, b"\0\x0b" + bytes(32), bytes(32))))
        talk.receive()

    operator.talk = talk
    with pytest.raises(Unreachable, match="challenge is not sound"):
        ask(operator.url(), "emulated-tpm", within=3.0)


@pytest.mark.parametrize(("document", "words"), [
    (b"[]", "no configuration message"), (b"elemental: {}\nconfig: {a: {raw: [256]}}", "0 to 255"),
    (b"elemental: &a {b: *a}", ""), (b"\xff\xfe", ""), (b"", "nothing at all")])
def test_a_configuration_that_is_none(operator: Operator, ask: Asking, document: bytes, words: str) -> None:
    operator.documents = [document]
    with pytest.raises(DocumentError) as caught:
        ask(operator.url())
    assert words in str(caught.value)


# Whom to believe

def test_tls_by_the_registration_s_own_authority(ask: Asking, authority: Any) -> None:
    """As text in Elemental's configuration; without it the server is a stranger, and hears nothing."""
    with Operator(tls=authority.server()) as operator:
        with pytest.raises(SourceError, match="from an authority that is not known here"):
            ask(operator.url())
        assert operator.told == []
        put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
            "url": operator.url(), "auth": "mac", "ca-cert": Path(authority.pem).read_text()}}}))
        ask(auth="")
        assert len(operator.told) == 1
        # A registration of the settings' own at another address has nothing to do with that authority.
        with pytest.raises(SourceError, match="not known here"):
            ask(operator.url("other"))


def test_tls_by_the_name_of_a_file_and_by_the_settings(ask: Asking, authority: Any) -> None:
    put(ask.root, "etc/ca.pem", Path(authority.pem).read_text())
    with Operator(tls=authority.server()) as operator:
        put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
            "url": operator.url(), "auth": "mac", "ca-cert": "/etc/ca.pem"}}}))
        ask(auth="")
        put(ask.root, "oem/registration/config.yaml", "{}")
        ask(operator.url(), ca=("/etc/ca.pem",))


def naming(authority: Any) -> bytes:
    """A configuration whose server says that it will be known by this authority."""
    return json.dumps({"elemental": {"registration": {"ca-cert": Path(authority.pem).read_text()}}}).encode()


def test_an_authority_may_be_replaced(ask: Asking, authority: Any, successor: Any) -> None:
    """What the server last said of its authorities is kept; a machine that was off meanwhile finds it again."""
    with Operator(tls=authority.server()) as operator:
        operator.documents = [naming(successor)]
        put(ask.root, "etc/ca.pem", Path(authority.pem).read_text())
        ask(operator.url(), ca=("/etc/ca.pem",))
    assert (ask.root / REGISTRATION_CA).read_text() == f"# https://127.0.0.1\n{Path(successor.pem).read_text()}"
    with Operator(tls=successor.server()) as operator:
        ask(operator.url(), ca=("/etc/ca.pem",))
    Store(ask.root).forget()
    assert not (ask.root / REGISTRATION_CA).exists()


def test_an_authority_is_believed_of_its_own_server(ask: Asking, authority: Any, successor: Any) -> None:
    """What one server says of itself lets nobody be another one."""
    put(ask.root, "etc/ca.pem", Path(authority.pem).read_text())
    with Operator(tls=authority.server()) as operator:
        operator.documents = [naming(successor)]
        ask(operator.url(), ca=("/etc/ca.pem",))
    with Operator(tls=successor.server()) as operator, pytest.raises(SourceError, match="not known here"):
        ask(operator.url().replace("127.0.0.1", "localhost"), ca=("/etc/ca.pem",))


def test_an_authority_is_not_taken_from_plain_http(operator: Operator, ask: Asking, authority: Any) -> None:
    """Where anybody on the way may say what he likes."""
    operator.documents = [naming(authority)]
    ask(operator.url())
    assert not (ask.root / REGISTRATION_CA).exists()


def test_junk_for_an_authority_is_tolerated(operator: Operator, ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
        "url": operator.url(), "auth": "mac", "ca-cert": "-----BEGIN CERTIFICATE-----\nx"}}}))
    ask(auth="")
    assert "Cannot use the ca-cert of the registration: no certificate in it" in caplog.text


def test_through_a_proxy(operator: Operator, ask: Asking) -> None:
    """CONNECT, with the proxy's password; the registration's secret stays with the registration."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_proxy, args=(listener, heads), daemon=True).start()
        ask(operator.url(), proxy=f"http://robot:pass@127.0.0.1:{listener.getsockname()[1]}")
    host = operator.url().split("/")[2].encode()
    assert heads[0].startswith(b"CONNECT " + host + b" HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic cm9ib3Q6cGFzcw==\r\n" in heads[0]
    assert b"t0ken" not in heads[0]
    assert len(operator.told) == 1


def test_a_proxy_that_refuses(operator: Operator, ask: Asking) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_proxy, args=(listener, [], b"HTTP/1.1 407 Who are you?\r\n\r\n"), daemon=True).start()
        with pytest.raises(Unreachable, match="the proxy refuses: '407 Who are you"):
            ask(operator.url(), proxy=f"http://127.0.0.1:{listener.getsockname()[1]}", within=3.0)
    assert operator.connections == 0


def _proxy(listener: socket.socket, heads: list[bytes], answer: bytes = b"HTTP/1.1 200 Yes\r\n\r\n") -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        heads.append(client.recv(4096))
        client.sendall(answer)
        if b" 200 " not in answer:
            client.close()
            continue
        host, port = heads[-1].split()[1].decode().rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


# Settings

def test_nothing_configured(ask: Asking) -> None:
    with pytest.raises(Unconfigured):
        ask()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.0.0.1:1/", "http:///x/y"])
def test_what_is_no_registration_url(ask: Asking, url: str) -> None:
    put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
        "url": url, "auth": "mac"}}}))
    with pytest.raises(SourceError, match="the registration URL is none"):
        ask(auth="", within=3.0)


def test_the_settings_win_over_elemental_s_configuration(operator: Operator, ask: Asking) -> None:
    put(ask.root, "oem/registration/config.yaml", json.dumps({"elemental": {"registration": {
        "url": "http://127.0.0.1:1/elemental/registration/other", "auth": "tpm"}}}))
    ask(operator.url(), "mac")
    assert len(operator.told) == 1


def test_without_wsproto_it_says_what_is_missing(
        operator: Operator, ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsproto", None)
    with pytest.raises(SourceError, match="python3-wsproto"):
        ask(operator.url())


@pytest.mark.parametrize(("url", "people"), [
    ("https://rancher.example/elemental/registration/t0ken", "https://rancher.example/elemental/registration"),
    ("https://u:p@rancher.example:8443/elemental/registration/t0ken/?q=1#f",
     "https://rancher.example:8443/elemental/registration"),
    ("http://[2001:db8::1]/t0ken", "http://[2001:db8::1]"),
])
def test_what_people_see_of_the_address(url: str, people: str) -> None:
    assert shown(url) == people


def test_no_secret_in_any_log(operator: Operator, ask: Asking, caplog: pytest.LogCaptureFixture) -> None:
    """At the loudest: neither the token nor what the server's answer holds for other programs."""
    caplog.set_level(logging.DEBUG)
    operator.documents = [COMPLETE]
    reply = ask(operator.url())
    said = caplog.text + "".join(ask.lines) + repr(reply)
    for secret in ("t0ken", "interop-service-account-token"):
        assert secret not in said


def test_only_one_module_knows_wsproto() -> None:
    agent = Path(elemental.__file__).parents[1]
    users = {path.name for path in agent.rglob("*.py") if "from wsproto" in path.read_text()}
    assert users == {"websocket.py"}


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)

