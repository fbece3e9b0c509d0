"""A TPM that is a file: kept for good, and as strict as a real one with what it opens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from homeport.core.tpm.attestation import Challenge
from homeport.core.tpm.keys import Method, name_of
from homeport.core.tpm.wire import Malformed, sized
from homeport.errors import SourceError
from homeport.host.softwaretpm import PATH, SoftwareTpm
from registration import make_credential, verify_attestation


def test_it_is_the_same_machine_each_time(tmp_path: Path) -> None:
    first, second = (SoftwareTpm(tmp_path).attestation() for _ in range(2))
    assert first.endorsement == second.endorsement
    assert first.endorsement.method is Method.SOFTWARE
    assert first.public != second.public  # the attestation key is of the moment
    assert (tmp_path / PATH).stat().st_mode & 0o7777 == 0o600


def test_what_it_says_of_its_key_holds(tmp_path: Path) -> None:
    verify_attestation(SoftwareTpm(tmp_path).attestation())


def test_it_opens_what_is_for_it_alone(tmp_path: Path) -> None:
    tpm = SoftwareTpm(tmp_path)
    attestation = tpm.attestation()
    name = name_of(attestation.public)
    good = make_credential(attestation.endorsement.key, name, b"s" * 32)
    assert tpm.activate(good) == b"s" * 32
    other = make_credential(attestation.endorsement.key, name[::-1], b"s" * 32)
    for bad in (other, Challenge(good.credential, sized(bytes(256))), Challenge(sized(b""), good.secret),
                Challenge(good.credential[:-1] + b"x", good.secret)):
        with pytest.raises(Malformed):
            tpm.activate(bad)


@pytest.mark.parametrize("content", [b"", b"junk", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_is_never_replaced(tmp_path: Path, content: bytes) -> None:
    """A new one would be a new machine, with a new address."""
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_bytes(content)
    with pytest.raises(SourceError, match=f"Cannot use /{PATH}"):
        SoftwareTpm(tmp_path)
    assert (tmp_path / PATH).read_bytes() == content


def test_a_key_that_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("no folder")
    with pytest.raises(SourceError, match=f"Cannot keep /{PATH}"):
        SoftwareTpm(tmp_path)


def test_without_the_library_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SourceError, match="python3-cryptography is not in this image"):
        SoftwareTpm(tmp_path)
