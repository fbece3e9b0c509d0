"""Elemental's own files on a machine."""

from __future__ import annotations

import pytest

from homeport.core.elemental.config import (
    Registration,
    annotations_message,
    is_registered,
    parse_config,
    parse_labels,
    parse_os_release,
)

CONFIG = """\
elemental:
    registration:
        url: https://rancher.example/elemental/registration/t0ken
        ca-cert: |
            -----BEGIN CERTIFICATE-----
            MIIB
            -----END CERTIFICATE-----
        emulate-tpm: false
        emulated-tpm-seed: 1
        no-smbios: true
        auth: mac
        no-toolkit: true
        labels:
            Site: north
            rack: 7
"""


def test_a_whole_configuration() -> None:
    found = parse_config(CONFIG)
    assert found == Registration(
        url="https://rancher.example/elemental/registration/t0ken", auth="mac", no_smbios=True, unmanaged=True,
        ca="-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", labels={"site": "north", "rack": "7"})
    assert found.token == "t0ken"


@pytest.mark.parametrize(("section", "auth"), [
    ("{}", "tpm"),
    ("{auth: tpm}", "tpm"),
    ("{emulate-tpm: true}", "emulated-tpm"),
    ("{emulate-tpm: true, auth: tpm, emulated-tpm-seed: -1}", "emulated-tpm"),
    ("{emulate-tpm: true, auth: sys-uuid}", "sys-uuid"),  # then there is no TPM to emulate
])
def test_ways_to_authenticate(section: str, auth: str) -> None:
    assert parse_config(f"elemental: {{registration: {section}}}").auth == auth


@pytest.mark.parametrize(("text", "notes"), [
    ("", 0), ("{}", 0), ("elemental: {}", 0), ("elemental: {registration: {}}", 0),
    ("[]", 0),
    ("elemental: 7", 1),
    ("elemental: {registration: [url]}", 1),
    ("elemental: {registration: {url: 7, auth: [], no-smbios: maybe, ca-cert: {}}}", 4),
    ("elemental: {registration: {auth: password}}", 1),
    ("elemental: {registration: {labels: [a]}}", 1),
    ("elemental: {registration: {labels: {a: {b: c}, d: [e]}}}", 2),
    ("{{{", 1),
    ("url: [unclosed", 1),
])
def test_what_cannot_be_used_is_noted(text: str, notes: int) -> None:
    found = parse_config(text)
    assert (found.url, found.auth, len(found.notes) >= notes, bool(found.notes)) == ("", "tpm", True, bool(notes))


def test_labels_are_bounded() -> None:
    labels, notes = parse_labels("\n".join(f"label{n}: {'x' * 500}" for n in range(100)))
    assert (len(labels), len(labels["label0"])) == (64, 256)
    assert notes == ("100 labels: only the first 64 are told",)


def test_labels_keep_the_case_of_their_file() -> None:
    """Only the configuration's are folded, by the library that reads it for elemental-register."""
    assert parse_labels("Site: North\nspare: true\n") == ({"Site": "North", "spare": "true"}, ())


@pytest.mark.parametrize(("text", "registered"), [
    ("initialRegistration: 2026-11-30T16:48:00.123456789Z\nemulatedTPM: true\n", True),
    ("{}\n", False), ("", False), ("[]", False), ("{{{", False), ("initialRegistration: ''", False),
])
def test_state(text: str, registered: bool) -> None:
    assert is_registered(text) is registered


def test_os_release() -> None:
    text = 'NAME="SL Micro"\nVERSION_ID="6.1"\n# x\nID=sl-micro\nBAD\nHOME_URL="https://x"\nPRETTY_NAME="a\x1b[0mb"\n'
    assert parse_os_release(text) == {
        "os.name": "SL Micro", "os.version-id": "6.1", "os.id": "sl-micro", "os.pretty-name": "a\\x1b[0mb"}


def test_annotations() -> None:
    told = annotations_message(
        Registration(auth="emulated-tpm", unmanaged=True), {"os.id": "x"}, version="1.2", address="[2001:db8::1]",
        outcome={"revision": "7", "rung": "assigned", "result": "ok", "reason": ""})
    assert told == {
        "reg-version": "homeport-1.2", "auth": "emulated-tpm", "os.unmanaged": "true", "os.id": "x",
        "registration-ip": "[2001:db8::1]", "homeport.revision": "7", "homeport.rung": "assigned",
        "homeport.result": "ok"}


def test_annotations_are_one_line_each_and_bounded() -> None:
    told = annotations_message(Registration(), {}, version="1", address="", outcome={"reason": "a\n" + "b" * 999})
    assert told["homeport.reason"].startswith("a bbb")
    assert len(told["homeport.reason"]) <= 257
