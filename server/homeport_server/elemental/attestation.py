"""A TPM proves itself: credential made, and its answer checked (spec/elemental.md, 2.3).

The machine shows its endorsement key (EK) and an attestation key (AK) of the same TPM, with the TPM's own statement
that it made the AK. A secret is then encrypted so that only the TPM that has both can read it (TPM 2.0 Library,
part 1, 24: credential protection). Pure but for the randomness handed in. Nothing here says that the TPM is a
hardware one, unless its certificate is by a vendor that is trusted (`tpm_cas`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from homeport_server.elemental.tpm import Public, Reader, TpmFault, kdfa, read_public, sized

try:  # newer versions keep this mode apart
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
except ImportError:
    from cryptography.hazmat.primitives.ciphers.modes import CFB

SCHEME = "Bearer TPM"
LARGEST_TOKEN = 24 * 1024
SECRET_BYTES = 32
SEED_BYTES = 16  # a 128-bit storage key, as the TCG template of the EK has
SMALLEST_KEY, LARGEST_KEY = 2048, 4096
# go-tpm reads the challenge with one read of 512 bytes; one for a 2048-bit EK has 476.
LARGEST_CHALLENGE = 512

_MAGIC, _CREATION = 0xFF544347, 0x801A
# fixedTPM, fixedParent, sensitiveDataOrigin, restricted, sign (TPMA_OBJECT)
_WANTED_ATTRIBUTES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 16 | 1 << 18


class NotProven(Exception):
    """A TPM that did not prove itself; the text says why, for the log."""


@dataclass(frozen=True)
class Attestation:
    """What a machine shows: its EK, and the checked AK."""

    ek: RSAPublicKey
    ek_certificate: x509.Certificate | None
    ak: Public

    @property
    def digest(self) -> str:
        """The tpmHash: SHA-256 of the EK as SubjectPublicKeyInfo."""
        return hashlib.sha256(self.ek.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@dataclass(frozen=True)
class Challenge:
    """What is sent to the machine, and the secret that it must send back."""

    message: bytes
    secret: bytes

    def check(self, answer: bytes) -> None:
        """Raises NotProven unless `answer` holds the secret."""
        try:
            sent = _base64(_member(_json(answer), "Secret"))
        except (ValueError, TpmFault) as error:
            raise NotProven(f"its answer cannot be read: {error}") from None
        if not hmac.compare_digest(sent, self.secret):
            raise NotProven("its answer is wrong: the TPM does not have the key that it showed")


def read_attestation(authorization: str, tpm_cas: Sequence[x509.Certificate] = (),
                     now: datetime | None = None) -> Attestation:
    """The `Authorization` header of a machine with a TPM, everything in it checked. Raises NotProven."""
    if len(authorization) > LARGEST_TOKEN:
        raise NotProven(f"its token has {len(authorization)} characters")
    try:
        token = _json(_base64(authorization.removeprefix(SCHEME)))
        ek, certificate = _read_ek(_base64(_member(token, "EK")))
        shown = token.get("AK") if isinstance(token, dict) else None
        fields = [_base64(_member(shown, key)) for key in
                  ("Public", "CreateData", "CreateAttestation", "CreateSignature")]
        ak = read_public(fields[0])
        _check_ak(ak, *fields)
    except (ValueError, TpmFault) as error:
        raise NotProven(f"its token cannot be accepted: {error}") from None
    if tpm_cas:
        _check_vendor(certificate, tpm_cas, now or datetime.now(UTC))
    return Attestation(ek, certificate, ak)


def make_challenge(attestation: Attestation, random: Callable[[int], bytes]) -> Challenge:
    """A credential that only the TPM with this EK and this AK can read (part 1, 24.5)."""
    secret, seed = random(SECRET_BYTES), random(SEED_BYTES)
    name = attestation.ak.name
    storage = kdfa(seed, b"STORAGE", name, b"", 8 * SEED_BYTES)
    # CFB with a zero IV: the key is never used again. The EK's template names this cipher.
    encryptor = Cipher(algorithms.AES(storage), CFB(bytes(16))).encryptor()
    identity = encryptor.update(sized(secret)) + encryptor.finalize()
    integrity = hmac.digest(kdfa(seed, b"INTEGRITY", b"", b"", 256), identity + name, "sha256")
    encrypted = attestation.ek.encrypt(seed, padding.OAEP(
        mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=b"IDENTITY\0"))
    message = json.dumps({"EC": {
        "Credential": base64.b64encode(sized(sized(integrity) + identity)).decode(),
        "Secret": base64.b64encode(sized(encrypted)).decode(),
    }}, separators=(",", ":")).encode()
    return Challenge(message, secret)


def _read_ek(pem: bytes) -> tuple[RSAPublicKey, x509.Certificate | None]:
    certificate = x509.load_pem_x509_certificate(pem) if b"BEGIN CERTIFICATE-----" in pem else None
    try:
        key = certificate.public_key() if certificate else serialization.load_pem_public_key(pem)
    except UnsupportedAlgorithm:
        key = None
    if not isinstance(key, RSAPublicKey):
        raise TpmFault("an EK that is no RSA key")
    if not SMALLEST_KEY <= key.key_size <= LARGEST_KEY:
        raise TpmFault(f"an EK of {key.key_size} bits")
    return key, certificate


def _check_ak(ak: Public, public: bytes, create_data: bytes, attest: bytes, signature: bytes) -> None:
    """That a TPM made this AK, by its own signed statement, and that it never leaves it."""
    if not SMALLEST_KEY <= ak.key.key_size <= LARGEST_KEY:
        raise TpmFault(f"an AK of {ak.key.key_size} bits")
    if ak.attributes & _WANTED_ATTRIBUTES != _WANTED_ATTRIBUTES:
        raise TpmFault(f"an AK with the attributes {ak.attributes:#x}: it need not be of a TPM")
    reader = Reader(attest)
    if reader.u32() != _MAGIC or reader.u16() != _CREATION:
        raise TpmFault("an attestation that is not of a creation")
    reader.sized()  # qualifiedSigner
    reader.sized()  # extraData
    reader.skip(17 + 8)  # clockInfo, firmwareVersion
    name, creation_hash = reader.sized(), reader.sized()
    if not hmac.compare_digest(name, ak.name):
        raise TpmFault("an attestation of another key")
    if not hmac.compare_digest(creation_hash, hashlib.sha256(create_data).digest()):
        raise TpmFault("creation data that is not what was attested")
    signed = Reader(signature)
    if signed.u16() != 0x0014 or signed.u16() != 0x000B:
        raise TpmFault("a signature that is not RSASSA with SHA-256")
    try:
        ak.key.verify(signed.sized(), attest, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise TpmFault("an attestation with a wrong signature") from None


def _check_vendor(certificate: x509.Certificate | None, cas: Sequence[x509.Certificate], now: datetime) -> None:
    """That the EK's certificate is by one of `cas`, over others of them if need be."""
    if certificate is None:
        raise NotProven("its EK has no certificate, so that no vendor vouches for the TPM")
    current = certificate
    for _ in range(len(cas) + 1):
        if not current.not_valid_before_utc <= now <= current.not_valid_after_utc:
            raise NotProven("a certificate of its TPM is not valid now")
        issuer = next((ca for ca in cas if _issued(current, ca)), None)
        if issuer is None:
            raise NotProven("the certificate of its TPM is not by a vendor that is trusted (--tpm-ca)")
        if issuer.subject == issuer.issuer or current == issuer:
            return
        current = issuer
    raise NotProven("the certificates of its TPM lead in a circle")


def _issued(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _json(data: bytes) -> object:
    try:
        return json.loads(data.decode("ascii"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _member(tree: object, key: str) -> str:
    value = tree.get(key) if isinstance(tree, dict) else None
    if not isinstance(value, str):
        raise TpmFault(f"no {key} in it")
    return value


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None
