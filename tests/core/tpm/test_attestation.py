"""Elemental's proof of a TPM: JSON there and back, and the arithmetic of an activation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from homeport.core.tpm.attestation import (
    Attestation,
    attest_creation,
    check_integrity,
    creation_data,
    kdfa,
    parse_challenge,
    render_answer,
    render_token,
    signature,
)
from homeport.core.tpm.der import RsaKey
from homeport.core.tpm.keys import EndorsementKey, Method
from homeport.core.tpm.wire import Malformed, sized

CASE = Path(__file__).parents[2] / "data/elemental/tpm"
_HEADER = next(line for line in (CASE / "01-C-http").read_text().splitlines() if line.startswith("Authorization: "))
TOKEN = _HEADER.removeprefix("Authorization: ")
CHALLENGE = (CASE / "03-S-TPM-challenge").read_bytes()


def test_token_is_written_as_elemental_register_writes_it() -> None:
    fields = json.loads(base64.b64decode(TOKEN.removeprefix("Bearer TPM")))
    info = base64.b64decode("".join(base64.b64decode(fields["EK"]).decode().split("-----")[2].split()))
    key = RsaKey(int.from_bytes(info[33:289], "big"), int.from_bytes(info[-3:], "big"))
    parts = [base64.b64decode(fields["AK"][name])
             for name in ("Public", "CreateData", "CreateAttestation", "CreateSignature")]
    assert render_token(Attestation(EndorsementKey(key, Method.RSA_TEMPLATE), *parts)) == TOKEN


def test_challenge_of_a_real_server() -> None:
    challenge = parse_challenge(CHALLENGE)
    assert (len(challenge.credential), len(challenge.secret)) == (70, 258)


def test_answer_is_written_as_elemental_register_writes_it() -> None:
    wanted = (CASE / "04-C-TPM-answer").read_bytes()
    assert render_answer(base64.b64decode(json.loads(wanted)["Secret"])) == wanted


def _challenge(credential: bytes | str, secret: bytes) -> bytes:
    text = credential if isinstance(credential, str) else base64.b64encode(credential).decode()
    return json.dumps({"EC": {"Credential": text, "Secret": base64.b64encode(secret).decode()}}).encode()


@pytest.mark.parametrize("data", [
    b"", b"\x01", b"{}", b"[]", b"null", b'{"EC":null}', b'{"EC":[]}', b'{"EC":{"Credential":"AAA"}}',
    b'{"EC":{"Credential":1,"Secret":2}}',
    _challenge("not base64!", b"\0\0"),
    _challenge(b"\0\x02a", b"\0\0"),  # a size that is not that of the data
    _challenge(b"\0\x01ab", b"\0\0"),
    b"[" * 100_000,
    b'{"EC":' + b" " * 5000 + b"}",  # larger than any challenge
    b"\xff\xfe" * 10,
])
def test_what_is_no_challenge(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_challenge(data)


def test_creation_data_has_the_shape_of_the_tpm() -> None:
    fields = json.loads(base64.b64decode(TOKEN.removeprefix("Bearer TPM")))
    real = base64.b64decode(fields["AK"]["CreateData"])
    parent = real[43:77]
    ours = creation_data(parent)
    assert (ours[:77], len(ours)) == (real[:77], len(real))
    attest = base64.b64decode(fields["AK"]["CreateAttestation"])
    made = attest_creation(attest[71:105], real, attest[44:61])
    # Magic, kind, extra data, clock, what was attested: all but the qualified name and the firmware version.
    assert (made[:6], made[42:61], made[69:]) == (attest[:6], attest[42:61], attest[69:])
    assert signature(b"x" * 256)[:6].hex() == "0014000b0100"


def test_kdfa_against_the_formula() -> None:
    """SP 800-108 in counter mode; the label ends with a zero byte."""
    wanted = hmac.new(b"k" * 16, b"\0\0\0\x01STORAGE\0name\0\0\0\x80", hashlib.sha256).digest()[:16]
    assert kdfa(b"k" * 16, "STORAGE", b"name", 128) == wanted


def test_integrity_binds_seed_and_name() -> None:
    seed, name, encrypted = b"s" * 16, b"\0\x0b" + b"n" * 32, b"e" * 34
    outer = hmac.new(kdfa(seed, "INTEGRITY", b"", 256), encrypted + name, "sha256").digest()
    credential = sized(sized(outer) + encrypted)
    assert check_integrity(seed, name, credential) == encrypted
    for wrong in ((b"t" * 16, name, credential), (seed, name[::-1], credential),
                  (seed, name, credential[:-1] + b"f"), (seed, name, b"\0\0")):
        with pytest.raises(Malformed):
            check_integrity(*wrong)
