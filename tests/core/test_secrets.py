"""No secret of a document reaches a terminal, however it is spelt."""

from __future__ import annotations

import json

import pytest

from homeport.core.secrets import MASK, mask, mask_document
from homeport.errors import DocumentError


@pytest.mark.parametrize(("tree", "wanted"), [
    ({"802.1x": {"identity": "host", "private-key-password": "s3cret"}},
     {"802.1x": {"identity": "host", "private-key-password": MASK}}),
    ({"libreswan": {"psk": "s3cret", "left": "192.0.2.1"}}, {"libreswan": {"psk": MASK, "left": "192.0.2.1"}}),
    ({"macsec": {"mka-cak": "50b71a", "mka-ckn": "f2b4"}}, {"macsec": {"mka-cak": MASK, "mka-ckn": "f2b4"}}),
    ({"system-agent": {"token": "eyJh", "url": "https://x"}}, {"system-agent": {"token": MASK, "url": "https://x"}}),
    # The text of a keyfile is one value.
    ({"wlan0": "[wifi-security]\npsk=s3cret\nkey-mgmt=wpa-psk\n"},
     {"wlan0": f"[wifi-security]\npsk={MASK}\nkey-mgmt=wpa-psk\n"}),
    # A key that only reads like one: a count, and a section.
    ({"tokens-per-second": 3, "secret": {"name": "x"}}, {"tokens-per-second": 3, "secret": {"name": "x"}}),
    ({"password": None}, {"password": None}),
])
def test_mask(tree: object, wanted: object) -> None:
    assert mask(tree) == wanted


def test_mask_looks_into_raw_bytes() -> None:
    raw = list(json.dumps([{"libreswan": {"psk": "s3cret"}}]).encode())
    assert mask({"interfaces": {"raw": raw, "object": None}}) == {"interfaces": [{"libreswan": {"psk": MASK}}]}


def test_mask_document_is_yaml_again() -> None:
    assert mask_document(b"interfaces:\n- {name: ipsec0, psk: s3cret}\n") == (
        f"interfaces:\n- name: ipsec0\n  psk: \"{MASK}\"\n")


def test_what_cannot_be_read_is_not_printed() -> None:
    with pytest.raises(DocumentError):
        mask_document(b"psk: [s3cret")
