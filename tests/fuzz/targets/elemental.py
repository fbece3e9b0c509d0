"""What a registration server says, in whatever order, and Elemental's own files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from homeport.core.document import check_document
from homeport.core.elemental.config import parse_config, parse_labels, parse_os_release
from homeport.core.elemental.conversation import Conversation, ServerSays, Telling, Unexpected
from homeport.core.elemental.document import network_document, registration_ca
from homeport.core.elemental.messages import parse_error
from homeport.errors import DocumentError
from targets.documents import check_complaints

_DATA = Path(__file__).parents[2] / "data/elemental"
SEEDS = (*(path.read_bytes() for path in sorted(_DATA.rglob("*-S-*")) if path.stat().st_size < 16_000),
         b"\x05\x0b\xff\x08message: no such registration\nretry-after: 7\npending: true\n",
         b"elemental:\n  registration: {url: 'https://e.example/token', ca-cert: x, auth: mac, emulate-tpm: true}\n")
WORDS = (b"\xff", b"\x05\x0b", b"\x07", b"\x08message: ", "retry-after: ", "pending: true", "elemental: ", "config: ",
         "registration: ", "ca-cert: ", "network: ", "configurator: nmstate", "ipAddresses: ", '{"EC":"', '"raw": [')


def check(data: bytes) -> None:
    for versioned in (True, False):
        talk = Conversation(Telling(b"{}", b"{}", b"{}", b"{}"), versioned=versioned)
        try:
            for message in data.split(b"\xff"):
                assert all(talk.receive(message))
        except ServerSays as error:
            assert error.reason.words.isprintable()
        except Unexpected as error:
            assert str(error).isprintable(), ascii(str(error))
    assert parse_error(data).words.isprintable()
    registration_ca(data)
    with suppress(DocumentError):
        check_complaints(check_document(network_document(data)).complaints)
    text = data.decode("utf-8", "replace")
    assert all(note.isprintable() for note in (*parse_config(text).notes, *parse_labels(text)[1]))
    parse_os_release(text)
