"""An assignment that is keyfiles: what is rendered and planned of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport import givenkeyfiles
from homeport.core.document import understand_document
from homeport.core.facts import Nic
from homeport.core.keyfile import is_ours, parse
from homeport.core.nics import resolve
from homeport.errors import DocumentError
from homeport.rendering import DESIRED, render

DOCUMENT = """\
configurator: nmconnections
revision: '7'
ipAddresses: {mine: 192.0.2.10}
config:
  lan: |
    [connection]
    id=The LAN
    uuid=11111111-2222-4333-8444-555555555555
    type=ethernet
    [ethernet]
    mac-address=52:54:00:12:34:56
    [ipv4]
    method=manual
    address1={mine}/24,192.0.2.1
  lan.7: |
    [connection]
    type=vlan
    interface-name=v7
    [vlan]
    id=7
    parent=11111111-2222-4333-8444-555555555555
    [ipv4]
    method=disabled
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    return tmp_path


def test_rendered_offline(root: Path) -> None:
    files = render(DOCUMENT.encode(), root=root, addresses={}, macs={})
    assert set(files) == {DESIRED, "homeport-lan.nmconnection", "homeport-lan.7.nmconnection"}
    lan, vlan = parse(files["homeport-lan.nmconnection"]), parse(files["homeport-lan.7.nmconnection"])
    assert is_ours(lan)
    assert lan.raw("ipv4", "address1") == "192.0.2.10/24,192.0.2.1"
    # A reference follows the profile, whose UUID is another now.
    assert vlan.raw("vlan", "parent") == lan.raw("connection", "uuid") != "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize("machine_id", ["", "uninitialized\n", None])
def test_an_image_has_no_machine_id_yet(tmp_path: Path, machine_id: str | None) -> None:
    """Rendered all the same, and the same each time."""
    (tmp_path / "etc").mkdir()
    if machine_id is not None:
        (tmp_path / "etc/machine-id").write_text(machine_id)
    files = render(DOCUMENT.encode(), root=tmp_path, addresses={}, macs={})
    assert files == render(DOCUMENT.encode(), root=tmp_path, addresses={}, macs={})
    uuids = {parse(text).get("connection", "uuid") for name, text in files.items() if name != DESIRED}
    assert len(uuids) == len(files) - 1 and None not in uuids


def test_each_keyfile_finds_its_interface() -> None:
    assignment = understand_document(DOCUMENT.encode())
    card = Nic("enp1s0", index=2, mac="52:54:00:12:34:56", permanent_mac="52:54:00:12:34:56")
    resolved = resolve(givenkeyfiles.stated(assignment).config, (card,))
    assert not resolved.complaints
    assert dict(givenkeyfiles.kernel_names(assignment, resolved)) == {"lan": "enp1s0", "lan.7": "v7"}


@pytest.mark.parametrize(("text", "words"), [
    ("[connection]\ntype=ethernet\n[connection]\ntype=vlan\n", "section"),
    ("[connection]\ntype=vpn\n[vpn]\nservice-type=org.example.run\n", "program"),
    ("[connection]\ntype=ethernet\npermissions=user:root\n", "permissions"),
    ("[connection]\ntype=ethernet\n[802-1x]\npassword-flags=1\n", "a person is asked"),
    ("[ipv4]\nmethod=auto\n", "missing"),
])
def test_a_stranger_s_keyfile_is_checked_first(text: str, words: str) -> None:
    tree = "configurator: nmconnections\nconfig:\n  x: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
    with pytest.raises(DocumentError, match=words):
        understand_document(tree.encode())
