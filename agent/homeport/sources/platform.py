"""The `platform` source: the metadata of the cloud or provider that this machine is on, as a document.

Knows in which order things are asked and how long; what a platform is and what its metadata mean is in
`core/platforms/`, how one is asked in `sources/platforms/`.  The document that results is then checked,
applied, proven and kept like any other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.core.checks.reading import IPAddress, read_ip
from homeport.core.complaint import Complaint
from homeport.core.facts import Facts, Nic
from homeport.core.nicmatch import can_be_card, own_mac
from homeport.core.platforms import Platform, Situation, attributes, make
from homeport.core.platforms.reading import Fault
from homeport.core.platforms.recognition import Candidate, recognise
from homeport.core.platforms.shape import Drive, Files, Guestinfo, NotThere, Service, Want, Way, fixed
from homeport.core.showing import listing
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError, HomeportError, NoAssignment, SourceError, Unconfigured, Unreachable
from homeport.host.files import read_file
from homeport.sources.patience import SYSTEM_CLOCK, Clock, delays
from homeport.sources.platforms import drive, guestinfo, service
from homeport.sources.reply import Reply

if TYPE_CHECKING:
    from homeport.settings import Settings

NAME = "platform"
LAST_TRY = 1.0  # seconds before the deadline: later there is no time for an answer
DRIVE_WAIT = 5.0  # seconds in which a drive that belongs to the platform may still come
# Where a machine has its network by DHCP all the same, a boot without metadata must not take as long as others may;
# nm-cloud-setup gives up after 32 s at most. A refresh asks again as soon as the boot is over.
RECONCILING = 30.0  # seconds
# Seconds for a NIC that the metadata have and the kernel has not, or the other way round, as nm-cloud-setup waits. The
# latter from the beginning of all asking: 90-homeport holds a new card back for 20 s at most.
NIC_WAIT = 15.0
LIST_PAUSE = 1.0  # seconds
ROUTER_WAIT = 3.0  # seconds for a router's advertisement: it answers a card that comes up within one (RFC 4861, 6.2.6)
PAUSE = 0.1
MOST_NOTES = 50  # lines in the journal
RESOLV_CONF = ("/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf")

Session = service.Session | drive.Session | guestinfo.Session


@dataclass(frozen=True)
class Asker:
    """What all attempts have in common."""

    settings: Settings
    root: str | os.PathLike[str]
    deadline: float
    floor: float
    clock: Clock
    progress: Callable[[str], None]

    def left(self) -> float:
        return self.deadline - self.clock.monotonic()

    def take_link_local(self, facts: Facts) -> str:
        """What to tell of an attempt to get a link-local address; "" if there is nothing to tell."""
        from homeport.host.linklocal import take_address
        from homeport.host.networkmanager import Manager
        cards = [nic.name for nic in sorted(facts.nics, key=lambda nic: nic.index) if can_be_card(nic)]
        try:
            with Manager() as manager:
                name = take_address(manager, cards)
        except HomeportError as error:
            return f"no link-local address: {error}"
        return f"{name} gets a link-local address to ask from" if name else ""

    def session(self, way: Way) -> Session:
        if isinstance(way, Service):
            return service.Session(way, self.settings, self.clock, self.left, root=self.root, floor=self.floor)
        if isinstance(way, Drive):
            return drive.Session(way, self.root)
        assert isinstance(way, Guestinfo)
        return guestinfo.Session(way, self.left)


def fetch(settings: Settings, facts: Facts, *, root: str | os.PathLike[str] = "/", deadline: float, floor: float = 0.0,
          clock: Clock = SYSTEM_CLOCK, progress: Callable[[str], None] = lambda line: None) -> Reply:
    """The document that the platform's metadata make, asked for until `deadline` (of `clock.monotonic`).

    Raises Unconfigured on a machine that is on no platform known here, or whose platform has nothing for it;
    NoAssignment if it has nothing although somebody said that this is the platform; another SourceError
    if it can't be asked; DocumentError for metadata that can't be used.
    """
    asker = Asker(settings, root, deadline, floor, clock, progress)
    listed_until = clock.monotonic() + NIC_WAIT
    return reply(asker, *find(asker, facts), facts, listed_until)


def read_instance(settings: Settings, facts: Facts, *, root: str | os.PathLike[str] = "/", deadline: float,
                  clock: Clock = SYSTEM_CLOCK, progress: Callable[[str], None] = lambda line: None,
                  ) -> tuple[Platform, Files]:
    """The platform that this machine is on, and what it says beyond the network. Raises SourceError as `fetch`."""
    candidate, files, _ = find(Asker(settings, root, deadline, 0.0, clock, progress), facts, instead=attributes.wants)
    return candidate.platform, files


def find(asker: Asker, facts: Facts, instead: Callable[[Platform], Sequence[Want]] | None = None,
         ) -> tuple[Candidate, Files, Session | None]:
    """The first candidate that has metadata, and those; with `instead` other ones than its network's."""
    found = candidates(asker.settings, facts, asker.root)
    if found and all(is_volatile(asker.settings, candidate.platform) for candidate in found):
        asker = replace(asker, deadline=min(asker.deadline, asker.clock.monotonic() + RECONCILING))
    missing = []
    for candidate in found:
        ways: Sequence[Way] = candidate.platform.ways
        if instead is not None:
            wants = fixed(*instead(candidate.platform))
            ways = [replace(way, wants=wants) for way in (*ways, *candidate.platform.elsewhere)]
            # An attribute that cannot be had is no reason to have none.
            ways = [replace(way, by_piece=True) if isinstance(way, Service) else way for way in ways]
        try:
            return candidate, *ask(asker, candidate, ways, facts)
        except NotThere as error:
            missing.append(f"{candidate.platform.title} (by {candidate.reason}): no {error.path or 'metadata'}")
    if not found:
        raise Unconfigured("This machine is on no platform that is known here", "name it with platform=")
    kind = NoAssignment if any(candidate.surely for candidate in found) else Unconfigured
    raise kind(f"The platform has nothing for this machine: {'; '.join(missing)}")


def candidates(settings: Settings, facts: Facts, root: str | os.PathLike[str] = "/") -> list[Candidate]:
    """The platforms that this machine may be on, in the order in which they are asked. Raises SettingsError."""
    if settings.platform == "off":
        return []
    return recognise(settings.platform, facts.cmdline, facts.smbios, drive.labels(root))


def ask(asker: Asker, candidate: Candidate, ways: Sequence[Way], facts: Facts) -> tuple[Files, Session | None]:
    """What the first way gives that has metadata, in rounds of one attempt for each.

    Raises NotThere if none has any, SourceError if one that may have some can't be asked, DocumentError for metadata
    that lead nowhere.
    """
    if not ways:
        return {}, None
    asker.progress(f"asking {candidate.platform.title}, known by {candidate.reason}")
    sessions = [asker.session(way) for way in ways]
    drives_until = asker.clock.monotonic() + min(DRIVE_WAIT, asker.left() - LAST_TRY)
    verdict: NotThere | SourceError = NotThere()
    has_link_local = False
    for delay in delays(asker.clock.chance):
        silent: Unreachable | None = None
        undecided = []
        for session in sessions:
            try:
                return session.read(), session
            except Unreachable as error:
                silent = error
                undecided.append(session)
                if not has_link_local and isinstance(session, service.Session) and session.service.link_local:
                    if told := asker.take_link_local(facts):
                        asker.progress(told)
                    has_link_local = bool(told)
            except SourceError as error:
                verdict = error
            except Fault as fault:
                raise DocumentError(
                    [fault.complaint], f"this is what the metadata of {candidate.platform.title} say") from fault
            except NotThere as error:
                verdict = verdict if isinstance(verdict, SourceError) else error
                # udev may still be at work on a drive.
                if isinstance(session, drive.Session) and asker.clock.monotonic() < drives_until:
                    undecided.append(session)
        sessions = undecided
        if not sessions:
            break
        if silent is not None:
            delay = max(delay, silent.retry_after or 0)
            if delay + LAST_TRY > asker.left():
                raise silent
            asker.progress(f"{silent.message}; asking again in {delay:.1f} s")
        asker.clock.sleep(delay)
    raise verdict


def reply(asker: Asker, candidate: Candidate, files: Files, session: Session | None, facts: Facts,
          listed_until: float) -> Reply:
    """The document. Cards that the metadata have and the machine has not are waited for, a bounded time."""
    from homeport.host import nics

    platform, cards = candidate.platform, facts.nics
    files = with_late_cards(asker, platform, files, session, cards, listed_until)
    begun = time.monotonic()
    end, router_end = begun + min(NIC_WAIT, asker.left()), begun + min(ROUTER_WAIT, asker.left())
    while True:
        made = make(platform, files, Situation(
            cards, asker.settings.policy_routing == "auto", servers(asker.root), routers(cards)))
        if made.absent and nics.wait_for_change(end):
            cards = nics.read_nics(Path(asker.root))
        elif made.without_router and time.monotonic() < router_end:
            time.sleep(PAUSE)
        else:
            break
    if made.absent and "config" not in made.tree:
        # That nothing is assigned would take down what is in force; this is another machine's, or one half plugged in.
        raise DocumentError(
            [Complaint("", f"only network cards that are not in this machine: {listing(made.absent)}", "one that is")],
            f"this is what the metadata of {platform.title} say")
    for note in made.notes[:MOST_NOTES]:
        asker.progress(f"{platform.title}: {note}")
    if len(made.notes) > MOST_NOTES:
        asker.progress(f"{platform.title}: {len(made.notes) - MOST_NOTES} more of that kind")
    return Reply(
        render_yaml(made.tree).encode(), source=f"{NAME} {platform.name}", url=session.place if session else "",
        content_type="application/yaml", over_network=isinstance(session, service.Session),
        volatile=is_volatile(asker.settings, platform), reconciles=platform.reconciles, partial=made.partial)


def with_late_cards(asker: Asker, platform: Platform, files: Files, session: Session | None, cards: Sequence[Nic],
                    until: float) -> Files:
    """The metadata, asked for again while cards of this machine are missing in a list of MACs: one that was plugged in
    shows up there seconds later.
    """
    if not (isinstance(session, service.Session) and session.service.by_piece):
        return files
    until = min(until, asker.clock.monotonic() + asker.left() - LAST_TRY)
    told = False
    while (missing := unlisted(cards, files)) and asker.clock.monotonic() + LIST_PAUSE <= until:
        if not told:
            missing = [name for name in missing if name not in unmanaged()]
            if not missing:
                break
            asker.progress(f"{platform.title}: does not list {', '.join(missing)} yet, asking again")
            told = True
        asker.clock.sleep(LIST_PAUSE)
        try:
            files = session.read_again()
        except (NotThere, SourceError, DocumentError, Fault) as error:
            asker.progress(f"{platform.title}: {error}, going on with what it said before")
    return files


def unlisted(cards: Sequence[Nic], files: Files) -> list[str]:
    """The cards in use whose MACs the metadata don't have. A card at a USB port is none of a cloud's."""
    found = [card for card in cards if can_be_card(card) and own_mac(card) and not card.usb]
    # In a container, which has none, the ends of its own cables.
    found = [card for card in found if not card.virtual] or found
    text = b"\n".join(data for data in files.values() if data).lower()
    return [card.name for card in found if card.carrier and own_mac(card).encode() not in text]


def unmanaged() -> frozenset[str]:
    """The interfaces that NetworkManager leaves alone, as far as it can be asked."""
    from homeport.host.networkmanager import Manager
    try:
        with Manager() as manager:
            return frozenset(device.interface for device in manager.devices() if not device.managed)
    except HomeportError:
        return frozenset()


def is_volatile(settings: Settings, platform: Platform) -> bool:
    """Whether what this platform says is not to be kept on disk."""
    return settings.platform_persist == "no" or (settings.platform_persist == "auto" and platform.reconciles)


def routers(cards: Sequence[Nic]) -> dict[str, IPAddress]:
    """The IPv6 routers in use, by the MACs of the cards that they are on: those that were advertised.

    They are in the main table. The others have our own routes, by a router that may be an old one by now: it counts
    while there is none in the main table, which NetworkManager empties for a moment whenever it reapplies IPv6.
    """
    from homeport.core.former import MAIN_TABLE
    from homeport.host.proof.kernel import read_network
    try:
        network = read_network()
    except OSError:
        return {}
    macs = {card.index: own_mac(card) for card in cards}
    routes = sorted(network.routes, key=lambda route: route.table == MAIN_TABLE)  # the later one counts
    found = {macs.get(route.index, ""): read_ip(route.gateway) for route in routes
             if route.default and ":" in route.gateway}
    return {mac: ip for mac, ip in found.items() if mac and ip is not None}


def servers(root: str | os.PathLike[str]) -> tuple[IPAddress, ...]:
    """The DNS servers that the machine has now; a local cache is none."""
    for path in RESOLV_CONF:
        try:
            text = (read_file(root, path, 1 << 16) or b"").decode("ascii", "replace")
        except OSError:
            continue
        words = [line.split() for line in text.splitlines() if line.startswith("nameserver")]
        found = [read_ip(each[1]) for each in words if len(each) > 1]
        if found:
            return tuple(ip for ip in found if ip is not None and not ip.is_loopback)
    return ()
