"""The steps of the story, each one line in the journal and one row of `homeport status`.

Each knows the machine and the pure core, does its one thing, and says what came of it; what happens
when it fails is for the ladder in `boot.py` to decide.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from homeport import prepared, runtime, sources
from homeport.core import beside, document, former, identity, strangers
from homeport.core.checks import check_meaning
from homeport.core.compare import differences
from homeport.core.document import Assignment
from homeport.core.facts import Stage
from homeport.core.identity import Identity, TpmFact
from homeport.core.nics import Resolved, resolve
from homeport.core.plan import Plan
from homeport.core.proof import Target
from homeport.core.schema import is_policy
from homeport.errors import DocumentError, HomeportError, NoAssignment, Pending, PersistError
from homeport.host import facts, journal, nics, nmstatectl, preflight, profiles
from homeport.host.ahead import Ahead
from homeport.host.store import Manifest
from homeport.host.tpmdevice import WAIT, await_tpm
from homeport.machine import Machine
from homeport.sources import Reply
from homeport.sources.patience import SYSTEM_CLOCK, delays
from homeport.transaction import Transaction
from homeport.version import COMMIT_TIME

if TYPE_CHECKING:
    from homeport.host.proof import Evidence

log = logging.getLogger(__name__)

# The rungs on which what is in force was proven.
PROVEN = ("assigned", "last-known-good", "seed")

# Seconds in which a registration server must have heard what became of an assignment.
TELLING = 20.0
# The configurator whose configuration is keyfiles.
KEYFILES = "nmconnections"


def read_facts(machine: Machine) -> None:
    """1. What this machine says of itself."""
    with machine.report.step("facts") as notes:
        machine.facts = found = facts.read_facts(machine.settings, machine.stage, machine.root)
        machine.report.mode, machine.report.mode_reason = found.mode, found.mode_reason
        links = [nic.name + " (virtual)" * nic.virtual for nic in found.nics if nic.name != "lo"]
        notes.append(f"mode {found.mode}; {', '.join(links) or 'no NIC'}")
        notes += found.notes


def identify(machine: Machine) -> None:
    """2. Who it is, and how we know. A machine without identity goes on: not every source asks for one."""
    with machine.report.step("identify") as notes:
        who = identity.identify(
            machine.facts, order=machine.settings.identity_order, override=machine.settings.identity,
            tpm=read_tpm(machine))
        machine.identity = who
        machine.report.identity = {"kind": who.kind, "value": who.value, "provenance": who.provenance}
        notes.append(f"{who.kind} {who.value}".strip())
        notes += who.rejected


def read_tpm(machine: Machine) -> TpmFact | None:
    """What the TPM says, None if nobody needs to know: it may take half a minute."""
    settings = machine.settings
    if not identity.needs_tpm(machine.facts, order=settings.identity_order, override=settings.identity,
                              templates=(*settings.config, settings.report)):
        return None
    if absent := await_tpm(machine.root, machine.patience(WAIT)):
        return TpmFact(fault=absent)
    from homeport.host import tpm
    return tpm.read_fact(machine.root, limit=machine.patience(settings.tpm_timeout))


def fetch(machine: Machine) -> Reply:
    """5. What this machine is assigned. Raises a SourceError if no source says.

    A source that says "as before" gives the document that is kept.
    """
    settings, report = machine.settings, machine.report
    known = machine.store.read_manifest() if machine.store.read_assigned() else Manifest()
    with report.step("fetch") as notes:
        machine.current = machine.current or Ahead(lambda: nmstatectl.show(machine.quick))
        if reply := already_asked(machine):
            report.fetched, report.source = True, reply.label
            notes.append(f"asked in the initramfs: {reply.label}")
            return reply
        reply = sources.fetch(
            settings, machine.identity or Identity(), root=machine.root, etag=known.etag, etag_url=known.url,
            deadline=machine.started + fetch_limit(machine), floor=max(known.proven_at, installed_at()),
            progress=lambda text: log.info("%s", text), facts=machine.facts)
        report.fetched = True
        if reply.not_modified:
            reply = recall(machine, not_modified=True)
        report.source = reply.label
        notes.append(f"{len(reply.data)} bytes from {reply.label}")
        log.info("assignment from %s", reply.label)
        return reply


def already_asked(machine: Machine) -> Reply | None:
    """What the initramfs was told in this boot, None if it was not told anything that is in force."""
    if not machine.asks_once:
        return None
    early = machine.store.read_initrd_status() or {}
    if machine.prepared is not None and machine.prepared.fetched and machine.prepared.rung == prepared.ASSIGNED:
        return machine.prepared.reply(prepared.document(machine.root))
    told = early.get("fetched") and early.get("rung") == "assigned" and early.get("boot_id") == machine.report.boot_id
    if told and early.get("revision") == machine.store.read_manifest().revision and machine.store.read_assigned():
        return recall(machine, not_modified=True)
    return None


def fetch_until_ready(machine: Machine) -> tuple[Reply, Assignment]:
    """5 and 6. What this machine is assigned, understood; asked again while the answer is "not yet".

    Only over the network, within the deadline, and only if there is nothing to stand on meanwhile: a machine
    that has its last-known-good goes on booting with it, and a refresh asks later. Raises as both steps do.
    """
    report = machine.report
    patience = machine.started + fetch_limit(machine)
    for delay in delays(SYSTEM_CLOCK.chance):
        over_network = True
        try:
            reply = fetch(machine)
            over_network = reply.over_network
            return reply, understand(machine, reply)
        except Pending as error:
            delay = max(delay, error.retry_after or 0)
            if not over_network or machine.store.read_assigned() or time.monotonic() + delay > patience:
                raise
            report.status_line(f"not ready yet: {error.message}")
            log.info("not ready yet, asking again in %.1f s: %s", delay, error.message)
            time.sleep(delay)
    raise AssertionError("delays never end")


def installed_at() -> float:
    """When this program was made or put where it is: an instant that has passed, whatever the clock says (seconds)."""
    try:
        return max(float(COMMIT_TIME), os.stat(sys.argv[0]).st_mtime)
    except OSError:
        return float(COMMIT_TIME)


def fetch_limit(machine: Machine) -> float:
    """Seconds from the start of the run within which a source must have answered."""
    settings = machine.settings
    # In the initramfs a third is left for cards, applying and proof.
    return settings.initrd_deadline * 2 / 3 if machine.stage is Stage.INITRD else settings.deadline


def recall(machine: Machine, *, not_modified: bool = False) -> Reply:
    """The last-known-good document, as if it had just arrived. Raises NoAssignment if there is none."""
    data, manifest = machine.store.read_assigned(), machine.store.read_manifest()
    if data is None:
        raise NoAssignment("nothing was ever proven on this machine", "it keeps what it is assigned once that works")
    return Reply(data=data, source=manifest.source, url=manifest.url, etag=manifest.etag,
                 content_type=manifest.content_type, over_network=not_modified, not_modified=not_modified,
                 volatile=manifest.volatile, reconciles=manifest.reconciles)


def read_seed(machine: Machine) -> Reply:
    """A local document of the image. Raises NoAssignment if there is none."""
    with machine.report.step("seed") as notes:
        reply = sources.read_seed(machine.settings, root=machine.root)
        machine.report.source = reply.label
        notes.append(reply.label)
        return reply


def understand(machine: Machine, reply: Reply) -> Assignment:
    """6. The assignment in the document; raises DocumentError with every complaint, or Pending."""
    with machine.report.step("understand") as notes:
        assignment = document.understand_document(
            reply.data, machine=machine.identity.match_facts if machine.identity else {},
            content_type=reply.content_type, allow_dispatch=machine.settings.allow_dispatch)
        machine.report.revision = assignment.revision
        notes.append(f"revision {assignment.revision}")
        machine.on_prepared = machine.prepared is not None and prepared.is_prepared(machine, reply)
        return assignment


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
        desired = former.removing(of_this_stage(machine.stage, resolved.config), before)
        shown = current_state(machine)
        if ownership.override:
            desired = former.keeping_ip(desired, shown, ownership.foreign)
        current = former.without_strangers(shown, desired, before)
        plan = Plan(
            assignment=assignment, desired=desired, names=resolved.names, nics=resolved.nics,
            changes=tuple(differences(desired, current, thorough=True)),
            foreign=ownership.foreign, override=ownership.override,
            retired=frozenset(former.names(desired) - former.names(resolved.config)),
            strangers=find_strangers(machine, shown, desired, before, former.names(before) - {*ownership.foreign}))
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


def apply(machine: Machine, transaction: Transaction) -> None:
    """8. The desired state, in memory, under a checkpoint."""
    with machine.report.step("apply"):
        log.info("%s revision %s", transaction.doing, machine.report.revision)
        # While nmstatectl works: what comes after is read from disk, and other hosts are asked for our addresses.
        ahead = Ahead(lambda: import_module("homeport.persist"))
        free = Ahead(lambda: free_addresses(transaction.plan.desired))
        transaction.apply()
        ahead.result()
        machine.free_interfaces = free.result()


def free_addresses(desired: Mapping[str, Any]) -> frozenset[str]:
    """The interfaces whose addresses nobody else has; those of which that cannot be said now are not among them."""
    from homeport.host import proof
    try:
        return proof.probe_addresses(desired)
    except OSError as error:  # an interface that goes away meanwhile
        log.debug("not probed ahead: %s", error)
        return frozenset()


def compare(machine: Machine, transaction: Transaction) -> None:
    """9a. Every address passed duplicate address detection, and what is in force is what was desired.

    Raises ProofError or ApplyError.
    """
    from homeport.host import proof
    with machine.report.step("compare") as notes:
        machine.report.proof = []
        with recorded(machine, notes) as evidence:
            evidence += proof.prove_addresses(
                transaction.plan.desired, deadline=time.monotonic() + machine.patience(machine.settings.proof_timeout),
                free=machine.free_interfaces)
        transaction.settle()


def prove(machine: Machine, plan: Plan, reply: Reply) -> None:
    """9b. What must be reachable is reached, through the new configuration. Raises ProofError."""
    from homeport.host import proof
    with machine.report.step("prove") as notes:
        targets: Sequence[Target] = plan.assignment.proof or ()
        with recorded(machine, notes) as evidence:
            evidence += proof.prove(
                targets, desired=plan.desired, source_url=source_to_reach(machine, reply),
                deadline=time.monotonic() + machine.patience(machine.settings.proof_timeout),
                ca_files=machine.settings.ca, addresses_proven=True)


@contextmanager
def recorded(machine: Machine, notes: list[str]) -> Iterator[list[Evidence]]:
    """Put the evidence into the report, also that of a proof that failed."""
    from homeport.host.proof import ProofFailed
    evidence: list[Evidence] = []
    try:
        yield evidence
        notes += map(str, evidence)
    except ProofFailed as error:
        evidence += error.evidence
        raise
    finally:
        machine.report.proof += map(str, evidence)


def source_to_reach(machine: Machine, reply: Reply) -> str:
    """What the source is reached by: the proxy if there is one, "" if the source needs no network."""
    return (machine.settings.proxy or reply.target) if reply.over_network else ""


def check_keyfiles(machine: Machine, plan: Plan) -> None:
    """10. That what is about to be committed can also be kept. Raises ApplyError."""
    from homeport.persist import our_keyfiles, verdict
    if plan.card is not None:
        return  # nothing of it is kept
    with machine.report.step("keyfiles"):
        verdict(machine, our_keyfiles(machine, plan))


def persist(machine: Machine, plan: Plan, reply: Reply) -> None:
    """11. Raises PersistError: in force, but it will not survive a reboot."""
    if reply.volatile:
        remember(machine, plan, reply)
        return
    from homeport.persist import write_all
    with machine.report.step("persist") as notes:
        try:
            notes.append(write_all(machine, plan, reply))
        except OSError as error:
            place = f"/{str(error.filename).lstrip('/')}" if error.filename else "the disk"
            raise PersistError(
                f"cannot be kept: {error.strerror} ({place})",
                "after a reboot this machine has its former network; make the file system writable") from error
        machine.report.persisted = True


def remember(machine: Machine, plan: Plan, reply: Reply) -> None:
    """11, for what is not to be kept: until the machine is switched off. Raises PersistError."""
    with machine.report.step("remember") as notes:
        try:
            notes.append(runtime.remember(machine, plan, reply))
            machine.report.volatile = True
        except OSError as error:
            raise PersistError(f"cannot be remembered: {error.strerror} (/{str(error.filename).lstrip('/')})",
                               "it is in force; what goes out of it will not be recognised later") from error


def report(machine: Machine) -> None:
    """12. The status file, one journal line that monitoring can find, and the server if it asked."""
    outcome = machine.report
    if not machine.dry_run:
        look_round(machine)
    outcome.finished = time.time()
    journal.result(outcome)
    if machine.dry_run:
        return
    try:
        machine.store.write_status(outcome.as_json(), in_force=outcome.rung in PROVEN,
                                   in_initrd=machine.stage is Stage.INITRD)
    except OSError as error:
        log.warning("Cannot write the status file: %s; the journal has it all", error)
    if machine.settings.report and machine.stage is Stage.HOST:
        tell_server(machine)


def look_round(machine: Machine) -> None:
    """The addresses and keyfiles as they are now, for whoever reads the status."""
    try:
        machine.report.addresses = profiles.addresses_now()
    except OSError as error:
        log.debug("cannot list addresses: %s", error)
    machine.report.keyfiles = [f"/{file.path}" for file in machine.store.read_manifest().keyfiles]


def tell_registration(machine: Machine, event: str = "") -> None:
    """Tell the registration server, if this machine has one, what became of its assignment.

    Not while a boot waits: to prove who one is may take seconds, and the answer one more. `event` is "reset" when
    this machine gives its address back. A server that doesn't hear it is no reason to fail.
    """
    if not sources.may_register(machine.settings, machine.root):
        return
    from homeport.sources import elemental
    if machine.identity is None:
        identify(machine)
    try:
        elemental.tell(machine.settings, machine.identity or Identity(), root=machine.root, event=event, within=TELLING)
        log.info("told the registration server what became of it%s", f" ({event})" if event else "")
    except HomeportError as error:
        log.warning("Cannot tell the registration server: %s; it hears it the next time", error)


def tell_server(machine: Machine) -> None:
    """Post the outcome; a server that doesn't take it is no reason to fail."""
    from homeport.sources.outcome import post_report
    try:
        post_report(machine.settings, machine.identity or Identity(), machine.report.as_json(), root=machine.root)
    except HomeportError as error:
        log.warning("Cannot post the outcome: %s; it is in the status file", error)
