"""TLS: whom we believe, and what the person at the console reads when we do not."""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from homeport.errors import Unreachable
from homeport.sources import trust

EARLY, LONG_AGO = "20010101000000Z", "20020101000000Z"
FUTURE, FAR = "20900101000000Z", "20910101000000Z"
AT_2020, AT_2035, AT_2095 = 1_577_836_800.0, 2_051_222_400.0, 3_944_678_400.0


def test_a_configured_authority_is_believed(authority: Any, https: Any, ask: Any) -> None:
    server = https(authority.server())
    assert ask(f"{server.url}/a", ca=(authority.pem,), root="/").data == b"interfaces: []\n"


def test_an_unknown_one_is_not_and_asking_again_would_not_help(authority: Any, https: Any, ask: Any) -> None:
    server = https(authority.server())
    with pytest.raises(Unreachable, match="from an authority that is not known here") as caught:
        ask(f"{server.url}/a?token=geheim")
    assert "ca=" in caught.value.hint
    assert server.paths == [] and ask.fake.slept == []


@pytest.mark.parametrize("names", ["DNS:cfg.example", "IP:127.0.0.2", "DNS:127.0.0.1"])
def test_a_certificate_for_another_host(authority: Any, https: Any, ask: Any, names: str) -> None:
    server = https(authority.server(names=names))
    with pytest.raises(Unreachable, match=r"the certificate is not for 127\.0\.0\.1"):
        ask(f"{server.url}/a", ca=(authority.pem,), root="/")
    assert server.paths == []


def test_a_host_by_name(authority: Any, https: Any, ask: Any) -> None:
    server = https(authority.server(names="DNS:localhost"))
    url = server.url.replace("127.0.0.1", "localhost")
    assert ask(f"{url}/a", ca=(authority.pem,), root="/").data


@pytest.mark.parametrize(("start", "end", "said"), [
    (FUTURE, FAR, "is not valid yet"), (EARLY, LONG_AGO, "has expired")])
def test_dates_name_this_machines_clock(authority: Any, https: Any, ask: Any, start: str, end: str, said: str) -> None:
    server = https(authority.server(start=start, end=end))
    with pytest.raises(Unreachable, match=f"{said}; this machine's clock says 2") as caught:
        ask(f"{server.url}/a", ca=(authority.pem,), root="/", within=2.0)
    assert "NTP" in caught.value.hint
    assert ask.fake.slept  # the clock may be set meanwhile


# The clock of `ask` says 2030; a floor above that makes it a clock that is known to be wrong.

def test_before_the_floor_a_certificate_may_begin_later(authority: Any, https: Any, ask: Any) -> None:
    """The real time is later than the floor, too; nobody knows how much."""
    server = https(authority.server(start=FUTURE, end=FAR))
    assert ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2035).data
    with pytest.raises(Unreachable, match="is not valid yet"):
        ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2020, within=6.0)


def test_before_the_floor_what_ended_before_it_is_expired(authority: Any, https: Any, ask: Any) -> None:
    server = https(authority.server(start=EARLY, end=LONG_AGO))
    with pytest.raises(Unreachable, match="has expired; this machine's clock says 2030-03-17"):
        ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2035, within=6.0)
    assert server.paths == []


def test_the_whole_chain_is_judged_by_the_floor(authority: Any, https: Any, ask: Any) -> None:
    """The server's certificate is good for long, its authority's has ended before the floor."""
    server = https(authority.server(start=FUTURE, end="21200101000000Z"))
    assert ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2095 - 2e8).data
    with pytest.raises(Unreachable, match="has expired"):
        ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2095 + 2e8, within=6.0)


def test_before_the_floor_everything_else_is_judged_as_always(authority: Any, successor: Any, https: Any,
                                                              ask: Any) -> None:
    server = https(authority.server(end=FAR))
    for ca in ((), (successor.pem,)):
        with pytest.raises(Unreachable, match="authority that is not known"):
            ask(f"{server.url}/a", ca=ca, root="/", floor=AT_2035, within=6.0)
    server = https(authority.server(names="DNS:cfg.example", end=FAR))
    with pytest.raises(Unreachable, match="not for 127"):
        ask(f"{server.url}/a", ca=(authority.pem,), root="/", floor=AT_2035, within=6.0)


def test_rotation_both_authorities_at_once(authority: Any, successor: Any, https: Any, ask: Any) -> None:
    both = (authority.pem, successor.pem)
    for issuer in (authority, successor):
        assert ask(f"{https(issuer.server()).url}/a", ca=both, root="/").data


def test_rotation_in_one_file(authority: Any, successor: Any, https: Any, ask: Any, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("# the old one, until March\n" + Path(authority.pem).read_text()
                      + "# der Nächste\n" + Path(successor.pem).read_text())
    for issuer in (authority, successor):
        assert ask(f"{https(issuer.server()).url}/a", ca=("/ca.pem",), root=tmp_path).data


@pytest.mark.parametrize(("content", "said"), [
    (None, "no such file"), (b"", "no certificate in it"), (b"-----BEGIN NONSENSE-----\n", "no certificate in it"),
    (b"\xff\xfe\0", "no certificate in it")])
def test_a_file_that_is_no_use_is_a_warning(authority: Any, https: Any, ask: Any, tmp_path: Path, content: bytes | None,
                                            said: str, caplog: pytest.LogCaptureFixture) -> None:
    if content is not None:
        (tmp_path / "next.pem").write_bytes(content)
    (tmp_path / "now.pem").write_bytes(Path(authority.pem).read_bytes())
    server = https(authority.server())
    assert ask(f"{server.url}/a", ca=("/next.pem", "/now.pem"), root=tmp_path).data
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"Cannot use the certificate authorities in /next.pem: {said}; going on without them"]


def test_a_certificate_that_is_itself_configured_is_an_anchor(authority: Any, https: Any, ask: Any) -> None:
    server = https(authority.server())
    leaf = sorted(authority.folder.glob("leaf*.pem"), key=lambda path: path.stat().st_mtime)[-1]
    assert ask(f"{server.url}/a", ca=(str(leaf),), root="/").data


def test_a_system_that_openssl_does_not_know_the_way_around(
        authority: Any, https: Any, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL's own folder has no certificates by hash, as in an initramfs with the bundle alone."""
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/ca-certificates.crt").symlink_to(authority.pem)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "certs"))
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    monkeypatch.setattr(trust, "BUNDLES", ("/nonexistent", str(tmp_path / "certs/ca-certificates.crt")))
    server = https(authority.server())
    assert ask(f"{server.url}/a").data
    # With one file by hash OpenSSL finds its way, and another bundle would only add strangers.
    (tmp_path / "certs/01234567.0").symlink_to("/nonexistent")
    with pytest.raises(Unreachable, match="authority that is not known"):
        ask(f"{server.url}/a")


def test_tls_through_a_proxy_is_verified_for_the_server(authority: Any, https: Any, raw: Any, ask: Any) -> None:
    import socket
    import threading
    server = https(authority.server())
    port = int(server.url.rpartition(":")[2])
    asked: list[bytes] = []

    def tunnel(connection: Any) -> None:
        asked.append(connection.recv(65536).split(b"\r\n")[0])
        with socket.create_connection(("127.0.0.1", port)) as onward:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=pump, args=(onward, connection), daemon=True).start()
            pump(connection, onward)

    def pump(here: Any, there: Any) -> None:
        try:
            while data := here.recv(65536):
                there.sendall(data)
        except OSError:
            pass

    proxy = raw(tunnel)
    assert ask("https://127.0.0.1:7/a", ca=(authority.pem,), root="/", proxy=proxy).data
    assert asked == [b"CONNECT 127.0.0.1:7 HTTP/1.1"] or asked == [b"CONNECT 127.0.0.1:7 HTTP/1.0"]
    with pytest.raises(Unreachable, match=r"the certificate is not for cfg\.invalid"):
        ask("https://cfg.invalid/a", ca=(authority.pem,), root="/", proxy=proxy)


def test_a_server_that_speaks_no_tls(server: Any, ask: Any) -> None:
    with pytest.raises(Unreachable, match=r"TLS handshake with 127\.0\.0\.1 failed"):
        ask(f"{server.url.replace('http:', 'https:')}/a", within=6.0)


def test_old_versions_are_refused() -> None:
    context = trust.make_context(now=AT_2020)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname


def test_a_clock_that_is_far_off_is_our_business_alone() -> None:
    """urllib3 would warn of it on standard error, which is the journal."""
    script = ("import homeport.sources.http, warnings\nfrom urllib3.exceptions import SystemTimeWarning\n"
              "warnings.warn('System time is way off', SystemTimeWarning)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stderr == ""
