"""nm-cloud-setup and homeport, each on a machine of its own at the same cloud: what the kernel then has.

Run by name: `make test-peers`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import peers
from container import Machine, Nic
from differences import Fact, Reason, Reasons, compare
from metadata import Served, cases, read_case
from trees import REPOSITORY, prepared
from world import World

pytestmark = [pytest.mark.peers, pytest.mark.skipif(
    not prepared().get("PEER_nm_cloud_setup"), reason="nm-cloud-setup is not there (tools/setup peer-nm-cloud-setup)")]

# By the names of their rows in docs/peers.md; tight, so that what is new is seen.
REASONS = [
    Reason("metrics", r"ens4 route -[46]: only there unicast .* (kernel|dhcp|ra) metric 101( scope link)?$"),
    Reason("metrics", r"ens4 route -[46]: only here unicast .* (kernel|dhcp|ra) metric (200|900)( scope link)?$"),
    Reason("metrics", r"aws-one-address: ens3 route -4: only (there .* metric 100|here .* metric 900)( scope link)?$"),
    Reason("order", r"aws-listed-otherwise\S*: ens3 route -4: only (there .* table 30[24]01|here .* table 30[24]00) "),
    Reason("order", r"aws-listed-otherwise\S*: ens4 route -4: only (there .* table 30[24]00|here .* table 30[24]01) "),
    Reason("order", r"aws-listed-otherwise\S*: rules : only (there|here) priority 30[24]0[01] src 10\.0\.[12]\.10 "),
    Reason("card without ipv4", r"aws-nic-without-ipv4: nm-cloud-setup fails: .*timeout"),
    Reason("card without ipv4", r"aws-nic-without-ipv4\S*: (ens3 |rules : only here .* src (10\.0\.1\.1[01]|all) )"),
    Reason("card without ipv4", r"aws-nic-without-ipv4-kept: ens4 (address|route -4): only there .*10\.0\.2\.(10|255)"),
    Reason("ipv6", r"aws-nic-without-ipv4\S*: ens4 route -6: only here unicast default gateway \S+ table 30401 "),
    Reason("ipv6", r"aws-nic-without-ipv4\S*: rules : only here priority 30[24]01 src 2001:db8:7::20 table 30[24]01$"),
    Reason("nothing forwarded", r"gcp-nothing-forwarded: nm-cloud-setup fails: .*no forwarded ip"),
    Reason("nothing forwarded", r"gcp-nothing-forwarded\S*: ens4 (address|route -4): only here (local )?203"),
    Reason("forwarded addresses", r"gcp(-kept)?: ens[34] address: only here 203\.0\.113\.[78]/32"),
    Reason("forwarded addresses", r"gcp(-kept)?: ens[34] route -4: only (there|here) local 203"),
    Reason("slaac", r"aws-nic-without-ipv4\S*: ens4 (address|route -6): only (there|here) (local )?2001:db8:7:0:\S+"),
    Reason("mtu", r"gcp(-kept)?: ens[34] mtu: there 1500, here 1460$"),
    Reason("mtu", r"oraclecloud(-kept)?: ens[34] mtu: there 1500, here 9000$"),
]
FIRST, SECOND = "00:00:5e:00:53:01", "00:00:5e:00:53:02"


@pytest.fixture
def nics(_the_world: World) -> Iterator[tuple[Nic, ...]]:
    """Two cards, each in a subnet with DHCP that gives it its primary address."""
    world = _the_world
    world.calm_down()
    found = []
    for name, mac, prefix in (("ens3", FIRST, "10.0.1"), ("ens4", SECOND, "10.0.2")):
        lan = world.add_lan(f"peer{prefix[-1]}", [f"{prefix}.1/24", f"{prefix}.253/24"])
        found.append(Nic(name, mac, lan))
    yield tuple(found)
    world.calm_down()


def test_nm_cloud_setup(_the_world: World, _installed: None, nics: tuple[Nic, ...]) -> None:
    """Also where homeport keeps on disk what it is told: that comes to the same."""
    world = _the_world
    reasons = Reasons(REPOSITORY / "docs" / "peers.md", "nm-cloud-setup", REASONS)
    for name in cases():
        case = read_case(name)
        if not case.nm_cloud_setup:
            continue
        serve_dhcp(nics, case.advertised)
        with Served(world, case):
            with Machine(world, f"{name}-there", nics=nics, installed=False) as machine:
                peers.install_nm_cloud_setup(machine)
                machine.boot()
                log = peers.nm_cloud_setup(machine, case)
                there = settled(machine)
            reasons.take(_failures(name, log))
            for persist in ("auto", "yes"):
                with Machine(world, f"{name}-{persist}", nics=nics) as machine:
                    boot = machine.boot(f"ignition.platform.id={case.platform}", f"homeport.platform-persist={persist}")
                    assert boot.status["rung"] == "assigned", machine.story()
                    reasons.take(compare(f"{name}{'-kept' * (persist == 'yes')}", there, settled(machine)))
    if faults := reasons.faults():
        pytest.fail("\n".join(faults), pytrace=False)


def serve_dhcp(nics: tuple[Nic, ...], advertised: str) -> None:
    """Each subnet's only lease is the primary address of its card; one may have a router for IPv6."""
    for number, nic in enumerate(nics, 1):
        assert nic.lan
        if advertised and number == 2:
            nic.lan.add_address(f"{advertised}1/64")
        extra = ["--enable-ra", f"--dhcp-range={advertised},ra-only"] if advertised and number == 2 else []
        nic.lan.dhcp.start(first=f"10.0.{number}.10", last=f"10.0.{number}.10", lease=3600, router=f"10.0.{number}.1",
                           dns="192.0.2.53", extra=extra)


def _failures(name: str, log: str) -> list[str]:
    """It ends with status 0 whatever happens."""
    last = log.splitlines()[-1].partition("> ")[2]
    return [] if "changes were applied" in last else [f"{name}: nm-cloud-setup fails: {last.strip()}"]


def settled(machine: Machine) -> dict[str, dict[str, Fact]]:
    """What is there once nothing has changed for a second: NetworkManager reapplies a profile at its leisure."""
    quiet, last = 0, kernel(machine)
    while quiet < 3:
        time.sleep(0.3)
        now = kernel(machine)
        quiet, last = (quiet + 1 if now == last else 0), now
    return last


def kernel(machine: Machine) -> dict[str, dict[str, Fact]]:
    """Addresses and routes by card, and the rules."""
    links = machine.sh("ip -d -j address show").json()
    facts: dict[str, dict[str, Fact]] = {
        link["ifname"]: {"mtu": str(link["mtu"]), "address": frozenset(map(_address, link["addr_info"]))}
        for link in links if link["ifname"] != "lo"}
    for family in ("-4", "-6"):
        routes = machine.sh(f"ip -d -j {family} route show table all").json()
        for nic in facts:
            facts[nic][f"route {family}"] = frozenset(
                _route(route) for route in routes if route.get("dev") == nic and not _of_link_local(route))
    rules = [rule for family in ("-4", "-6") for rule in machine.sh(f"ip -d -j {family} rule show").json()]
    facts["rules"] = {"": frozenset(map(_rule, rules))}
    return facts


def _address(entry: dict[str, Any]) -> str:
    local = "fe80::*" if entry["local"].startswith("fe80:") else entry["local"]
    return f"{local}/{entry['prefixlen']}" + "".join(
        f" {flag}" for flag in ("dynamic", "noprefixroute", "secondary") if entry.get(flag))


def _route(route: dict[str, Any]) -> str:
    words = [route.get("type", "unicast"), route["dst"]]
    words += [f"{key} {route[key]}" for key in ("gateway", "prefsrc", "table", "protocol", "metric", "scope", "mtu")
              if route.get(key) not in (None, "main", "global")]
    return " ".join(words)


def _of_link_local(route: dict[str, Any]) -> bool:
    """The kernel's own routes to link-local addresses come when duplicates have been looked for: seconds later."""
    return bool(route.get("table") == "local" and route["dst"].startswith("fe80::"))


def _rule(rule: dict[str, Any]) -> str:
    words = [f"{key} {rule[key]}" for key in ("priority", "src", "srclen", "dst", "table", "suppress_prefixlen")
             if key in rule]
    return " ".join(words)
