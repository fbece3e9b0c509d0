"""The commands, each with the function that reads its answer (TPM 2.0 Library, part 3).

All authorisations are by the empty password, but for the one that the endorsement key wants: a policy session.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from homeport.core.tpm.wire import Answer, Reader, command, session, sized

OWNER, ENDORSEMENT, NULL = 0x40000001, 0x4000000B, 0x40000007  # TPM_RH_*
RSASSA, SHA256, NO_ALGORITHM = 0x0014, 0x000B, 0x0010  # TPM_ALG_*
POLICY_SESSION = 0x01  # TPM_SE_POLICY
PROPERTIES, NV_BUFFER_MAX = 0x06, 0x12C  # TPM_CAP_TPM_PROPERTIES, TPM_PT_NV_BUFFER_MAX


@dataclass(frozen=True)
class Created:
    """A key that was just made.

    `public` is TPMT_PUBLIC, `creation` TPMS_CREATION_DATA, `ticket` TPMT_TK_CREATION, all without a size in
    front; `private` is the blob to load it with, b"" for a primary key, which is loaded already.
    """

    public: bytes
    creation: bytes
    creation_hash: bytes
    ticket: bytes
    private: bytes = b""


def get_property(number: int) -> bytes:
    return command(0x17A, parameters=struct.pack(">III", PROPERTIES, number, 1))


def read_property(answer: Answer, number: int) -> int | None:
    """The value of the property, None if this TPM does not have it."""
    reader = answer.parameters
    reader.number(1)
    if reader.number(4) != PROPERTIES or reader.number(4) < 1:
        return None
    found, value = reader.number(4), reader.number(4)
    return value if found == number else None


def nv_read_public(index: int) -> bytes:
    return command(0x169, index)


def read_nv_size(answer: Answer) -> int:
    """How many bytes an NV index holds."""
    public = Reader(answer.parameters.sized())
    public.take(4 + 2 + 4)  # index, algorithm of its name, attributes
    public.sized()  # policy
    return public.number(2)


def nv_read(index: int, size: int, offset: int, *, by: int) -> bytes:
    """`by` is the handle whose (empty) password allows it: the index itself, or OWNER."""
    return command(0x14E, by, index, sessions=[session()], parameters=struct.pack(">HH", size, offset))


def read_nv(answer: Answer) -> bytes:
    return answer.parameters.sized()


def create_primary(hierarchy: int, template: bytes) -> bytes:
    """A key derived from the seed of `hierarchy`: the same template gives the same key. Answers with a handle."""
    return command(0x131, hierarchy, sessions=[session()], parameters=_to_create(template))


def read_primary(answer: Answer) -> Created:
    return _read_created(answer.parameters)


def create(parent: int, template: bytes) -> bytes:
    """A new key that only this TPM can use, below the loaded key `parent`."""
    return command(0x153, parent, sessions=[session()], parameters=_to_create(template))


def read_created(answer: Answer) -> Created:
    private = answer.parameters.sized()
    return _read_created(answer.parameters, private)


def load(parent: int, created: Created) -> bytes:
    """Answers with a handle."""
    return command(0x157, parent, sessions=[session()], parameters=sized(created.private) + sized(created.public))


def certify_creation(key: int, created: Created) -> bytes:
    """The key at the handle `key` signs that this TPM made it."""
    scheme = struct.pack(">HH", RSASSA, SHA256)
    return command(0x14A, key, key, sessions=[session()],
                   parameters=sized(b"") + sized(created.creation_hash) + scheme + created.ticket)


def read_certified(answer: Answer) -> tuple[bytes, bytes]:
    """TPMS_ATTEST and TPMT_SIGNATURE."""
    return answer.parameters.sized(), answer.parameters.rest()


def start_policy_session(nonce: bytes) -> bytes:
    """Answers with a handle. `nonce` is 16 random bytes."""
    return command(0x176, NULL, NULL, parameters=sized(nonce) + sized(b"") + struct.pack(
        ">BHH", POLICY_SESSION, NO_ALGORITHM, SHA256))


def policy_secret(policy: int) -> bytes:
    """Meet the policy of the TCG's endorsement keys: whoever knows the endorsement password may use them."""
    return command(0x151, ENDORSEMENT, policy, sessions=[session()],
                   parameters=sized(b"") + sized(b"") + sized(b"") + struct.pack(">i", 0))


def activate_credential(key: int, endorsement_key: int, policy: int, credential: bytes, secret: bytes) -> bytes:
    """Open what was encrypted to `endorsement_key` for `key`; both parts are sized already."""
    return command(0x147, key, endorsement_key, sessions=[session(), session(policy)],
                   parameters=credential + secret)


def read_activated(answer: Answer) -> bytes:
    return answer.parameters.sized()


def read_public(handle: int) -> bytes:
    return command(0x173, handle)


def flush(handle: int) -> bytes:
    """Forget a loaded key or a session."""
    return command(0x165, handle)


def _to_create(template: bytes) -> bytes:
    """No password, no data, no PCRs."""
    sensitive = sized(b"") + sized(b"")
    return sized(sensitive) + sized(template) + sized(b"") + struct.pack(">I", 0)


def _read_created(reader: Reader, private: bytes = b"") -> Created:
    public, creation, creation_hash = reader.sized(), reader.sized(), reader.sized()
    head = reader.take(2 + 4)  # tag and hierarchy of the ticket
    return Created(public, creation, creation_hash, head + sized(reader.sized()), private)
