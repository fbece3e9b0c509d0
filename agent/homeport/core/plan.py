"""What will change, decided before anything does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from homeport.core.beside import Card
from homeport.core.complaint import Complaint
from homeport.core.document import Assignment
from homeport.core.facts import Nic
from homeport.core.strangers import Added
from homeport.errors import RootOnNetwork

if TYPE_CHECKING:
    from homeport.core.keyfile import Keyfile


@dataclass(frozen=True)
class Plan:
    """The desired state of *this* machine and how it differs from the current one.

    `desired` has every NIC by kernel name; `nics` are the physical ones among its interfaces. `changes`
    are the differences from what is in force; `foreign` the interfaces whose active profile is not ours:
    they need a new profile even if nothing else differs. `override` is set if one of those belongs to
    somebody who will want it back: nmstate must then make new profiles instead of editing theirs.
    `retired` are interfaces that the former assignment made and this one does not have. `keyfiles` are what
    NetworkManager is given, by name, where the assignment is keyfiles; then `desired` only says what they bring
    about, and `names` has their interfaces. `strangers` is what others added to interfaces of ours: a change is
    applied with it, and nothing else of it is ours. `parts` are the plans of single cards where each is put in force
    by itself: `card` is the profile beside which that happens. `left_alone` are cards of the assignment that it is
    not put in force on, because the root file system stands on them.
    """

    assignment: Assignment
    desired: Mapping[str, Any]
    names: Mapping[str, str] = field(default_factory=dict)
    nics: Mapping[str, Nic] = field(default_factory=dict)
    changes: tuple[Complaint, ...] = ()
    foreign: tuple[str, ...] = ()
    override: bool = False
    retired: frozenset[str] = frozenset()
    persisted: bool = False
    keyfiles: Mapping[str, Keyfile] = field(default_factory=dict)
    strangers: Mapping[str, Added] = field(default_factory=dict)
    parts: tuple[Plan, ...] = ()
    card: Card | None = None
    left_alone: frozenset[str] = frozenset()

    @property
    def in_force(self) -> bool:
        """Whether the current state is the desired one, by profiles of ours."""
        return not self.changes and not self.foreign

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The kernel names of the interfaces that the assignment wants to exist."""
        return tuple(interface["name"] for interface in self.desired.get("interfaces", ())
                     if interface.get("state", "up") not in ("absent", "ignore")
                     and interface["name"] not in self.retired)

    @property
    def up(self) -> tuple[str, ...]:
        """Those of them that are to be up."""
        return tuple(interface["name"] for interface in self.desired.get("interfaces", ())
                     if interface.get("state", "up") == "up" and interface["name"] not in self.retired)

    @property
    def hostname(self) -> str | None:
        """The configured host name that the desired state wants ("" for none), None if it wants nothing."""
        wanted = (self.desired.get("hostname") or {}).get("config")
        return None if wanted is None else str(wanted)

    @property
    def running_name(self) -> str:
        """The running host name that the desired state wants, "" if it wants nothing."""
        return str((self.desired.get("hostname") or {}).get("running") or "")

    @property
    def in_memory(self) -> dict[str, Any]:
        """The desired state as far as it can be in force without being on disk: nmstate leaves out the rest."""
        hostname = {key: value for key, value in (self.desired.get("hostname") or {}).items() if key != "config"}
        state = {key: value for key, value in self.desired.items() if key != "hostname"}
        return {**state, "hostname": hostname} if hostname else state

    @property
    def dns(self) -> dict[str, list[str]]:
        """The `servers`, `search` domains and `options` that the desired state has."""
        config = (self.desired.get("dns-resolver") or {}).get("config") or {}
        return {"servers": config.get("server") or [], "search": config.get("search") or [],
                "options": config.get("options") or []}

    @property
    def has_dns(self) -> bool:
        """Whether the desired state names any DNS: then it counts, and nothing older beside it."""
        return any(self.dns.values())

    @property
    def needs_loopback(self) -> bool:
        """Whether something of it has no interface of its own, and so a place in the loopback's profile."""
        routes = (self.desired.get("routes") or {}).get("config") or []
        rules = (self.desired.get("route-rules") or {}).get("config") or []
        wanted = (entry for entry in (*routes, *rules) if entry.get("state") != "absent")
        return any(not entry.get("next-hop-interface") for entry in wanted)

    @property
    def waits(self) -> dict[str, str]:
        """Interface -> its `wait-ip`, "" where the document leaves it to us."""
        return {interface["name"]: interface.get("wait-ip", "") for interface in self.desired.get("interfaces", ())}

    def lines(self) -> list[str]:
        """The plan as `--dry-run` prints it."""
        if self.in_force:
            return ["nothing to apply: the desired state is in force"
                    + ("" if self.persisted else ", but its keyfiles must be written")]
        return [*(f"change {change.path}: {change.found}; {change.wanted}" for change in self.changes),
                *(f"new profile for {name}" for name in self.foreign)]


def refuse_to_move(plan: Plan, protected: Collection[str]) -> None:
    """Raises RootOnNetwork if anything would change on the interfaces that the root file system stands on.

    A document is put in force as a whole or not at all: a part of it nobody has asked for. One that leaves those
    interfaces out is put in force like any other; one that is about each card for itself is made to (`runtime.py`).
    """
    if touched := would_move(plan, protected):
        raise RootOnNetwork(
            f"the root file system stands on {', '.join(sorted(touched))}: left as it is",
            "put in force by the initramfs at the next boot, if homeport works there")


def would_move(plan: Plan, protected: Collection[str]) -> frozenset[str]:
    """Those of the `protected` interfaces that the plan is about, if it changes anything."""
    touched = frozenset(protected) & {*plan.interfaces, *plan.retired, *_named(plan.desired)}
    return frozenset() if plan.in_force else touched


def _named(desired: Mapping[str, Any]) -> Iterator[str]:
    """Every interface that a desired state says anything of."""
    yield from (str(interface.get("name")) for interface in desired.get("interfaces", ()))
    for route in (desired.get("routes") or {}).get("config") or ():
        yield str(route.get("next-hop-interface"))
