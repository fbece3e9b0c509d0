"""The one place where names in a document become this machine's network cards.

Knows that a name in a document may be the kernel's, or the document's own for a card that it tells by MAC,
PCI address or `match:`.  Every card is looked up once, then every reference is rewritten (`references.py`):
what leaves here names interfaces as the kernel does, and nothing is left for nmstate to look up, whose own
choice between two cards of one MAC changes from run to run.  A document's own names win over the kernel's,
so that a document may swap two.  Total: whatever the tree, `resolve` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from homeport.core import references
from homeport.core.complaint import Complaint, Complaints, Path, render_path
from homeport.core.facts import Nic
from homeport.core.names import MAX_NAME, fits_kernel, shorten
from homeport.core.nicmatch import (
    BY_MAC,
    BY_PCI,
    LONGEST,
    Wanted,
    can_be_card,
    candidates,
    describe,
    parse_wanted,
)
from homeport.core.showing import printable, show

# Types that nmstate makes, or that are no card: their name is the document's to choose. Any other type is a
# card's (nmstate takes an unknown type for ethernet).
MADE = frozenset((
    "bond", "linux-bridge", "dummy", "hsr", "ip-tunnel", "loopback", "mac-vlan", "mac-vtap", "ovs-bridge",
    "ovs-interface", "veth", "vlan", "vrf", "vxlan", "tun", "macsec", "ipsec", "xfrm", "ipvlan"))
# Not kernel interfaces: one of those may have the same name (an OVS bridge and its own port do).
USERSPACE = frozenset(("ovs-bridge", "ipsec"))


@dataclass(frozen=True)
class Resolved:
    """A network state in the kernel's names.

    `names` has the kernel's name for each name of the document, `nics` the machine's cards (with their
    permanent MACs) by kernel name.  `missing` are the cards that the document needs and that could still
    appear, for a person to read.  `complaints` has them too, so whoever doesn't want to wait needs only
    these.  `notes` are changes that a person should know of.
    """

    config: dict[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    nics: Mapping[str, Nic] = field(default_factory=dict)
    complaints: tuple[Complaint, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of `interfaces`, as far as its name goes; `name` is "" if it has none that is text."""

    path: Path
    data: dict[str, Any]
    name: str
    kind: str
    up: bool
    wanted: Wanted | None
    is_card: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of an entry: its kernel name, "" to leave it out, and the card if it is one."""

    name: str
    nic: Nic | None = None


def resolve(config: dict[str, Any], nics: Sequence[Nic], *, offline: bool = False) -> Resolved:
    """`config`, a network state or a policy, in the names that this machine's kernel gives its cards.

    With `offline` the `nics` are not all that the machine will have: names that are not among them are
    taken as they stand, and what identifies a card that is not among them is left for nmstate.
    """
    key = next((key for key in ("desired", "desiredState") if isinstance(config.get(key), dict)), None)
    if key is None:
        return _Resolver(config, nics, (), offline).resolve()
    inner = _Resolver(config[key], nics, (key,), offline).resolve()
    return Resolved({**config, key: inner.config}, inner.names, inner.nics, inner.complaints, inner.missing,
                    inner.notes)


class _Resolver:
    """One resolving: what is found on the way."""

    def __init__(self, state: dict[str, Any], nics: Sequence[Nic], path: Path, offline: bool) -> None:
        self.state = state
        self.path = path
        self.offline = offline
        # In one order, so that complaints too are the same in whatever order the cards come.
        self.nics = sorted(nics, key=lambda nic: (nic.name, nic.index))
        self.by_name = {nic.name: nic for nic in self.nics}
        self.candidates = f"one of {candidates(self.nics)}"
        self.complaints = Complaints()
        self.missing: dict[str, None] = {}
        self.notes: list[str] = []

    def resolve(self) -> Resolved:
        entries = list(self._entries())
        choices = [self._choose(entry) for entry in entries]
        self._complain_of_doubles(entries, choices)
        names = self._names(entries, choices)
        self._need_parts(entries, names)
        return Resolved(
            config=self._rewrite(entries, choices, names), names=names,
            nics={nic.name: nic for nic in self.nics if can_be_card(nic)},
            complaints=tuple(dict.fromkeys(self.complaints)), missing=tuple(self.missing),
            notes=tuple(self.notes))

    # -- understanding ------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[Entry]:
        interfaces = self.state.get("interfaces")
        for index, data in enumerate(interfaces if isinstance(interfaces, list) else ()):
            if isinstance(data, dict) and data:
                yield self._entry((*self.path, "interfaces", index), data)

    def _entry(self, path: Path, data: dict[str, Any]) -> Entry:
        name, kind = _text(data, "name"), _text(data, "type")
        wanted: Wanted | None = None
        if kind not in MADE or kind == "veth":
            wanted, complaints = parse_wanted(data, path)
            self.complaints += complaints
        elif "match" in data:
            self.complaints.append(Complaint(
                render_path((*path, "match")), show(data["match"]),
                f"no 'match' here: it finds a card, and a {kind} is made"))
        made = kind in MADE or isinstance(data.get("veth"), dict) or _is_infiniband_child(data)
        return Entry(path=path, data=data, name=name, kind=kind, up=data.get("state", "up") == "up",
                     wanted=wanted, is_card=not made)

    # -- choosing -----------------------------------------------------------------------------------------

    def _choose(self, entry: Entry) -> Choice:
        if entry.wanted is not None:
            return self._choose_by_hardware(entry, entry.wanted)
        if entry.name in self.by_name:
            return Choice(entry.name, self.by_name[entry.name])
        if not entry.name or references.card_of_vf(entry.name) or "{{" in entry.name:
            return Choice(entry.name)
        # What is to go and has no card's name is what an earlier document made, under the name it got then.
        if not entry.is_card or (entry.data.get("state") == "absent" and not fits_kernel(entry.name)):
            return Choice(self._made_name(entry))
        return self._choose_absent(entry, entry.name, (*entry.path, "name"))

    def _choose_by_hardware(self, entry: Entry, wanted: Wanted) -> Choice:
        found = wanted.find(self.nics)
        where = (*entry.path, "match" if "match" in entry.data else str(entry.data.get("identifier")))
        if len(found) == 1:
            return Choice(found[0].name, found[0])
        if not found:
            shown = f"{entry.name} ({wanted})" if entry.name else str(wanted)
            return self._choose_absent(entry, shown, where)
        self.complaints.append(Complaint(
            render_path(where), f"{wanted} is {' and '.join(map(describe, found))}",
            "an 'identifier: pci-address', or a 'match' with a driver or PCI address that only one has"))
        return Choice(entry.name)

    def _choose_absent(self, entry: Entry, shown: str, where: Path) -> Choice:
        """The card of `entry` isn't there: needed if it is to be up, and no loss otherwise."""
        if entry.up:
            self._miss(shown, where, entry.wanted)
        elif not self.offline and (entry.wanted or entry.data.get("state") != "absent"):
            self.notes.append(f"{render_path(entry.path)}: {shown} is not here and need not be: left out")
            return Choice("")
        return Choice(entry.name)

    def _miss(self, shown: str, where: Path, wanted: Wanted | None = None) -> None:
        if self.offline:
            return
        if wanted is None and not fits_kernel(shown):
            self.complaints.append(Complaint(
                render_path(where), show(shown),
                f"a card's name, which has at most {MAX_NAME} characters; or tell the card by its MAC"))
            return
        shown = printable(shown, LONGEST)
        self.missing[shown] = None
        instead = wanted.instead(self.nics) if wanted else ""
        self.complaints.append(Complaint(
            render_path(where), f"{shown} is not on this machine{instead}", self.candidates))

    def _made_name(self, entry: Entry) -> str:
        """The name of an interface that nmstate makes, shortened where it is one of the kernel's."""
        of_ovs = any(isinstance(entry.data.get(key), dict) for key in ("patch", "dpdk"))
        # NetworkManager insists on the name of an InfiniBand child: its base and its key.
        if of_ovs or entry.kind == "ipsec" or _is_infiniband_child(entry.data) or fits_kernel(entry.name):
            return entry.name
        name = shorten(entry.name)
        self.notes.append(
            f"{render_path((*entry.path, 'name'))}: {show(entry.name)} has more than {MAX_NAME} characters; "
            f"it is called {name}, here and on every machine")
        return name

    # -- names --------------------------------------------------------------------------------------------

    def _complain_of_doubles(self, entries: list[Entry], choices: list[Choice]) -> None:
        """Two entries that turn out to be one interface. Two with the same name are for others to refuse."""
        first: dict[str, Entry] = {}
        for entry, choice in zip(entries, choices, strict=True):
            not_found = entry.wanted is not None and choice.nic is None
            if not choice.name or not_found or entry.kind in USERSPACE:
                continue
            other = first.setdefault(choice.name, entry)
            if other is not entry and (other.wanted or entry.wanted or other.name != entry.name):
                card = describe(choice.nic) if choice.nic else choice.name
                self.complaints.append(Complaint(
                    render_path((*entry.path, "name")),
                    f"{show(entry.name)} is {card}, as {render_path(other.path)} is",
                    "one entry for one interface"))

    def _names(self, entries: list[Entry], choices: list[Choice]) -> dict[str, str]:
        """Document name -> kernel name: entries' own names first, then profile and alternative names."""
        names: dict[str, str] = {}
        for aliases in (_own_name, _profile_name, _alternative_names):
            for entry, name in zip(entries, [choice.name for choice in choices], strict=True):
                for alias in aliases(entry.data):
                    # Only an entry's own name may mean another card than the kernel's of that name.
                    if name and (aliases is _own_name or alias not in self.by_name):
                        names.setdefault(alias, name)
        for entry, choice in zip(entries, choices, strict=True):
            # Whoever is left out makes no peer.
            for peer in references.find(entry.data, ("veth", "peer")) if not _left_out(entry, choice) else ():
                names.setdefault(peer.name, shorten(peer.name))
        return names

    def _need_parts(self, entries: list[Entry], names: Mapping[str, str]) -> None:
        """Ports, bases and next hops that no entry declares must be on the machine."""
        known = {*names.values(), *self.by_name}
        parts = ((entry.path, reference) for entry in entries if entry.up and entry.kind != "ovs-bridge"
                 for reference in references.find_parts(entry.data))
        hops = ((self.path, reference) for reference in references.find(self.state, references.ROUTE)
                if not self._is_removed(reference.path))
        for path, reference in chain(parts, hops):
            name = names.get(reference.name, reference.name)
            if name not in known and "{{" not in name:
                self._miss(name, (*path, *reference.path))

    def _is_removed(self, path: Path) -> bool:
        route = self.state["routes"]["config"][path[2]]
        return route.get("state") in ("absent", "ignore")

    # -- writing ------------------------------------------------------------------------------------------

    def _rewrite(self, entries: list[Entry], choices: list[Choice],
                 names: Mapping[str, str]) -> dict[str, Any]:
        def rename(name: str) -> str:
            return names.get(name, name)

        state = references.rewrite_state(self.state, rename)
        if not isinstance(self.state.get("interfaces"), list):
            return state
        chosen = {entry.path[-1]: (entry, choice) for entry, choice in zip(entries, choices, strict=True)}
        interfaces: list[Any] = []
        for index, data in enumerate(self.state["interfaces"]):
            if index not in chosen:
                interfaces.append(data)
                continue
            entry, choice = chosen[index]
            if _left_out(entry, choice):
                continue
            interfaces.append(references.rewrite_interface(_renamed(entry, choice, rename), rename))
        return {**state, "interfaces": interfaces}


def _left_out(entry: Entry, choice: Choice) -> bool:
    return bool(entry.name) and not choice.name


def _renamed(entry: Entry, choice: Choice, rename: Callable[[str], str]) -> dict[str, Any]:
    """The entry under its kernel name, without what was only there to find its card."""
    if entry.wanted is None:
        name = references.rename_reference(entry.name, rename) if references.card_of_vf(entry.name) else choice.name
        return entry.data if name == entry.name else {**entry.data, "name": name}
    data = dict(entry.data)
    data.pop("match", None)
    if choice.nic is None:
        return {**data, **entry.wanted.as_identifier()}
    identifier = data.pop("identifier", None)
    if identifier in (BY_MAC, BY_PCI):
        data.pop(identifier, None)
    return {**data, "name": choice.name}


def _own_name(data: Mapping[str, Any]) -> Iterator[str]:
    yield from _words(data.get("name"))


def _profile_name(data: Mapping[str, Any]) -> Iterator[str]:
    yield from _words(data.get("profile-name"))


def _alternative_names(data: Mapping[str, Any]) -> Iterator[str]:
    for reference in references.find(data, ("alt-names", "*", "name")):
        yield reference.name


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _is_infiniband_child(data: Mapping[str, Any]) -> bool:
    return any(references.find(data, ("infiniband", "base-iface")))
