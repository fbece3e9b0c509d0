"""On a cloud one NIC that is described wrongly stops no other, and is not touched itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeport.core import platforms
from homeport.core.document import check_document
from homeport.core.facts import Nic
from homeport.core.platforms.aliyun import MACS as ALIYUN
from homeport.core.platforms.aws import MACS as AWS
from homeport.core.platforms.gcp import NAME as GCP
from homeport.core.platforms.oracle import NAME as ORACLE
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError

FIRST, SECOND, THIRD = (f"00:00:5e:00:53:0{number}" for number in (1, 2, 3))
NICS = tuple(Nic(f"ens{number}", mac=mac, permanent_mac=mac, index=number)
             for number, mac in enumerate((FIRST, SECOND, THIRD), 3))


def make(name: str, files: dict[str, Any], nics: tuple[Nic, ...] = NICS) -> platforms.Made:
    platform = platforms.find(name)
    assert platform is not None and platform.reconciles
    data = {path: value.encode() if isinstance(value, str) else json.dumps(value).encode()
            for path, value in files.items()}
    return platforms.make(platform, data, platforms.Situation(nics))


def interfaces(made: platforms.Made) -> dict[str, Any]:
    return {entry.get("mac-address", entry["name"]).lower(): entry for entry in made.tree["config"]["interfaces"]}


def tables(made: platforms.Made) -> set[int]:
    return {route["table-id"] for route in made.tree["config"]["routes"]["config"] if "table-id" in route}


def oracle(**changes: Any) -> list[dict[str, Any]]:
    """Bare metal: two cards and a VLAN on the second; `changes` are of the second."""
    second = {"macAddr": SECOND, "privateIp": "10.2.1.5", "virtualRouterIp": "10.2.1.1",
              "subnetCidrBlock": "10.2.1.0/24", "vlanTag": 0, "nicIndex": 1}
    return [
        {"macAddr": FIRST, "privateIp": "10.2.0.5", "virtualRouterIp": "10.2.0.1", "subnetCidrBlock": "10.2.0.0/24",
         "vlanTag": 0, "nicIndex": 0},
        {key: value for key, value in (second | changes).items() if value is not None},
        {"macAddr": "00:00:5e:00:53:a1", "privateIp": "10.2.2.5", "virtualRouterIp": "10.2.2.1",
         "subnetCidrBlock": "10.2.2.0/24", "vlanTag": 2, "nicIndex": 0}]


@pytest.mark.parametrize("changes", [
    {"vlanTag": None}, {"vlanTag": 5000}, {"vlanTag": "x"}, {"macAddr": None}, {"macAddr": "card"},
    {"nicIndex": "x"}, {"nicIndex": None}, {"privateIp": "10.2.1.x"}, {"subnetCidrBlock": "none"},
    # What only shows beside the others, or in the whole document.
    {"privateIp": "10.2.0.5", "subnetCidrBlock": "10.2.0.0/24", "virtualRouterIp": "10.2.0.1"},
    {"virtualRouterIp": "10.2.1.5"}, {"privateIp": "0.0.0.0"}, {"virtualRouterIp": "10.2.1.255"}], ids=str)
def test_bare_metal_of_oracle(changes: dict[str, Any]) -> None:
    made = make("oraclecloud", {ORACLE: oracle(**changes)})
    assert set(interfaces(made)) == {FIRST, "00:00:5e:00:53:a1"} and SECOND not in str(made.tree).lower()
    assert made.partial and any("left out" in note for note in made.notes)
    # The VLAN is still the third.
    assert tables(made) == {30200, 30400, 30202, 30402}


def test_an_entry_that_is_none_is_not_the_end() -> None:
    assert set(interfaces(make("oraclecloud", {ORACLE: ["x", *oracle()]}))) >= {FIRST, SECOND}


def test_no_vlan_on_a_card_that_could_not_be_read() -> None:
    """Named as its base, the card would lose the address that it has."""
    entries = oracle()
    entries[0]["privateIp"] = "x"
    made = make("oraclecloud", {ORACLE: entries})
    assert set(interfaces(made)) == {SECOND} and made.partial


@pytest.mark.parametrize("changes", [
    {"forwardedIps": ["203.0.113.9", "x"]}, {"forwardedIpv6s": ["2001:db8::/x"]}, {"targetInstanceIps": "x"},
    {"mtu": 1000}, {"mtu": "x"}, {"mac": "x"}, {"forwardedIps": ["0.0.0.0"]}], ids=str)
def test_google(changes: dict[str, Any]) -> None:
    second = {"mac": SECOND, "mtu": 1460, "ipv6": ["2001:db8::2"], "forwardedIps": ["203.0.113.8"]} | changes
    made = make("gcp", {GCP: [{"mac": FIRST, "forwardedIps": ["203.0.113.7"]}, second, "x"]})
    assert set(interfaces(made)) == {FIRST} and made.partial
    assert len(made.notes) == 2


def azure(*nics: tuple[str, str]) -> dict[str, Any]:
    return {"metadata/instance/network": {"interface": [
        {"macAddress": mac, "ipv4": {"ipAddress": [{"privateIpAddress": ip}, {"privateIpAddress": f"{ip}9"}],
                                     "subnet": [{"prefix": "24"}]}} for mac, ip in nics]}}


def test_azure_with_one_address_on_two_nics() -> None:
    made = make("azure", azure((FIRST, "10.0.0.1"), (SECOND, "10.0.0.1"), (THIRD, "10.0.2.4")))
    # 10.0.0.1 is also where the router of this network is, if nobody says.
    assert set(interfaces(made)) == {THIRD} and made.partial
    made = make("azure", azure((FIRST, "10.0.0.4"), (SECOND, "10.0.0.4"), (THIRD, "10.0.2.4")))
    assert set(interfaces(made)) == {FIRST, THIRD} and made.partial
    assert tables(made) == {30200, 30400, 30202, 30402}
    assert any(SECOND in note and "has too" in note for note in made.notes)


def test_azure_without_a_subnet_has_no_router_to_guess() -> None:
    entry = {"macAddress": FIRST, "ipv4": {"ipAddress": [
        {"privateIpAddress": "255.255.255.255"}, {"privateIpAddress": "10.0.0.4"}]}}
    made = make("azure", {"metadata/instance/network": {"interface": [entry]}})
    assert "routes" not in made.tree["config"] and not made.partial
    assert any(FIRST in note and "router" in note for note in made.notes)


def test_nothing_is_left_where_all_are_wrong() -> None:
    with pytest.raises(DocumentError, match="itself"):
        make("azure", azure((FIRST, "10.0.0.1")))


def test_a_mac_that_two_cards_have() -> None:
    nics = (*NICS, Nic("ens9", mac=SECOND, permanent_mac=SECOND, index=9))
    made = make("azure", azure((FIRST, "10.0.0.4"), (SECOND, "10.0.1.4"), (THIRD, "10.0.2.4")), nics)
    assert set(interfaces(made)) == {FIRST, THIRD} and made.partial
    assert any(SECOND in note and "ens9" in note for note in made.notes)


@pytest.mark.parametrize("order", [(FIRST, SECOND, SECOND.upper()), (SECOND.upper(), SECOND, FIRST)])
def test_a_mac_that_is_listed_twice_is_one_nic(order: tuple[str, ...]) -> None:
    def folders(top: str, **keys: str) -> dict[str, Any]:
        texts = {f"{top}{mac}/{key}": value.format(place=2 if mac == FIRST else 3)
                 for mac in order for key, value in keys.items()}
        return {top: "".join(f"{mac}/\n" for mac in order), **texts}

    numbers = {30200, 30201, 30400, 30401}
    made = make("aws", folders(AWS, **{"local-ipv4s": "10.0.{place}.4", "subnet-ipv4-cidr-block": "10.0.{place}.0/24",
                                       "device-number": "{place}"}))
    assert set(interfaces(made)) == {FIRST, SECOND} and tables(made) == numbers
    made = make("aliyun", folders(ALIYUN, **{"private-ipv4s": "10.0.{place}.4", "netmask": "255.255.255.0"}))
    assert set(interfaces(made)) == {FIRST, SECOND} and tables(made) == numbers
    made = make("azure", azure(*((mac, f"10.0.{2 if mac == FIRST else 3}.4") for mac in order)))
    assert set(interfaces(made)) == {FIRST, SECOND} and tables(made) == numbers
    made = make("gcp", {GCP: [{"mac": mac} for mac in order]})
    metrics = {mac: entry["ipv4"]["auto-route-metric"] for mac, entry in interfaces(made).items()}
    assert metrics == ({FIRST: 100, SECOND: 200} if order[0] == FIRST else {SECOND: 100, FIRST: 300})


def test_the_rule_for_all_goes_with_the_last_that_needs_it() -> None:
    """Else it would be of a family that is off."""
    def nic(mac: str, family: str, *addresses: str) -> dict[str, Any]:
        prefix = {"ipv4": "24", "ipv6": "64"}[family]
        return {"macAddress": mac, family: {"ipAddress": [{"privateIpAddress": each} for each in addresses],
                                            "subnet": [{"prefix": prefix}]}}

    made = make("azure", {"metadata/instance/network": {"interface": [
        nic(FIRST, "ipv6", "2001:db8::4", "2001:db8::5"), nic("00:00:5e:00:53:0f", "ipv4", "10.0.0.4")]}})
    assert set(interfaces(made)) == {FIRST} and made.absent
    assert {rule["family"] for rule in made.tree["config"]["route-rules"]["config"]} == {"ipv6"}
    assert check_document(render_yaml(made.tree).encode()).complaints == ()
