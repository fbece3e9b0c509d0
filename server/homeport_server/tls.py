"""TLS: a certificate authority of the server's own, made at its first start, or the files that it is given.

Machines are given the authority once and keep it for years, so it is made for longer than they last; the server's
own certificate is short-lived and made anew while it runs. Knows where the files are; refuses to know who uses them.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.errors import HomeportError

CA_YEARS = 30
SERVER_DAYS, RENEW_DAYS = 390, 60
# A machine whose clock is behind must not find the certificate in its future.
BACKDATED = timedelta(days=2)


class TlsError(HomeportError):
    """There is no certificate to serve with."""

    status = os.EX_CONFIG


@dataclass(frozen=True)
class Tls:
    """What to serve with: PEM files, and the authority to tell machines ("" for one that they know anyway)."""

    certificate: Path
    key: Path
    ca: str

    def context(self) -> ssl.SSLContext:
        """Raises TlsError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise TlsError(f"Cannot serve with the certificate {self.certificate} and the key {self.key}: "
                           f"{error.strerror or error}", "both as PEM, and of each other") from None
        return context


def given(certificate: Path, key: Path, ca: Path | None) -> Tls:
    """The operator's own files. Raises TlsError."""
    tls = Tls(certificate, key, _read(ca) if ca else "")
    tls.context()
    return tls


def own(folder: Path, names: Sequence[str], clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Tls:
    """An authority and a server certificate for `names` (hosts and addresses) in `folder`; made if they must be."""
    paths = {name: folder / f"{name}.pem" for name in ("ca", "ca-key", "server", "server-key")}
    try:
        if not paths["ca"].exists() or not paths["ca-key"].exists():
            _make_ca(paths["ca"], paths["ca-key"], clock())
        ca = x509.load_pem_x509_certificate(paths["ca"].read_bytes())
        ca_key = serialization.load_pem_private_key(paths["ca-key"].read_bytes(), None)
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is not ours")
        if not _is_good(paths["server"], paths["server-key"], names, ca, clock()):
            _make_server(paths["server"], paths["server-key"], names, ca, ca_key, clock())
        return Tls(paths["server"], paths["server-key"], paths["ca"].read_text())
    except (OSError, ValueError) as error:
        raise TlsError(f"Cannot make a certificate in {folder}: {error}",
                       "give one with --tls-cert and --tls-key, or another folder with --state") from None


def _make_ca(path: Path, key_path: Path, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"homeport-server {now:%Y-%m-%d}")])
    certificate = (
        _builder(name, name, key.public_key(), now, timedelta(days=365 * CA_YEARS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256()))
    _write_key(key_path, key)
    _write(path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _make_server(path: Path, key_path: Path, names: Sequence[str], ca: x509.Certificate,
                 ca_key: ec.EllipticCurvePrivateKey, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    certificate = (
        _builder(subject, ca.subject, key.public_key(), now, timedelta(days=SERVER_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256()))
    _write_key(key_path, key)
    _write(path, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime,
             length: timedelta) -> x509.CertificateBuilder:
    return (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED).not_valid_after(now + length)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False))


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=sign_certificates, crl_sign=sign_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False)


def _is_good(path: Path, key_path: Path, names: Sequence[str], ca: x509.Certificate, now: datetime) -> bool:
    """Whether the server's certificate is by this authority, for these names, and for long enough."""
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        certificate.verify_directly_issued_by(ca)
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except Exception:  # whatever is wrong with what is there, a new one is the answer
        return False
    wanted = {_general_name(name) for name in names}
    return (key.public_key() == certificate.public_key() and wanted <= set(extension.value)
            and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - timedelta(days=RENEW_DAYS))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    _write(path, key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()), 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by more than `mode` says."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"Cannot read {path}: {error}", "it is to be PEM") from None
