"""As much of the TPM 2.0 structures as an attestation needs (TPM 2.0 Library, part 2), and its KDFa (part 1, 11.4).

Reads hostile bytes: a length that does not fit raises TpmFault, nothing else does.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

_RSA, _SHA256, _NULL, _RSASSA = 0x0001, 0x000B, 0x0010, 0x0014
_DEFAULT_EXPONENT = 65_537


class TpmFault(Exception):
    """Bytes that are no such structure."""


@dataclass(frozen=True)
class Public:
    """A TPMT_PUBLIC of an RSA signing key; its name is what the TPM calls it everywhere."""

    data: bytes
    key: RSAPublicKey
    attributes: int

    @property
    def name(self) -> bytes:
        return _SHA256.to_bytes(2, "big") + hashlib.sha256(self.data).digest()


class Reader:
    """Takes big-endian numbers and sized buffers off the front of `data`."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, count: int) -> bytes:
        if len(self.data) < count:
            raise TpmFault("a structure that is cut short")
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def skip(self, count: int) -> None:
        self.take(count)

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def sized(self) -> bytes:
        return self.take(self.u16())

    def end(self) -> None:
        if self.data:
            raise TpmFault(f"{len(self.data)} bytes after a structure's end")


def read_public(data: bytes) -> Public:
    """An RSA attestation key: SHA-256 name, no symmetric cipher, RSASSA with SHA-256."""
    reader = Reader(data)
    if reader.u16() != _RSA or reader.u16() != _SHA256:
        raise TpmFault("an AK that is no RSA key named by SHA-256")
    attributes = reader.u32()
    reader.sized()  # authPolicy
    if reader.u16() != _NULL or reader.u16() != _RSASSA or reader.u16() != _SHA256:
        raise TpmFault("an AK that does not sign with RSASSA and SHA-256")
    bits, exponent, modulus = reader.u16(), reader.u32(), reader.sized()
    reader.end()
    number = int.from_bytes(modulus, "big")
    if number.bit_length() != bits:
        raise TpmFault(f"an AK of {number.bit_length()} bits that says {bits}")
    try:
        key = RSAPublicNumbers(exponent or _DEFAULT_EXPONENT, number).public_key()
    except ValueError as error:
        raise TpmFault(f"an AK that is no RSA key: {error}") from None
    return Public(data, key, attributes)


def kdfa(key: bytes, label: bytes, first: bytes, second: bytes, bits: int) -> bytes:
    """KDFa with SHA-256; `label` without the NUL that ends it."""
    output = b""
    counter = 0
    while len(output) * 8 < bits:
        counter += 1
        block = counter.to_bytes(4, "big") + label + b"\0" + first + second + bits.to_bytes(4, "big")
        output += hmac.digest(key, block, "sha256")
    return output[:bits // 8]


def sized(data: bytes) -> bytes:
    """A TPM2B: the length in 16 bits, then the bytes."""
    return len(data).to_bytes(2, "big") + data
