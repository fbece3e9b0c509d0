"""Which network card is meant: by MAC, by PCI address, by driver.

Knows what a document may say of a card and which interfaces can be one.  A permanent MAC counts; the
current one only of a card that has no permanent one, and only if it was not made up at random.  Refuses to
guess: two cards that fit are both named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from homeport.core.complaint import Complaint, Path, render_path
from homeport.core.facts import Nic
from homeport.core.mac import normalise_mac
from homeport.core.showing import listing, nearest, printable, show

# As it may be written in `match:`, and the criterion that it is.
KEYS = {"mac": "mac", "mac-address": "mac", "permanent-mac-address": "mac",
        "pci": "pci", "pci-address": "pci", "path": "pci", "driver": "driver", "name": "name"}
BY_MAC, BY_PCI = "mac-address", "pci-address"
# NET_ADDR_RANDOM and NET_ADDR_STOLEN (include/uapi/linux/netdevice.h): another boot, another MAC; and the
# MAC of an interface below.
NOT_ITS_OWN = (1, 2)
LONGEST = 200  # characters of a document in one complaint
# The upper one of two cards that the kernel drives as one under the same MAC: it is the one to configure.
UPPER_DRIVERS = ("hv_netvsc", "net_failover")


@dataclass(frozen=True)
class Wanted:
    """What a document says of one card: criterion -> values, one of which fits; "*" and "?" stand for any."""

    criteria: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        names = {"mac": "MAC", "pci": "PCI", "driver": "driver", "name": "name"}
        return printable(", ".join(f"{names[key]} {' or '.join(values)}"
                                   for key, values in self.criteria.items()), LONGEST)

    def find(self, nics: Iterable[Nic]) -> tuple[Nic, ...]:
        """The cards that fit, by name: none, the one that is meant, or several between which to choose."""
        found = [nic for nic in nics if can_be_card(nic) and self._fits(nic)]
        for better in _PREFERENCES:
            found = _narrow(found, better)
        if len({own_mac(nic) for nic in found}) == 1:
            for better in _PREFERENCES_AT_ONE_MAC:
                found = _narrow(found, better)
        return tuple(sorted(found, key=lambda nic: (nic.name, nic.index)))

    def instead(self, nics: Iterable[Nic]) -> str:
        """Who has a MAC that was looked for and is not meant all the same; "" if nobody."""
        holders = [nic for nic in nics if nic.mac and nic.mac in self.criteria.get("mac", ())]
        return "".join(f"; {nic.name} has that MAC, but {_why_not(nic)}" for nic in holders)

    def as_identifier(self) -> dict[str, str]:
        """The same as nmstate's own keys, where it has any for it."""
        for criterion, identifier in (("mac", BY_MAC), ("pci", BY_PCI)):
            values = self.criteria.get(criterion, ())
            if len(self.criteria) == len(values) == 1 and not set("*?") & set(values[0]):
                return {"identifier": identifier, identifier: values[0]}
        return {}

    def _fits(self, nic: Nic) -> bool:
        for criterion, values in self.criteria.items():
            has = _TRAITS[criterion](nic)
            if not has or (has not in values and not _fits_pattern(has, values)):
                return False
        return True


def _fits_pattern(value: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(value, each) for each in patterns if "*" in each or "?" in each)


def own_mac(nic: Nic) -> str:
    """The MAC that tells this card from others; "" if it has none."""
    if nic.permanent_mac:
        return nic.permanent_mac
    return "" if nic.addr_assign_type in NOT_ITS_OWN else nic.mac


_TRAITS: Mapping[str, Callable[[Nic], str]] = {
    "mac": own_mac, "pci": lambda nic: nic.pci, "driver": lambda nic: nic.driver, "name": lambda nic: nic.name}


def can_be_card(nic: Nic) -> bool:
    """Whether a document may mean this interface by its hardware.

    A veth has no hardware, but in a container it is what the machine has; a card is preferred.
    """
    return not nic.virtual or nic.kind == "veth"


def _why_not(nic: Nic) -> str:
    if not can_be_card(nic):
        return f"it is virtual ({nic.kind})"
    if nic.permanent_mac and nic.permanent_mac != nic.mac:
        return f"its permanent MAC is {nic.permanent_mac}"
    if nic.addr_assign_type in NOT_ITS_OWN and not nic.permanent_mac:
        return "made up or borrowed: another boot, another MAC"
    return "the rest does not fit"


# Each is asked only while several cards fit, and counts only if it leaves one: so the result is the same in
# whatever order the cards come.
_PREFERENCES: tuple[Callable[[Nic], bool], ...] = (
    lambda nic: nic.kind != "failover-port",
    lambda nic: not nic.virtual,
)
# A USB card that shows the MAC of a built-in one (docking stations do) comes and goes with its cable.
_PREFERENCES_AT_ONE_MAC: tuple[Callable[[Nic], bool], ...] = (
    lambda nic: nic.driver in UPPER_DRIVERS,
    lambda nic: not nic.usb,
)


def _narrow(found: list[Nic], better: Callable[[Nic], bool]) -> list[Nic]:
    return [nic for nic in found if better(nic)] or found


def parse_wanted(entry: Mapping[str, Any], path: Path) -> tuple[Wanted | None, list[Complaint]]:
    """What an interface of a document says of its card; None if it only has a name."""
    criteria: dict[str, tuple[str, ...]] = {}
    complaints: list[Complaint] = []
    identifier = entry.get("identifier")
    if identifier in (BY_MAC, BY_PCI):
        key = str(identifier)
        _add(criteria, KEYS[key], entry.get(key), (*path, key), complaints)
    if "match" in entry:
        _add_match(criteria, entry["match"], (*path, "match"), complaints)
    if complaints or not criteria:
        return None, complaints
    return Wanted(criteria), []


def _add_match(criteria: dict[str, tuple[str, ...]], match: Any, path: Path,
               complaints: list[Complaint]) -> None:
    known = listing(dict.fromkeys(KEYS.values()))
    if not isinstance(match, dict) or not match:
        complaints.append(Complaint(render_path(path), show(match), f"a mapping with one or more of {known}"))
        return
    for key, value in match.items():
        criterion = KEYS.get(str(key).lower().replace("_", "-"))
        if criterion is None:
            near = nearest(str(key), KEYS)
            wanted = f"'{near}'" if near else f"one of {known}"
            complaints.append(Complaint(render_path(path), show(str(key)), wanted))
        else:
            _add(criteria, criterion, value, (*path, str(key)), complaints)


def _add(criteria: dict[str, tuple[str, ...]], criterion: str, value: Any, path: Path,
         complaints: list[Complaint]) -> None:
    values = value if isinstance(value, list) else [value]
    normal = []
    for item in values:
        try:
            normal.append(_NORMAL[criterion](item))
        except (ValueError, AttributeError) as error:
            wanted = str(error) if isinstance(error, ValueError) else "text"
            complaints.append(Complaint(render_path(path), show(item), wanted))
    if not values:
        complaints.append(Complaint(render_path(path), show(value), "at least one value"))
    if normal:
        criteria[criterion] = tuple(normal)


def normalise_pci(text: str) -> str:
    """A PCI address as the kernel writes it: "0000:00:03.0"; the domain and udev's "pci-" may be left out.

    Raises ValueError for anything else; "*" and "?" are left alone.
    """
    address = text.strip().lower().removeprefix("pci-")
    if address.count(":") == 1:
        address = f"0000:{address}"
    domain, _, rest = address.partition(":")
    bus, _, slot = rest.partition(":")
    device, _, function = slot.partition(".")
    digits = set("0123456789abcdef*?")
    if not all(part and set(part) <= digits for part in (domain, bus, device, function)):
        raise ValueError("a PCI address such as 0000:00:03.0")
    return address


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("text")
    return text.strip()


_NORMAL: Mapping[str, Callable[[str], str]] = {
    "mac": normalise_mac, "pci": normalise_pci, "driver": _text, "name": _text}


def describe(nic: Nic) -> str:
    """A card in a few words: "eth0 (MAC 52:54:00:12:34:56, PCI 0000:00:03.0, virtio_net, no carrier)"."""
    carrier = {None: "down", True: "carrier", False: "no carrier"}[nic.carrier]
    mac = nic.permanent_mac or nic.mac
    facts = [f"MAC {mac}" if mac else "", f"PCI {nic.pci}" if nic.pci else "", "USB" if nic.usb else "",
             nic.kind if nic.virtual else nic.driver, carrier]
    return f"{nic.name} ({', '.join(fact for fact in facts if fact)})"


def candidates(nics: Sequence[Nic]) -> str:
    """The cards of this machine, for a complaint."""
    shown = [describe(nic) for nic in sorted(nics, key=lambda nic: nic.name) if can_be_card(nic)]
    return listing_whole(shown) if shown else "no network card at all"


def listing_whole(items: Sequence[str], limit: int = 16) -> str:
    """`a, b, c` without cutting an item."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more} more" if more > 0 else "")
