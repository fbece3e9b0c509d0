"""The order of a registration: real ones replayed, every version, and whoever speaks out of turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.core.elemental.conversation import Conversation, Phase, ServerSays, Telling, Unexpected
from homeport.core.elemental.messages import LATEST, Kind, Reason, message, parse_error

CASES = Path(__file__).parents[2] / "data/elemental"
READY = b"\x01"
TELLING = Telling(b"{smbios}", b"{system}", b"{annotations}", b"{labels}")


def payload(name: str) -> bytes:
    return (CASES / name).read_bytes()


def test_a_real_registration_by_tpm() -> None:
    """Message by message what elemental-register said, its own data told."""
    telling = Telling(payload("tpm/08-C-SMBIOS"), payload("tpm/10-C-SystemDataV2"), payload("tpm/12-C-Annotations"))
    opened = []

    def open_challenge(data: bytes) -> bytes:
        opened.append(data)
        return payload("tpm/04-C-TPM-answer")

    talk = Conversation(telling, open_challenge)
    said = [talk.receive(data) for data in (
        payload("tpm/03-S-TPM-challenge"), READY, b"\x05" + payload("tpm/07-S-Version"), READY, READY, READY,
        b"\x07" + payload("tpm/15-S-Config"))]
    assert opened == [payload("tpm/03-S-TPM-challenge")]
    assert said == [
        [payload("tpm/04-C-TPM-answer")], [b"\x05" + payload("tpm/06-C-Version")], [b"\x02" + telling.smbios],
        [b"\x0b" + telling.system_data], [b"\x09" + telling.annotations], [b"\x04"], []]
    assert (talk.document, talk.version, talk.phase) == (payload("tpm/15-S-Config"), 12, Phase.DONE)


def test_a_real_registration_by_mac() -> None:
    """Nothing to open: the first message is the acknowledgement already."""
    telling = Telling(payload("mac/06-C-SMBIOS"), payload("mac/08-C-SystemDataV2"), payload("mac/10-C-Annotations"))
    talk = Conversation(telling)
    for data in (READY, b"\x05" + payload("mac/05-S-Version"), READY, READY, READY):
        said = talk.receive(data)
    assert said == [b"\x04"]
    talk.receive(b"\x07" + payload("mac/13-S-Config"))
    assert talk.document == payload("mac/13-S-Config")


def said_to(version: int | None, telling: Telling = TELLING) -> list[int]:
    """The kinds of all messages to a server that agrees on `version`; None is one that knows no versions."""
    talk = Conversation(telling, versioned=version is not None)
    kinds = []
    sending = talk.receive(READY)
    while sending:
        kinds.append(sending[0][0])
        answer = READY if version is None or kinds[-1] != Kind.VERSION else bytes([Kind.VERSION, version])
        if kinds[-1] == Kind.GET:
            answer = b"\x07elemental: {}" if (version or 0) >= Kind.CONFIG else b"elemental: {}"
        sending = talk.receive(answer)
    assert talk.document == b"elemental: {}"
    return kinds


@pytest.mark.parametrize(("version", "kinds"), [
    (None, [2, 3, 4]),  # before v1.1.0: the configuration comes bare
    (5, [5, 2, 3, 4]),
    (6, [5, 2, 3, 4]),  # it would take our system data, but only as a dump of Go structures
    (7, [5, 2, 3, 4]),
    (8, [5, 2, 3, 4]),
    (9, [5, 2, 9, 3, 4]),
    (10, [5, 2, 9, 3, 4]),
    (11, [5, 2, 11, 9, 3, 4]),
    (12, [5, 2, 11, 9, 3, 4]),
    (200, [5, 2, 11, 9, 3, 4]),  # newer than we are: it is told so, and we keep to what we know
])
def test_versions(version: int | None, kinds: list[int]) -> None:
    assert said_to(version) == kinds


@pytest.mark.parametrize(("version", "kinds"), [(9, [5, 4]), (10, [5, 10, 4]), (12, [5, 10, 4])])
def test_a_registered_machine_says_so_where_that_is_understood(version: int, kinds: list[int]) -> None:
    assert said_to(version, Telling(registered=True)) == kinds


def test_the_version_we_offer() -> None:
    assert Conversation(TELLING).receive(READY) == [bytes([Kind.VERSION, LATEST])]


def at(phase: Phase) -> Conversation:
    """A conversation that waits in this phase, with a server of the newest version."""
    talk = Conversation(Telling(b"{}", b"{}", b"{}", b"{}", registered=True))
    while talk.phase is not phase:
        talk.receive(b"\x05\x0c" if talk.phase is Phase.VERSION else
                     b"\x07{}" if talk.phase is Phase.CONFIGURATION else READY)
    return talk


MESSAGES = (b"", b"\x00", b"\x02{}", b"\x05\x0c", b"\x0c", b"\x0d", b"\xff", b"Hello", b"\x07elemental: {}", b"\x01")


def is_waited_for(phase: Phase, data: bytes) -> bool:
    return phase is not Phase.DONE and data[:1] == (b"\x07" if phase is Phase.CONFIGURATION else READY)


@pytest.mark.parametrize(("phase", "data"), [
    (phase, data) for phase in Phase if phase is not Phase.VERSION for data in MESSAGES
    if not is_waited_for(phase, data)])
def test_out_of_turn(phase: Phase, data: bytes) -> None:
    """Whatever comes and is not what is waited for ends the conversation."""
    with pytest.raises(Unexpected, match=str(phase)):
        at(phase).receive(data)


@pytest.mark.parametrize("data", [b"\x05", b"\x05\x0c\x0c", b"\x05\x04", b"\x05\x00", b"\x01", b"\x06\x0c", b""])
def test_no_agreement_on_a_version(data: bytes) -> None:
    with pytest.raises(Unexpected):
        at(Phase.VERSION).receive(data)


def test_text_is_refused() -> None:
    with pytest.raises(Unexpected, match="text message"):
        Conversation(TELLING).receive(READY, binary=False)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.DONE])
@pytest.mark.parametrize(("data", "words"), [
    (b"\x08message: MachineInventory not found\n", "MachineInventory not found"),
    (b"\x08message: \"two\\n lines \\e[31mred\"\n", "two lines \\x1b[31mred"),
    (b"\x08", ""),
    (b"\x08message: 7\n", ""),
    (b"\x08- 1\n", ""),
    (b"\x08{{{", ""),
    (b"\x08message: \xff\xfe\n", "��"),
    (b"\x08message: " + b"x" * 1000 + b"\n", "x" * 300 + "…"),
    (b"\x08message: " + b"x" * 70_000 + b"\n", ""),
], ids=range(9))
def test_the_server_s_own_words(phase: Phase, data: bytes, words: str) -> None:
    with pytest.raises(ServerSays) as caught:
        at(phase).receive(data)
    assert (caught.value.reason.words, caught.value.reason.pending) == (words, False)


@pytest.mark.parametrize(("more", "reason"), [
    ("pending: true\nretry-after: 10\n", Reason("x", True, 10.0)),  # homeport-server's "not yet"
    ("pending: yes\nretry-after: soon\n", Reason("x")),
    ("pending: 1\nretry-after: true\n", Reason("x")),
    ("pending: true\nretry-after: -1\n", Reason("x", True)),
    ("pending: true\nretry-after: 1e300\n", Reason("x", True)),
    ("pending: true\nretry-after: .nan\n", Reason("x", True)),
])
def test_not_yet(more: str, reason: Reason) -> None:
    assert parse_error(f"message: x\n{more}".encode()) == reason


def test_only_told() -> None:
    """What became of the last assignment, and nothing asked for: the answer would be a new one."""
    talk = Conversation(Telling(annotations=b"{}", asks=False))
    assert [talk.receive(data) for data in (READY, b"\x05\x0c", READY)] == [[b"\x05\x0c"], [b"\x09{}"], []]
    assert (talk.document, talk.phase) == (b"", Phase.DONE)


def test_what_the_challenge_raises_goes_through() -> None:
    def fail(data: bytes) -> bytes:
        raise ValueError(data.decode())

    with pytest.raises(ValueError, match="junk"):
        Conversation(TELLING, fail).receive(b"junk")


def test_message() -> None:
    assert message(Kind.GET) == b"\x04"
    assert message(Kind.LABELS, b"{}") == b"\x03{}"
