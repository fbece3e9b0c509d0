"""What an Elemental image leaves on a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.host.elemental import (
    CONFIGS,
    LABELS,
    STATE,
    read_ca,
    read_local_labels,
    read_os_release,
    read_registered,
    read_registration,
)


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def config(token: str) -> str:
    return f"elemental: {{registration: {{url: 'https://rancher.example/elemental/registration/{token}', auth: 7}}}}"


def test_a_machine_without_elemental(tmp_path: Path) -> None:
    assert read_registration(tmp_path).url == ""
    assert not read_registered(tmp_path)
    assert (read_local_labels(tmp_path), read_os_release(tmp_path)) == ({}, {})


def test_the_installed_configuration_wins_over_the_medium_s(tmp_path: Path) -> None:
    put(tmp_path, CONFIGS[1], config("live"))
    assert read_registration(tmp_path).token == "live"
    put(tmp_path, CONFIGS[0], config("installed"))
    found = read_registration(tmp_path)
    assert found.token == "installed"
    assert found.notes == (f"/{CONFIGS[0]}: auth: is not text",)


@pytest.mark.parametrize("text", ["", "{}", "elemental: {registration: {}}", "\0\xff"])
def test_a_configuration_without_an_address_counts_as_none(tmp_path: Path, text: str) -> None:
    put(tmp_path, CONFIGS[0], text)
    put(tmp_path, CONFIGS[1], config("live"))
    assert read_registration(tmp_path).token == "live"


def test_what_cannot_be_read_counts_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / CONFIGS[0]).mkdir(parents=True)
    put(tmp_path, STATE, "initialRegistration: x" + "x" * (300 << 10))
    assert read_registration(tmp_path).url == ""
    assert not read_registered(tmp_path)
    assert f"Cannot read /{CONFIGS[0]}: " in caplog.text
    assert f"Cannot read /{STATE}: larger than" in caplog.text


def test_state_labels_and_system(tmp_path: Path) -> None:
    put(tmp_path, STATE, "initialRegistration: 2026-11-30T16:48:00Z\n")
    put(tmp_path, LABELS, "site: north\nbad: [1]\n")
    put(tmp_path, "usr/lib/os-release", "ID=x\n")
    assert read_registered(tmp_path)
    assert read_local_labels(tmp_path) == {"site": "north"}
    assert read_os_release(tmp_path) == {"os.id": "x"}


def test_an_authority_is_text_or_the_name_of_a_file(tmp_path: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    put(tmp_path, "etc/ca.pem", pem)
    assert read_ca("/etc/ca.pem", tmp_path) == pem
    assert read_ca(pem, tmp_path) == pem
    assert read_ca("/etc/missing.pem", tmp_path) == "/etc/missing.pem"  # whoever uses it finds no certificate in it
    assert read_ca("", tmp_path) == ""
