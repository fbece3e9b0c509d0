"""Keyfiles in nmstate's words."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.keyfile.meaning import desired_state, interface_names

STATIC = """[connection]
id=eth0
type=ethernet
interface-name=eth0
[ipv4]
method=manual
address1=192.0.2.10/24,192.0.2.1
address2=192.0.2.11/24
[ipv6]
method=disabled
"""


def test_a_static_card() -> None:
    assert desired_state({"eth0": STATIC}) == {
        "interfaces": [{
            "name": "eth0", "type": "ethernet", "state": "up",
            "ipv4": {"enabled": True, "dhcp": False, "address": [
                {"ip": "192.0.2.10", "prefix-length": 24}, {"ip": "192.0.2.11", "prefix-length": 24}]},
            "ipv6": {"enabled": False}}],
        "routes": {"config": [
            {"destination": "0.0.0.0/0", "next-hop-address": "192.0.2.1", "next-hop-interface": "eth0"}]}}


@pytest.mark.parametrize(("lines", "family", "found"), [
    ("[ipv4]\nmethod=auto\n", "ipv4", {"enabled": True, "dhcp": True}),
    ("[ipv4]\nmethod=disabled\n", "ipv4", {"enabled": False}),
    ("[ipv4]\nmethod=link-local\n", "ipv4", None),  # what comes of it is NetworkManager's affair
    ("", "ipv4", None),
    ("[ipv6]\nmethod=auto\n", "ipv6", None),
    ("[ipv6]\nmethod=ignore\n", "ipv6", None),
    ("[ipv6]\nmethod=manual\naddress1=2001:db8::7/64\n", "ipv6",
     {"enabled": True, "address": [{"ip": "2001:db8::7", "prefix-length": 64}]}),
    ("[ipv4]\nmethod=manual\naddresses=192.0.2.7/24;192.0.2.8/24;\n", "ipv4",
     {"enabled": True, "dhcp": False, "address": [
         {"ip": "192.0.2.7", "prefix-length": 24}, {"ip": "192.0.2.8", "prefix-length": 24}]}),
    ("[ipv4]\nmethod=manual\naddress0=192.0.2.7\n", "ipv4",
     {"enabled": True, "dhcp": False, "address": [{"ip": "192.0.2.7", "prefix-length": 32}]}),
])
def test_families(lines: str, family: str, found: dict[str, Any] | None) -> None:
    state = desired_state({"x": f"[connection]\ntype=ethernet\ninterface-name=eth0\n{lines}"})
    assert state["interfaces"][0].get(family) == found


@pytest.mark.parametrize(("lines", "gateway"), [
    ("[ipv4]\nmethod=auto\ngateway=192.0.2.1\n", "192.0.2.1"),
    ("[ipv4]\nmethod=auto\nroute1=0.0.0.0/0,192.0.2.2,150\n", "192.0.2.2"),
    ("[ipv6]\nmethod=auto\nroute1=::/0,2001:db8::1\n", "2001:db8::1"),
    ("[ipv4]\nmethod=auto\nroute1=198.51.100.0/24,192.0.2.2\n", ""),
    ("[ipv4]\nmethod=auto\nroute1=0.0.0.0/0\nroute1_options=table=7\n", ""),  # on the link
])
def test_default_routes(lines: str, gateway: str) -> None:
    state = desired_state({"x": f"[connection]\ntype=ethernet\ninterface-name=eth0\n{lines}"})
    found = [route["next-hop-address"] for route in state.get("routes", {}).get("config", ())]
    assert found == ([gateway] if gateway else [])


def test_a_card_by_its_mac_has_the_name_of_its_profile() -> None:
    text = "[connection]\ntype=802-3-ethernet\n[802-3-ethernet]\nmac-address=52:54:00:AA:BB:CC\n"
    (interface,) = desired_state({"lan": text})["interfaces"]
    assert (interface["name"], interface["identifier"], interface["mac-address"].lower()) == (
        "lan", "mac-address", "52:54:00:aa:bb:cc")
    assert interface_names({"lan": text, "eth0": STATIC}) == {"lan": "lan", "eth0": "eth0"}


def test_types() -> None:
    texts = {kind: f"[connection]\ntype={kind}\ninterface-name=x\n" for kind in ("bridge", "vlan", "wifi")}
    found = [interface.get("type") for interface in desired_state(texts)["interfaces"]]
    assert found == ["linux-bridge", "vlan", None]


@pytest.mark.parametrize("text", [
    "", "junk", "[connection]\ntype=ethernet\n[ipv4]\nmethod=manual\naddress1=1.2.3.4/x\n"])
def test_what_cannot_be_read_brings_nothing(text: str) -> None:
    """Its faults are `check_untrusted`'s to tell."""
    assert len(desired_state({"x": text})["interfaces"]) <= 1
