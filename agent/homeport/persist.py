"""Keep what was proven: keyfiles of ours in /etc, the document, the manifest, the stamp of the fast path.

Knows the order of writes. At every instant one of these is true on disk: the former assignment is whole,
or the new document is the last-known-good one and the next boot writes its keyfiles again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

from homeport import fastpath
from homeport.core.keyfile import Keyfile, add_dns, own_profiles, parse
from homeport.core.plan import Plan
from homeport.core.strangers import without
from homeport.errors import ApplyError, HomeportError, PersistError
from homeport.host import keyfiles, oem, profiles, sidefiles
from homeport.host.files import read_file, remove, write_atomic
from homeport.host.networkmanager import Device, Profile
from homeport.host.store import INFLIGHT, LIMIT, PREPARED, STAMP, Manifest, OwnedFile
from homeport.machine import Machine
from homeport.settings import DROP_INS, FILES
from homeport.sources import Reply, drive

log = logging.getLogger(__name__)


def write_all(machine: Machine, plan: Plan, reply: Reply) -> str:
    store, manager = machine.store, machine.manager
    keyfiles.sweep_up(machine.root)
    former = store.read_manifest()
    manifest = describe(machine, plan, reply)
    ours = our_keyfiles(machine, plan)
    files = tuple(owned(machine, interface, keyfile, uuid) for interface, (uuid, keyfile) in ours.items())
    texts = {file.path: ours[file.interface][1].render() for file in files}
    if former.complete and former.keyfiles == files and store.read_assigned() == reply.data:
        if replace(former, proven_at=0.0) != replace(manifest, keyfiles=files, complete=True, proven_at=0.0):
            store.write_manifest(replace(manifest, keyfiles=files, complete=True))
        if keyfiles.intact(machine.root, former) and oem.is_written(machine.root, texts):
            keep_name(machine, plan.hostname)
            write_stamp(machine, plan, reply, files)
            return "unchanged"
    remove(machine.root, STAMP)
    store.keep_document(reply.data)
    store.forget_running()
    announced = store.announce(manifest, files)
    keyfiles.write_profiles(machine.root, {interface: keyfile for interface, (_, keyfile) in ours.items()}, announced)
    gone = keyfiles.remove_owned(machine.root, announced, keep=[file.path for file in files])
    adopt(machine, files, gone)
    oem.write(machine.root, texts)
    keep_name(machine, plan.hostname)
    store.write_manifest(replace(announced, stale=(), complete=True))
    write_stamp(machine, plan, reply, files)
    manager.reload_dns()
    return ", ".join(os.path.basename(file.path) for file in files)


def describe(machine: Machine, plan: Plan, reply: Reply) -> Manifest:
    who = machine.identity
    return Manifest(
        revision=plan.assignment.revision, source=reply.source, etag=reply.etag, url=reply.url,
        content_type=reply.content_type, identity=f"{who.kind}:{who.value}" if who else "", proven_at=time.time(),
        reconciles=reply.reconciles, hostname=plan.hostname, side_files=side_files(machine, plan),
        other_files=(oem.PATH,) if oem.is_elemental(machine.root) else ())


def side_files(machine: Machine, plan: Plan) -> tuple[str, ...]:
    """What nmstate has written for this document in folders of others, and was not there before it was ours."""
    names = [interface["name"] for interface in plan.desired.get("interfaces", ())
             if interface.get("alt-names") or interface.get("dispatch")]
    ours = machine.new_side_files | {*machine.store.read_manifest().side_files}
    return tuple(path for path in sidefiles.written(machine.root, names) if path in ours)


def keep_name(machine: Machine, name: str | None) -> None:
    """The configured host name, "" for none; None leaves it as it is. Raises PersistError."""
    if name is None or name == fastpath.host_name(str(machine.root)):
        return
    try:
        machine.manager.save_hostname(name)
    except HomeportError as error:
        raise PersistError(f"in force, but the host name {name} cannot be kept: {error.message}", error.hint) from error


def our_keyfiles(machine: Machine, plan: Plan) -> dict[str, tuple[str, Keyfile]]:
    """Interface -> (UUID, keyfile) for all that is in force: NetworkManager's own text, made ours."""
    manager = machine.manager
    devices = manager.devices()
    chosen = profiles.persisted_set(
        manager.profiles(), devices, plan.interfaces, before=machine.in_memory,
        ours=machine.store.read_manifest().uuids | prepared_uuids(machine), loopback=plan.needs_loopback)
    by_name = profiles.by_name(chosen, known_interfaces(machine, devices))
    made = own_profiles(
        {name: read_profile(profile, plan) for name, profile in by_name.items()},
        uuids={name: profile.uuid for name, profile in by_name.items()},
        nics=machine.facts.nics, tags={"revision": plan.assignment.revision}, waits=plan.waits)
    made, homeless = add_dns(made, **plan.dns)
    if homeless:
        log.warning("No interface can keep the DNS servers %s, going on without them", ", ".join(homeless))
    return {name: (by_name[name].uuid, keyfile) for name, keyfile in made.items()}


def known_interfaces(machine: Machine, devices: Iterable[Device]) -> dict[str, str]:
    """UUID -> interface of the profiles that are ours, and of those that are active."""
    ours = (*machine.store.read_manifest().owned, *(machine.prepared.profiles if machine.prepared else ()))
    return {file.uuid: file.interface for file in ours} | {device.profile: device.interface for device in devices}


def prepared_uuids(machine: Machine) -> frozenset[str]:
    return machine.prepared.uuids if machine.on_prepared and machine.prepared else frozenset()


def read_profile(profile: Profile, plan: Plan) -> str:
    """NetworkManager's text, without what others added to the interface: it is in force, but not ours to keep."""
    with open(profile.filename, encoding="utf-8") as file:
        text = file.read()
    added = plan.strangers.get(profile.interface_name)
    return without(parse(text), added).render() if added else text


def owned(machine: Machine, interface: str, keyfile: Keyfile, uuid: str) -> OwnedFile:
    text = keyfile.render().encode()
    return OwnedFile(path=keyfiles.path_of(interface, machine.root), sha256=hashlib.sha256(text).hexdigest(), uuid=uuid,
                     interface=interface)


def verdict(machine: Machine, ours: Mapping[str, tuple[str, Keyfile]]) -> None:
    """What NetworkManager says of our keyfiles, asked while all of it can still be rolled back.

    Each is loaded from /run under another UUID, unable to connect, and unloaded. Raises ApplyError.
    """
    manager = machine.manager
    paths = []
    for number, (_, keyfile) in enumerate(ours.values()):
        trial = keyfile.set("connection", "uuid", str(uuid.uuid4())).set("connection", "autoconnect", "false")
        paths.append(f"{profiles.RUN_FOLDER}homeport-trial-{number}.nmconnection")
        write_atomic("/", paths[-1], trial.render().encode())
    try:
        _, refused = manager.load(paths)
    finally:
        for path in paths:
            os.unlink(path)
        manager.load(paths)
    if refused:
        names = [name for name, path in zip(ours, paths, strict=True) if path in refused]
        raise ApplyError(f"NetworkManager refuses the keyfile of {', '.join(names)}",
                         "rolled back; its journal says which setting, and that is a fault of ours to report")


def adopt(machine: Machine, files: tuple[OwnedFile, ...], gone: tuple[str, ...]) -> None:
    """Make NetworkManager use the files in /etc instead of its copies in /run, with nothing touched on the wire.

    The order matters: a copy that goes before its file is loaded takes the profile, and the NIC, with it.
    Raises PersistError; nothing is lost then, the copies are still in force.
    """
    manager = machine.manager
    loaded, refused = manager.load([f"/{file.path}" for file in files])
    if not loaded:
        raise PersistError(f"in force, but NetworkManager does not read {', '.join(refused)}",
                           "its journal says why; after a reboot the last-known-good document is applied again")
    uuids = {file.uuid for file in files}
    copies = [profile.filename for profile in manager.profiles()
              if profile.uuid in uuids and profile.filename.startswith(profiles.RUN_FOLDER)]
    for path in copies:
        os.unlink(path)
    manager.load([*copies, *(f"/{path}" for path in gone)])


def write_stamp(machine: Machine, plan: Plan, reply: Reply, files: tuple[OwnedFile, ...]) -> None:
    """What must be as it is now for the next boot to have nothing to do. Without it that boot takes the long way."""
    root = str(machine.root)
    lines = [fastpath.HEADER, f"arguments\t{fastpath.our_arguments(root)}"]
    lines += [f"as-was\t{path}\t{fastpath.as_was(root, path)}" for path in watched(machine, reply)]
    # Nothing is prepared once this is settled; what a later boot finds prepared must be proven.
    lines.append(f"as-was\t{PREPARED}\t{fastpath.ABSENT}")
    lines += [f"credential\t{fastpath.credential()}", f"fw-cfg\t{fastpath.firmware_file(root)}"]
    for file in files:
        with open(os.path.join(root, file.path), "rb") as content:
            lines.append(f"keyfile\t{file.path}\t{fastpath.checksum(content.read())}")
    devices = {device.interface: device for device in machine.manager.devices()}
    for name in plan.interfaces:
        device = devices.get(name)
        if device is None or not device.profile:
            return  # something is meant to be down or away: the long way knows how to look at that
        lines.append(f"up\t{name}\t{device.profile}")
    lines += [f"address\t{name}\t{address}" for name, address in static_addresses(plan)]
    lines += [f"as-was\t{path}\t{fastpath.as_was(root, path)}" for path in side_files(machine, plan)]
    if plan.running_name:
        lines.append(f"running\t{plan.running_name}")
    if plan.hostname is not None:
        lines.append(f"host-name\t{plan.hostname}")
    stamp = "\n".join(lines) + "\n\n"
    former = read_file(machine.root, STAMP, LIMIT) or b""
    if former.startswith(stamp.encode()):
        return
    try:
        write_atomic(root, STAMP, (stamp + unchanged_status(machine, files)).encode())
    except OSError as error:
        log.warning("Cannot write %s: %s; all is kept, but the next boot will look at everything anew",
                    error.filename, error.strerror)


# What else can change what homeport would do: the program itself, who the machine is, its mode; and a run that was
# killed while applying, after which there is something to undo (nmstate's DNS is on disk before anything is proven).
WATCHED = (
    INFLIGHT, *(f"{drive.BY_LABEL}/{label}" for label in drive.LABELS),
    *FILES, *DROP_INS, "usr/lib/homeport/homeport.pyz", "etc/homeport/identity",
    "run/elemental/recovery_mode", "run/elemental/live_mode", "run/cos/recovery_mode", "run/cos/live_mode",
    "oem/reset-cloud-config.yaml", "oem/registration/config.yaml",
)


def watched(machine: Machine, reply: Reply) -> list[str]:
    """The files and folders, below the root, whose change makes the next boot take the long way."""
    drop_ins = [f"{folder}/{name}" for folder in DROP_INS if (machine.root / folder).is_dir()
                for name in sorted(os.listdir(machine.root / folder))]
    document = reply.url.lstrip("/") if reply.source == "file" else ""
    return [*WATCHED, *drop_ins, *([document, os.path.dirname(document)] if document else [])]


def static_addresses(plan: Plan) -> list[tuple[str, str]]:
    """(interface, address as the kernel prints it) of every address that the desired state fixes."""
    import ipaddress
    found = []
    for interface in plan.desired.get("interfaces", ()):
        for family in ("ipv4", "ipv6"):
            section: Mapping[str, object] = interface.get(family) or {}
            entries = section.get("address")
            for entry in entries if section.get("enabled") and isinstance(entries, list) else ():
                address = ipaddress.ip_address(entry["ip"])
                found.append((interface["name"], address.exploded if address.version == 6 else str(address)))
    return found


def unchanged_status(machine: Machine, files: tuple[OwnedFile, ...]) -> str:
    """The status file of a boot on which nothing has changed, with its times left open."""
    status = machine.report.as_json() | {
        "rung": "assigned", "reason": "unchanged since the last boot", "hint": "", "exit": 0, "result": "ok",
        "fetched": False, "changed": False, "persisted": True, "fallen": [], "complaints": [], "proof": [], "plan": [],
        "keyfiles": [f"/{file.path}" for file in files], "addresses": profiles.addresses_now(),
        "steps": [{"name": "fast path", "seconds": 0.0, "note": "nothing has changed"}], "boot_id": "",
        "started": fastpath.STARTED, "finished": fastpath.FINISHED}
    return json.dumps(status).replace(f'"{fastpath.STARTED}"', fastpath.STARTED).replace(
        f'"{fastpath.FINISHED}"', fastpath.FINISHED)
