"""A document rendered offline: the desired state, and the keyfiles that a machine would keep.

Works on any machine, without root and without NetworkManager. NICs are those that the command line
names, or what the document itself says of them; nothing of the machine it runs on is looked at, but the
machine id of `root`, from which the profiles' UUIDs are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from homeport.core.checks.reading import IPAddress
from homeport.core.document import Address, Assignment, understand_document
from homeport.core.facts import Nic
from homeport.core.keyfile import check_untrusted, file_name, own_profiles, parse, stable_uuid
from homeport.core.keyfile.escapes import escape_gc
from homeport.core.keyfile.meaning import desired_state
from homeport.core.mac import normalise_mac
from homeport.core.nics import resolve
from homeport.core.yamlwrite import render_yaml
from homeport.errors import DocumentError, UsageError
from homeport.host import nmstatectl
from homeport.host.facts import read_machine_id

DESIRED = "desired-state.yaml"
NO_MACHINE = "an image"


def render(data: bytes, *, root: Path, addresses: Mapping[str, str], macs: Mapping[str, str]) -> dict[str, str]:
    """File name -> text. Raises DocumentError, Pending (a placeholder stays open), UsageError."""
    assignment = understand_document(
        data, addresses={name: address(name, text) for name, text in addresses.items()})
    return render_assignment(assignment, [nic(name, text) for name, text in macs.items()], root)


def render_platform(name: str, folder: Path, *, root: Path, nics: Sequence[Nic] = (), policy_routing: bool = True,
                    servers: Sequence[IPAddress] = (), routers: Mapping[str, IPAddress] | None = None,
                    ) -> tuple[dict[str, str], Sequence[str]]:
    """The same of a platform's metadata, saved in `folder`; and what of them is left out, for people.

    Raises UsageError for an unknown name, or if there are none of its metadata in the folder.
    """
    from homeport.core import platforms
    from homeport.core.platformnames import NAMES
    from homeport.sources.platforms import saved
    platform = platforms.find(name)
    if platform is None:
        raise UsageError(f"there is no platform {name!r}", f"known are {', '.join(NAMES)}")
    situation = platforms.Situation(tuple(nics), policy_routing, tuple(servers), routers or {})
    made = platforms.make(platform, saved.read(platform, folder), situation)
    assignment = understand_document(render_yaml(made.tree).encode())
    return render_assignment(assignment, nics, root), made.notes


def render_assignment(assignment: Assignment, nics: Sequence[Nic], root: Path) -> dict[str, str]:
    if assignment.configurator == "nmconnections":
        return render_given(assignment, nics, root)
    resolved = resolve(assignment.config, nics, offline=True)
    if resolved.complaints:
        raise DocumentError(resolved.complaints)
    keyfiles = render_keyfiles(resolved.config, resolved.nics, root, assignment.revision) if resolved.config else {}
    return {DESIRED: render_yaml(resolved.config), **keyfiles}


def render_given(assignment: Assignment, nics: Sequence[Nic], root: Path) -> dict[str, str]:
    """The same of an assignment that is keyfiles already: made ours."""
    uuids = {name: stable_uuid(machine_of(root), name) for name in assignment.config}
    keyfiles = own_profiles(assignment.config, uuids=uuids, nics=nics, tags={"revision": assignment.revision})
    return {DESIRED: render_yaml(desired_state(assignment.config)),
            **{file_name(name): keyfile.render() for name, keyfile in keyfiles.items()}}


def render_keyfiles(config: Mapping[str, Any], nics: Mapping[str, Nic], root: Path, revision: str) -> dict[str, str]:
    """What `nmstatectl gc` makes of the desired state, checked as a stranger's text and made ours."""
    texts = checked_texts(config)
    uuids = {name: stable_uuid(machine_of(root), name) for name in texts}
    keyfiles = own_profiles(texts, uuids=uuids, nics=tuple(nics.values()), tags={"revision": revision})
    return {file_name(name): keyfile.render() for name, keyfile in keyfiles.items()}


def machine_of(root: Path) -> str:
    """Whose UUIDs the keyfiles get. An image has no machine-id yet: there they come from the profiles' names alone, and
    what is not this machine's yet cannot clash with another one's.
    """
    return read_machine_id(root) or NO_MACHINE


def checked_texts(config: Mapping[str, Any], timeout: float = nmstatectl.QUICK_SECONDS) -> dict[str, str]:
    """Interface -> the text that `nmstatectl gc` makes for it, within `timeout` seconds. Raises DocumentError for what
    must not be written.
    """
    texts: dict[str, str] = {}
    complaints = []
    for name, raw in nmstatectl.gc(config, timeout):
        text = escape_gc(raw)
        complaints += check_untrusted(text, file_name=name)
        if not complaints:
            profile = parse(text)
            texts[profile.get("connection", "interface-name") or profile.get("connection", "id") or name] = text
    if complaints:
        raise DocumentError(complaints, "nmstatectl made text of this document that is not safe to write")
    return texts


def address(name: str, text: str) -> Address:
    """`192.0.2.1`, or `192.0.2.1/24`."""
    import ipaddress
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError as error:
        raise UsageError(f"--ip {name}={text}: {error}") from error
    return Address(str(interface.ip), interface.network.prefixlen if "/" in text else None)


def nic(name: str, text: str) -> Nic:
    try:
        mac = normalise_mac(text)
    except ValueError as error:
        raise UsageError(f"--nic {name}={text}: {error}") from error
    return Nic(name=name, mac=mac, permanent_mac=mac)
