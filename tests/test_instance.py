"""Files for others on the machine: written whole, readable, and never over what somebody has set."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.initramfs import make
from tests.sources.platforms import told
from tests.sources.platforms.told import Told

from homeport import cli
from homeport.core import platforms
from homeport.core.platforms import recognition
from homeport.errors import PersistError, RefusedBySource, SourceError
from homeport.instance import Instance, check_in, name_that_stands, read, write_attributes, write_hostname
from homeport.sources import platform

NAMED = Instance("AFTERBURN_AWS_REGION=eu\n", "web-1")


def test_attributes_are_for_everybody(tmp_path: Path) -> None:
    write_attributes(tmp_path, "/run/metadata/afterburn", NAMED)
    file = tmp_path / "run/metadata/afterburn"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("AFTERBURN_AWS_REGION=eu\n", 0o644)


@pytest.mark.parametrize(("before", "after", "words"), [
    (None, "web-1\n", "is web-1 now"),
    ("\n", "web-1\n", "is web-1 now"),
    ("localhost\n", "web-1\n", "is web-1 now"),
    ("localhost.localdomain\n", "web-1\n", "is web-1 now"),
    ("# by hand\ndb.example\n", "# by hand\ndb.example\n", "stays db.example"),
    ("web-1\n", "web-1\n", "is web-1"),
])
def test_a_host_name_that_somebody_has_set_stays(
        tmp_path: Path, before: str | None, after: str, words: str) -> None:
    file = tmp_path / "etc/hostname"
    file.parent.mkdir()
    if before is not None:
        file.write_text(before)
    assert words in write_hostname(tmp_path, "/etc/hostname", NAMED)
    assert file.read_text() == after


def test_no_name(tmp_path: Path) -> None:
    assert "no host name" in write_hostname(tmp_path, "/etc/hostname", Instance("", ""))
    assert not (tmp_path / "etc").exists()


@pytest.mark.parametrize("name", ["web 1", "web-1;reboot", "-web", "web..1", "wéb", "web\n1", "a" * 65,
                                  "-" + "a" * 63, "a" * 63 + "-", "a" * 63 + "\n", "a" * 64 + "\n"])
def test_what_is_no_host_name(tmp_path: Path, name: str) -> None:
    assert "which is no host name" in write_hostname(tmp_path, "/etc/hostname", Instance("", name))
    assert not (tmp_path / "etc").exists()


def test_what_was_cut_of_a_name_is_said(tmp_path: Path) -> None:
    """In the journal, as the unit's output is."""
    whole = "web-1." + "a" * 60
    said = write_hostname(tmp_path, "/etc/hostname", Instance("", "web-1", cut_from=whole))
    assert said == f"the host name is web-1 now, cut from '{whole}': at most 64 bytes"
    assert (tmp_path / "etc/hostname").read_text() == "web-1\n"
    assert "cut" not in write_hostname(tmp_path, "/etc/name", Instance("", "web-1"))


@pytest.mark.parametrize(("given", "name"), [
    ("web-1.example", "web-1.example"), ("web-1." + "a" * 60, "web-1"), ("a" * 80, "a" * 64), ("a" * 64, "a" * 64)])
def test_what_the_platform_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, name: str) -> None:
    """A name in what the kernel takes, 64 bytes without a dot included; whence it was cut."""
    files = {"metadata/v1.json": json.dumps({"hostname": given}).encode()}
    monkeypatch.setattr(platform, "read_instance", lambda *_, **__: (platforms.find("digitalocean"), files))
    found = read(make(tmp_path, ""))
    assert (found.hostname, found.cut_from) == (name, given if len(given) > 64 else "")
    assert f"the host name is {name} now" in write_hostname(tmp_path, "/etc/hostname", found)


def test_attributes_that_are_left_out_are_named(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    public = [f"10.0.{number >> 8}.{number & 255}" for number in range(4000)]
    files = {"v1/network": json.dumps({"ipv4": {"public": public}}).encode()}
    monkeypatch.setattr(platform, "read_instance", lambda *_, **__: (platforms.find("akamai"), files))
    found = read(make(tmp_path, ""))
    assert len(found.environment) <= 128 << 10 and "AFTERBURN_AKAMAI_PUBLIC_IPV4_0=" in found.environment
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "more; they are left out" in caplog.text
    named = [name.rstrip(",") for name in caplog.text.split() if name.startswith("AFTERBURN_AKAMAI_PUBLIC_IPV4_")]
    assert len(named) == 3 and not any(f"{name}=" in found.environment for name in named)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(PersistError, match=r"cannot write /run/x/y"):
        write_attributes(tmp_path, "/run/x/y", NAMED)


def test_a_running_machine_sets_its_name_otherwise(tmp_path: Path) -> None:
    """By NetworkManager, and the file is not ours to write then; a name that stands is not set again."""
    names: list[str] = []
    assert "is web-1 now" in write_hostname(tmp_path, "/etc/hostname", NAMED, names.append)
    assert names == ["web-1"] and not (tmp_path / "etc").exists()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("db-7\n")
    assert "stays db-7" in write_hostname(tmp_path, "/etc/hostname", NAMED, names.append)
    assert names == ["web-1"]


def test_a_name_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "etc/hostname").mkdir(parents=True)
    with pytest.raises(PersistError, match="cannot read /etc/hostname"):
        name_that_stands(tmp_path, "/etc/hostname")


# The verb

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="homeport metadata is for root")


@AS_ROOT
def test_nobody_is_asked_for_a_name_that_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A deadline of a service that never answers would show."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("db-7\n")
    assert metadata(tmp_path, "--platform", "aws", "--hostname", "/etc/hostname") == 0
    assert "the host name stays db-7" in capsys.readouterr().out


@AS_ROOT
def test_on_no_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Units that read the attributes start all the same, and there is nothing to fail."""
    arguments = ("--attributes", "/run/metadata/afterburn", "--hostname", "/etc/hostname", "--check-in")
    assert metadata(tmp_path, "--platform", "off", *arguments) == 0
    text = (tmp_path / "run/metadata/afterburn").read_text()
    assert [line for line in text.splitlines() if not line.startswith("#")] == []
    told = capsys.readouterr()
    assert "on no platform" in told.err and "gives this machine no host name" in told.out
    assert "nobody wants to hear of this boot: no platform, and no Report=" in told.out
    assert not (tmp_path / "etc/hostname").exists()


def metadata(root: Path, *arguments: str) -> int:
    return cli.main(["metadata", "--root", str(root), *arguments])


# Word of the boot

@pytest.fixture
def scaleway(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """Its service, where this test can be it."""
    service = Told(told.scaleway)
    server = told.start(service)
    found = platforms.find("scaleway")
    assert found is not None and found.check_in is not None
    ways = (replace(found.check_in.services[0], base=f"http://127.0.0.1:{server.server_port}"),)
    moved = replace(found, check_in=replace(found.check_in, services=ways))
    for module in (platforms, recognition):
        monkeypatch.setattr(module, "PLATFORMS", tuple(
            moved if each is found else each for each in platforms.PLATFORMS))
    yield service
    close(server)


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    """The server of Report=, and what it has heard."""
    heard: list[Any] = []

    def hear(method: str, target: str, headers: Any, body: bytes) -> told.Answer:
        heard.append(json.loads(body))
        return 204, b""

    running = told.start(Told(hear))
    yield f"http://127.0.0.1:{running.server_port}/boots", heard
    close(running)


def close(server: ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


def test_both_hear_of_a_boot(tmp_path: Path, scaleway: Told, server: tuple[str, list[Any]]) -> None:
    machine = make(tmp_path, f"homeport.platform=scaleway homeport.report={server[0]}")
    machine.store.write_status({"rung": "assigned"}, in_force=True)
    assert list(check_in(machine)) == ["Scaleway knows that this machine has booted",
                                       "the server of Report= knows that this boot is complete"]
    assert len(scaleway.good) == 1 and server[1] == [{"rung": "assigned", "event": "boot-complete"}]


def test_one_that_refuses_does_not_keep_the_other_from_hearing(
        tmp_path: Path, scaleway: Told, server: tuple[str, list[Any]]) -> None:
    scaleway.before = lambda request: 403
    said: list[str] = []
    with pytest.raises(RefusedBySource):
        for line in check_in(make(tmp_path, f"homeport.platform=scaleway homeport.report={server[0]}")):
            said.append(line)
    assert said == ["the server of Report= knows that this boot is complete"] and len(server[1]) == 1


def test_a_server_that_does_not_hear_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"No report to http://127\.0\.0\.1:9/"):
        list(check_in(make(tmp_path, "homeport.report=http://127.0.0.1:9/")))


def test_a_platform_that_wants_to_hear_of_no_boot(tmp_path: Path) -> None:
    assert list(check_in(make(tmp_path, "homeport.platform=hetzner"))) == [
        "nobody wants to hear of this boot: Hetzner Cloud"]
