"""Cards that are described soundly, each by itself, and still not acceptable: left out one by one.

Two may have one address, a router may be the card itself, a MAC may be that of two cards: what says so are the
checks that every document goes through, and the resolver of cards.  They speak of a whole document, which would be
refused; here only the cards go that they speak of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from homeport.core.complaint import Complaint
from homeport.core.facts import Nic
from homeport.core.platforms.network import Network
from homeport.core.platforms.rendering import render

_PLACE = re.compile(r"(interfaces|routes\.config)\[(\d+)\]")


def sift(network: Network) -> None:
    """Leave out each link that something is said against, as a fault of the network's."""
    while gone := _blamed(network):
        for name, complaint in gone.items():
            link = network.links.pop(name)
            network.faults.append(replace(complaint, path=f"NIC {link.card or link.mac or name}: {complaint.path}"))


def _blamed(network: Network) -> dict[str, Complaint]:
    """The first complaint of each link. One that is of no single link is for the document's checks to repeat."""
    config = render(network).tree.get("config")
    if config is None:
        return {}
    found: dict[str, Complaint] = {}
    for complaint in _complaints(config, network.situation.nics):
        place = _PLACE.match(complaint.path)
        if place:
            entries = config["interfaces"] if place[1] == "interfaces" else config["routes"]["config"]
            entry = entries[int(place[2])]
            found.setdefault(entry["name" if place[1] == "interfaces" else "next-hop-interface"], complaint)
    return found


def _complaints(config: Mapping[str, Any], nics: Sequence[Nic]) -> Iterator[Complaint]:
    from homeport.core.checks import check_meaning
    from homeport.core.nics import resolve
    from homeport.core.schema import check_schema

    if nics:
        yield from resolve(dict(config), nics).complaints
    yield from check_schema(dict(config))
    yield from check_meaning(dict(config))
