"""What to ask the TPM for: the public areas (TPMT_PUBLIC) of the keys that we have it make.

The endorsement keys are the TCG's defaults (EK Credential Profile 2.0, templates L-1 and L-2): every program
that follows it derives the same key. The storage key is the TCG's too (TPM 2.0 Provisioning Guidance, 7.5.1);
the attestation key is as go-attestation makes it, which Elemental's server checks.
"""

from __future__ import annotations

import struct

from homeport.core.tpm.wire import sized

RSA, ECC, SHA256, NO_ALGORITHM = 0x0001, 0x0023, 0x000B, 0x0010
AES, CFB, RSASSA, P256 = 0x0006, 0x0043, 0x0014, 0x0003
RSA_BITS = 2048

# fixedTPM, fixedParent, sensitiveDataOrigin, and: adminWithPolicy, restricted, decrypt
OF_ENDORSEMENT = 0x000300B2
# userWithAuth, noDA, restricted, decrypt
OF_STORAGE = 0x00030472
# userWithAuth, noDA, restricted, sign
OF_ATTESTATION = 0x00050472

# PolicySecret(TPM_RH_ENDORSEMENT)
ENDORSEMENT_POLICY = bytes.fromhex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa")
_AES_128_CFB = struct.pack(">HHH", AES, 128, CFB)


def rsa_endorsement(nonce: bytes = b"") -> bytes:
    """Template L-1; `nonce` is what the maker of the TPM put into NV 0x01c00003, if anything."""
    return _rsa(OF_ENDORSEMENT, ENDORSEMENT_POLICY, _AES_128_CFB, NO_ALGORITHM, nonce[:256].ljust(256, b"\0"))


def ecc_endorsement() -> bytes:
    """Template L-2."""
    head = struct.pack(">HHI", ECC, SHA256, OF_ENDORSEMENT) + sized(ENDORSEMENT_POLICY)
    kind = _AES_128_CFB + struct.pack(">HHH", NO_ALGORITHM, P256, NO_ALGORITHM)
    return head + kind + sized(bytes(32)) + sized(bytes(32))


def storage() -> bytes:
    return _rsa(OF_STORAGE, b"", _AES_128_CFB, NO_ALGORITHM, bytes(256))


def attestation() -> bytes:
    return _rsa(OF_ATTESTATION, b"", struct.pack(">H", NO_ALGORITHM), RSASSA, b"")


def _rsa(attributes: int, policy: bytes, symmetric: bytes, scheme: int, unique: bytes) -> bytes:
    """An RSA-2048 key with the default exponent; a signing scheme hashes with SHA-256."""
    head = struct.pack(">HHI", RSA, SHA256, attributes) + sized(policy)
    details = struct.pack(">H", scheme) + (struct.pack(">H", SHA256) if scheme != NO_ALGORITHM else b"")
    return head + symmetric + details + struct.pack(">HI", RSA_BITS, 0) + sized(unique)

