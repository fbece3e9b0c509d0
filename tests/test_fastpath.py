"""The boot on which nothing has changed, and everything that must send it the long way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from homeport import fastpath

AGENT = Path(__file__).resolve().parents[1] / "agent"
# What the budget of the fast path can't pay for (design.md, section 6), and what would pull it in.
DEAR = {"yaml", "requests", "ssl", "subprocess", "json", "re", "dataclasses", "argparse", "logging", "inspect"}
KEYFILE = "etc/NetworkManager/system-connections/homeport-enp1s0.nmconnection"
UUID = "6646c89f-7855-4649-ab91-71873b00fd5a"
V6 = "2001:0db8:0000:0000:0000:0000:0000:0001"


def write(root: Path, path: str, text: str, mode: int = 0o644) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose assignment is in force, with the stamp of the run that put it there."""
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.setattr(fastpath, "PATIENCE", 0.2)
    write(tmp_path, KEYFILE, "[connection]\nid=homeport-enp1s0\n", 0o600)
    write(tmp_path, "etc/homeport/homeport.conf", "Config=/x\n")
    write(tmp_path, "proc/cmdline", "quiet homeport.mode=active\n")
    write(tmp_path, "sys/class/net/enp1s0/ifindex", "2\n")
    write(tmp_path, "sys/class/net/enp1s0/carrier", "1\n")
    write(tmp_path, "run/NetworkManager/devices/2", f"[device]\nmanaged=true\nconnection-uuid={UUID}\nnm-owned=false\n")
    write(tmp_path, "proc/net/fib_trie", "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.10\n        /32 host LOCAL\n")
    write(tmp_path, "proc/net/if_inet6", "20010db8000000000000000000000001 02 40 00 80   enp1s0\n")
    stamp = "\n".join((
        fastpath.HEADER,
        f"arguments\t{fastpath.our_arguments(str(tmp_path))}",
        "credential\t-",
        f"as-was\tetc/homeport/homeport.conf\t{fastpath.as_was(str(tmp_path), 'etc/homeport/homeport.conf')}",
        "as-was\trun/elemental/recovery_mode\t-\t0",
        f"keyfile\t{KEYFILE}\t{fastpath.checksum((tmp_path / KEYFILE).read_bytes())}",
        f"up\tenp1s0\t{UUID}",
        "address\tenp1s0\t192.0.2.10",
        f"address\tenp1s0\t{V6}",
        f"running\t{os.uname().nodename}",
        "host-name\tberth-7",
    ))
    write(tmp_path, "etc/hostname", "# assigned\n\n berth-7\n")
    write(tmp_path, fastpath.STAMP, stamp + '\n\n{"rung": "assigned", "started": @STARTED@, "finished": @FINISHED@}')
    return tmp_path


def test_unchanged_is_in_force_and_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fastpath.still_in_force(str(root))
    status = json.loads((root / "run/homeport/status.json").read_text())
    assert status["rung"] == "assigned"
    assert (root / "run/homeport/in-force").exists()
    assert 0 <= status["finished"] - status["started"] < 5
    assert capsys.readouterr().out == "homeport: assigned configuration in force: unchanged\n"


def edit_keyfile(root: Path) -> None:
    write(root, KEYFILE, "[connection]\nid=homeport-enp1s1\n", 0o600)


def replace_keyfile_by_link(root: Path) -> None:
    (root / "elsewhere").write_bytes((root / KEYFILE).read_bytes())
    (root / KEYFILE).unlink()
    (root / KEYFILE).symlink_to(root / "elsewhere")


def pull_the_cable(root: Path) -> None:
    write(root, "sys/class/net/enp1s0/carrier", "0\n")
    (root / "run/NetworkManager/devices/2").unlink()


def pass_credential(root: Path) -> None:
    write(root, "credentials/homeport.assignment", "interfaces: []\n")
    os.environ["CREDENTIALS_DIRECTORY"] = str(root / "credentials")  # the fixture's monkeypatch takes it back


CHANGES: dict[str, Callable[[Path], object]] = {
    "another host name": lambda root: write(root, "etc/hostname", "berth-8\n"),
    "no host name": lambda root: (root / "etc/hostname").unlink(),
    "a running name that is not the assigned one": lambda root: write(
        root, fastpath.STAMP, (root / fastpath.STAMP).read_text().replace("running\t", "running\tno-")),
    "no stamp": lambda root: (root / fastpath.STAMP).unlink(),
    "half a stamp": lambda root: write(root, fastpath.STAMP, fastpath.HEADER + "\n"),
    "a stamp of another version": lambda root: write(
        root, fastpath.STAMP, (root / fastpath.STAMP).read_text().replace("stamp 1", "stamp 2")),
    "a fact of a later version": lambda root: write(
        root, fastpath.STAMP, (root / fastpath.STAMP).read_text().replace("credential\t-", "moon\tfull")),
    "keyfile edited": edit_keyfile,
    "keyfile gone": lambda root: (root / KEYFILE).unlink(),
    "keyfile readable by all, so ignored by NetworkManager": lambda root: (root / KEYFILE).chmod(0o644),
    "keyfile a link": replace_keyfile_by_link,
    "settings edited": lambda root: write(root, "etc/homeport/homeport.conf", "Config=/elsewhere\n"),
    "settings gone": lambda root: (root / "etc/homeport/homeport.conf").unlink(),
    "another kernel argument": lambda root: write(root, "proc/cmdline", "quiet homeport.mode=recovery\n"),
    "an argument of Elemental's": lambda root: write(
        root, "proc/cmdline", "homeport.mode=active elemental.mode=recovery\n"),
    "recovery by marker": lambda root: write(root, "run/elemental/recovery_mode", "1"),
    "a credential": pass_credential,
    "no such NIC": lambda root: (root / "sys/class/net/enp1s0/ifindex").unlink(),
    "another profile is up": lambda root: write(root, "run/NetworkManager/devices/2", "[device]\nconnection-uuid=x\n"),
    "a UUID that only begins like ours": lambda root: write(
        root, "run/NetworkManager/devices/2", f"[device]\nconnection-uuid={UUID}0\n"),
    "no cable": pull_the_cable,
    "address missing": lambda root: write(root, "proc/net/fib_trie", "|-- 192.0.2.100\n   /32 host LOCAL\n"),
    "address only routed to": lambda root: write(root, "proc/net/fib_trie", "|-- 192.0.2.10\n   /32 link UNICAST\n"),
    "IPv6 address still tentative": lambda root: write(
        root, "proc/net/if_inet6", "20010db8000000000000000000000001 02 40 00 c0   enp1s0\n"),
    "IPv6 address of another host": lambda root: write(
        root, "proc/net/if_inet6", "20010db8000000000000000000000001 02 40 00 88   enp1s0\n"),
    "IPv6 address on another NIC": lambda root: write(
        root, "proc/net/if_inet6", "20010db8000000000000000000000001 03 40 00 80   enp2s0\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_any_change_takes_the_long_way(what: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/nonexistent")
    CHANGES[what](root)
    assert not fastpath.still_in_force(str(root))
    assert not (root / "run/homeport").exists()


@pytest.mark.parametrize("sign", ["bridge/stp_state", "bonding/mode", "lower_eth0/x"])
def test_waits_for_what_has_no_carrier_before_its_ports_have(
        sign: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bridge seen between its own activation and that of its port was taken for one without a cable."""
    device = root / "run/NetworkManager/devices/2"
    text = device.read_text()
    pull_the_cable(root)
    write(root, f"sys/class/net/enp1s0/{sign}", "0\n")
    monkeypatch.setattr("time.sleep", lambda seconds: device.write_text(text))
    assert fastpath.still_in_force(str(root))


def test_waits_for_a_profile_that_is_coming_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = root / "run/NetworkManager/devices/2"
    text = device.read_text()
    device.unlink()
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        device.write_text(text)

    monkeypatch.setattr("time.sleep", nap)
    assert fastpath.still_in_force(str(root))
    assert len(naps) == 1


def test_in_a_container_the_arguments_are_those_of_pid_1(tmp_path: Path) -> None:
    write(tmp_path, "proc/cmdline", "homeport.mode=live\n")
    write(tmp_path, "proc/1/cmdline", "/sbin/init\0homeport.config=/a b\0quiet\0")
    assert fastpath.our_arguments(str(tmp_path)) == "homeport.mode=live"
    write(tmp_path, "run/systemd/container", "systemd-nspawn")
    assert fastpath.our_arguments(str(tmp_path)) == "homeport.config=/a b"


def test_imports_nothing_that_costs_time(root: Path) -> None:
    """The list of modules, not the clock: machines are noisy."""
    program = (f"import sys; before = set(sys.modules); sys.path.insert(0, {str(AGENT)!r})\n"
               f"from homeport.fastpath import still_in_force\n"
               f"assert still_in_force({str(root)!r})\n"
               "print(*sorted(set(sys.modules) - before))")
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert imported & DEAR == set()
    assert "homeport" in imported
