"""What a web server's answers mean, when it is asked again, and what never leaves this machine."""

from __future__ import annotations

import logging
from email.utils import formatdate
from typing import Any

import pytest

from homeport.errors import (
    DocumentError,
    NoAssignment,
    Pending,
    RefusedBySource,
    SourceError,
    Unreachable,
)
from homeport.sources import LARGEST
from homeport.sources.address import MissingFact

DOCUMENT = b"interfaces: []\n"
NOW = 1_900_000_000.0  # as the clock of `ask` has it


def answer(server: Any, *statuses: int, **headers: str) -> None:
    """Let `server` give these statuses in turn; `Retry_After` becomes Retry-After."""
    kind = type(server.answers[0])
    server.says(*(kind(status, {name.replace("_", "-"): value for name, value in headers.items()})
                  for status in statuses))


def test_a_document(server: Any, ask: Any) -> None:
    answer(server, 200, ETag='"v1"', Content_Type="application/yaml")
    reply = ask(f"{server.url}/{{uuid}}/{{mac}}.yaml?s={{serial}}")
    assert server.paths == ["/11-22/52:54:00:ab:cd:ef.yaml?s=S%2FN%207%20%C3%BC"]
    assert reply.data == DOCUMENT and reply.over_network and not reply.not_modified
    assert (reply.etag, reply.content_type) == ('"v1"', "application/yaml")
    assert reply.url == reply.target == f"{server.url}/11-22/52:54:00:ab:cd:ef.yaml"
    assert ask.lines == []


def test_the_request_is_ours_alone(server: Any, ask: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No proxy, netrc or CA bundle from the environment, no cookie of an earlier answer, no compression."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login stranger password geheim\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent")
    answer(server, 503, 200, Set_Cookie="a=b")
    ask(f"{server.url}/a")
    for headers in server.headers:
        assert set(headers) == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}
        assert headers["Accept-Encoding"] == "identity"
        assert headers["User-Agent"].startswith("homeport/")


# -- statuses

@pytest.mark.parametrize(("status", "error"), [
    (404, NoAssignment), (204, NoAssignment),
    (401, RefusedBySource), (403, RefusedBySource), (410, RefusedBySource),
    (202, Pending),
    (400, SourceError), (405, SourceError), (451, SourceError),
    (206, SourceError), (300, SourceError), (305, SourceError),
    (304, SourceError),  # although nothing was asked conditionally
    (301, SourceError),  # without a Location
])
def test_answers_that_are_final(server: Any, ask: Any, status: int, error: type[SourceError]) -> None:
    answer(server, status)
    with pytest.raises(SourceError) as caught:
        ask(f"{server.url}/a?token=geheim")
    assert type(caught.value) is error
    assert len(server.paths) == 1 and ask.fake.slept == []
    assert f"{server.url}/a" in caught.value.message and "geheim" not in str(caught.value)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 507])
def test_answers_that_pass(server: Any, ask: Any, status: int) -> None:
    answer(server, status, status, 200)
    assert ask(f"{server.url}/a").data == DOCUMENT
    assert ask.fake.slept == [0.25, 0.5]
    assert ask.lines[0] == f"No document from {server.url}/a: the server says {status}; asking again in 0.2 s"


def test_the_deadline_ends_it_and_the_last_cause_is_told(server: Any, ask: Any) -> None:
    answer(server, 500, 503)
    with pytest.raises(Unreachable, match=r"the server says 503 \(7 attempts in 9 s\)"):
        ask(f"{server.url}/a", within=10.0)
    # 5 s would be beyond what leaves time for an answer
    assert ask.fake.slept == [0.25, 0.5, 1.0, 2.0, 4.0, 1.25]
    assert ask.lines[-1].endswith("giving up")


def test_nobody_listens(raw: Any, ask: Any) -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1/a: connection refused \(\d+ attempts in 119 s\)"):
        ask("http://127.0.0.1:1/a")


def test_no_time_left(server: Any, ask: Any) -> None:
    with pytest.raises(Unreachable):
        ask(f"{server.url}/a", within=0.0)
    assert server.paths == []


# -- Retry-After

@pytest.mark.parametrize("headers", [
    {"Retry_After": "30"},
    {"Retry_After": formatdate(NOW + 30, usegmt=True)},
    {"Retry_After": formatdate(30, usegmt=True), "Date": formatdate(0, usegmt=True)},  # its clock is as wrong as ours
])
def test_retry_after_is_heeded(server: Any, ask: Any, headers: dict[str, str]) -> None:
    answer(server, 429, 200, **headers)
    ask(f"{server.url}/a")
    assert ask.fake.slept == [30.0]


def test_a_retry_after_beyond_the_deadline_ends_it_at_once(server: Any, ask: Any) -> None:
    """Nobody gains from a boot that waits for a time that it will not see."""
    answer(server, 503, Retry_After="3600")
    with pytest.raises(Unreachable, match="come back in 3600 s") as caught:
        ask(f"{server.url}/a")
    assert caught.value.retry_after == 3600 and ask.fake.slept == []


def test_pending_says_when_it_is_worth_asking_again(server: Any, ask: Any) -> None:
    answer(server, 202, Retry_After="2")
    with pytest.raises(Pending) as caught:
        ask(f"{server.url}/a")
    assert caught.value.retry_after == 2 and ask.fake.slept == []


# -- several addresses

def test_several_addresses_take_turns(server: Any, other: Any, ask: Any) -> None:
    """The second is not kept waiting until the first has used up the deadline."""
    answer(server, 503)
    answer(other, 503, 200)
    assert ask(f"{server.url}/a", f"{other.url}/b").url == f"{other.url}/b"
    assert len(server.paths) == 2 and ask.fake.slept == [0.25]


def test_what_is_settled_is_not_asked_again(server: Any, other: Any, ask: Any) -> None:
    answer(server, 404)
    answer(other, 503, 503, 200)
    assert ask(f"{server.url}/a", f"{other.url}/b").url == f"{other.url}/b"
    assert len(server.paths) == 1


def test_one_that_wants_to_be_left_alone_is(server: Any, other: Any, ask: Any) -> None:
    answer(server, 503, Retry_After="20")
    answer(other, 503, 503, 503, 200)
    assert ask(f"{server.url}/a", f"{other.url}/b").url == f"{other.url}/b"
    assert len(server.paths) == 1


def test_the_least_final_of_several_counts(server: Any, other: Any, ask: Any) -> None:
    answer(server, 404)
    answer(other, 503)
    with pytest.raises(Unreachable):
        ask(f"{server.url}/a", f"{other.url}/b", within=1.0)
    with pytest.raises(Unreachable):
        ask(f"{other.url}/b", f"{server.url}/a", within=1.0)
    answer(other, 404)
    with pytest.raises(NoAssignment):
        ask(f"{server.url}/a", f"{other.url}/b", within=1.0)


def test_an_address_with_a_field_we_lack(server: Any, ask: Any) -> None:
    assert ask(f"{server.url}/{{tpmhash}}", f"{server.url}/b").url == f"{server.url}/b"
    with pytest.raises(MissingFact, match="this machine has no TPM"):
        ask(f"{server.url}/{{tpmhash}}")


# -- unchanged

def test_unchanged(server: Any, ask: Any) -> None:
    answer(server, 304)
    url = f"{server.url}/a"
    reply = ask(url, etag='W/"v1"', etag_url=url)
    assert reply.not_modified and reply.data == b"" and reply.etag == 'W/"v1"' and reply.over_network
    assert server.headers[0]["If-None-Match"] == 'W/"v1"'


def test_a_server_without_etags_is_asked_by_date(server: Any, ask: Any) -> None:
    answer(server, 200, Last_Modified="Mon, 30 Nov 2026 19:00:00 GMT")
    reply = ask(f"{server.url}/a")
    answer(server, 304)
    assert ask(f"{server.url}/a", etag=reply.etag, etag_url=reply.url).not_modified
    assert server.headers[1]["If-Modified-Since"] == "Mon, 30 Nov 2026 19:00:00 GMT"
    assert "If-None-Match" not in server.headers[1]


def test_the_etag_of_another_document_is_not_sent(server: Any, ask: Any) -> None:
    """Two servers may both call their first version "1"."""
    ask(f"{server.url}/a", etag='"1"', etag_url="https://cfg.example/a")
    assert "If-None-Match" not in server.headers[0]


# -- redirects

def redirect(server: Any, location: str, status: int = 302) -> Any:
    return type(server.answers[0])(status, {"Location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(server: Any, ask: Any, status: int) -> None:
    server.says(redirect(server, "/b", status), type(server.answers[0])())
    reply = ask(f"{server.url}/a")
    assert server.paths == ["/a", "/b"] and reply.url == f"{server.url}/a"


def test_a_loop_ends(server: Any, ask: Any) -> None:
    server.says(redirect(server, "/a"))
    with pytest.raises(SourceError, match="more than 5 times"):
        ask(f"{server.url}/a")
    assert len(server.paths) == 6


def test_credentials_stay_with_their_host(server: Any, other: Any, ask: Any) -> None:
    with_password = server.url.replace("//", "//user:geheim@")
    server.says(redirect(server, "/b"), redirect(server, f"{other.url}/c"))
    assert ask(f"{with_password}/a").data == DOCUMENT
    assert [headers.get("Authorization") for headers in server.headers] == ["Basic dXNlcjpnZWhlaW0="] * 2
    assert other.paths == ["/c"] and "Authorization" not in other.headers[0]


# -- bodies

@pytest.mark.parametrize(("size", "fits"), [(LARGEST, True), (LARGEST + 1, False), (2 << 20, False)])
@pytest.mark.parametrize("announced", [True, False])
def test_large_bodies(server: Any, raw: Any, ask: Any, size: int, fits: bool, announced: bool) -> None:
    def talk(connection: Any) -> None:
        connection.recv(65536)
        length = f"Content-Length: {size}\r\n" if announced else ""
        connection.sendall(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode() + b"#" * size)

    url = raw(talk)
    if fits:
        assert len(ask(f"{url}/a").data) == size
    else:
        with pytest.raises(DocumentError, match="larger than 512 KiB"):
            ask(f"{url}/a")


def test_what_announces_too_much_is_not_even_read(raw: Any, ask: Any) -> None:
    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        connection.recv(1)  # nothing more comes: only a client that waits for it would time out

    with pytest.raises(DocumentError):
        ask(f"{raw(talk)}/a")


def test_a_chunked_body(raw: Any, ask: Any) -> None:
    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ninter\r\n")
        connection.sendall(b"a\r\nfaces: []\n\r\n0\r\n\r\n")

    assert ask(f"{raw(talk)}/a").data == DOCUMENT


@pytest.mark.parametrize("head", [b"Content-Length: 999", b"Transfer-Encoding: chunked"])
def test_half_a_document_is_none(raw: Any, ask: Any, head: bytes) -> None:
    """Half a document can be a valid one."""
    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n5\r\ninter\r\n")

    with pytest.raises(Unreachable, match="connection broke"):
        ask(f"{raw(talk)}/a", within=1.0)


def test_compression_that_was_not_asked_for_is_refused(server: Any, ask: Any) -> None:
    answer(server, 200, Content_Encoding="gzip")
    with pytest.raises(SourceError, match="compressed"):
        ask(f"{server.url}/a")
    assert len(server.paths) == 1


def test_an_empty_document_is_for_the_checks_to_refuse(server: Any, ask: Any) -> None:
    server.answers[0].body = b""
    assert ask(f"{server.url}/a").data == b""


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 OK 200\r\n\r\n", b"\0" * 70000])
def test_what_is_not_http(raw: Any, ask: Any, said: bytes) -> None:
    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(said)

    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:\d+/a: (the )?connection (broke|reset)"):
        ask(f"{raw(talk)}/a?token=geheim", within=1.0)


# -- proxies

def test_the_proxy_of_the_settings_is_used(server: Any, ask: Any) -> None:
    proxy = server.url.replace("//", "//user:geheim@")
    assert ask("http://cfg.invalid/a?x=1", proxy=proxy).data == DOCUMENT
    assert server.paths == ["http://cfg.invalid/a?x=1"]
    assert server.headers[0]["Proxy-Authorization"] == "Basic dXNlcjpnZWhlaW0="


def test_a_proxy_that_refuses(raw: Any, ask: Any) -> None:
    def talk(connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    with pytest.raises(Unreachable, match="the proxy refuses: 407 Proxy Authentication Required"):
        ask("https://cfg.invalid/a?token=geheim", proxy=raw(talk), within=1.0)


def test_a_proxy_spoken_to_with_https_is_not_supported(ask: Any) -> None:
    with pytest.raises(SourceError, match="proxy"):
        ask("http://cfg.invalid/a", proxy="https://127.0.0.1:1")


# -- secrets

@pytest.mark.parametrize("status", [200, 302, 404, 503])
def test_no_secret_reaches_a_log_or_a_message(server: Any, ask: Any, caplog: pytest.LogCaptureFixture,
                                              status: int) -> None:
    caplog.set_level(logging.DEBUG)
    answer(server, status, Location="ftp://x?token=geheim")
    server.answers[0].headers["X-Odd"] = "a\r\nno colon here: geheim"  # urllib3 warns about such, with the URL
    url = server.url.replace("//", "//user:geheim@") + "/a?token=geheim#geheim"
    told = ""
    try:
        told = str(ask(url, within=1.0))
    except SourceError as error:
        told = f"{error} {error.__notes__} {error.__cause__} {error.__context__}"
    assert "geheim" not in told + caplog.text + "".join(ask.lines)
