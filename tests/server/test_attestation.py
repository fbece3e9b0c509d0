"""The credential of a TPM: made, opened by another implementation, and every way in which it must not be believed."""

from __future__ import annotations

import base64
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.software_tpm import AK_ATTRIBUTES, SoftwareTpm, another_key, new_key, sized, text

from homeport_server.elemental.attestation import (
    LARGEST_CHALLENGE,
    NotProven,
    make_challenge,
    read_attestation,
)

TPM_CASE = Path(__file__).parents[1] / "data" / "elemental" / "tpm"


def test_the_right_tpm_opens_it() -> None:
    tpm = SoftwareTpm()
    shown = read_attestation(tpm.authorization)
    challenge = make_challenge(shown, secrets.token_bytes)
    assert shown.digest == tpm.digest
    assert len(challenge.message) < LARGEST_CHALLENGE
    challenge.check(tpm.answer(challenge.message))


def test_a_real_one_is_read() -> None:
    """The header that elemental-register sent with its own TPM emulator."""
    head = (TPM_CASE / "01-C-http").read_text()
    header = next(line for line in head.splitlines() if line.startswith("Authorization: "))
    shown = read_attestation(header.removeprefix("Authorization: "))
    challenge = make_challenge(shown, secrets.token_bytes)
    assert len(challenge.message) == len((TPM_CASE / "03-S-TPM-challenge").read_bytes()) == 476
    answer = json.loads((TPM_CASE / "04-C-TPM-answer").read_bytes())
    assert len(challenge.secret) == len(base64.b64decode(answer["Secret"]))


def test_another_tpm_cannot_open_it() -> None:
    """Somebody shows the EK that he has seen elsewhere, with an AK of his own."""
    victim, thief = SoftwareTpm(), SoftwareTpm(ek=another_key(new_key(), 3))
    shown = read_attestation(SoftwareTpm(ek=victim.ek, ak=thief.ak).authorization)
    challenge = make_challenge(shown, secrets.token_bytes)
    with pytest.raises(ValueError, match=r"[Dd]ecryption|[Ee]ncryption"):
        thief.answer(challenge.message)


def test_an_answer_is_good_once() -> None:
    tpm = SoftwareTpm()
    shown = read_attestation(tpm.authorization)
    first, second = (make_challenge(shown, secrets.token_bytes) for _ in range(2))
    with pytest.raises(NotProven, match="its answer is wrong"):
        second.check(tpm.answer(first.message))


@pytest.mark.parametrize("answer", [
    b"", b"{", b"[]", b"null", b'{"Secret": 1}', b'{"Secret": "%%%"}', b'{"Secret": ""}', b"\xff\xfe",
    b'{"secret": "AAAA"}', b"[" * 100_000,
])
def test_no_answer(answer: bytes) -> None:
    challenge = make_challenge(read_attestation(SoftwareTpm().authorization), secrets.token_bytes)
    with pytest.raises(NotProven):
        challenge.check(answer)


def altered(**fields: bytes) -> SoftwareTpm:
    return SoftwareTpm(alter=fields)


GOOD = SoftwareTpm()
EC_KEY = ec.generate_private_key(ec.SECP256R1()).public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
SMALL_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=1024).public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(("tpm", "words"), [
    (altered(EK=b"not PEM"), "cannot be accepted"),
    (altered(EK=EC_KEY), "no RSA key"),
    (altered(EK=SMALL_KEY), "1024 bits"),
    (altered(EK=b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "cannot be accepted"),
    (altered(Public=b""), "another key|cut short"),
    (altered(Public=GOOD.public + b"x"), "after a structure's end"),
    (altered(Public=GOOD.public[:-1]), "cut short"),
    (altered(Public=b"\x00\x23" + GOOD.public[2:]), "no RSA key"),  # an ECC key
    (altered(CreateAttestation=b""), "signature|cut short|of another"),
    # a quote instead of a creation: anybody may have one signed
    (altered(CreateAttestation=b"\xff\x54\x43\x47\x80\x18" + GOOD.attest(GOOD.public, bytes(20))[6:]),
     "not of a creation"),
    (altered(CreateAttestation=b"\xff\x54\x43\x48" + GOOD.attest(GOOD.public, bytes(20))[4:]), "not of a creation"),
    (altered(CreateAttestation=GOOD.attest(b"another", bytes(20))), "of another key"),
    (altered(CreateAttestation=GOOD.attest(GOOD.public, b"other data")), "not what was attested"),
    (altered(CreateSignature=b"\x00\x14\x00\x0b" + sized(bytes(256))), "wrong signature"),
    (altered(CreateSignature=b"\x00\x14\x00\x04" + sized(bytes(256))), "RSASSA with SHA-256"),  # SHA-1
    (altered(CreateSignature=b"\x00"), "cut short"),
    # not restricted: such a key signs whatever it is given, this attestation too
    (SoftwareTpm(attributes=AK_ATTRIBUTES & ~(1 << 16)), "attributes"),
    (SoftwareTpm(attributes=AK_ATTRIBUTES & ~(1 << 1)), "attributes"),  # may leave its TPM
    (SoftwareTpm(ak=new_key(9)), ""),
])
def test_not_believed(tpm: SoftwareTpm, words: str) -> None:
    if not words:
        read_attestation(tpm.authorization)  # the row that shows that the others fail for their reason
        return
    with pytest.raises(NotProven, match=words):
        read_attestation(tpm.authorization)


@pytest.mark.parametrize("authorization", [
    "Bearer TPM", "Bearer TPM%%%", "Bearer TPM" + text(b"[]"), "Bearer TPM" + text(b"{}"),
    "Bearer TPM" + text(b'{"EK": "AAAA", "AK": 7}'), "Bearer TPM" + text(b'{"EK": 1}'),
    "Bearer TPM" + text(b'{"EK": "AAAA", "AK": {"Public": null}}'), "Bearer TPM" + "A" * 30_000,
    "Bearer TPM" + text(b"[" * 9_000),
])
def test_no_token(authorization: str) -> None:
    with pytest.raises(NotProven):
        read_attestation(authorization)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["Public", "CreateData", "CreateAttestation", "CreateSignature", "EK"]), st.data())
def test_any_flipped_byte_is_noticed(part: str, data: st.DataObject) -> None:
    """And never as anything but NotProven."""
    token = json.loads(base64.b64decode(GOOD.authorization.removeprefix("Bearer TPM")))
    holder = token if part == "EK" else token["AK"]
    value = bytearray(base64.b64decode(holder[part]))
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    holder[part] = text(bytes(value))
    try:
        shown = read_attestation("Bearer TPM" + text(json.dumps(token).encode()))
    except NotProven:
        return
    # PEM has bytes that say nothing, and another EK is another machine; the AK must be as it was.
    assert part == "EK"
    assert shown.ak.data == GOOD.public


def certificate(name: str, key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, issuer: str,
                signer: ec.EllipticCurvePrivateKey, days: int = 10) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    return (x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer)).public_key(key)
            .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=20))
            .not_valid_after(now + timedelta(days=days)).sign(signer, hashes.SHA256()))


def test_only_trusted_vendors() -> None:
    root_key, middle_key, other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    root = certificate("root", root_key.public_key(), "root", root_key)
    middle = certificate("middle", middle_key.public_key(), "root", root_key)
    forged = certificate("root", other_key.public_key(), "root", other_key)
    ek = new_key().public_key()

    def tpm(issued: x509.Certificate) -> str:
        return SoftwareTpm(certificate=issued.public_bytes(serialization.Encoding.PEM)).authorization

    by_middle = certificate("ek", ek, "middle", middle_key)
    assert read_attestation(tpm(by_middle), [root, middle]).digest == SoftwareTpm().digest
    for wrong, cas, words in (
        (tpm(by_middle), [root], "not by a vendor"),
        (tpm(by_middle), [forged], "not by a vendor"),
        (tpm(certificate("ek", ek, "root", other_key)), [root], "not by a vendor"),
        (tpm(certificate("ek", ek, "root", root_key, days=-1)), [root], "not valid now"),
        (SoftwareTpm().authorization, [root], "no certificate"),
    ):
        with pytest.raises(NotProven, match=words):
            read_attestation(wrong, cas)
