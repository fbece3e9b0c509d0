"""What is added to the profiles that cards have: what of a document, and what NetworkManager is told."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.core.beside import (
    SKIP,
    Card,
    Settings,
    fits,
    leased,
    merged,
    not_held,
    other_metrics,
    part,
    reduced,
    with_shared_rules,
    without,
)
from homeport.core.strangers import Added

FOR_ALL = {"family": "ipv4", "priority": 30350, "route-table": 254, "suppress-prefix-length": 0}


def settings(method: str = "auto", more: dict[str, Any] | None = None) -> Settings:
    return {"connection": {"id": ("s", "theirs")}, "802-3-ethernet": {},
            "ipv4": {"method": ("s", method), "addresses": ("aau", []), **(more or {})},
            "ipv6": {"method": ("s", "auto")}}


def with_section(name: str, **values: Any) -> Settings:
    return {**settings(), name: values}


def rule(source: str, table: int, family: str = "ipv4") -> dict[str, Any]:
    return {"family": family, "priority": table, "ip-from": source, "route-table": table}


def way_out(name: str, gateway: str, table: int) -> dict[str, Any]:
    destination = "::/0" if ":" in gateway else "0.0.0.0/0"
    return {"destination": destination, "next-hop-interface": name, "next-hop-address": gateway, "metric": 10,
            "table-id": table}


def entry(name: str, *addresses: str, **more: Any) -> dict[str, Any]:
    listed = [{"ip": address, "prefix-length": 24} for address in addresses]
    return {"name": name, "type": "ethernet", "state": "up", "identifier": "mac-address", "wait-ip": "any",
            "ipv4": {"enabled": True, "dhcp": True, "auto-dns": True, "auto-route-metric": 100, "address": listed},
            "ipv6": {"enabled": True, "dhcp": False, "autoconf": False}, **more}


DOCUMENT: dict[str, Any] = {
    "interfaces": [entry("ens3", "10.0.1.10", "10.0.1.11", mtu=1460), entry("ens4", "10.0.2.10")],
    "routes": {"config": [way_out("ens3", "10.0.1.1", 30400), way_out("ens4", "10.0.2.1", 30401)]},
    "route-rules": {"config": [FOR_ALL, rule("10.0.1.10/32", 30400), rule("10.0.2.10/32", 30401)]}}
BOOTSTRAP = Card(settings(more={"route-metric": ("x", 900)}), ours=True)


def test_the_part_of_a_document_that_is_not_the_profiles() -> None:
    state, notes = reduced(DOCUMENT, {"ens3": BOOTSTRAP, "ens4": Card(settings())})
    assert notes == []
    ens3 = state["interfaces"][0]
    # DNS, methods, and the family of which nothing is said stay as the profile has them.
    assert ens3["mtu"] == 1460 and "ipv6" not in ens3
    assert ens3["ipv4"] == {"enabled": True, "auto-route-metric": 100, "address": [
        {"ip": "10.0.1.10", "prefix-length": 24}, {"ip": "10.0.1.11", "prefix-length": 24}]}
    assert state["routes"] == DOCUMENT["routes"] and state["route-rules"] == DOCUMENT["route-rules"]


@pytest.mark.parametrize(("card", "why"), [
    (None, "no profile"),
    (Card(with_section("user", data=("a{ss}", {SKIP[0]: "yes"}))), "its profile says so"),
    (Card(with_section("user", data=("a{ss}", {SKIP[1]: "true"}))), "its profile says so"),
    (Card(with_section("connection", master=("s", "br0"))), "a port"),
])
def test_a_card_that_is_left_alone_doesnt_stop_the_other(card: Card | None, why: str) -> None:
    cards = {"ens4": BOOTSTRAP} | ({"ens3": card} if card else {})
    state, notes = reduced(DOCUMENT, cards)
    assert len(notes) == 1 and notes[0].startswith("ens3 is left as it is") and why in notes[0]
    assert [each["name"] for each in state["interfaces"]] == ["ens4"]
    assert state["route-rules"]["config"] == [FOR_ALL, rule("10.0.2.10/32", 30401)]


def test_an_address_that_is_only_in_the_kernel_is_handed_to_networkmanager() -> None:
    state, _ = reduced(DOCUMENT, {"ens3": BOOTSTRAP})
    some = Card(BOOTSTRAP.settings, held=frozenset(("10.0.1.10",)))
    assert [str(each) for each in not_held(part(state, "ens3"), some)] == [
        "interfaces[0].ipv4.address: not NetworkManager's; 10.0.1.11"]
    assert not_held(part(state, "ens3"), Card(BOOTSTRAP.settings, held=frozenset(("10.0.1.10", "10.0.1.11")))) == []
    assert not_held(part(state, "ens3"), BOOTSTRAP) == []  # it has no profile yet


def test_whole_profiles_without_one_card() -> None:
    left = without(DOCUMENT, {"ens3"})
    assert left["interfaces"] == [DOCUMENT["interfaces"][1]]  # as it was, with all that a profile of its own needs
    assert left["routes"]["config"] == [way_out("ens4", "10.0.2.1", 30401)]
    assert left["route-rules"]["config"] == [FOR_ALL, rule("10.0.2.10/32", 30401)]
    assert without(DOCUMENT, {"ens3", "ens4"})["route-rules"]["config"] == []


def test_skip_that_says_no_is_none() -> None:
    assert not Card(with_section("user", data=("a{ss}", {SKIP[0]: "no"}))).skip


def test_what_somebody_decided_for_the_card_stays() -> None:
    theirs = settings("disabled")
    state, _ = reduced(DOCUMENT, {"ens3": Card(theirs), "ens4": Card(settings(more={"route-metric": ("x", 50)}))})
    assert "ipv4" not in state["interfaces"][0]
    assert "auto-route-metric" not in state["interfaces"][1]["ipv4"]
    assert [route["next-hop-interface"] for route in state["routes"]["config"]] == ["ens4"]
    with_mtu = Card(with_section("802-3-ethernet", mtu=("u", 1300)))
    assert "mtu" not in reduced(DOCUMENT, {"ens3": with_mtu})[0]["interfaces"][0]


def test_a_card_without_dhcp_at_the_cloud() -> None:
    static = entry("ens3", "10.0.1.10") | {"ipv4": {
        "enabled": True, "dhcp": False, "address": [{"ip": "10.0.1.10", "prefix-length": 24}]}}
    ours, _ = reduced({"interfaces": [static]}, {"ens3": BOOTSTRAP})
    assert merged(BOOTSTRAP, ours, Added())["ipv4"]["method"] == ("s", "manual")
    theirs, _ = reduced({"interfaces": [static]}, {"ens3": Card(settings())})
    assert merged(Card(settings()), theirs, Added())["ipv4"]["method"] == ("s", "auto")


def test_a_card_that_only_has_another_metric_is_changed() -> None:
    """Or its default route would be worse than that of a card that has more to change."""
    only_dhcp = {"interfaces": [entry("ens3")]}
    bootstrap = Card(BOOTSTRAP.settings, ours=True, metrics={"ipv4": 900})
    state, _ = reduced(only_dhcp, {"ens3": bootstrap})
    assert [str(each) for each in other_metrics(part(state, "ens3"), bootstrap)] == [
        "interfaces[0].ipv4.auto-route-metric: 900; 100"]
    changed = Card(BOOTSTRAP.settings, ours=True, metrics={"ipv4": 100, "ipv6": 900})
    assert other_metrics(part(state, "ens3"), changed) == []
    theirs = Card(settings(more={"route-metric": ("x", 50)}), metrics={"ipv4": 50})
    assert other_metrics(part(reduced(only_dhcp, {"ens3": theirs})[0], "ens3"), theirs) == []


def test_every_card_with_tables_has_the_rule_for_all() -> None:
    state, _ = reduced(DOCUMENT, {"ens3": BOOTSTRAP, "ens4": BOOTSTRAP})
    for name, source, table in (("ens3", "10.0.1.10/32", 30400), ("ens4", "10.0.2.10/32", 30401)):
        assert part(state, name)["route-rules"]["config"] == [FOR_ALL, rule(source, table)]
        assert [each["name"] for each in part(state, name)["interfaces"]] == [name]


def test_what_networkmanager_is_told() -> None:
    administrators = settings(more={
        "address-data": ("aa{sv}", [{"address": ("s", "192.0.2.9"), "prefix": ("u", 24)}]),
        "dns-data": ("as", ["192.0.2.53"]),
        "route-data": ("aa{sv}", [{"dest": ("s", "192.0.3.0"), "prefix": ("u", 24), "next-hop": ("s", "192.0.2.1")}])})
    card = Card(administrators)
    state, _ = reduced(DOCUMENT, {"ens3": card})
    told = merged(card, part(state, "ens3"), Added())
    ipv4 = told["ipv4"]
    assert [row["address"][1] for row in ipv4["address-data"][1]] == ["192.0.2.9", "10.0.1.10", "10.0.1.11"]
    assert ipv4["route-data"][1][1] == {
        "dest": ("s", "0.0.0.0"), "prefix": ("u", 0), "next-hop": ("s", "10.0.1.1"), "metric": ("u", 10),
        "table": ("u", 30400)}
    assert ipv4["routing-rules"][1] == [
        {"family": ("i", 2), "priority": ("u", 30350), "table": ("u", 254), "suppress-prefixlength": ("i", 0)},
        {"family": ("i", 2), "priority": ("u", 30400), "table": ("u", 30400), "from": ("s", "10.0.1.10"),
         "from-len": ("y", 32)}]
    assert ipv4["dns-data"] == ("as", ["192.0.2.53"]) and "addresses" not in ipv4
    assert told["802-3-ethernet"]["mtu"] == ("u", 1460)
    # The profile itself is not what was changed: told twice, nothing is there twice.
    assert merged(card, part(state, "ens3"), Added()) == told
    assert "routing-rules" not in administrators["ipv4"]


def test_strangers_are_told_too_and_each_address_once() -> None:
    state, _ = reduced(DOCUMENT, {"ens3": BOOTSTRAP})
    added = Added({"ipv6": ({"ip": "2001:db8::99", "prefix-length": 128},)},
                  ({"destination": "2001:db8:42::/48", "next-hop-interface": "ens3", "next-hop-address": "::"},))
    told = merged(BOOTSTRAP, part(state, "ens3"), added)["ipv6"]
    assert told["address-data"][1] == [{"address": ("s", "2001:db8::99"), "prefix": ("u", 128)}]
    assert told["route-data"][1] == [{"dest": ("s", "2001:db8:42::"), "prefix": ("u", 48)}]


def test_the_addresses_that_the_network_brings() -> None:
    """Those with a rule, unless they are static, or the card's profile asks for none."""
    v6 = {"2001:db8::10": 30200, "2001:db8:0::11": 30200}
    state = {"interfaces": [{"name": "ens3", "ipv4": {"address": [{"ip": "10.0.1.11", "prefix-length": 24}]},
                             "ipv6": {"address": [{"ip": "2001:db8::11", "prefix-length": 128}]}}],
             "route-rules": {"config": [
                 FOR_ALL, rule("10.0.1.10/32", 30200), rule("10.0.1.11/32", 30200), {**rule("10.0.1.9/32", 1),
                                                                                   "state": "absent"},
                 *(rule(f"{ip}/128", table, "ipv6") for ip, table in v6.items())]}}
    assert leased(state, Card(settings())) == {"10.0.1.10", "2001:db8::10"}
    assert leased(state, Card(settings("manual"))) == {"2001:db8::10"}
    state["interfaces"][0]["ipv6"]["dhcp"] = False  # type: ignore[index]
    assert leased(state, Card(settings())) == {"10.0.1.10"}


def test_what_has_to_be_made_first_needs_a_profile_of_its_own() -> None:
    assert fits(DOCUMENT)
    assert not fits({"interfaces": [*DOCUMENT["interfaces"], {"name": "ens3.2", "type": "vlan", "state": "up"}]})
    assert not fits({"interfaces": []})
    assert not fits(DOCUMENT | {"dns-resolver": {"config": {"server": ["192.0.2.53"]}}})


def test_a_rule_without_an_address_is_shared() -> None:
    tied = {"priority": ("u", 30400), "table": ("u", 30400), "from": ("s", "10.0.1.10"), "from-len": ("y", 32)}
    loose = {"priority": ("u", 30350), "table": ("u", 254), "suppress-prefixlength": ("i", 0)}
    ens3 = settings(more={"routing-rules": ("aa{sv}", [tied, loose])})
    ens4, off = settings(), settings("disabled")
    changed = with_shared_rules({"ens3": ens3, "ens4": ens4, "ens5": off})
    assert changed == {"ens4": {**ens4, "ipv4": {**ens4["ipv4"], "routing-rules": ("aa{sv}", [loose])}}}
    assert with_shared_rules({"ens3": ens3, **changed}) == {}
