"""A registration server for tests: as strict as Elemental's, and as hostile as a test wants it.

    with Operator() as operator:
        operator.documents = [pending, complete]        # the CONFIG payloads, in turn; the last for ever
        … operator.url(), operator.told, operator.faults …
        operator.talk = lambda talk: …                  # something else than the protocol

It checks every message of a client (spec/elemental.md, 1 and 2) and remembers in `faults` what was wrong; it
verifies a TPM's attestation and makes the challenge as go-attestation does. Knows `wsproto` from the other side.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import ssl
import struct
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, RejectConnection, RejectData, Request

from homeport.core.tpm.attestation import Attestation, Challenge
from homeport.core.tpm.der import Key, RsaKey

try:  # newer versions keep this mode apart
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
except ImportError:
    from cryptography.hazmat.primitives.ciphers.modes import CFB

FRAGMENT = 4096  # bytes: gorilla's buffer
NEWEST = 12
READY, VERSION, CONFIG, ERROR = b"\x01", 5, b"\x07", b"\x08"
NAMES = {2: "smbios", 3: "labels", 9: "annotations", 10: "update", 11: "system data"}
NONE = b"elemental:\n    registration:\n        url: https://example\n"


class Fault(Exception):
    """The client does something that a server does not put up with."""


@dataclass
class Told:
    """What one client said until it got its configuration, by the names of the messages."""

    authorization: str = ""
    hash: str = ""
    version: int = 0
    messages: dict[str, Any] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


class Talk:
    """One connection after the upgrade."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._events: list[Event] = []
        request = self._next()
        assert isinstance(request, Request), request
        self.path = request.target
        self.headers = {name.decode().lower(): value.decode() for name, value in request.extra_headers}

    def accept(self) -> None:
        self.sock.sendall(self._protocol.send(AcceptConnection()))

    def reject(self, status: int, body: str) -> None:
        self.sock.sendall(self._protocol.send(RejectConnection(status_code=status, has_body=True, headers=[
            (b"content-length", str(len(body)).encode())])))
        self.sock.sendall(self._protocol.send(RejectData(data=body.encode())))

    def send(self, data: bytes, *, fragment: int = FRAGMENT) -> None:
        pieces = [data[at:at + fragment] for at in range(0, len(data), fragment)] or [b""]
        for number, piece in enumerate(pieces, 1):
            self.sock.sendall(self._protocol.send(BytesMessage(data=piece, message_finished=number == len(pieces))))

    def send_event(self, event: Event) -> None:
        self.sock.sendall(self._protocol.send(event))

    def receive(self) -> bytes:
        data = b""
        while True:
            event = self._next()
            if not isinstance(event, BytesMessage):
                raise Fault(f"{type(event).__name__} instead of a binary message")
            data += event.data
            if event.message_finished:
                return data

    def _next(self) -> Event:
        while not self._events:
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionError
            self._protocol.receive_data(data)
            self._events += self._protocol.events()
        event = self._events.pop(0)
        if isinstance(event, CloseConnection):
            raise ConnectionError
        return event


class Operator:
    """See the head of this module. `tls` is a server's context, None for plain http."""

    def __init__(self, listener: socket.socket | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self._listener = listener or socket.create_server(("127.0.0.1", 0))
        self._tls = tls
        self.tokens = {"t0ken"}
        self.documents: list[bytes] = [NONE]
        self.newest: int | None = NEWEST  # None: a server that knows no versions
        self.known: set[str] = set()  # hashes
        self.told: list[Told] = []
        self.faults: list[str] = []
        self.connections = 0
        self.talk: Callable[[Talk], None] = self.serve
        self.heard: Callable[[Any], None] = lambda annotations: None

    def __enter__(self) -> Operator:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def url(self, token: str = "t0ken") -> str:
        host, port = self._listener.getsockname()[:2]
        return f"{'https' if self._tls else 'http'}://{host}:{port}/elemental/registration/{token}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def _converse(self, sock: socket.socket) -> None:
        with suppress(OSError), sock:
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            with sock:
                try:
                    self.talk(Talk(sock))
                except Fault as fault:
                    self.faults.append(str(fault))

    # The protocol

    def serve(self, talk: Talk) -> None:
        """One client from its upgrade to its configuration, then the connection ends without a close frame."""
        token = talk.path.rpartition("/")[2]
        if token not in self.tokens:
            talk.reject(404, f"failed to find machine registration with registration token {token}\n")
            return
        talk.accept()
        told = Told(talk.headers.get("authorization", ""))
        self.authenticate(talk, told)
        talk.send(READY)
        while True:
            data = talk.receive()
            told.order.append(data[0] if data else -1)
            if data == b"\x04":
                break
            talk.send(self.reply(data, told))
            if told.messages.get("update") is not None and told.hash not in self.known:
                talk.send(ERROR + b"message: MachineInventory not found\n")
                return
        self.known.add(told.hash)
        self.told.append(told)
        document = self.documents.pop(0) if len(self.documents) > 1 else self.documents[0]
        talk.send(document if told.version < 7 else CONFIG + document)

    def authenticate(self, talk: Talk, told: Told) -> None:
        scheme, value = told.authorization[:10], told.authorization.removeprefix("Bearer ")
        if told.authorization.startswith("Bearer PLAIN"):
            told.hash = hashlib.sha256(value.removeprefix("PLAIN").encode()).hexdigest()
            return
        if scheme != "Bearer TPM":
            raise Fault(f"authorization {scheme!r}")
        attestation, key, told.hash = read_token(value.removeprefix("TPM"))
        secret = os.urandom(32)
        challenge = make_credential(key, b"\0\x0b" + hashlib.sha256(attestation["Public"]).digest(), secret)
        talk.send(render_challenge(challenge))
        answer = talk.receive()
        if not answer.endswith(b"\n") or b64decode(json.loads(answer)["Secret"]) != secret:
            raise Fault("a wrong answer to the challenge")

    def reply(self, data: bytes, told: Told) -> bytes:
        """The answer to one message that is not GET."""
        kind, payload = data[0], data[1:]
        if kind == VERSION:
            if self.newest is None:
                raise ConnectionError
            if len(payload) != 1 or payload[0] < 5:
                raise Fault(f"version {payload!r}")
            told.version = min(payload[0], self.newest)
            return bytes([VERSION, told.version])
        if kind not in NAMES or kind > max(told.version, 4):
            raise Fault(f"message {kind} to a server of version {told.version}")
        told.messages[NAMES[kind]] = json.loads(payload) if kind != 10 else payload
        if kind in (3, 9):
            _check_texts(told.messages[NAMES[kind]])
        if kind == 9:
            self.heard(told.messages["annotations"])
        if kind == 11:
            _check_tree(told.messages["system data"])
        return READY


def _check_texts(tree: Any) -> None:
    if not isinstance(tree, dict) or not all(isinstance(value, str) for value in tree.values()):
        raise Fault("a map of text to text was to come")


def _check_tree(tree: Any) -> None:
    for value in tree.values():
        if isinstance(value, dict):
            _check_tree(value)
        elif not isinstance(value, str):
            raise Fault(f"{value!r} in the system data")


# A TPM's attestation, as go-attestation looks at it

def read_token(value: str) -> tuple[dict[str, bytes], RsaKey, str]:
    """The parts of a token, its endorsement key, and the tpmHash; Fault if the attestation does not hold."""
    token = json.loads(b64decode(value, validate=True))
    pem = b64decode(token["EK"])
    kind = load_pem_x509_certificate(pem).public_key() if b"CERTIFICATE" in pem else load_pem_public_key(pem)
    assert isinstance(kind, RSAPublicKey)
    if token["AK"]["UseTCSDActivationFormat"] is not False:
        raise Fault("TCSD")
    parts = {name: b64decode(token["AK"][name]) for name in ("Public", "CreateData", "CreateAttestation",
                                                            "CreateSignature")}
    _check(parts["Public"], parts["CreateData"], parts["CreateAttestation"], parts["CreateSignature"])
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    info = kind.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    numbers = kind.public_numbers()
    return parts, RsaKey(numbers.n, numbers.e), hashlib.sha256(info).hexdigest()


def verify_attestation(attestation: Attestation) -> None:
    """Raises Fault if it does not hold."""
    _check(attestation.public, attestation.creation, attestation.attest, attestation.signature)


def _check(public: bytes, creation: bytes, attest: bytes, signature: bytes) -> None:
    attributes = int.from_bytes(public[4:8], "big")
    if public[:4] != b"\0\x01\0\x0b" or not all(attributes & bit for bit in (0x2, 0x10, 0x20, 0x10000)):
        raise Fault("a key that is not limited to attestation")
    if attest[:6].hex() != "ff544347801a":
        raise Fault("not the creation of a TPM")
    at = 6 + 2 + int.from_bytes(attest[6:8], "big")  # past the qualified signer
    at += 2 + int.from_bytes(attest[at:at + 2], "big") + 17 + 8
    name = b"\0\x0b" + hashlib.sha256(public).digest()
    if attest[at:] != b"\0\x22" + name + b"\0\x20" + hashlib.sha256(creation).digest():
        raise Fault("what was attested is another key")
    if signature[:6].hex() != "0014000b0100":
        raise Fault("another kind of signature")
    modulus = int.from_bytes(public[-256:], "big")
    RSAPublicNumbers(65537, modulus).public_key().verify(signature[6:], attest, padding.PKCS1v15(), SHA256())


def make_credential(key: Key, name: bytes, secret: bytes) -> Challenge:
    """What TPM2_MakeCredential does (TPM 2.0 Library, part 1, 24), for RSA with SHA-256 and AES-128."""
    assert isinstance(key, RsaKey)
    seed = os.urandom(16)
    storage = _kdfa(seed, b"STORAGE", name, 128)
    encrypted = Cipher(algorithms.AES(storage), CFB(bytes(16))).encryptor().update(_sized(secret))
    outer = hmac.digest(_kdfa(seed, b"INTEGRITY", b"", 256), encrypted + name, "sha256")
    oaep = padding.OAEP(mgf=padding.MGF1(SHA256()), algorithm=SHA256(), label=b"IDENTITY\0")
    wrapped = RSAPublicNumbers(key.exponent, key.modulus).public_key().encrypt(seed, oaep)
    return Challenge(_sized(_sized(outer) + encrypted), _sized(wrapped))


def render_challenge(challenge: Challenge) -> bytes:
    parts = {"Credential": challenge.credential, "Secret": challenge.secret}
    return json.dumps({"EC": {name: b64encode(part).decode() for name, part in parts.items()}}).encode()


def _kdfa(key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    block = struct.pack(">I", 1) + label + b"\0" + context + struct.pack(">I", bits)
    return hmac.digest(key, block, "sha256")[:bits // 8]


def _sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data
