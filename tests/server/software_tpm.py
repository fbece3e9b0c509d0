"""A TPM in software, as much of one as a registration asks for: EK, AK, the attestation, the answer.

Written from spec/elemental.md, 2.3 and 2.4 and the TPM 2.0 Library, not from the server's code, so that the two
can be wrong in different ways. `alter` is for tests of what must not be believed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
from dataclasses import dataclass, field
from functools import cache

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

try:  # newer versions keep this mode apart
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
except ImportError:
    from cryptography.hazmat.primitives.ciphers.modes import CFB

AK_ATTRIBUTES = 0x00050472
SHA256 = b"\x00\x0b"


@cache
def new_key(number: int = 0) -> rsa.RSAPrivateKey:
    """An RSA-2048 key; made once for each number, for it costs a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2048)


def another_key(key: rsa.RSAPrivateKey, index: int) -> rsa.RSAPrivateKey:
    """Key number `index` with the same modulus and another exponent: as good for a test, and made in no time."""
    numbers = key.private_numbers()
    phi = (numbers.p - 1) * (numbers.q - 1)
    exponents = (e for e in range(65_539, 1 << 20, 2) if math.gcd(e, phi) == 1)
    exponent = next(e for at, e in enumerate(exponents) if at == index)
    secret = pow(exponent, -1, phi)
    return rsa.RSAPrivateNumbers(
        numbers.p, numbers.q, secret, secret % (numbers.p - 1), secret % (numbers.q - 1), numbers.iqmp,
        rsa.RSAPublicNumbers(exponent, numbers.public_numbers.n)).private_key()


@dataclass
class SoftwareTpm:
    """A TPM with the endorsement key `ek`. What `alter` holds replaces the field of that name."""

    ek: rsa.RSAPrivateKey = field(default_factory=new_key)
    ak: rsa.RSAPrivateKey = field(default_factory=lambda: new_key(1))
    attributes: int = AK_ATTRIBUTES
    certificate: bytes = b""  # PEM
    alter: dict[str, bytes] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self._spki(serialization.Encoding.DER)).hexdigest()

    @property
    def authorization(self) -> str:
        """The header of a registration."""
        public = self.public
        created = self.alter.get("CreateData", bytes(20))
        attest = self.alter.get("CreateAttestation") or self.attest(public, created)
        signature = b"\x00\x14" + SHA256 + sized(self.ak.sign(attest, padding.PKCS1v15(), hashes.SHA256()))
        fields = {"Public": public, "CreateData": created, "CreateAttestation": attest,
                  "CreateSignature": signature} | self.alter
        ek = self.alter.get("EK") or self.certificate or self._spki(serialization.Encoding.PEM)
        token = {"EK": text(ek), "AK": {"UseTCSDActivationFormat": False}
                 | {key: text(fields[key]) for key in ("Public", "CreateData", "CreateAttestation", "CreateSignature")}}
        return "Bearer TPM" + text(json.dumps(token).encode())

    @property
    def public(self) -> bytes:
        """TPMT_PUBLIC of the AK."""
        modulus = self.ak.public_key().public_numbers().n
        return self.alter.get("Public") or (
            b"\x00\x01" + SHA256 + self.attributes.to_bytes(4, "big") + sized(b"") + b"\x00\x10"
            + b"\x00\x14" + SHA256 + (2048).to_bytes(2, "big") + bytes(4) + sized(modulus.to_bytes(256, "big")))

    @property
    def name(self) -> bytes:
        return SHA256 + hashlib.sha256(self.public).digest()

    def attest(self, public: bytes, created: bytes) -> bytes:
        """TPMS_ATTEST of TPM2_CertifyCreation."""
        name = SHA256 + hashlib.sha256(public).digest()
        return (b"\xff\x54\x43\x47\x80\x1a" + sized(self.name) + sized(b"") + bytes(17) + bytes(8)
                + sized(name) + sized(hashlib.sha256(created).digest()))

    def answer(self, challenge: bytes) -> bytes:
        """What TPM2_ActivateCredential gives for a challenge, as elemental-register sends it."""
        parts = json.loads(challenge)["EC"]
        credential = base64.b64decode(parts["Credential"])[2:]
        seed = self.ek.decrypt(base64.b64decode(parts["Secret"])[2:], padding.OAEP(
            mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=b"IDENTITY\0"))
        integrity, identity = credential[2:34], credential[34:]
        wanted = hmac.digest(kdfa(seed, b"INTEGRITY", b"", 256), identity + self.name, "sha256")
        assert hmac.compare_digest(integrity, wanted), "the credential is not for this AK"
        decryptor = Cipher(algorithms.AES(kdfa(seed, b"STORAGE", self.name, 128)), CFB(bytes(16))).decryptor()
        secret = decryptor.update(identity) + decryptor.finalize()
        return json.dumps({"Secret": text(secret[2:])}).encode() + b"\n"

    def _spki(self, encoding: serialization.Encoding) -> bytes:
        return self.ek.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)


def kdfa(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    block = b"\0\0\0\1" + label + b"\0" + context + bits.to_bytes(4, "big")
    return hmac.digest(key, block, "sha256")[:bits // 8]


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()
