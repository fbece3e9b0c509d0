"""Keys of a TPM: its public areas, their names, and the hash that Elemental knows a machine by.

The hash is the same whichever way the key was found, and each way has a name of its own (`Method`): two ways of
reading that give different keys are how one machine becomes two (field report 41).
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum

from homeport.core.tpm import templates
from homeport.core.tpm.der import EccKey, Key, NotDer, RsaKey, certificate_key, cut, public_key_info
from homeport.core.tpm.wire import Malformed, Reader, sized

DEFAULT_EXPONENT = 65537  # what 0 stands for (part 2, 12.2.3.5)
WRAPPED = b"\x10\x01\x00"  # TCG PC Client header that some makers put in front of the certificate


class Method(StrEnum):
    """How an endorsement key was found. The first two are Elemental's."""

    CERTIFICATE = "ek-rsa-certificate"
    RSA_TEMPLATE = "ek-rsa2048-template"
    ECC_TEMPLATE = "ek-p256-template"  # only where the TPM has no RSA
    SOFTWARE = "ek-software"

    @property
    def words(self) -> str:
        return {
            Method.CERTIFICATE: "the endorsement certificate in the TPM",
            Method.RSA_TEMPLATE: "the TPM's RSA endorsement key",
            Method.ECC_TEMPLATE: "the TPM's P-256 endorsement key",
            Method.SOFTWARE: "an emulated TPM: a key in a file",
        }[self]


@dataclass(frozen=True)
class EndorsementKey:
    """What names a TPM: its public key, the certificate (DER) if it has one, and how both were found."""

    key: Key
    method: Method
    certificate: bytes = b""

    @property
    def hash(self) -> str:
        """Elemental's tpmHash: SHA-256 of the public key as SubjectPublicKeyInfo, in hex."""
        return hashlib.sha256(public_key_info(self.key)).hexdigest()

    @property
    def pem(self) -> str:
        """As Elemental's token carries it: the certificate, or the public key alone."""
        if self.certificate:
            return _pem("CERTIFICATE", self.certificate)
        return _pem("PUBLIC KEY", public_key_info(self.key))


def parse_certificate(data: bytes) -> tuple[bytes, Key]:
    """The certificate in what an NV index holds, without header and padding, and its key. Raises NotDer."""
    if data.startswith(WRAPPED):
        length = int.from_bytes(data[3:5], "big")
        if length > len(data) - 5:
            raise NotDer("a certificate that is cut short")
        data = data[5:5 + length]
    certificate = cut(data)
    return certificate, certificate_key(certificate)


def parse_public(public: bytes) -> Key:
    """The key in a TPMT_PUBLIC (part 2, 12.2.4). Raises Malformed."""
    reader = Reader(public)
    kind = reader.number(2)
    reader.take(2 + 4)  # algorithm of the name, attributes
    reader.sized()  # policy
    if reader.number(2) != templates.NO_ALGORITHM:
        reader.take(2 + 2)
    if kind == templates.RSA:
        return _rsa(reader)
    if kind == templates.ECC:
        return _ecc(reader)
    raise Malformed(f"a key of the kind {kind:#06x}")


def name_of(public: bytes) -> bytes:
    """The name of a key whose name algorithm is SHA-256 (part 1, 16)."""
    return b"\0\x0b" + hashlib.sha256(public).digest()


def _rsa(reader: Reader) -> RsaKey:
    if reader.number(2) != templates.NO_ALGORITHM:
        reader.take(2)
    bits, exponent = reader.number(2), reader.number(4)
    modulus = int.from_bytes(reader.sized(), "big")
    reader.finish()
    if modulus.bit_length() != bits:
        raise Malformed(f"an RSA key of {modulus.bit_length()} bits that says it has {bits}")
    return RsaKey(modulus, exponent or DEFAULT_EXPONENT)


def _ecc(reader: Reader) -> EccKey:
    if reader.number(2) != templates.NO_ALGORITHM:
        reader.take(2)
    if reader.number(2) != templates.P256:
        raise Malformed("a curve other than P-256")
    if reader.number(2) != templates.NO_ALGORITHM:
        reader.take(2)
    x, y = reader.sized(), reader.sized()
    reader.finish()
    if len(x) > 32 or len(y) > 32:
        raise Malformed("a point that is not on P-256")
    return EccKey(int.from_bytes(x, "big"), int.from_bytes(y, "big"))


def rsa_public(key: RsaKey, template: bytes) -> bytes:
    """`template` with the modulus of `key`: TPMT_PUBLIC of a key that is not in a TPM."""
    empty = sized(bytes(256)) if template.endswith(bytes(256)) else sized(b"")
    return template.removesuffix(empty) + sized(key.modulus.to_bytes(key.bits // 8, "big"))


def _pem(label: str, der: bytes) -> str:
    text = b64encode(der).decode()
    lines = "\n".join(text[at:at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
