"""Name servers go with the cards that they are for; the others stay, and DHCP's count where there are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.core import platforms
from homeport.core.facts import Nic

HERE, ELSEWHERE = "00:00:5e:00:53:01", "00:00:5e:00:53:02"


def make(of_this: list[str], of_other: list[str]) -> dict[str, Any]:
    """A card by DHCP, and one that the machine has not."""
    platform = platforms.find("openstack")
    assert platform is not None
    links = [{"id": mac, "type": "phy", "ethernet_mac_address": mac} for mac in (HERE, ELSEWHERE)]
    networks = [{"link": mac, "type": "ipv4_dhcp", "dns_nameservers": servers}
                for mac, servers in ((ELSEWHERE, of_other), (HERE, of_this))]
    data = json.dumps({"links": links, "networks": networks}).encode()
    made = platforms.make(platform, {"openstack/latest/network_data.json": data}, platforms.Situation(
        (Nic("ens3", mac=HERE, permanent_mac=HERE),)))
    found: dict[str, Any] = made.tree["config"]
    return found


@pytest.mark.parametrize(("of_this", "of_other", "servers"), [
    (["192.0.2.53"], ["192.0.2.53"], ["192.0.2.53"]),
    (["192.0.2.54"], ["192.0.2.53"], ["192.0.2.54"]),
    ([], ["192.0.2.53"], []),
    (["fe80::53"], [], []),  # on a link without IPv6 but for its link-local address
])
def test_of_a_card_that_is_not_here(of_this: list[str], of_other: list[str], servers: list[str]) -> None:
    config = make(of_this, of_other)
    assert config.get("dns-resolver", {}).get("config", {}).get("server", []) == servers
    assert config["interfaces"][0]["ipv4"]["auto-dns"] is not bool(servers)
