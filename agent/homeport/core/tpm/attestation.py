"""Elemental's proof that a machine has the TPM that it says it has: the token, the challenge, the answer.

Knows the JSON (spec/elemental.md, 2.3; Go writes bytes as base64) and what is computed for an endorsement key
that is a file: what TPM2_ActivateCredential does (TPM 2.0 Library, part 1, 24), up to the ciphers themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from base64 import b64decode, b64encode
from dataclasses import dataclass

from homeport.core.tpm.keys import EndorsementKey
from homeport.core.tpm.wire import Malformed, Reader, sized

SCHEME = "Bearer TPM"
LARGEST_CHALLENGE = 4096  # bytes; the server's is 476 for RSA-2048


@dataclass(frozen=True)
class Attestation:
    """An attestation key and what its TPM says about it: all that the token needs."""

    endorsement: EndorsementKey
    public: bytes
    creation: bytes
    attest: bytes
    signature: bytes


@dataclass(frozen=True)
class Challenge:
    """What only this TPM can open: TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET, sizes in front."""

    credential: bytes
    secret: bytes


def render_token(attestation: Attestation) -> str:
    """The value of the Authorization header."""
    import json
    token = {
        "EK": _base64(attestation.endorsement.pem.encode()),
        "AK": {
            "Public": _base64(attestation.public), "UseTCSDActivationFormat": False,
            "CreateData": _base64(attestation.creation), "CreateAttestation": _base64(attestation.attest),
            "CreateSignature": _base64(attestation.signature),
        },
    }
    return SCHEME + _base64(json.dumps(token, separators=(",", ":")).encode())


def parse_challenge(data: bytes) -> Challenge:
    """The server's challenge. Raises Malformed."""
    import json
    if len(data) > LARGEST_CHALLENGE:
        raise Malformed(f"a challenge of {len(data)} bytes")
    try:
        parts = json.loads(data)["EC"]
        credential, secret = (b64decode(parts[name], validate=True) for name in ("Credential", "Secret"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Malformed("no challenge") from None
    for part in (credential, secret):
        reader = Reader(part)
        reader.sized()
        reader.finish()
    return Challenge(credential, secret)


def render_answer(secret: bytes) -> bytes:
    """What the server wants to see again."""
    return f'{{"Secret":"{_base64(secret)}"}}\n'.encode()


# For a key that is a file

def attest_creation(name: bytes, creation: bytes, clock: bytes) -> bytes:
    """TPMS_ATTEST as TPM2_CertifyCreation makes it (part 2, 10.12.8); `clock` is 17 bytes, TPMS_CLOCK_INFO."""
    head = struct.pack(">IH", 0xFF544347, 0x801A) + sized(name) + sized(b"")
    return head + clock + bytes(8) + sized(name) + sized(hashlib.sha256(creation).digest())


def creation_data(parent: bytes) -> bytes:
    """TPMS_CREATION_DATA (part 2, 15.1) of a key that was made without PCRs below `parent` (a name)."""
    no_pcrs = struct.pack(">I", 0) + sized(hashlib.sha256(b"").digest())
    return no_pcrs + struct.pack(">BH", 1, 0x000B) + sized(parent) + sized(parent) + sized(b"")


def signature(data: bytes) -> bytes:
    """TPMT_SIGNATURE around an RSASSA signature with SHA-256."""
    return struct.pack(">HH", 0x0014, 0x000B) + sized(data)


def storage_key(seed: bytes, name: bytes) -> bytes:
    """The AES-128 key for what was encrypted to the key called `name`."""
    return kdfa(seed, "STORAGE", name, 128)


def check_integrity(seed: bytes, name: bytes, credential: bytes) -> bytes:
    """The encrypted part of TPM2B_ID_OBJECT. Raises Malformed if it was not made for `name` with `seed`."""
    outer = Reader(credential)
    reader = Reader(outer.sized())
    given, encrypted = reader.sized(), reader.rest()
    wanted = hmac.digest(kdfa(seed, "INTEGRITY", b"", 256), encrypted + name, "sha256")
    if not hmac.compare_digest(given, wanted):
        raise Malformed("a challenge that was not made for this machine's key")
    return encrypted


def kdfa(key: bytes, label: str, context: bytes, bits: int) -> bytes:
    """KDFa with SHA-256, of one block: up to 256 bits (part 1, 11.4.10.2)."""
    block = struct.pack(">I", 1) + label.encode() + b"\0" + context + struct.pack(">I", bits)
    return hmac.digest(key, block, "sha256")[:bits // 8]


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
