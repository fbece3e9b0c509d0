"""What the journal, the console and a terminal get to read, and what none of them may."""

from __future__ import annotations

import io
import logging
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeport.host import entry, journal
from homeport.host.journal import console, result, scrub, set_up
from homeport.report import Report

log = logging.getLogger("homeport.somewhere")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def told(**options: str) -> str:
    """What a terminal shows of one message of each level."""
    stream = io.StringIO()
    environ = {"SYSTEMD_LOG_LEVEL": options.pop("environ")} if "environ" in options else {}
    set_up(**options, environ=environ, stream=stream)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        log.log(level, "%s", logging.getLevelName(level).lower())
    return stream.getvalue()


@pytest.mark.parametrize(("level", "environ", "lines"), [
    ("info", None, "info warning error"),
    ("debug", None, "debug info warning error"),
    ("error", None, "error"),
    ("nonsense", None, "info warning error"),
    # systemd's own variable wins, in all its spellings
    ("error", "debug", "debug info warning error"),
    ("error", "7", "debug info warning error"),
    ("debug", "4", "warning error"),
    ("debug", "WARNING", "warning error"),
    ("debug", "notice", "info warning error"),
    ("debug", "emerg", ""),
    ("error", "8", "error"),
    ("error", "nonsense", "error"),
    ("error", "", "error"),
])
def test_how_much(level: str, environ: str | None, lines: str) -> None:
    assert told(level=level, **({} if environ is None else {"environ": environ})).split() == lines.split()


def test_setting_up_twice_says_nothing_twice() -> None:
    told()
    assert told() == "info\nwarning\nerror\n"


def through_journal(message: str, **stream_is: str) -> list[str]:
    """The lines that arrive when stderr is the socket that $JOURNAL_STREAM names."""
    ours, theirs = socket.socketpair()
    status = os.fstat(ours.fileno())
    named = stream_is.get("named", f"{status.st_dev}:{status.st_ino}")
    with theirs, ours, ours.makefile("w") as stream:
        set_up(environ={"JOURNAL_STREAM": named}, stream=stream)
        log.warning(message)
        stream.flush()
        return theirs.recv(65536).decode().splitlines()


def test_the_journal_gets_priorities_on_every_line() -> None:
    assert through_journal("one\ntwo") == ["<4>one", "<4>two"]


@pytest.mark.parametrize("named", ["", "1:2", "nonsense", ":", "9:9:9"])
def test_a_redirected_stderr_is_not_the_journal(named: str) -> None:
    """`homeport boot 2>file` inside a unit: the variable is inherited, the stream is another one."""
    assert through_journal("one", named=named) == ["one"]


def test_a_traceback_is_scrubbed_and_prefixed_too() -> None:
    formatter = journal.Lines(with_priority=True)
    try:
        raise ValueError("https://user:geheim@cfg.example/a?token=geheim")
    except ValueError:
        record = log.makeRecord(log.name, logging.ERROR, "", 0, "a bug", (), sys.exc_info())
    lines = formatter.format(record).splitlines()
    assert len(lines) > 2 and all(line.startswith("<3>") for line in lines)
    assert "geheim" not in "".join(lines) and "https://cfg.example/a" in lines[-1]


@pytest.mark.parametrize(("text", "wanted"), [
    ("no secrets here: 12:30, a=b, x@y", "no secrets here: 12:30, a=b, x@y"),
    ("https://cfg.example/a.yaml", "https://cfg.example/a.yaml"),
    ("from https://u:geheim@cfg.example:8443/a?token=geheim#geheim now", "from https://cfg.example:8443/a now"),
    ("('https://cfg.example/a?x=geheim', 2)", "('https://cfg.example/a', 2)"),
    ("https://a.example/?q=geheim and http://geheim@b.example", "https://a.example/ and http://b.example"),
    ("https://cfg.example/@scope/a", "https://cfg.example/@scope/a"),
    ("Authorization: Basic Z2VoZWlt", "Authorization: ***"),
    ("{'Authorization': 'Bearer geheim', 'Accept': 'a'}", "{'Authorization': '***', 'Accept': 'a'}"),
    ("homeport.password=geheim quiet", "homeport.password=*** quiet"),
    ("psk: geheim, ssid: x", "psk: ***, ssid: x"),
])
def test_scrub(text: str, wanted: str) -> None:
    assert scrub(text) == wanted


# -- the console

def shown(text: str) -> str:
    stream = io.StringIO()
    console(text, stream=stream)
    return stream.getvalue()


def test_a_console_line_is_one_and_not_too_long() -> None:
    assert shown("on DHCP:\n  the server\tis silent") == "homeport: on DHCP: the server is silent\n"
    long = shown("x" * 300)
    assert len(long.rstrip("\n")) == 100 and long.endswith("…\n")
    assert len(shown("x" * 90).rstrip("\n")) == 100 and "…" not in shown("x" * 90)
    assert "geheim" not in shown("https://user:geheim@cfg.example/a?geheim")


def test_a_console_that_is_ascii_or_gone() -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="ascii")
    console("Gerät …", stream=stream)
    assert buffer.getvalue() == b"homeport: Ger?t ?\n"
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1) as broken:
        console("nobody reads this", stream=broken)
        console("nor this", stream=broken)


# -- the result

@pytest.fixture
def journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for python3-systemd's C module, which writes down what it was given."""
    package = tmp_path / "systemd"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_journal.py").write_text(
        f"def sendv(*fields):\n    open({str(tmp_path / 'entry')!r}, 'w').write('\\n'.join(fields))\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("systemd", "systemd._journal"):
        monkeypatch.setitem(sys.modules, name, sys)  # so that what is imported now goes with this test
        del sys.modules[name]
    return tmp_path / "entry"


OUTCOME = Report(rung="dhcp", reason="https://u:geheim@cfg.example/a?t=geheim refuses", exit=77, mode="active",
                 identity={"kind": "mac", "value": "52:54:00:ab:cd:ef"}, revision="7")


def test_the_result_is_an_entry_that_monitoring_finds(journald: Path, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    result(OUTCOME)
    assert capsys.readouterr().out == "homeport: on DHCP: https://cfg.example/a refuses\n"
    assert journald.read_text().splitlines() == [
        "MESSAGE=homeport: on DHCP: https://cfg.example/a refuses",
        f"MESSAGE_ID={entry.RESULT_MESSAGE_ID}",
        "PRIORITY=4",
        "SYSLOG_IDENTIFIER=homeport",
        "HOMEPORT_RUNG=dhcp",
        "HOMEPORT_REASON=https://cfg.example/a refuses",
        "HOMEPORT_EXIT=77",
        "HOMEPORT_MODE=active",
        "HOMEPORT_STAGE=host",
        "HOMEPORT_REVISION=7",
        "HOMEPORT_IDENTITY=mac 52:54:00:ab:cd:ef",
    ]
    monkeypatch.delenv("JOURNAL_STREAM")
    journald.unlink()
    result(OUTCOME)
    assert not journald.exists()  # by hand


def test_without_systemd_s_library_the_line_must_do(monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", "1:2")
    for name in ("systemd", "systemd._journal"):
        monkeypatch.setitem(sys.modules, name, None)
    result(OUTCOME)
    assert capsys.readouterr().out.startswith("homeport: on DHCP")


def test_the_message_id_is_as_systemd_wants_it() -> None:
    assert re.fullmatch("[0-9a-f]{32}", entry.RESULT_MESSAGE_ID)
    assert entry.RESULT_MESSAGE_ID == "03f3b1df682a4a9e859a5004a3a01bb5"  # monitoring out there has it
