"""What a machine says of itself, read from a root."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.core.facts import Mode, Stage
from homeport.host.facts import read_cmdline, read_facts, read_hostname, read_machine_id, read_override
from homeport.settings import Settings


def put(root: Path, path: str, data: bytes | str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data if isinstance(data, bytes) else data.encode())


def test_an_empty_root_is_no_error(tmp_path: Path) -> None:
    facts = read_facts(Settings(), Stage.INITRD, tmp_path)
    assert (facts.mode, facts.nics, facts.cmdline, facts.machine_id, facts.hostname) == (Mode.ACTIVE, (), "", "", "")
    assert (facts.stage, facts.notes) == (Stage.INITRD, ())


def test_a_machine(tmp_path: Path) -> None:
    put(tmp_path, "proc/cmdline", "quiet homeport.config=/x\n")
    put(tmp_path, "etc/hostname", "# ours\nnode-1\n")
    put(tmp_path, "etc/machine-id", "3D1219C7C4C5404AAA1F6D2A48ADFDA4\n")
    put(tmp_path, "etc/homeport/identity", "\n# rack 7\nserial:SN-7\n")
    put(tmp_path, "run/elemental/recovery_mode", "1")
    put(tmp_path, "oem/reset-cloud-config.yaml", "")
    facts = read_facts(Settings(), Stage.HOST, tmp_path)
    assert facts.cmdline == "quiet homeport.config=/x"
    assert facts.hostname == "node-1"
    assert facts.machine_id == "3d1219c7c4c5404aaa1f6d2a48adfda4"
    assert facts.identity_override == "serial:SN-7"
    assert facts.mode is Mode.RESET
    assert "/run/elemental/recovery_mode exists" in facts.mode_reason
    assert read_facts(Settings().replace(mode="active"), Stage.HOST, tmp_path).mode is Mode.ACTIVE


@pytest.mark.parametrize("mark", ["run/systemd/container", "run/host/container-manager"])
def test_in_a_container_pid_1_s_arguments_count(tmp_path: Path, mark: str) -> None:
    """`systemd-nspawn -b … homeport.mode=recovery` must work, and the host's command line is not ours."""
    put(tmp_path, "proc/cmdline", "homeport.mode=live")
    put(tmp_path, "proc/1/cmdline", b"/usr/lib/systemd/systemd\0homeport.mode=recovery\0homeport.config=/a b\0")
    assert read_cmdline(tmp_path) == "homeport.mode=live"
    put(tmp_path, mark, "systemd-nspawn")
    assert read_cmdline(tmp_path) == 'homeport.mode=recovery "homeport.config=/a b"'


@pytest.mark.parametrize(("text", "machine_id"), [
    ("uninitialized\n", ""), ("", ""), ("0123", ""), ("0" * 31 + "g", ""), ("ab" * 16 + "\n", "ab" * 16)])
def test_machine_ids(tmp_path: Path, text: str, machine_id: str) -> None:
    put(tmp_path, "etc/machine-id", text)
    assert read_machine_id(tmp_path) == machine_id


def test_the_running_host_name_is_the_machine_s() -> None:
    import socket
    assert read_hostname() == socket.gethostname()


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_an_override_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "etc/homeport/identity", text)
    assert read_override(tmp_path) == ""
