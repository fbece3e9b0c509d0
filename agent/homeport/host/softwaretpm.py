"""A TPM that is a file: what Elemental calls `emulate-tpm`, for labs and for machines without one.

Knows how to keep an endorsement key on disk and to answer a challenge with it. It proves that the file is the
same, nothing about the machine: whoever has the file is the machine. Elemental's emulator derives its keys from
a number by code of its own, so a machine that elemental-register has registered with it is another one here.

Needs python3-cryptography, which nothing else in the agent needs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from homeport.core.tpm import keys, templates
from homeport.core.tpm.attestation import (
    Attestation,
    Challenge,
    attest_creation,
    check_integrity,
    creation_data,
    signature,
    storage_key,
)
from homeport.core.tpm.der import RsaKey
from homeport.core.tpm.keys import EndorsementKey, Method, name_of
from homeport.core.tpm.wire import Malformed, Reader
from homeport.errors import SourceError
from homeport.host.files import make_dir, read_file, write_atomic

if TYPE_CHECKING:
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

PATH = "var/lib/homeport/software-ek.pem"
LIMIT = 64 << 10
BITS = 2048
OAEP_LABEL = b"IDENTITY\0"  # TPM 2.0 Library, part 1, B.10.4 and 24.4


class SoftwareTpm:
    """See the head of this module. Raises SourceError, as `host/tpm.py` does."""

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise SourceError("Cannot emulate a TPM: python3-cryptography is not in this image",
                              "install it, or register by another fact: registration-auth=mac or sys-uuid") from None
        self._endorsement = _read_key(root) or _make_key(root)
        self._attestation_key = _new_key()
        self._attestation: Attestation | None = None

    def attestation(self) -> Attestation:
        """A fresh attestation key and what a TPM would say of it."""
        if self._attestation is None:
            from cryptography.hazmat.primitives.asymmetric import padding
            from cryptography.hazmat.primitives.hashes import SHA256
            public = keys.rsa_public(_public(self._attestation_key), templates.attestation())
            # The key that it would be below is nobody's concern; its name only has to look like one.
            creation = creation_data(name_of(os.urandom(32)))
            attest = attest_creation(name_of(public), creation, bytes(16) + b"\x01")
            signed = self._attestation_key.sign(attest, padding.PKCS1v15(), SHA256())
            endorsement = EndorsementKey(_public(self._endorsement), Method.SOFTWARE)
            self._attestation = Attestation(endorsement, public, creation, attest, signature(signed))
        return self._attestation

    def activate(self, challenge: Challenge) -> bytes:
        """What TPM2_ActivateCredential does. Raises Malformed for a challenge that is not for us."""
        from cryptography.hazmat.primitives.asymmetric import padding
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        oaep = padding.OAEP(mgf=padding.MGF1(SHA256()), algorithm=SHA256(), label=OAEP_LABEL)
        try:
            seed = self._endorsement.decrypt(Reader(challenge.secret).sized(), oaep)
        except ValueError:
            raise Malformed("a challenge that was not made for this machine's key") from None
        name = name_of(self.attestation().public)
        encrypted = check_integrity(seed, name, challenge.credential)
        plain = Cipher(algorithms.AES(storage_key(seed, name)), _cfb(bytes(16))).decryptor().update(encrypted)
        return Reader(plain).sized()


def _read_key(root: str | os.PathLike[str]) -> RSAPrivateKey | None:
    """The key that is kept, None if there is none yet. Raises SourceError for one that cannot be used."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    try:
        data = read_file(root, PATH, LIMIT)
        key = None if data is None else load_pem_private_key(data, password=None)
    except (OSError, ValueError, TypeError) as error:
        words = error.strerror if isinstance(error, OSError) else "no private key in it"
        raise _unusable(words or "not readable") from None
    if key is not None and (not isinstance(key, RSAPrivateKey) or key.key_size != BITS):
        raise _unusable(f"not an RSA key of {BITS} bits")
    return key


def _unusable(why: str) -> SourceError:
    # Never replaced by a new one: that would be another machine to the server.
    return SourceError(f"Cannot use /{PATH}, the key of the emulated TPM: {why}",
                       "restore it; without it this machine is another one to its server: then remove it")


def _make_key(root: str | os.PathLike[str]) -> RSAPrivateKey:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    key = _new_key()
    try:
        make_dir(root, os.path.dirname(PATH), 0o700)
        write_atomic(root, PATH, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    except OSError as error:
        raise SourceError(f"Cannot keep /{PATH}, the key of the emulated TPM: {error.strerror}",
                          "without it this machine would be another one at each boot") from None
    return key


def _new_key() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    return generate_private_key(65537, BITS)


def _public(key: RSAPrivateKey) -> RsaKey:
    numbers = key.public_key().public_numbers()
    return RsaKey(numbers.n, numbers.e)


def _cfb(start: bytes) -> CFB:
    """Newer versions keep this mode where it says that it is for old formats: TPM 2.0 is one."""
    try:
        from cryptography.hazmat.decrepit.ciphers import modes
    except ImportError:
        from cryptography.hazmat.primitives.ciphers import modes  # type: ignore[no-redef]
    return modes.CFB(start)
