"""Checks of what hangs together: controllers and their ports, interfaces and their bases."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.core.checks.reading import complain, mappings, section, text
from homeport.core.checks.view import CONTROLLERS, Entry, Reference, View, has_list
from homeport.core.complaint import Complaint
from homeport.core.showing import show


def ports_of_two(view: View) -> Iterator[Complaint]:
    """A port has one controller, and once."""
    owner: dict[str, Entry] = {}
    for entry in view.entries:
        if not entry.up:
            continue
        for port in entry.ports:
            known = view.kernel.get(port.name)
            name = known.name if known is not None else port.name
            first = owner.setdefault(name, entry)
            if first is not entry:
                yield complain(port.path, f"{show(port.name)}, a port of {first.name} already", "one controller")
        seen: set[str] = set()
        for port in entry.ports:
            if port.name in seen:
                yield complain(port.path, f"{show(port.name)} again", "each port once")
            seen.add(port.name)


def ports_that_are(view: View) -> Iterator[Complaint]:
    """What a port may not be: its controller, something removed, a loopback."""
    for entry in view.entries:
        for port in entry.ports if entry.up else ():
            known = view.kernel.get(port.name)
            if port.name == entry.name and entry.type != "ovs-bridge":
                yield complain(port.path, f"{show(port.name)} itself", "another interface")
            elif known is not None and known.gone:
                yield complain(port.path, f"{show(port.name)}, which is absent", "an interface that is there")
            elif port.name == "lo" or (known is not None and known.type == "loopback"):
                yield complain(port.path, "the loopback interface", "another interface")
            elif known is not None and known.type == "infiniband" and not _takes_infiniband(entry):
                yield complain(port.path, f"{show(port.name)}, an InfiniBand interface",
                               "Ethernet, or a bond in mode active-backup")


def _takes_infiniband(entry: Entry) -> bool:
    bond = entry.section("link-aggregation", "bond")[1]
    return entry.type == "vrf" or (entry.type == "bond" and str(bond.get("mode")) in ("active-backup", "1"))


def named_controllers(view: View) -> Iterator[Complaint]:
    """A port that names its controller must agree with that one's list."""
    lists = {port.name: controller for controller in view.entries if controller.up for port in controller.ports}
    for entry in view.entries:
        name = entry.data.get("controller")
        if not isinstance(name, str) or not entry.up:
            continue
        path = (*entry.path, "controller")
        listed = lists.get(entry.name) or lists.get(text(entry.data.get("profile-name")))
        controller = view.controllers.get(name)
        if name == "" and listed is not None:
            yield complain(path, f"empty, but a port of {listed.name}", f"{listed.name}, or not in its list")
        elif name and listed is not None and listed.name != name:
            yield complain(path, f"{show(name)}, but a port of {listed.name}", "one of the two")
        elif controller is not None and controller.gone:
            yield complain(path, f"{show(name)}, which is absent", "a controller that is there")
        elif controller is not None and listed is None and has_list(controller):
            yield complain(path, f"{show(name)}, whose list of ports has no {entry.name}", "the name in that list too")
        elif name and controller is None and name in view.kernel and view.kernel[name].type not in ("", *CONTROLLERS):
            yield complain(path, f"{show(name)}, which is of type {view.kernel[name].type}",
                           f"an interface of type {', '.join(CONTROLLERS)}")


def bases(view: View) -> Iterator[Complaint]:
    """What an interface stands on must be there, and be another one."""
    for entry in view.entries:
        base = entry.base
        if base is None or not entry.up:
            continue
        known = view.kernel.get(base.name)
        if base.name == entry.name:
            yield complain(base.path, f"{show(base.name)} itself", "the interface below")
        elif known is not None and known.gone and known.type not in ("ethernet", "veth"):
            yield complain(base.path, f"{show(base.name)}, which is absent", "an interface that is there")
        elif entry.type == "vlan" and known is not None and known.type in ("loopback", "ipsec"):
            yield complain(base.path, f"{show(base.name)}, which is of type {known.type}", "an Ethernet interface")


def circles(view: View) -> Iterator[Complaint]:
    """Interfaces that stand upon each other in a circle can never come up."""
    below: dict[str, list[Reference]] = {}
    for entry in view.entries:
        if entry.up and entry.name and entry.type != "ovs-bridge":
            base = [entry.base] if entry.base is not None else []
            below[entry.name] = [*base, *entry.ports]
    for name in _in_circle(below):
        reference = below[name][0]
        yield complain(reference.path, f"{name} stands on {reference.name}, which stands on {name}", "no circle")


def _in_circle(below: dict[str, list[Reference]]) -> list[str]:
    """One name of each circle that has more than one member; by taking away whoever stands on nothing left."""
    left = {name: {r.name for r in references if r.name in below and r.name != name}
            for name, references in below.items()}
    above: dict[str, list[str]] = {}
    for name, names in left.items():
        for lower in names:
            above.setdefault(lower, []).append(name)
    free = [name for name, names in left.items() if not names]
    while free:
        lower = free.pop()
        for name in above.get(lower, ()):
            left[name].discard(lower)
            if not left[name]:
                free.append(name)
    stuck = [name for name, names in left.items() if names]
    return [name for name in stuck if below[name] and below[name][0].name in stuck][:1]


def other_references(view: View) -> Iterator[Complaint]:
    """Other interfaces that are named: the source of a MAC, a peer, a bridge for OVN."""
    for entry in view.entries:
        if not entry.up:
            continue
        source = text(entry.data.get("copy-mac-from"))
        known = view.kernel.get(source)
        if source and (source == entry.name or (known is not None and known.gone)):
            yield complain((*entry.path, "copy-mac-from"), show(source), "an interface that is there")
        for name in ("veth", "patch"):
            path, data = entry.section(name)
            if text(data.get("peer")) == entry.name != "":
                yield complain((*path, "peer"), f"{show(entry.name)} itself", "the other end")
    yield from _ovn_mappings(view)


def _ovn_mappings(view: View) -> Iterator[Complaint]:
    seen: set[str] = set()
    for path, mapping in mappings(section(view.config.get("ovn")).get("bridge-mappings"), ("ovn", "bridge-mappings")):
        net, bridge = text(mapping.get("localnet")), text(mapping.get("bridge"))
        if net in seen:
            yield complain((*path, "localnet"), f"{show(net)} again", "each network once")
        seen.add(net)
        if mapping.get("state") == "absent":
            continue
        if not bridge:
            yield complain((*path, "bridge"), "missing", "the name of an OVS bridge")
        known = view.controllers.get(bridge)
        if known is not None and (known.gone or known.type != "ovs-bridge"):
            yield complain((*path, "bridge"), f"{show(bridge)}, which is {known.state}, {known.type}",
                           "an OVS bridge that is there")
