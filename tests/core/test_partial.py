"""A document without some cards: what they had is in the one that is made of it, and nothing that others have now."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core import platforms
from homeport.core.checks import check_meaning
from homeport.core.facts import Nic
from homeport.core.nics import resolve
from homeport.core.partial import completed
from homeport.core.platforms.network import Network
from homeport.core.platforms.reading import IPInterface
from homeport.core.platforms.rendering import render
from homeport.core.platforms.vnics import Vnic, configure

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
HERE = (Nic("ens3", 2, A, A), Nic("ens4", 3, B, B), Nic("ens5", 4, C, C))


def ips(*addresses: str) -> list[IPInterface]:
    from ipaddress import ip_interface
    return [ip_interface(address) for address in addresses]


def document(*vnics: Vnic | None) -> dict[str, Any]:
    """As a platform makes it of these; None for one that could not be read."""
    network = Network(platforms.Situation(HERE))
    configure(network, vnics)
    found: dict[str, Any] = dict(render(network).tree.get("config", {}))
    return found


FIRST = Vnic(A, ips("10.0.1.10/24", "10.0.1.11/24"))
SECOND = Vnic(B, ips("10.0.2.10/24", "10.0.2.11/24"))
THIRD = Vnic(C, ips("10.0.3.10/24"))
WHOLE = document(FIRST, SECOND, THIRD)
ALL = {A, B, C}


def on(config: dict[str, Any], name: str) -> tuple[list[str], set[int], set[tuple[str, int]]]:
    """The addresses of this machine's card, the tables that its routes are in, the rules that lead there."""
    state = resolve(config, HERE).config
    assert check_meaning(config) == []
    entry: dict[str, Any] = next((entry for entry in state["interfaces"] if entry["name"] == name), {})
    tables = {route["table-id"] for route in state["routes"]["config"] if route["next-hop-interface"] == name}
    return ([item["ip"] for item in entry.get("ipv4", {}).get("address", ())], tables,
            {(rule["ip-from"], rule["route-table"]) for rule in state["route-rules"]["config"]
             if rule["route-table"] in tables})


@pytest.mark.parametrize("new", [
    document(None, SECOND, THIRD), document(FIRST, None, THIRD), document(FIRST, SECOND, None),
    document(None, None, THIRD), document(None, SECOND, None)])
def test_what_cannot_be_read_is_as_it_was(new: dict[str, Any]) -> None:
    """Though the names in the document are other ones now: they count the cards that could be read."""
    made = completed(new, WHOLE, ALL)
    for name in ("ens3", "ens4", "ens5"):
        assert on(made, name) == on(WHOLE, name)
    # Once more without the card: nothing is there twice, and nothing has changed.
    assert completed(new, made, ALL) == made


def test_what_can_be_read_is_as_it_is_now() -> None:
    changed = Vnic(B, ips("10.0.2.10/24", "10.0.2.12/24"))
    made = completed(document(None, changed, THIRD), WHOLE, ALL)
    assert on(made, "ens4")[0] == ["10.0.2.10", "10.0.2.12"]
    assert on(made, "ens3") == on(WHOLE, "ens3")
    assert not [rule for rule in made["route-rules"]["config"] if rule.get("ip-from") == "10.0.2.11/32"]


def test_only_these_cards() -> None:
    """One that is not on this machine any more would be waited for; one that went is gone."""
    assert completed(document(None, SECOND, THIRD), WHOLE, {B, C}) == document(None, SECOND, THIRD)
    assert completed(document(None, SECOND, THIRD), {}, ALL) == document(None, SECOND, THIRD)


def test_nothing_could_be_read() -> None:
    for name in ("ens3", "ens4", "ens5"):
        assert on(completed({}, WHOLE, ALL), name) == on(WHOLE, name)


def test_an_address_that_has_moved_to_a_card_that_can_be_read() -> None:
    """It is on one card, with one way out."""
    made = completed(document(None, Vnic(B, ips("10.0.2.10/24", "10.0.1.11/24")), THIRD), WHOLE, ALL)
    assert on(made, "ens3")[0] == ["10.0.1.10"]
    assert {rule for rule in on(made, "ens3")[2] if rule[0] == "10.0.1.11/32"} == set()
    assert on(made, "ens4")[0] == ["10.0.2.10", "10.0.1.11"]
    # Of a card that failed it is not known whether it has the address still: it is remembered as its own, too.
    as_it_was = completed(document(None, Vnic(B, ips("10.0.2.10/24", "10.0.1.11/32")), THIRD), WHOLE, {A}, moved=False)
    assert on(as_it_was, "ens3") == on(WHOLE, "ens3")


def test_a_table_is_of_one_card() -> None:
    """The first card went: the others' numbers are other ones now, and one of them is that of what can't be read."""
    made = completed(document(None, THIRD), WHOLE, {B, C})
    assert on(made, "ens5") == (["10.0.3.10"], {30201, 30401}, {("10.0.3.10/32", 30201), ("10.0.3.10/32", 30401)})
    assert on(made, "ens4") == (["10.0.2.10", "10.0.2.11"], set(), set())


def metal(*tags: int) -> dict[str, Any]:
    """Oracle's bare metal, with a VNIC for each of these VLANs on the first card."""
    import json
    found = platforms.find("oraclecloud")
    assert found is not None
    entries = [{"vnicId": str(tag), "macAddr": A if not tag else f"02:00:00:00:01:{tag:02x}", "vlanTag": tag,
                "nicIndex": 0, "privateIp": f"10.0.{tag}.10" if tag >= 0 else "", "virtualRouterIp": f"10.0.{tag}.1",
                "subnetCidrBlock": f"10.0.{tag}.0/24"} for tag in tags]
    tree = platforms.make(found, {"opc/v2/vnics/": json.dumps(entries).encode()}, platforms.Situation(HERE)).tree
    config: dict[str, Any] = tree["config"]
    return config


def test_what_stands_on_a_card_is_kept_with_it() -> None:
    whole = metal(0, 5, 6)
    one = {**whole, "interfaces": [entry for entry in whole["interfaces"] if not entry["name"].startswith("macvlan1")],
           "routes": {"config": [
               route for route in whole["routes"]["config"] if route["next-hop-interface"] != "macvlan1.5"]}}
    made = completed(one, whole, ALL)
    assert {entry["name"] for entry in made["interfaces"]} == {entry["name"] for entry in whole["interfaces"]}
    assert on(made, "macvlan1.5") == on(whole, "macvlan1.5")
    assert completed(one, whole, set())["interfaces"] == made["interfaces"]


def test_a_card_that_is_only_named_because_something_stands_on_it_keeps_what_it_has() -> None:
    """Or the primary VNIC would lose its DHCP where it alone can't be read."""
    whole, new = metal(0, 5), metal(0, 5)
    (card, *others) = new["interfaces"]
    bare = {**{key: value for key, value in card.items() if key not in ("ipv4", "ipv6")},
            "ipv4": {"enabled": False}, "ipv6": {"enabled": True, "dhcp": False, "autoconf": False}, "name": "nic7"}
    others[0] = {**others[0], "mac-vlan": {**others[0]["mac-vlan"], "base-iface": "nic7"}}
    new["interfaces"] = [bare, *others]
    new["routes"] = {"config": [r for r in new["routes"]["config"] if r["next-hop-interface"] != card["name"]]}
    made = completed(new, whole, ALL)
    assert on(made, "ens3") == on(whole, "ens3")
    assert on(made, "macvlan1.5") == on(whole, "macvlan1.5")
