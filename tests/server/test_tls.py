"""Certificates: of the server's own authority, renewed in time, or the operator's."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests
from cryptography import x509
from tests.server.conftest import Server
from tests.server.machine import CONFIG, register
from tests.server.software_tpm import SoftwareTpm

from homeport_server import tls
from homeport_server.tls import TlsError

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def own(folder: Path, names: list[str], now: datetime = NOW) -> x509.Certificate:
    return x509.load_pem_x509_certificate(tls.own(folder, names, lambda: now).certificate.read_bytes())


def test_made_once(tmp_path: Path) -> None:
    first = own(tmp_path, ["a.example", "192.0.2.1"])
    assert own(tmp_path, ["a.example"]) == first
    for name, mode in (("ca", 0o644), ("ca-key", 0o600), ("server", 0o644), ("server-key", 0o600)):
        assert (tmp_path / f"{name}.pem").stat().st_mode & 0o777 == mode
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.1"]


@pytest.mark.parametrize(("names", "later"), [
    (["a.example", "b.example"], timedelta(0)),  # one more name
    (["a.example"], timedelta(days=340)),  # it ends in less than two months
    (["a.example"], timedelta(days=500)),
])
def test_made_anew_by_the_same_authority(tmp_path: Path, names: list[str], later: timedelta) -> None:
    first, ca = own(tmp_path, ["a.example"]), (tmp_path / "ca.pem").read_text()
    second = own(tmp_path, names, NOW + later)
    assert second != first
    assert (tmp_path / "ca.pem").read_text() == ca
    assert second.not_valid_before_utc <= NOW + later < second.not_valid_after_utc


@pytest.mark.parametrize("damage", ["server", "server-key"])
def test_a_damaged_one_is_made_anew(tmp_path: Path, damage: str) -> None:
    own(tmp_path, ["a.example"])
    (tmp_path / f"{damage}.pem").write_text("damaged")
    tls.own(tmp_path, ["a.example"], lambda: NOW).context()


def test_a_damaged_authority_is_a_persons_business(tmp_path: Path) -> None:
    """All machines trust it: a new one in its place would lock them out."""
    own(tmp_path, ["a.example"])
    (tmp_path / "ca-key.pem").write_text("damaged")
    with pytest.raises(TlsError, match="Cannot make a certificate"):
        own(tmp_path, ["b.example"])


def test_the_operators_files(tmp_path: Path) -> None:
    made = tls.own(tmp_path, ["localhost"])
    assert tls.given(made.certificate, made.key, None).ca == ""
    assert tls.given(made.certificate, made.key, tmp_path / "ca.pem").ca.startswith("-----BEGIN")
    with pytest.raises(TlsError, match="of each other"):
        tls.given(made.certificate, tmp_path / "ca-key.pem", None)
    with pytest.raises(TlsError):
        tls.given(tmp_path / "absent", made.key, None)


def test_machines_that_know_the_authority(make_server: Callable[..., Server]) -> None:
    server = make_server(tls=True)
    assert register(server.registration(), SoftwareTpm(), tls=server.tls)[0] == CONFIG
    text = server.get("/elemental/registration/fire-nodes").text
    assert "BEGIN CERTIFICATE" in text
    assert f"url: \"{server.registration()}\"" in text
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(server.url, timeout=60)
    strict = server.tls
    strict.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT  # what Python 3.13 asks of everyone
    assert register(server.registration(), "52:54:00:00:00:01", tls=strict)[0] == CONFIG
    assert "Traceback" not in server.log
