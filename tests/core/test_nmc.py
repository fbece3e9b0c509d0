"""Documents of nm-configurator: names of their own for cards, told by MAC."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.document import check_document, parse_document
from homeport.core.facts import Nic
from homeport.core.nics import resolve
from homeport.core.nmc import as_nmstate_says

A, B = "52:54:00:00:00:0a", "52:54:00:00:00:0b"
# As nm-configurator's README has them: whatever the kernel calls the cards of this host, eth0 is the one with MAC A.
DOCUMENT = f"""\
configurator: nmc
config:
  interfaces:
  - {{name: eth0, type: ethernet, state: up, mac-address: "{A.upper()}",
      ipv4: {{enabled: false}}, ipv6: {{enabled: false}}}}
  - {{name: eth10, type: ethernet, state: up, mac-address: "{B}",
      ipv4: {{enabled: false}}, ipv6: {{enabled: false}}}}
  - name: eth0.10
    type: vlan
    state: up
    vlan: {{base-iface: eth0, id: 10}}
    ipv4: {{enabled: true, address: [{{ip: 192.0.2.10, prefix-length: 24}}]}}
    ipv6: {{enabled: false}}
  routes:
    config:
    - {{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0.10}}
"""


def card(name: str, mac: str) -> Nic:
    return Nic(name, mac=mac, permanent_mac=mac, addr_assign_type=0, carrier=True)


@pytest.mark.parametrize(("first", "second"), [("ens1f0", "ens1f1"), ("eth10", "eth0"), ("eth0", "eth10")])
def test_cards_are_found_by_mac_and_names_rewritten_whole(first: str, second: str) -> None:
    """Other names, swapped names, the same names; a VLAN keeps its name and finds its card."""
    config = parse_document(DOCUMENT.encode()).config
    resolved = resolve(config, (card(first, A), card(second, B)))
    assert resolved.complaints == ()
    one, two, vlan = resolved.config["interfaces"]
    assert [one["name"], two["name"], vlan["name"]] == [first, second, "eth0.10"]
    assert vlan["vlan"]["base-iface"] == first
    assert "mac-address" not in one  # the card's own, not one that it is to take on


def test_only_nmc_means_it_so() -> None:
    """To nmstate a mac-address without an identifier is one that the card shall have."""
    config = parse_document(DOCUMENT.replace("nmc", "nmstate").encode()).config
    assert resolve(config, (card("ens1f0", A), card("ens1f1", B))).missing == ("eth0", "eth10")


def test_it_is_a_sound_document() -> None:
    assert check_document(DOCUMENT.encode()).complaints == ()


@pytest.mark.parametrize("interface", [
    {"name": "eth0", "type": "ethernet"},
    {"name": "eth0", "type": "ethernet", "mac-address": A, "identifier": "name"},
    {"name": "eth0", "type": "ethernet", "mac-address": A, "match": {"driver": "virtio_net"}},
    {"name": "bond0", "type": "bond", "mac-address": A},
    {"name": "eth0", "type": "ethernet", "mac-address": 7},
    "eth0", None,
])
def test_what_says_it_otherwise_is_left(interface: Any) -> None:
    assert as_nmstate_says({"interfaces": [interface]}) == {"interfaces": [interface]}


@pytest.mark.parametrize("tree", [{}, {"interfaces": None}, {"interfaces": {"a": 1}}])
def test_odd_trees(tree: dict[str, Any]) -> None:
    assert as_nmstate_says(tree) == tree
