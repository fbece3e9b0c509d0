"""As much of DER (X.690) as a public key takes: writing a SubjectPublicKeyInfo, finding it in a certificate.

Refuses to judge a certificate: whether anyone signed it is for whoever is shown it.
"""

from __future__ import annotations

from dataclasses import dataclass

INTEGER, BIT_STRING, NULL, OID, SEQUENCE, VERSION = 0x02, 0x03, 0x05, 0x06, 0x30, 0xA0

# 1.2.840.113549.1.1.1 rsaEncryption, and .7 RSAES-OAEP, which some makers write into their certificates
RSA = bytes.fromhex("2a864886f70d010101")
RSA_OAEP = bytes.fromhex("2a864886f70d010107")
EC, P256 = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d030107")


class NotDer(ValueError):
    """Not the structure that was to be there."""


@dataclass(frozen=True)
class RsaKey:
    modulus: int
    exponent: int

    @property
    def bits(self) -> int:
        return self.modulus.bit_length()


@dataclass(frozen=True)
class EccKey:
    """A point on P-256."""

    x: int
    y: int


Key = RsaKey | EccKey


def public_key_info(key: Key) -> bytes:
    """SubjectPublicKeyInfo (RFC 5280, 4.1; RFC 3279, 2.3.1; RFC 5480, 2)."""
    if isinstance(key, RsaKey):
        algorithm = _item(OID, RSA) + _item(NULL, b"")
        content = _item(SEQUENCE, _integer(key.modulus) + _integer(key.exponent))
    else:
        algorithm = _item(OID, EC) + _item(OID, P256)
        content = b"\x04" + key.x.to_bytes(32, "big") + key.y.to_bytes(32, "big")
    return _item(SEQUENCE, _item(SEQUENCE, algorithm) + _item(BIT_STRING, b"\0" + content))


def certificate_key(certificate: bytes) -> Key:
    """The public key in an X.509 certificate (RFC 5280, 4.1). Raises NotDer."""
    body, _ = _take(_take(certificate, SEQUENCE)[0], SEQUENCE)
    if body[:1] == bytes([VERSION]):
        _, body = _take(body, VERSION)
    _, body = _take(body, INTEGER)
    for _part in ("signature algorithm", "issuer", "validity", "subject"):
        _, body = _take(body, SEQUENCE)
    info, _ = _take(body, SEQUENCE)
    algorithm, rest = _take(info, SEQUENCE)
    kind, parameters = _take(algorithm, OID)
    content, _ = _take(rest, BIT_STRING)
    if kind in (RSA, RSA_OAEP):
        return _rsa_key(content[1:])
    if kind == EC and _take(parameters, OID)[0] == P256 and len(content) == 66 and content[1] == 4:
        return EccKey(int.from_bytes(content[2:34], "big"), int.from_bytes(content[34:], "big"))
    raise NotDer("a key of a kind that endorsement keys do not have")


def cut(data: bytes) -> bytes:
    """The one DER item at the start of `data`, without what follows it. Raises NotDer."""
    _, rest = _take(data, SEQUENCE)
    return data[:len(data) - len(rest)]


def _rsa_key(content: bytes) -> RsaKey:
    numbers, _ = _take(content, SEQUENCE)
    modulus, numbers = _take(numbers, INTEGER)
    exponent, _ = _take(numbers, INTEGER)
    key = RsaKey(int.from_bytes(modulus, "big"), int.from_bytes(exponent, "big"))
    if not 2048 <= key.bits <= 4096 or key.exponent < 3:
        raise NotDer(f"an RSA key of {key.bits} bits")
    return key


def _take(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the item at the start of `data`, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise NotDer(f"no item {tag:#04x}")
    length, at = data[1], 2
    if length & 0x80:
        at += length & 0x7F
        if length in (0x80, 0xFF) or at > 6 or at > len(data):
            raise NotDer("a length that is not one")
        length = int.from_bytes(data[2:at], "big")
    if length > len(data) - at:
        raise NotDer("an item that is cut short")
    return data[at:at + length], data[at + length:]


def _item(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def _integer(number: int) -> bytes:
    # One bit more than it has: a leading one would make it negative.
    return _item(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))
