"""Commands and answers of a TPM as bytes."""

from __future__ import annotations

import pytest

from homeport.core.tpm import commands
from homeport.core.tpm.wire import Malformed, OldTpm, Reader, Refused, command, explain, parse_answer, session

GOOD = bytes.fromhex("8001 0000000e 00000000 80000001".replace(" ", ""))


def test_command_without_sessions() -> None:
    """TPM2_FlushContext of a key, as tpm2_flushcontext sends it."""
    assert commands.flush(0x80000000).hex() == "80010000000e0000016580000000"


def test_command_with_a_password() -> None:
    got = command(0x14E, 0x01C00002, 0x01C00002, sessions=[session()], parameters=b"\x02\0\0\0")
    assert got.hex() == "8002" "00000023" "0000014e" "01c0000201c00002" "00000009400000090000000000" "02000000"


def test_answer_with_a_handle() -> None:
    answer = parse_answer(GOOD, handles=1)
    assert answer.handles == (0x80000001,)
    answer.parameters.finish()


def test_answer_with_sessions_has_its_parameters_counted() -> None:
    data = bytes.fromhex("8002" "00000017" "00000000" "00000004" "0002abcd" "0000010000")
    assert parse_answer(data).parameters.rest() == bytes.fromhex("0002abcd")


@pytest.mark.parametrize("data", [
    b"",
    GOOD[:9],
    GOOD + b"\0",  # longer than it says
    GOOD[:-1],  # shorter than it says
    bytes.fromhex("8001ffffffff00000000"),
    bytes.fromhex("0000" "0000000a" "00000000"),  # no tag of an answer
    bytes.fromhex("8002" "0000000e" "00000000" "ffffffff"),  # more parameters than there are bytes
    bytes.fromhex("8002" "0000000c" "00000000" "0000"),  # no room for their number
])
def test_unsound_answers(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_answer(data, handles=0)


def test_missing_handle() -> None:
    with pytest.raises(Malformed):
        parse_answer(bytes.fromhex("80010000000a00000000"), handles=1)


def test_old_tpm() -> None:
    """A TPM 1.2 answers with a tag of its own: TPM_BADTAG."""
    with pytest.raises(OldTpm):
        parse_answer(bytes.fromhex("00c40000000a0000001e"))


@pytest.mark.parametrize(("code", "words", "again"), [
    (0x922, "busy", True),
    (0x908, "busy", True),
    (0x90A, "busy", True),
    (0x921, "locked", False),
    (0x100, "firmware has not started it", False),
    (0x101, "self-test", False),
    (0x18B, "nothing is there", False),  # TPM_RC_HANDLE for the first handle
    (0x9A2, "password", False),  # TPM_RC_BAD_AUTH for the first session
    (0x2DF, "integrity", False),  # TPM_RC_INTEGRITY for the second parameter
    (0xB0143, "does not know", False),  # the kernel's resource manager speaks: its layer is in the upper bits
    (0x7FF, "(0x7ff)", False),  # nothing that we know
])
def test_refusals(code: int, words: str, again: bool) -> None:
    with pytest.raises(Refused, match=words.replace("(", r"\(").replace(")", r"\)")) as caught:
        parse_answer(bytes.fromhex("80010000000a") + code.to_bytes(4, "big"))
    assert caught.value.again is again


def test_the_number_is_said() -> None:
    assert explain(0x921).endswith("(0x921)")


@pytest.mark.parametrize(("data", "size"), [
    ("0000000000", None), ("00" "00000006" "00000001" "0000012c" "00000800", 2048),
])
def test_property(data: str, size: int | None) -> None:
    body = bytes.fromhex(data)
    head = b"\x80\x01" + (10 + len(body)).to_bytes(4, "big") + bytes(4)
    if size is None:  # another capability than asked for
        assert commands.read_property(parse_answer(head + body), commands.NV_BUFFER_MAX) is None
    else:
        assert commands.read_property(parse_answer(head + body), commands.NV_BUFFER_MAX) == size


def test_reader_does_not_read_past_the_end() -> None:
    reader = Reader(b"\0\x05abc")
    with pytest.raises(Malformed, match="5 bytes announced, 3 there"):
        reader.sized()
