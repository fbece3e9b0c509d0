"""The last steps of the story: a plan is put in force, proven and kept, and everybody is told.

Each is one line in the journal and one row of `homeport status`, as those of `asking.py` and `planning.py` are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from homeport import runtime, sources
from homeport.asking import identify
from homeport.core.facts import Stage
from homeport.core.identity import Identity
from homeport.core.plan import Plan
from homeport.core.proof import Target
from homeport.errors import HomeportError, PersistError
from homeport.host import journal, profiles
from homeport.host.ahead import Ahead
from homeport.machine import Machine
from homeport.sources import Reply
from homeport.transaction import Transaction

if TYPE_CHECKING:
    from homeport.host.proof import Evidence

log = logging.getLogger(__name__)

# The rungs on which what is in force was proven.
PROVEN = ("assigned", "last-known-good", "seed")

# Seconds in which a registration server must have heard what became of an assignment.
TELLING = 20.0


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
