"""Whatever a TPM or a registration server says: an answer, or one of the errors that are meant for it."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.elemental.conversation import Conversation, ServerSays, Telling, Unexpected
from homeport.core.elemental.document import network_document, registration_ca
from homeport.core.elemental.messages import parse_error
from homeport.core.tpm import commands
from homeport.core.tpm.attestation import check_integrity, parse_challenge
from homeport.core.tpm.der import NotDer
from homeport.core.tpm.keys import parse_certificate, parse_public
from homeport.core.tpm.wire import Malformed, OldTpm, Refused, parse_answer
from homeport.errors import DocumentError

READERS = (commands.read_primary, commands.read_created, commands.read_certified, commands.read_activated,
           commands.read_nv, commands.read_nv_size, lambda answer: commands.read_property(answer, 0x12C))
# Beginnings that get past the first look.
STARTS = st.sampled_from([b"", b"\x80\x01", b"\x80\x02", b"\x30\x82", b"\x10\x01\x00", b"\x00\x01\x00\x0b",
                          b"\x00\x23\x00\x0b",
                          b'{"EC":', b"\x01", b"\x05", b"\x07", b"\x08"])
BYTES = st.builds(lambda start, rest: start + rest, STARTS, st.binary(max_size=300))


@settings(deadline=None)
@given(BYTES, st.integers(0, 2))
def test_answers_of_a_tpm(body: bytes, handles: int) -> None:
    for data in (body, b"\x80\x01" + (10 + len(body)).to_bytes(4, "big") + bytes(4) + body):
        with contextlib.suppress(Malformed, Refused, OldTpm):
            parse_answer(data, handles)
        for reader in READERS:
            with contextlib.suppress(Malformed, Refused, OldTpm):
                reader(parse_answer(data, handles))


@settings(deadline=None)
@given(BYTES)
def test_keys_certificates_and_challenges(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        parse_public(data)
    with contextlib.suppress(NotDer):
        parse_certificate(data)
    with contextlib.suppress(Malformed):
        parse_challenge(data)
    with contextlib.suppress(Malformed):
        check_integrity(bytes(16), bytes(34), data)


@settings(deadline=None)
@given(st.lists(BYTES, max_size=6), st.booleans())
def test_conversations(messages: list[bytes], versioned: bool) -> None:
    talk = Conversation(Telling(b"{}", b"{}", b"{}", b"{}"), versioned=versioned)
    with contextlib.suppress(Unexpected, ServerSays):
        for message in messages:
            assert all(talk.receive(message))


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
                 st.text(max_size=100).map(lambda text: f"elemental: {{}}\n{text}".encode("utf-8", "replace"))))
def test_payloads(data: bytes) -> None:
    parse_error(data)
    registration_ca(data)
    with contextlib.suppress(DocumentError):
        network_document(data)
