"""How this machine says who it is to a registration server: by its TPM, or by a number that anyone may say.

Knows Elemental's ways (spec/elemental.md, 2). A MAC or a UUID identifies a machine, it does not authenticate it;
which way is taken is the registration's to say, and none is taken in place of another.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from homeport.core.junk import uuid_fault
from homeport.errors import SourceError, Unreachable

if TYPE_CHECKING:
    from homeport.core.elemental.config import Registration
    from homeport.core.facts import Nic
    from homeport.core.identity import Identity
    from homeport.core.tpm.attestation import Attestation, Challenge

log = logging.getLogger(__name__)

PLAIN = "Bearer PLAIN"


@dataclass(frozen=True)
class Credentials:
    """`token` makes the Authorization header, `open_challenge` answers what the server then asks, if it asks.

    `words` name the way for people.
    """

    words: str
    token: Callable[[], str]
    open_challenge: Callable[[bytes], bytes] | None = None


def credentials_for(registration: Registration, identity: Identity, *, root: str | os.PathLike[str] = "/",
                    limit: float) -> Credentials:
    """The way that the registration wants. Raises SourceError if this machine has not what it takes.

    `limit` are the seconds that a TPM may take for each thing that it is asked.
    """
    if registration.auth == "mac":
        from homeport.host.nics import read_nics
        mac = _overridden(identity, "mac") or elemental_mac(read_nics(Path(root)))
        if not mac:
            raise SourceError("Cannot register by MAC: this machine has no network card with a permanent one",
                              "`homeport identify` shows what it has; registration-auth= says how to register")
        return _plain(mac, f"as the MAC {mac}")
    if registration.auth == "sys-uuid":
        return _by_uuid(identity, Path(root))
    if registration.auth == "emulated-tpm":
        from homeport.host.softwaretpm import SoftwareTpm
        log.warning("The TPM is emulated by a key in a file, for this registration wants it so; it is not the "
                    "identity that elemental-register would have, going on with it")
        return _by_tpm(SoftwareTpm(root), "by an emulated TPM")
    from homeport.host.tpm import the_tpm
    return _by_tpm(the_tpm(root, limit=limit), "by its TPM")


def elemental_mac(nics: Sequence[Nic]) -> str:
    """The MAC that elemental-register would say: the smallest permanent one of a card, of whatever bus."""
    return min((nic.permanent_mac or nic.mac for nic in nics
                if not nic.virtual and nic.addr_assign_type == 0 and (nic.permanent_mac or nic.mac)), default="")


def _by_uuid(identity: Identity, root: Path) -> Credentials:
    from homeport.host.smbios import read_smbios
    uuid = _overridden(identity, "uuid") or read_smbios(root).uuid
    if fault := uuid_fault(uuid):
        raise SourceError(f"Cannot register by SMBIOS UUID: {fault}",
                          "machines would be mistaken for each other; registration-auth= has other ways")
    return _plain(uuid, f"as the SMBIOS UUID {uuid}")


def _overridden(identity: Identity, field: str) -> str:
    """What a person wrote down for this machine; what only was read of it is read as Elemental reads it."""
    return identity.fields.get(field, "") if identity.kind == "override" else ""


def _plain(value: str, words: str) -> Credentials:
    digest = hashlib.sha256(value.encode()).hexdigest()
    return Credentials(f"{words}, machineHash {digest[:12]}…", lambda: PLAIN + value)


class Attestor(Protocol):
    """What a TPM, real or not, does for a registration."""

    def attestation(self) -> Attestation: ...

    def activate(self, challenge: Challenge) -> bytes: ...


def _by_tpm(tpm: Attestor, words: str) -> Credentials:
    from homeport.core.tpm.attestation import parse_challenge, render_answer, render_token
    from homeport.core.tpm.wire import Malformed

    def open_challenge(data: bytes) -> bytes:
        try:
            return render_answer(tpm.activate(parse_challenge(data)))
        except Malformed as error:
            raise Unreachable(f"The registration server's challenge is not sound: {error}",
                              "is this the server that the registration URL means?") from None

    return Credentials(f"{words}, tpmHash {tpm.attestation().endorsement.hash[:12]}…",
                       lambda: render_token(tpm.attestation()), open_challenge)
