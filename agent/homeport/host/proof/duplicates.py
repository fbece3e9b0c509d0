"""Whether every static address is in force, and no other host holds it.

IPv6: the kernel's duplicate address detection (RFC 4862) is over, and passed; NetworkManager takes a refused
address away and tries again, so the kernel's word is seldom seen, and whoever answers for a missing address is
asked. IPv4: ARP probes of our own (RFC 5227), since NetworkManager 1.42 has none by default, and 1.52 only drops
the address without saying who holds it. An interface without carrier waits for one; it is passed over only if
another one of the document has carrier, because one unplugged cable of several must not take down the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from homeport.core.links import Link
from homeport.host.proof.evidence import Evidence
from homeport.host.proof.kernel import Network, read_network
from homeport.host.proof.neighbours import ARPHRD_ETHER, ask, find_conflicts
from homeport.host.proof.wanted import Static, Wanted

_POLL = 0.02
_MISSED = 1.0  # seconds after which an IPv6 address should be there, and between the questions for it
# Seconds for the holders of what the kernel has refused. To ask takes a link-local address, which after a
# reactivation is in its own detection for up to two of them (RFC 4862, 5.4.2).
_REFUSED = 3.0

_HELD = "give one of the two hosts another address, and apply again"
_NO_CABLE = "no cable, or the other end is down"
_ABSENT = "another host may hold it, or the interface is not up; see `journalctl -u NetworkManager`"


def probe(wanted: Wanted) -> frozenset[str]:
    """The interfaces whose static IPv4 addresses nobody else claims, among those that have carrier now.

    What is claimed is not among them: it is asked again when the address is in force, by `check_addresses`.
    """
    network = read_network()
    ready = _ready({item.interface for item in wanted.static}, set(), network)
    return frozenset(name for name in ready if not _conflicts(name, wanted.static, network))


def check_addresses(wanted: Wanted, deadline: float, probed_before: Iterable[str] = ()) -> list[Evidence]:
    """One row for each interface that must have an address, as soon as all is decided, or at `deadline`.

    Those in `probed_before` (see `probe`) are not probed again.
    """
    started = time.monotonic()
    names = list(dict.fromkeys([item.interface for item in wanted.static] + list(wanted.dynamic)))
    probed = set(probed_before)
    conflicts: dict[str, str] = {}
    missed = started + _MISSED
    while True:
        network = read_network()
        for name in _ready(names, probed, network):
            conflicts |= _conflicts(name, wanted.static, network)
            probed.add(name)
            network = read_network()
        if time.monotonic() >= missed or any(address.failed for address in network.addresses):
            conflicts |= _holders(wanted.static, network)
            missed = time.monotonic() + _MISSED
        rows = [_judge(name, wanted, network, conflicts, time.monotonic() - started) for name in names]
        fatal = any(row is not None and not row.ok for row in rows)
        if fatal or all(rows):
            return [row for row in rows if row is not None]
        if time.monotonic() >= deadline:
            return _give_up(names, wanted, network, rows, time.monotonic() - started)
        time.sleep(_POLL)


def _ready(names: Iterable[str], probed: set[str], network: Network) -> list[str]:
    """Interfaces with carrier that were not probed yet."""
    links = {name: network.link(name) for name in names if name not in probed}
    return [name for name, link in links.items() if link is not None and link.carrier]


def _conflicts(name: str, static: Iterable[Static], network: Network) -> dict[str, str]:
    link = network.link(name)
    own = {other.mac for other in network.links}
    mine = [item.ip for item in static if item.interface == name and ":" not in item.ip]
    if link is None or link.hardware != ARPHRD_ETHER or not mine:
        return {}
    return find_conflicts(link, mine, own)


def _holders(static: Iterable[Static], network: Network) -> dict[str, str]:
    """The MACs of the hosts that answer for IPv6 addresses that we do not use yet.

    0.1 s for each; what the kernel has refused is held by somebody, who gets more time to say so. We do not
    answer ourselves while an address is tentative (RFC 4862, 5.4).
    """
    found = {}
    own = {other.mac for other in network.links}
    started = time.monotonic()
    for item in static:
        link = network.link(item.interface)
        held = [address for address in network.on(item.interface) if address.ip == item.ip]
        if ":" not in item.ip or any(address.usable for address in held):
            continue
        if link is None or not link.carrier or link.hardware != ARPHRD_ETHER:
            continue
        mac = _who_answers(link, item.ip, started + _REFUSED * any(address.failed for address in held))
        if mac and mac not in own:
            found[item.ip] = mac
    return found


def _who_answers(link: Link, ip: str, until: float) -> str | None:
    while True:
        try:
            return ask(link, "", ip, until)
        except OSError:  # there is no link-local address to ask from, yet
            if time.monotonic() >= until:
                return None
        time.sleep(_POLL)


def _judge(name: str, wanted: Wanted, network: Network, conflicts: dict[str, str], seconds: float
           ) -> Evidence | None:
    """What is certain about an interface's addresses now; None if it may still change."""
    static = [item for item in wanted.static if item.interface == name]
    held = {address.ip: address for address in network.on(name)}
    for item in static:
        mac = conflicts.get(item.ip)
        if mac or (item.ip in held and held[item.ip].failed):
            return Evidence(f"address {item.ip}", False, name,
                            f"another host holds it{f', {mac}' if mac else ''}", seconds, _HELD)
    link = network.link(name)
    if link is None or link.carrier is False:
        return None
    if name in wanted.dynamic:
        got = [ip for ip, address in held.items() if address.usable and not ip.startswith("fe80:")]
        return Evidence("address", True, name, " ".join(got), seconds) if got else None
    if all(item.ip in held and held[item.ip].usable for item in static):
        text = " ".join(f"{item.ip}/{item.prefix}" for item in static)
        return Evidence(f"address {text}", True, name, "no other host holds it", seconds)
    return None


def _give_up(names: list[str], wanted: Wanted, network: Network, rows: list[Evidence | None],
             seconds: float) -> list[Evidence]:
    found = []
    for name, row in zip(names, rows, strict=True):
        link = network.link(name)
        dark = link is None or link.carrier is False
        text = " ".join(item.ip for item in wanted.static if item.interface == name)
        target = f"address {text}".strip()
        if row is not None:
            found.append(row)
        elif dark and any(row is not None for row in rows):
            found.append(Evidence(target, True, name, "no carrier, not checked", seconds))
        elif dark:
            found.append(Evidence(target, False, name, "no carrier", seconds, _NO_CABLE))
        elif name in wanted.dynamic:
            found.append(Evidence(target, False, name, "no address from the network", seconds,
                                  "no DHCP server or router answers there; wrong VLAN or port?"))
        else:
            found.append(Evidence(target, False, name, "not in force", seconds, _ABSENT))
    return found
