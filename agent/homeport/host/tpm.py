"""The TPM of this machine: its endorsement key, and the proof that we have it.

Knows where the TPM is, how to speak to it within a time limit (from a process of its own: tpmchild.py), and that
nothing of ours may stay in it: keys and sessions are transient and flushed, nothing is made persistent. What is said
is `core/tpm`.

/dev/tpmrm0 is the kernel's resource manager (or that of another number: tpmdevice.py): other programs use the TPM at
the same time. A socket in its place is spoken to as well: that is how a container is lent the software TPM of its
host.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from homeport.core.identity import TpmFact
from homeport.core.tpm import commands, keys, templates, wire
from homeport.core.tpm.attestation import Attestation, Challenge
from homeport.core.tpm.der import Key, NotDer, RsaKey
from homeport.core.tpm.keys import EndorsementKey, Method
from homeport.core.tpm.wire import Answer, Malformed, OldTpm, Refused
from homeport.errors import SourceError
from homeport.host.files import Where
from homeport.host.tpmchild import Apart, Transport
from homeport.host.tpmdevice import await_tpm, device

log = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds for one thing asked of the TPM. A slow one takes ten to derive an RSA key.
LIMIT = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds before a busy TPM is asked again

RSA_CERTIFICATE, RSA_NONCE = 0x01C00002, 0x01C00003  # TCG EK Credential Profile, 2.2.1.4
STORAGE_KEY = 0x81000001  # where it is kept, if somebody made it persistent
LARGEST_NV = 16 << 10  # bytes; a certificate has one or two KiB
# What a TPM without RSA-2048 says to its template: TPM_RC_ASYMMETRIC, _VALUE, _KEY_SIZE.
NO_RSA = (0x01, 0x04, 0x07)
HINT = "`homeport identify` shows what else may name this machine; identity-order= says in which order"


class TpmError(SourceError):
    """The TPM is not there, or does not do what it is asked."""


class DeviceFile:
    """/dev/tpmrm0: one write is a command, one read its answer (drivers/char/tpm/tpm-dev-common.c)."""

    def __init__(self, path: str) -> None:
        # Not blocking: write() comes back at once. poll() knows the end of a command, and may not come back before it.
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)

    def exchange(self, command: bytes, seconds: float) -> bytes:
        os.write(self._file, command)
        waiting = select.poll()
        waiting.register(self._file, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            raise TimeoutError
        return os.read(self._file, wire.LARGEST)

    def close(self) -> None:
        os.close(self._file)


class StreamSocket:
    """A software TPM behind a Unix socket: command after command, answer after answer."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.settimeout(LIMIT)
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise

    def exchange(self, command: bytes, seconds: float) -> bytes:
        end = time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(command)
        head = self._receive(wire.HEADER, end)
        size = int.from_bytes(head[2:6], "big")
        if not wire.HEADER <= size <= wire.LARGEST:
            raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
        return head + self._receive(size - wire.HEADER, end)

    def _receive(self, length: int, end: float) -> bytes:
        data = b""
        while len(data) < length:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            piece = self._socket.recv(length - len(data))
            if not piece:
                raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))
            data += piece
        return data

    def close(self) -> None:
        self._socket.close()


class Tpm:
    """One TPM, open. `with open_tpm() as tpm: …` leaves nothing of ours in it. Everything raises TpmError."""

    def __init__(self, transport: Transport, *, limit: float = LIMIT) -> None:
        self._transport = transport
        self._limit = limit
        self._broken = False
        self._loaded: list[int] = []
        self._endorsement: EndorsementKey | None = None
        self._endorsement_handle = 0
        self._attestation: Attestation | None = None
        self._attestation_handle = 0

    def __enter__(self) -> Tpm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Flush what we loaded. One that does not answer is left alone: the kernel cleans up behind us."""
        while self._loaded and not self._broken:
            try:
                self._ask(commands.flush(self._loaded.pop()), "give back a key")
            except TpmError as error:
                log.debug("%s", error)
        self._transport.close()

    def endorsement_key(self) -> EndorsementKey:
        """What names this machine: by its certificate, else by the TCG's template. Read once."""
        if self._endorsement is None:
            self._endorsement = self._certified() or self._derived()
        return self._endorsement

    def attestation(self) -> Attestation:
        """A fresh attestation key, and the TPM's word that it made it; the same for as long as this is open."""
        if self._attestation is None:
            self._attestation = self._attest()
        return self._attestation

    def activate(self, challenge: Challenge) -> bytes:
        """The secret that was encrypted to this TPM and our attestation key."""
        self.attestation()
        what = "open the server's challenge"
        policy = self._start_policy_session(what)
        answer = self._ask(commands.activate_credential(
            self._attestation_handle, self._endorsement_handle, policy, challenge.credential, challenge.secret), what)
        # The session ended with the command: its attribute to go on was not set.
        self._loaded.remove(policy)
        return self._read(commands.read_activated, answer, what)

    # The endorsement key

    def _certified(self) -> EndorsementKey | None:
        """By the certificate in NV, None if there is none that can be read, as go-attestation does."""
        data = self._read_nv(RSA_CERTIFICATE, by=RSA_CERTIFICATE)
        try:
            certificate, key = keys.parse_certificate(data)
        except NotDer as error:
            if data:
                log.debug("the endorsement certificate in the TPM is not usable: %s", error)
            return None
        return EndorsementKey(key, Method.CERTIFICATE, certificate) if isinstance(key, RsaKey) else None

    def _derived(self) -> EndorsementKey:
        """By the template; the key stays loaded for what comes."""
        what = "derive the endorsement key"
        nonce = self._read_nv(RSA_NONCE, by=commands.OWNER)
        try:
            public = self._create_primary(commands.ENDORSEMENT, templates.rsa_endorsement(nonce), what)
            method = Method.RSA_TEMPLATE
        except TpmError as error:
            refused = error.__cause__
            if not isinstance(refused, Refused) or wire.kind(refused.code) not in NO_RSA:
                raise
            public = self._create_primary(commands.ENDORSEMENT, templates.ecc_endorsement(), what)
            method = Method.ECC_TEMPLATE
        self._endorsement_handle = self._loaded[-1]
        return EndorsementKey(self._parse_public(public, what), method)

    def _read_nv(self, index: int, *, by: int) -> bytes:
        """What an NV index holds; b"" if there is none, or nobody without a password may read it."""
        what = "give its certificate"
        try:
            answer = self._ask(commands.nv_read_public(index), what)
            size = min(self._read(commands.read_nv_size, answer, what), LARGEST_NV)
            chunk = self._property(commands.NV_BUFFER_MAX, what) or 512
            data = b""
            while len(data) < size:
                wanted = min(size - len(data), chunk)
                answer = self._ask(commands.nv_read(index, wanted, len(data), by=by), what)
                piece = self._read(commands.read_nv, answer, what)
                if not piece or len(piece) > wanted:
                    raise TpmError(f"This machine's TPM cannot {what}: it gives another length than asked for", HINT)
                data += piece
        except TpmError as error:
            refused = error.__cause__
            if isinstance(refused, Refused) and not refused.of_the_whole:
                return b""
            raise
        return data

    def _property(self, number: int, what: str) -> int | None:
        answer = self._ask(commands.get_property(number), what)
        return self._read(lambda found: commands.read_property(found, number), answer, what)

    # The attestation key

    def _attest(self) -> Attestation:
        endorsement = self.endorsement_key()
        if not isinstance(endorsement.key, RsaKey):
            raise TpmError("This machine's TPM has no RSA endorsement key, which the registration server wants",
                           "register by another fact: registration-auth=mac or sys-uuid")
        self._load_endorsement_key(endorsement)
        what = "make an attestation key"
        parent = self._storage_key(what)
        answer = self._ask(commands.create(parent, templates.attestation()), what)
        created = self._read(commands.read_created, answer, what)
        self._attestation_handle = self._ask_for_handle(commands.load(parent, created), what)
        answer = self._ask(commands.certify_creation(self._attestation_handle, created), what)
        attest, signature = self._read(commands.read_certified, answer, what)
        return Attestation(endorsement, created.public, created.creation, attest, signature)

    def _load_endorsement_key(self, known: EndorsementKey) -> None:
        if self._endorsement_handle:
            return
        what = "derive the endorsement key"
        template = templates.rsa_endorsement(self._read_nv(RSA_NONCE, by=commands.OWNER))
        public = self._create_primary(commands.ENDORSEMENT, template, what)
        self._endorsement_handle = self._loaded[-1]
        if self._parse_public(public, what) != known.key:
            raise TpmError("The endorsement certificate in this machine's TPM is for another key than the TPM has",
                           "its maker must renew it; until then register by another fact: registration-auth=mac")

    def _storage_key(self, what: str) -> int:
        """The persistent one if there is one, which saves seconds, else a transient one just like it."""
        try:
            answer = self._ask(commands.read_public(STORAGE_KEY), what)
            public = self._read(lambda found: found.parameters.sized(), answer, what)
            if public[:8] == templates.storage()[:8]:
                return STORAGE_KEY
        except TpmError as error:
            if not isinstance(error.__cause__, Refused):
                raise
        self._create_primary(commands.OWNER, templates.storage(), what)
        return self._loaded[-1]

    def _start_policy_session(self, what: str) -> int:
        policy = self._ask_for_handle(commands.start_policy_session(os.urandom(16)), what)
        self._ask(commands.policy_secret(policy), what)
        return policy

    # Asking

    def _create_primary(self, hierarchy: int, template: bytes, what: str) -> bytes:
        """The public area of the key, whose handle is the last of `_loaded`."""
        answer = self._ask(commands.create_primary(hierarchy, template), what, handles=1)
        self._loaded += answer.handles
        return self._read(commands.read_primary, answer, what).public

    def _ask_for_handle(self, command: bytes, what: str) -> int:
        (handle,) = self._ask(command, what, handles=1).handles
        self._loaded.append(handle)
        return handle

    def _ask(self, command: bytes, what: str, *, handles: int = 0) -> Answer:
        """One command, repeated while the TPM is busy."""
        end = time.monotonic() + self._limit
        pause = FIRST_PAUSE
        while True:
            try:
                return wire.parse_answer(self._exchange(command, what, end - time.monotonic()), handles)
            except Refused as refused:
                if not refused.again or time.monotonic() + pause > end:
                    raise TpmError(f"This machine's TPM cannot {what}: {refused}", HINT) from refused
            except OldTpm:
                raise TpmError("This machine's TPM is a TPM 1.2, and a TPM 2.0 is needed", HINT) from None
            except Malformed as error:
                raise TpmError(f"This machine's TPM gives no sound answer: {error}", HINT) from None
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _exchange(self, command: bytes, what: str, seconds: float) -> bytes:
        if self._broken:
            raise TpmError("This machine's TPM has stopped answering", HINT)
        try:
            return self._transport.exchange(command, max(seconds, 0.01))
        except TimeoutError:
            self._broken = True
            raise TpmError(f"This machine's TPM did not {what} within {self._limit:.3g} s", HINT) from None
        except OSError as error:
            self._broken = True
            raise TpmError(f"This machine's TPM broke off: {error.strerror or error}", HINT) from None

    def _read(self, reader: Callable[[Answer], T], answer: Answer, what: str) -> T:
        try:
            return reader(answer)
        except Malformed as error:
            raise TpmError(f"This machine's TPM cannot {what}: its answer is not sound: {error}", HINT) from None

    def _parse_public(self, public: bytes, what: str) -> Key:
        try:
            return keys.parse_public(public)
        except Malformed as error:
            raise TpmError(f"This machine's TPM cannot {what}: it gives {error}", HINT) from None


def open_tpm(root: Where = "/", *, limit: float = LIMIT) -> Tpm:
    """The TPM of the machine below `root`. Raises TpmError with why there is none."""
    if absent := await_tpm(root):
        raise TpmError(absent, HINT)
    node = device(root)
    path = os.path.join(root, node)
    try:
        return Tpm(Apart(lambda: _connect(path)), limit=limit)
    except FileNotFoundError:
        raise TpmError(f"This machine's TPM, /{node}, has gone away", HINT) from None
    except TimeoutError:
        raise TpmError(f"This machine's TPM, /{node}, does not open", HINT) from None
    except OSError as error:
        raise TpmError(f"Cannot open this machine's TPM, /{node}: {_why_closed(error)}", HINT) from None


def _connect(path: str) -> Transport:
    return StreamSocket(path) if stat.S_ISSOCK(os.stat(path).st_mode) else DeviceFile(path)


def _why_closed(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "another program holds it"
    if error.errno not in (errno.EACCES, errno.EPERM):
        return error.strerror or str(error)
    # systemd looks char-tpm up when a unit is started (systemd.resource-control(5), DeviceAllow=).
    return "only root may use it" if os.geteuid() else "its driver came after this unit's list of devices was made"


def the_tpm(root: Where = "/", *, limit: float = LIMIT) -> Tpm:
    """The same one each time, given back when this process ends: to derive its keys takes a slow TPM half a minute.

    Raises TpmError, as `open_tpm`.
    """
    place = os.fspath(root)
    if place not in _opened:
        if not _opened:
            atexit.register(give_back)
        _opened[place] = open_tpm(root, limit=limit)
    return _opened[place]


def give_back() -> None:
    """Close what `the_tpm` opened."""
    while _opened:
        _opened.popitem()[1].close()


_opened: dict[str, Tpm] = {}


def read_fact(root: Where = "/", *, limit: float = LIMIT) -> TpmFact:
    """What names the TPM of the machine below `root`, or why there is nothing that does. Never raises."""
    try:
        found = the_tpm(root, limit=limit).endorsement_key()
    except TpmError as error:
        return TpmFact(fault=error.message)
    return TpmFact(found.hash, f"{found.method.words} ({found.method})")


def read_endorsement_key(root: Where = "/", *, limit: float = LIMIT) -> EndorsementKey:
    """What names the machine below `root`. Raises TpmError."""
    with open_tpm(root, limit=limit) as tpm:
        return tpm.endorsement_key()
