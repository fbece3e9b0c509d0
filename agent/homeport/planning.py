"""The step between what is assigned and what is applied: what will change on this machine, and that it can be done."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from homeport import prepared
from homeport.core import beside, document, former, strangers
from homeport.core.checks import check_meaning
from homeport.core.compare import differences
from homeport.core.document import Assignment
from homeport.core.facts import Stage
from homeport.core.nics import Resolved, resolve
from homeport.core.plan import Plan
from homeport.core.schema import is_policy
from homeport.errors import DocumentError, HomeportError
from homeport.host import journal, nics, nmstatectl, preflight, profiles
from homeport.machine import Machine

log = logging.getLogger(__name__)

# The configurator whose configuration is keyfiles.
KEYFILES = "nmconnections"


def make_plan(machine: Machine, assignment: Assignment, without: Collection[str] = ()) -> Plan:
    """7. What will change on this machine, and that it can be done; nothing has changed yet.

    Nor is anything taken away of what the former assignment had on the interfaces that this one is `without`.
    """
    with machine.report.step("plan") as notes:
        resolved = find_nics(machine, stated(assignment))
        notes += resolved.notes
        also = prepared.await_prepared(machine) if machine.on_prepared else frozenset()
        complaints = preflight.missing(
            resolved.config, interfaces=[nic.name for nic in machine.facts.nics],
            networkmanager=machine.manager.version(), root=machine.root)
        if complaints:
            raise DocumentError(complaints)
        ownership = profiles.whose(machine.manager, machine.store.read_manifest(), resolved.config, also)
        before = former_state(machine, without)
        wanted = former.removing(of_this_stage(machine.stage, resolved.config), before)

        def compared(shown: Mapping[str, Any]) -> Plan:
            desired = former.keeping_ip(wanted, shown, ownership.foreign) if ownership.override else wanted
            current = former.without_strangers(shown, desired, before)
            return Plan(
                assignment=assignment, desired=desired, names=resolved.names, nics=resolved.nics,
                changes=tuple(differences(desired, current, thorough=True)),
                foreign=ownership.foreign, override=ownership.override,
                retired=frozenset(former.names(desired) - former.names(resolved.config)),
                strangers=find_strangers(machine, shown, desired, before, former.names(before) - {*ownership.foreign}))

        looked_ahead = machine.current is not None
        plan = compared(current_state(machine))
        if plan.changes and looked_ahead:
            # NetworkManager has gone on meanwhile: what it was still bringing up is neither missing nor a stranger's.
            plan = compared(current_state(machine))
        if assignment.configurator == KEYFILES:
            plan = of_keyfiles(machine, plan, resolved)
        machine.report.plan = plan.lines()
        notes.append("in force" if plan.in_force else f"{len(plan.changes)} changes")
        return plan


def stated(assignment: Assignment) -> Assignment:
    """The assignment with its configuration in nmstate's words; one of keyfiles says what they bring about."""
    if assignment.configurator != KEYFILES:
        return assignment
    from homeport import givenkeyfiles
    return givenkeyfiles.stated(assignment)


def of_this_stage(stage: Stage, config: dict[str, Any]) -> dict[str, Any]:
    """In the initramfs without the running host name: NetworkManager there, without hostnamed, puts back the one of its
    /etc/hostname; and the real root sets its own when it starts, from what is handed over.
    """
    if stage is not Stage.INITRD or "running" not in (config.get("hostname") or {}):
        return config
    hostname = {key: value for key, value in config["hostname"].items() if key != "running"}
    return {key: value for key, value in config.items() if key != "hostname"} | (
        {"hostname": hostname} if hostname else {})


def of_keyfiles(machine: Machine, plan: Plan, resolved: Resolved) -> Plan:
    """The plan of an assignment that is keyfiles: NetworkManager gets those, and nothing of nmstate's."""
    from homeport import givenkeyfiles
    return replace(
        plan, desired=resolved.config, names=givenkeyfiles.kernel_names(plan.assignment, resolved),
        keyfiles=givenkeyfiles.own_keyfiles(machine, plan.assignment), retired=frozenset(),
        changes=(*plan.changes, *givenkeyfiles.changes(machine, plan.assignment)))


def former_state(machine: Machine, without: Collection[str] = ()) -> Mapping[str, Any]:
    """The desired state of the assignment that was kept last; nothing if there is none that can be understood."""
    state = state_of(machine, machine.store.read_assigned())
    return beside.without(state, without) if without else state


def find_strangers(machine: Machine, shown: Mapping[str, Any], desired: Mapping[str, Any], before: Mapping[str, Any],
                   names: Collection[str]) -> dict[str, strangers.Added]:
    """What others added to `names`. Before anybody is said to, the document before the last one is asked, too: after a
    power cut its profiles may still be those in force.
    """
    found = strangers.find(shown, desired, before, names)
    if not found:
        return found
    previous = state_of(machine, machine.store.read_previous())
    return strangers.find(shown, desired, former.together(before, previous), names)


def state_of(machine: Machine, data: bytes | None) -> Mapping[str, Any]:
    """What a document that was kept asks for on this machine; nothing if that cannot be said any more."""
    if data is None:
        return {}
    try:
        assignment = document.parse_document(
            data, machine=machine.identity.match_facts if machine.identity else {},
            content_type=machine.store.read_manifest().content_type)
    except HomeportError as error:
        log.debug("cannot tell what the former assignment had: %s, going on without", error)
        return {}
    return resolve(stated(assignment).config, machine.facts.nics).config


def current_state(machine: Machine) -> dict[str, Any]:
    """The current state: as it was looked at during the fetch, if that worked; a new look otherwise."""
    ahead, machine.current = machine.current, None
    if ahead is not None:
        with suppress(HomeportError):  # NetworkManager was not there yet
            return ahead.result()
    return nmstatectl.show(machine.quick)


def find_nics(machine: Machine, assignment: Assignment) -> Resolved:
    """Every NIC of the document on this machine, waiting a bounded time for those that are not there yet.

    In the initramfs that is a third of the time that is left: a card that stays away must not take it from all other
    ways to a network. Raises DocumentError that names the candidates if one stays away.
    """
    patience = machine.patience(machine.settings.nic_wait, share=1 / 3)
    end = time.monotonic() + patience
    config = assignment.config
    if is_policy(config):
        config = capture(config, end, machine.quick)
        complaints = check_meaning(config, allow_dispatch=machine.settings.allow_dispatch, force=assignment.force)
        if complaints:
            raise DocumentError(complaints)
    resolved = resolve(config, machine.facts.nics)
    if resolved.missing:
        journal.console(f"waiting for {', '.join(resolved.missing)}, {patience:.0f} s at most")
    while resolved.missing and nics.wait_for_change(end):
        machine.facts = replace(machine.facts, nics=nics.read_nics(machine.root))
        resolved = resolve(config, machine.facts.nics)
    if resolved.complaints:
        raise DocumentError(resolved.complaints)
    return resolved


def capture(policy: Mapping[str, Any], end: float, timeout: float) -> dict[str, Any]:
    """The state that a policy comes to, as soon as what it captures is there: a default route, say.

    Not waiting for "online": that may never come without what the policy is to bring.
    """
    told = False
    while True:
        try:
            return nmstatectl.resolve_policy(policy, timeout)
        except nmstatectl.NotCaptured as error:
            left = end - time.monotonic()
            if left <= 0:
                raise
            if not told:
                journal.console(f"waiting {left:.0f} s at most: {error.message.partition(': ')[2]}")
            told = True
            time.sleep(min(1.0, left))
