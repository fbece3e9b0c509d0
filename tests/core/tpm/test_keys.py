"""Keys of a TPM, and the hash that a machine is known by."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from homeport.core.tpm import templates
from homeport.core.tpm.der import EccKey, NotDer, RsaKey, certificate_key, cut, public_key_info
from homeport.core.tpm.keys import EndorsementKey, Method, name_of, parse_certificate, parse_public, rsa_public
from homeport.core.tpm.wire import Malformed, Reader

CASE = Path(__file__).parents[2] / "data/elemental/tpm"
# The attestation key's public area, and the endorsement key's PEM, of a real registration.
_TOKEN = next(line for line in (CASE / "01-C-http").read_text().splitlines() if line.startswith("Authorization:"))
TOKEN = json.loads(base64.b64decode(_TOKEN.partition("Bearer TPM")[2]))
PEM = base64.b64decode(TOKEN["EK"]).decode()
DER = base64.b64decode("".join(PEM.split("-----")[2].split()))
PUBLIC = base64.b64decode(TOKEN["AK"]["Public"])


def test_a_public_area_is_read_and_written_again() -> None:
    key = parse_public(PUBLIC)
    assert isinstance(key, RsaKey)
    assert (key.bits, key.exponent) == (2048, 65537)
    assert rsa_public(key, templates.attestation()) == PUBLIC


def test_name_is_what_the_tpm_attested() -> None:
    attest = base64.b64decode(TOKEN["AK"]["CreateAttestation"])
    assert name_of(PUBLIC) in attest


def test_hash_of_a_key_without_certificate() -> None:
    """The PEM of the token is what the server hashes; ours of the same key is the same to the byte."""
    key = _key_of(DER)
    ek = EndorsementKey(key, Method.RSA_TEMPLATE)
    assert public_key_info(key) == DER
    assert len(DER) == 294
    assert ek.hash == hashlib.sha256(DER).hexdigest()
    assert ek.pem == PEM


def test_p256_key_is_written_as_openssl_writes_it(tmp_path: Path) -> None:
    info = _openssl(tmp_path, "ecparam -name prime256v1 -genkey -noout", "ec -pubout -outform DER")
    x, y = info[-64:-32], info[-32:]
    assert public_key_info(EccKey(int.from_bytes(x, "big"), int.from_bytes(y, "big"))) == info


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a self-signed certificate in it."""
    folder = tmp_path_factory.mktemp("certificate")
    _openssl(folder, "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -subj /CN=ek -outform DER -out cert.der")
    return folder


@pytest.mark.parametrize("wrap", [
    lambda der: der,
    lambda der: der + b"\xff" * 300,  # what is left of a larger NV index
    lambda der: b"\x10\x01\x00" + len(der).to_bytes(2, "big") + der,  # the header of some makers
    lambda der: b"\x10\x01\x00" + len(der).to_bytes(2, "big") + der + bytes(9),
])
def test_certificate(made: Path, wrap: object) -> None:
    assert callable(wrap)
    der = (made / "cert.der").read_bytes()
    certificate, key = parse_certificate(wrap(der))
    assert certificate == der
    assert isinstance(key, RsaKey)
    info = _openssl(made, "x509 -inform DER -in cert.der -pubkey -noout", "pkey -pubin -outform DER")
    ek = EndorsementKey(key, Method.CERTIFICATE, certificate)
    assert ek.hash == hashlib.sha256(info).hexdigest()
    assert ek.pem.startswith("-----BEGIN CERTIFICATE-----\n")
    assert base64.b64decode("".join(ek.pem.split("-----")[2].split())) == der


def test_certificate_cut_anywhere_is_refused(made: Path) -> None:
    der = (made / "cert.der").read_bytes()
    for length in range(0, len(der), 7):
        with pytest.raises(NotDer):
            parse_certificate(der[:length])


@pytest.mark.parametrize("data", [
    b"", b"\x30", b"\x30\x80\0\0", b"\x30\x85\0\0\0\0\0", b"\x30\xff", b"\x10\x01\x00\xff\xff\x30\x00", bytes(1000),
    b"\xff" * 1000,
])
def test_what_is_no_certificate(data: bytes) -> None:
    with pytest.raises(NotDer):
        parse_certificate(data)


def test_a_cut_item_ends_where_it_says() -> None:
    assert cut(b"\x30\x03abcdef") == b"\x30\x03abc"
    with pytest.raises(NotDer):
        certificate_key(b"\x30\x03abc")


@pytest.mark.parametrize("change", [
    lambda public: public[:-1],
    lambda public: public + b"\0",
    lambda public: b"\0\x08" + public[2:],  # a keyed hash
    lambda public: public[:16] + b"\x0c\x00" + public[18:],  # says 3072 bits, has 2048
    lambda public: b"",
])
def test_unsound_public_areas(change: object) -> None:
    assert callable(change)
    with pytest.raises(Malformed):
        parse_public(change(PUBLIC))


def test_templates_are_public_areas_without_a_key() -> None:
    """The fields are where the specification has them: type, name algorithm, attributes, policy."""
    for template, attributes in ((templates.rsa_endorsement(), 0x000300B2), (templates.ecc_endorsement(), 0x000300B2),
                                 (templates.storage(), 0x00030472), (templates.attestation(), 0x00050472)):
        reader = Reader(template)
        assert (reader.number(2) in (1, 0x23), reader.number(2), reader.number(4)) == (True, 0x0B, attributes)
        assert len(reader.sized()) in (0, 32)


def test_nonce_is_copied_over_the_start_of_unique() -> None:
    assert templates.rsa_endorsement(b"\x01" * 20).endswith(b"\x01" * 20 + bytes(236))
    assert templates.rsa_endorsement(b"\x01" * 999).endswith(b"\x01\0" + b"\x01" * 256)


def _key_of(info: bytes) -> RsaKey:
    """The key in a SubjectPublicKeyInfo of RSA-2048, by position."""
    modulus, exponent = info[33:33 + 256], info[-3:]
    return RsaKey(int.from_bytes(modulus, "big"), int.from_bytes(exponent, "big"))


def _openssl(folder: Path, *commands: str) -> bytes:
    """What the last of a pipe of openssl(1) commands prints."""
    if not shutil.which("openssl"):
        pytest.skip("openssl(1) is not installed")
    data = b""
    for command in commands:
        data = subprocess.run(["openssl", *command.split()], cwd=folder, input=data, capture_output=True,
                              check=True).stdout
    return data
