"""How a command is put into bytes, and what the TPM's answer says (TPM 2.0 Library, part 1, 18; part 2, 6 and 7).

Everything is big-endian; "sized" is what the specification calls TPM2B: a length of two bytes, then the data.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

NO_SESSIONS, SESSIONS = 0x8001, 0x8002  # TPM_ST_*
TAG_OF_1_2 = 0x00C4  # TPM_TAG_RSP_COMMAND: how a TPM 1.2 answers what it does not understand
PASSWORD = 0x40000009  # TPM_RS_PW
HEADER = 10  # bytes: tag, size, code
LARGEST = 4096  # bytes of a command or an answer; Linux has buffers of one page (drivers/char/tpm/tpm.h)


class Malformed(ValueError):
    """What came is not what the specification says."""


class Refused(Exception):
    """The TPM understood the command and does not carry it out. `code` is its TPM_RC."""

    def __init__(self, code: int) -> None:
        super().__init__(explain(code))
        self.code = code

    @property
    def again(self) -> bool:
        """Whether the TPM wants to be asked the same again."""
        return self.code in ASK_AGAIN

    @property
    def of_the_whole(self) -> bool:
        """Whether this says that the TPM is not able to work, and nothing about what was asked."""
        return self.again or self.code in UNABLE


class OldTpm(Exception):
    """It is a TPM 1.2."""


class Reader:
    """Takes values from the front of `data`; raises Malformed rather than read past its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise Malformed(f"{length} bytes announced, {len(self._data) - self._at} there")
        self._at += length
        return self._data[self._at - length:self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def sized(self) -> bytes:
        return self.take(self.number(2))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def finish(self) -> None:
        """Raises Malformed if something is left."""
        if left := len(self._data) - self._at:
            raise Malformed(f"{left} bytes too many")


@dataclass(frozen=True)
class Answer:
    """A good answer: the handles that come first, then the parameters, without sessions."""

    handles: tuple[int, ...]
    parameters: Reader


def sized(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def session(handle: int = PASSWORD, *, attributes: int = 0) -> bytes:
    """One authorisation: by the empty password, or by the policy session `handle`."""
    return struct.pack(">I", handle) + sized(b"") + bytes([attributes]) + sized(b"")


def command(code: int, *handles: int, sessions: Sequence[bytes] = (), parameters: bytes = b"") -> bytes:
    """The bytes of a command."""
    area = b"".join(sessions)
    body = b"".join(struct.pack(">I", handle) for handle in handles)
    body += struct.pack(">I", len(area)) + area if sessions else b""
    body += parameters
    return struct.pack(">HII", SESSIONS if sessions else NO_SESSIONS, HEADER + len(body), code) + body


def parse_answer(data: bytes, handles: int = 0) -> Answer:
    """What an answer says, its first `handles` numbers being handles.

    Raises Refused, OldTpm or Malformed.
    """
    reader = Reader(data)
    tag, size, code = reader.number(2), reader.number(4), reader.number(4)
    if tag == TAG_OF_1_2:
        raise OldTpm
    if tag not in (NO_SESSIONS, SESSIONS):
        raise Malformed(f"tag {tag:#06x}")
    if size != len(data):
        raise Malformed(f"{size} bytes announced, {len(data)} there")
    if code:
        # Bits 16 and up: which layer speaks (the kernel's resource manager is 11); the meaning is the same.
        raise Refused(code & 0xFFFF)
    found = tuple(reader.number(4) for _ in range(handles))
    parameters = reader.take(reader.number(4)) if tag == SESSIONS else reader.rest()
    return Answer(found, Reader(parameters))


# TPM_RC_*, part 2, 6.6.3
INITIALIZE, FAILURE, LOCKOUT = 0x100, 0x101, 0x921
# RETRY, YIELDED, TESTING; NV_RATE and NV_UNAVAILABLE pass as well.
ASK_AGAIN = (0x922, 0x908, 0x90A, 0x920, 0x923)
# And DISABLED, REBOOT, and the three kinds of no room.
UNABLE = (INITIALIZE, FAILURE, 0x120, 0x12D, 0x902, 0x903, 0x904)
BAD_AUTH, AUTH_FAIL, HANDLE = 0x22, 0x0E, 0x0B

_WHOLE = {
    INITIALIZE: "the firmware has not started it",
    FAILURE: "it has failed its self-test; switch the machine off and on",
    0x120: "it is switched off in the firmware's set-up",
    0x12D: "it wants the machine to be rebooted",
    0x143: "it does not know this command",
    0x902: "it has no room for another object; other programs use it", 0x903: "it has no room for another session",
    0x904: "it has no room left",
    LOCKOUT: "it is locked: too many wrong passwords; it opens by itself after a while",
    **dict.fromkeys(ASK_AGAIN, "it is busy"),
}
_OF_A_PART = {
    0x02: "a value it does not support", 0x04: "a value out of range", 0x05: "a hierarchy that is switched off",
    HANDLE: "nothing is there", AUTH_FAIL: "it has a password, and we have none",
    BAD_AUTH: "it has a password, and we have none", 0x1D: "the policy is not met",
    0x1F: "the integrity check failed: this was not made for this TPM",
}


def kind(code: int) -> int:
    """An error without the number of the handle, session or parameter that it is about (part 2, 6.6.2)."""
    return code & 0x3F if code & 0x80 else code


def explain(code: int) -> str:
    """A TPM_RC in words, with its number for whoever looks it up."""
    words = _OF_A_PART.get(kind(code)) if code & 0x80 else _WHOLE.get(code)
    return f"{words} ({code:#x})" if words else f"it refuses ({code:#x})"
