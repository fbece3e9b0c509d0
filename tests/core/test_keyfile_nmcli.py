"""Our reader and writer against NetworkManager's own, through `nmcli --offline`: no daemon, no root.

`HOMEPORT_NMCLI` names another one (`chroot TREE nmcli`); without either the module is skipped.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from homeport.core.keyfile import Keyfile, own_profile, parse

NMCLI = shlex.split(os.environ.get("HOMEPORT_NMCLI", "nmcli"))
CASES = Path(__file__).parent.parent / "data" / "keyfiles"
UUID = "0b7a1e9c-6a0f-4a6e-8a37-2f5f6d2f2a11"
HEAD = f"[connection]\nid=x\nuuid={UUID}\ntype=ethernet\ninterface-name=eth0\n"

pytestmark = pytest.mark.skipif(not shutil.which(NMCLI[0]), reason="no nmcli to compare with")


def nmcli(arguments: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*NMCLI, "--offline", *arguments], input=text, capture_output=True, text=True,
                          timeout=20, check=False)


def through(text: str, *change: str) -> Keyfile:
    """What NetworkManager makes of a keyfile, read back by us."""
    done = nmcli(["connection", "modify", *(change or ("connection.stable-id", ""))], text)
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


TEXTS = ["plain", "a=b;c [d] #e", "  two blanks", "\ttab", "in\tside", "trailing  ", r"back\slash \n", "é ✓", "a;b;;"]


@pytest.mark.parametrize("text", TEXTS)
def test_we_read_what_it_writes_and_write_the_same(text: str) -> None:
    theirs = through(HEAD, "connection.id", text)
    assert theirs.get("connection", "id") == text
    assert Keyfile().set("connection", "id", text).raw("connection", "id") == theirs.raw("connection", "id")


@pytest.mark.parametrize("text", [*TEXTS, "line\nbreak", "carriage\rreturn"])
def test_it_reads_what_we_write(text: str) -> None:
    ours = parse(HEAD).set("user", "a.b", text)
    assert through(ours.render()).get("user", "a.b") == text


@pytest.mark.parametrize("items", [("a.b", "c.d"), ("a;b", "c"), ("one",)])
def test_lists(items: tuple[str, ...]) -> None:
    ours = parse(HEAD + "[ipv4]\nmethod=auto\n").set_list("ipv4", "dns-search", items)
    theirs = through(ours.render())
    assert theirs.get_list("ipv4", "dns-search") == items
    assert theirs.raw("ipv4", "dns-search") == ours.raw("ipv4", "dns-search")


@pytest.mark.parametrize("ssid", ["home", "a;b", "é", r"back\slash", "12", "1;2", " x"])
def test_ssids(ssid: str) -> None:
    done = nmcli(["connection", "add", "type", "wifi", "con-name", "w", "ifname", "*", "ssid", ssid])
    assert done.returncode == 0, done.stderr
    assert parse(done.stdout).get_bytes("wifi", "ssid") == ssid.encode()


@pytest.mark.parametrize("line", ["mac-address=0;17;34;51;68;85;", "mac-address=00-11-22-33-44-55"])
def test_macs(line: str) -> None:
    text = f"{HEAD}[ethernet]\n{line}\n"
    assert through(text).get_mac("ethernet", "mac-address") == parse(text).get_mac("ethernet", "mac-address")


# What we change must not change what NetworkManager understands.

@pytest.mark.parametrize("path", sorted(CASES.glob("*/out/*.nmconnection")), ids=lambda p: f"{p.parts[-3]}/{p.stem}")
def test_every_profile_of_ours_is_taken_whole(path: Path) -> None:
    ours = parse(path.read_text())
    theirs = through(path.read_text())
    lost = [f"[{section}] {key}={raw}" for section in ours.names() for key, raw in ours.items(section)
            if not is_there(theirs, section, key, raw)]
    assert lost == []


NEWER = {"master": "controller", "slave-type": "port-type", "autoconnect-slaves": "autoconnect-ports"}
# Defaults, which NetworkManager does not write back.
DEFAULTS = {"autoconnect": "true", "autoconnect-slaves": "-1", "dhcp-send-hostname": "true", "flags": "1",
            "ignore-auto-dns": "false", "ignore-auto-routes": "false", "never-default": "false",
            "promiscuous": "true", "tap": "false", "dns-options": "", "vlan-filtering": "false"}
ADDR_GEN = {"0": "eui64", "1": "stable-privacy"}


def is_there(theirs: Keyfile, section: str, key: str, raw: str) -> bool:
    """The same value, in NetworkManager's spelling."""
    found = theirs.raw(section, key) or theirs.raw(section, NEWER.get(key, key))
    if found is None:
        return DEFAULTS.get(key) == raw
    if key == "dhcp-send-hostname":  # a boolean that 1.52 made a number
        return found in (raw, "1" if raw == "true" else "0")
    return words(found) == words(ADDR_GEN.get(raw, raw) if key == "addr-gen-mode" else raw)


def words(raw: str) -> list[str]:
    """Lists end in `;` or do not, options come in any order, and a whole address needs no /32."""
    return sorted(raw.replace(",,", ",0.0.0.0,").replace("/32 ", " ").rstrip(";").replace(",", " ").split())


@pytest.mark.parametrize(("text", "addresses"), [
    ("address0=10.0.0.1/8\naddress1=10.0.0.2/8\n", ["10.0.0.1/8", "10.0.0.2/8"]),
    ("address10=10.0.0.3/8\naddress9=10.0.0.2/8\naddress=10.0.0.1/8\n", ["10.0.0.1/8", "10.0.0.2/8", "10.0.0.3/8"]),
])
def test_numbering_keeps_its_order(text: str, addresses: list[str]) -> None:
    text = f"{HEAD}[ipv4]\nmethod=manual\n{text}"
    ours = own_profile(text, uuid=UUID, name="eth0", nic=None, tags={}).render()
    for version in (text, ours):
        found = [raw for key, raw in through(version).items("ipv4") if key.startswith("address")]
        assert found == addresses
