"""An assignment that is put in force card by card, beside the profiles there are, and remembered in /run.

Knows what of a cloud's assignment is put in force how, and what is remembered of it, so that what goes out of it
can be taken away: of a card that can't be read or failed, what it has.  The next boot starts as the image and the
administrator left it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from homeport import asking, planning
from homeport.core import beside, former, strangers
from homeport.core.compare import differences
from homeport.core.document import Assignment, parse_document
from homeport.core.nicmatch import can_be_card, own_mac
from homeport.core.nics import Resolved, resolve
from homeport.core.plan import Plan, would_move
from homeport.errors import HomeportError
from homeport.host.files import read_file
from homeport.host.store import OwnedFile
from homeport.machine import Machine
from homeport.sources.reply import Reply

log = logging.getLogger(__name__)

State = Mapping[str, Any]

# Seconds for what DHCP brings: a lease, and up to two of duplicate address detection (RFC 4862, 5.4.2).
LEASES = 5.0
ON_ROOT = "the root file system stands on it"


def with_unread(machine: Machine, reply: Reply, assignment: Assignment) -> tuple[Reply, Assignment]:
    """A document that says nothing of some cards, because they could not be read, made whole by what those had.

    Raises DocumentError.
    """
    if not reply.partial:
        return reply, assignment
    from homeport.core import partial
    before = remembered(machine, reply)
    here = {own_mac(nic): nic.name for nic in machine.facts.nics if can_be_card(nic) and own_mac(nic)}
    kept = partial.keep(assignment.config, before, here).entries
    if not kept:
        return reply, assignment
    log.info("%s: nothing can be read of it now, it keeps what it has",
             ", ".join(here.get(partial.mac(entry), str(entry["name"])) for entry in kept))
    reply = as_document(reply, partial.completed(assignment.config, before, here))
    return reply, asking.understand(machine, reply)


def remembered(machine: Machine, reply: Reply) -> State:
    """What this very platform assigned before, in its own names for the cards; nothing if it did not."""
    data, manifest = machine.store.read_assigned(), machine.store.read_manifest()
    if data is None or manifest.source != reply.source:
        return {}
    try:
        return parse_document(data, content_type=manifest.content_type).config
    except HomeportError as error:
        log.debug("cannot tell what %s assigned before: %s, going on without", reply.source, error)
        return {}


def as_document(reply: Reply, config: State) -> Reply:
    """The same reply with another configuration in it."""
    from homeport.core.yamlwrite import render_yaml
    return replace(reply, data=render_yaml({"configurator": "nmstate", "config": config}).encode())


def beside_profiles(machine: Machine, plan: Plan, reply: Reply) -> Plan:
    """The plan in parts for single cards, where it is added to their profiles instead of taking their place; else
    as it is, without the cards that are to be left alone.
    """
    resolved = resolve(planning.stated(plan.assignment).config, machine.facts.nics)
    if not goes_beside(reply, resolved.config):
        return without_some(machine, plan, reply, resolved) if reply.reconciles else plan
    with machine.report.step("beside") as notes:
        plan = make_plan(machine, plan.assignment, resolved, notes)
        machine.report.plan = plan.lines()
        return plan


def without_some(machine: Machine, plan: Plan, reply: Reply, resolved: Resolved) -> Plan:
    """The plan without the cards whose profile says that they are to be left alone, and those under the root."""
    from homeport.host import reapply
    cards = reapply.read_cards(machine.manager, former.names(resolved.config))
    skipped = frozenset(name for name, card in cards.items() if card.skip)
    held = under_the_root(machine, plan, reply) - skipped
    config = beside.without(resolved.config, skipped | held)
    if not config["interfaces"]:
        held, config = frozenset(), beside.without(resolved.config, skipped)
    if not skipped | held:
        return plan
    config = beside.with_mtu_of(config, mtus(machine, held))
    for names, why in ((skipped, "its profile says so"), (held, ON_ROOT)):
        if names:
            log.info("%s is left as it is: %s", ", ".join(sorted(names)), why)
    made = planning.make_plan(machine, replace(plan.assignment, config=config), without=skipped | held)
    return replace(made, left_alone=held)


def mtus(machine: Machine, names: Collection[str]) -> dict[str, int]:
    """The MTUs that these cards have, as far as that can be said."""
    found = {name: read_file(machine.root, f"sys/class/net/{name}/mtu", 64) or b"" for name in names}
    return {name: int(text) for name, text in found.items() if text.strip().isdigit()}


def under_the_root(machine: Machine, plan: Plan, reply: Reply) -> frozenset[str]:
    """The cards of the plan that the root file system stands on, if they can be left out of it.

    Not if they have profiles of ours on disk: to leave one out would be to take it away.
    """
    touched = would_move(plan, machine.protected)
    ours = {file.interface for file in machine.store.read_manifest().owned}
    return touched if reply.volatile or not touched & ours else frozenset()


def goes_beside(reply: Reply, config: State) -> bool:
    return reply.volatile and reply.reconciles and beside.fits(config)


def make_plan(machine: Machine, assignment: Assignment, resolved: Resolved, notes: list[str]) -> Plan:
    """A plan of one part for each card; those whose part is in force already have none."""
    from homeport.host import reapply
    before = planning.former_state(machine)
    wanted = former.names(resolved.config)
    gone = former.names(before) - wanted
    cards = reapply.read_cards(machine.manager, wanted | gone)
    desired, left_out = beside.reduced(resolved.config, cards)
    notes += left_out
    for line in left_out:
        log.info("%s", line)
    shown = planning.current_state(machine)
    desired["interfaces"] += [beside.nothing(name, cards[name]) for name in sorted(gone & {*cards})]
    whole = Plan(assignment=assignment, desired=desired, names=resolved.names, nics=resolved.nics)
    planned = [plan_card(str(entry["name"]), whole, before, shown, cards[entry["name"]])
               for entry in desired["interfaces"]]
    changed = [part for part in planned if part.changes]
    held = frozenset(name for part in changed for name in would_move(part, machine.protected))
    if held >= {part.interfaces[0] for part in planned}:
        held = frozenset()  # there is nothing else: who puts it in force says why not
    notes += [f"{name} is left as it is: {ON_ROOT}" for name in sorted(held)]
    parts = tuple(part for part in changed if part.interfaces[0] not in held)
    changes = tuple(change for part in parts for change in part.changes)
    on = ", ".join(part.interfaces[0] for part in parts)
    notes.append(f"{len(changes)} changes on {on}" if parts else "in force")
    return replace(whole, changes=changes, parts=parts, left_alone=held)


def plan_card(name: str, whole: Plan, before: State, shown: State, card: beside.Card) -> Plan:
    """What changes on one card: what others, and its profile, have there is no reason for anything."""
    part, was = beside.part(whole.desired, name), beside.part(before, name)
    was["interfaces"] = was["interfaces"] or [{"name": name}]
    kept = {rule.get("family") for rule in former.entries_of(whole.desired, "route-rules") if beside.is_for_all(rule)}
    part = former.removing_rules(part, beside.without_rules_for_all(was, kept))
    current = former.without_strangers(shown, part, was)
    return replace(
        whole, desired=part,
        changes=(*differences(part, current, thorough=True), *beside.other_metrics(part, card),
                 *beside.not_held(part, card)),
        strangers=strangers.find(shown, part, was, [name]), card=card)


def in_parts(machine: Machine, plan: Plan, put_in_force: Callable[[Plan], None]) -> frozenset[str]:
    """Put a plan in force, part by part if it has any: a card that fails doesn't stop the others. Those that failed.

    Raises what the first one failed with, if none could be.
    """
    failures: dict[str, HomeportError] = {}
    for part in plan.parts or (plan,):
        try:
            put_in_force(part)
        except HomeportError as error:
            failures["".join(part.interfaces[:1])] = error
            if plan.parts:
                log.warning("%s: %s, going on with the other cards", part.interfaces[0], error)
    if len(failures) == len(plan.parts or (plan,)):
        raise next(iter(failures.values()))
    if failures:
        machine.report.blemish(next(iter(failures.values())))
    await_leases(machine, [part for part in plan.parts if part.interfaces[0] not in failures])
    return frozenset(failures)


def await_leases(machine: Machine, parts: Collection[Plan]) -> None:
    """Wait for the assigned addresses that DHCP brings: a service binds to them as soon as we are done.

    No proof asks for them, DHCPv6 is slower than the metadata, and NetworkManager 1.42 starts IPv6 anew with each
    change.  One that stays away is nothing to go back for.
    """
    from homeport.host import reapply
    leased = {part.interfaces[0]: beside.leased(part.desired, part.card) for part in parts if part.card is not None}
    if missing := reapply.wait_for(leased, machine.patience(LEASES)):
        # No warning: it may only be slow, and whoever needs it sees it here.
        log.info("DHCP has not brought %s yet, going on without; if it never does: is it switched on in that network?",
                 ", ".join(missing))


def as_it_runs(machine: Machine, plan: Plan, reply: Reply, failed: Collection[str]) -> tuple[Plan, Reply]:
    """What is to be remembered where some cards failed, or were left alone: they have what they had before.

    It is not what was assigned, so it has no revision.
    """
    failed = {*failed, *plan.left_alone}
    if not failed or not goes_beside(reply, plan.desired):
        return plan, reply
    from homeport.core import partial
    names = {name for name, kernel in plan.names.items() if kernel in failed}
    macs = {own_mac(nic) for nic in machine.facts.nics if nic.name in failed}
    config = partial.completed(
        beside.without(plan.assignment.config, names), remembered(machine, reply), macs, moved=False)
    return replace(plan, assignment=replace(plan.assignment, revision="")), as_document(reply, config)


def leave_disk(machine: Machine, reply: Reply) -> None:
    """Forget what is kept on disk, if what runs from now on is not to be: it would come back at the next boot."""
    manifest = machine.store.read_manifest()
    if not reply.volatile or manifest.volatile or not manifest.owned or machine.dry_run:
        return
    from homeport import fallback
    log.info("from now on nothing of %s is kept on disk; going back to the image's own profiles first", reply.source)
    fallback.forget(machine)
    fallback.dhcp(machine)


def remember(machine: Machine, plan: Plan, reply: Reply) -> str:
    """The document and its origin, in /run."""
    from homeport.persist import describe
    manifest = replace(describe(machine, plan, reply), other_files=(), complete=True, volatile=True)
    if goes_beside(reply, plan.desired):
        before = machine.store.read_manifest().beside
        manifest = replace(manifest, beside=tuple(dict.fromkeys((*plan.interfaces, *before))))
    else:
        held = [file for file in machine.store.read_manifest().keyfiles if file.interface in plan.left_alone]
        manifest = replace(manifest, keyfiles=(*own_in_memory(machine, plan), *held))
    machine.store.remember(reply.data, manifest)
    return "until the machine is switched off"


def own_in_memory(machine: Machine, plan: Plan) -> tuple[OwnedFile, ...]:
    """Make the profiles that nmstate left in /run ours, without the wire feeling it; they stay there.

    A copy goes after our file is loaded, or it would take the profile, and the card, with it.
    """
    from homeport.core.keyfile import file_name
    from homeport.host.files import write_atomic
    from homeport.host.profiles import RUN_FOLDER
    from homeport.persist import our_keyfiles
    manager, files = machine.manager, []
    for name, (uuid, keyfile) in our_keyfiles(machine, plan).items():
        path = f"{RUN_FOLDER}{file_name(name)}"
        write_atomic("/", path, keyfile.render().encode())
        files.append(OwnedFile(path=path.lstrip("/"), uuid=uuid, interface=name))
    ours = {f"/{file.path}" for file in files}
    manager.load(sorted(ours))
    copies = [f"{RUN_FOLDER}{name}" for name in os.listdir(RUN_FOLDER)
              if f"{RUN_FOLDER}{name}" not in ours and holds(f"{RUN_FOLDER}{name}", {file.uuid for file in files})]
    for path in copies:
        os.unlink(path)
    manager.load(copies)
    return tuple(files)


def holds(path: str, uuids: Collection[str]) -> bool:
    """Whether the keyfile is of one of these profiles."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return any(line.partition("=")[2].strip() in uuids for line in file if line.startswith("uuid="))
