"""Checks of the whole: does the document configure anything, and does it leave a way to the machine?"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.core.checks.reading import complain
from homeport.core.checks.view import Entry, View
from homeport.core.complaint import Complaint

_NO_WAY_OUT = ("loopback", "dummy")


def empty_configurations(view: View) -> Iterator[Complaint]:
    """To nmstate an empty document is a success; to us it is more likely an empty answer of a server."""
    # `ovs-db: {}` empties that database: little, but something.
    if not any(value for key, value in view.config.items() if key != "description") \
            and not isinstance(view.config.get("ovs-db"), dict):
        yield complain((), "an empty configuration", "interfaces, and what they are to have")


def uplinks(view: View) -> Iterator[Complaint]:
    """Whether any interface can carry traffic afterwards; if none can, the document must say so itself."""
    if any(view.config.get(key) for key in view.config if key != "description") \
            and not any(_is_uplink(view, entry) for entry in view.entries):
        yield complain(
            ("interfaces",), "no interface that is up and can have an address: this would cut the machine off",
            "an interface with IP; or force: true in the assignment, if that is meant")


def _is_uplink(view: View, entry: Entry) -> bool:
    """Up, not a mere port, and with a family that has addresses, gets them, or keeps what it had."""
    controller = view.controller_of.get(entry.name)
    is_port = controller is not None and controller.up and controller.type != "vrf" and entry.type != "ovs-interface"
    return entry.up and not is_port and entry.type not in (*_NO_WAY_OUT, "ovs-bridge") \
        and any(family.may_have_address for family in entry.families)
