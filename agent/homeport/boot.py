"""The story of one boot, and the ladder under it.

This is the only module that knows both the pure core and the hands on the machine. `boot` reads like the
list in design.md, section 2: a line a step; "nothing to do" is decided inside a step.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from homeport import asking, fallback, inforce, kept, planning, prepared
from homeport.core.document import Assignment
from homeport.core.facts import Mode, Stage
from homeport.core.plan import Plan, refuse_to_move
from homeport.errors import Bug, HomeportError, PersistError, SourceError
from homeport.host import journal
from homeport.machine import Machine
from homeport.runtime import as_it_runs, beside_profiles, in_parts, leave_disk, with_unread
from homeport.sources import Reply
from homeport.transaction import Confirmation, Transaction, recover

log = logging.getLogger(__name__)


def boot(machine: Machine) -> None:
    """One boot, from facts to report. What goes wrong is in the report, never raised."""
    asking.read_facts(machine)
    asking.identify(machine)
    machine.asks_once = machine.stage is Stage.HOST
    climb(machine, ladder(machine))
    settle(machine)
    forgive(machine)
    remind(machine)
    inforce.report(machine)


def assigned(machine: Machine) -> None:
    """The configuration that this machine is assigned now."""
    keep(machine, *asking.fetch_until_ready(machine))


def last_known_good(machine: Machine) -> None:
    """The newest one that was proven on this machine."""
    reply = asking.recall(machine)
    keep(machine, reply, asking.understand(machine, reply))


def seed(machine: Machine) -> None:
    """A document baked into the image. It is not persisted: a seed is where one starts, each time."""
    reply = asking.read_seed(machine)
    put_in_force(machine, planning.make_plan(machine, asking.understand(machine, reply)), reply)


def keep(machine: Machine, reply: Reply, assignment: Assignment) -> None:
    """Put a document in force and on disk. What it cannot say of a card is as it was."""
    reply, assignment = with_unread(machine, reply, assignment)
    leave_disk(machine, reply)
    plan = beside_profiles(machine, planning.make_plan(machine, assignment), reply)
    if machine.dry_run:
        return
    # Before anything changes: what comes to a card meanwhile (an IPv6 router, a lease) is to be heard of, too.
    machine.store.mark_reconciling(reply.reconciles)
    failed = in_parts(machine, plan, lambda part: put_in_force(machine, part, reply))
    inforce.persist(machine, *as_it_runs(machine, plan, reply, failed))


def put_in_force(machine: Machine, plan: Plan, reply: Reply) -> None:
    """Apply, compare, prove; committed only if all of it holds, else everything is as before."""
    if plan.in_force and not to_be_proven(machine):
        return
    refuse_to_move(plan, machine.protected)
    with (Confirmation if plan.in_force else Transaction)(machine, plan) as transaction:
        inforce.apply(machine, transaction)
        inforce.compare(machine, transaction)
        inforce.prove(machine, plan, reply)
        inforce.check_keyfiles(machine, plan)
    machine.report.changed = True


def to_be_proven(machine: Machine) -> bool:
    """Whether what is in force came by profiles that nobody has proven yet."""
    return machine.on_prepared and machine.prepared is not None and not machine.prepared.proven


Rung = tuple[str, Callable[[Machine], None]]

LADDER: tuple[Rung, ...] = (
    ("assigned", assigned),
    ("last-known-good", last_known_good),
    ("seed", seed),
    ("left-as-found", fallback.left_as_found),
    ("dhcp", fallback.dhcp),
)

# In the initramfs, where the real root's own profiles were at hand: up before anybody is asked.
LADDER_ON_KEPT: tuple[Rung, ...] = (("last-known-good", kept.stand), *LADDER)

# Recovery, reset and live: nothing but DHCP, and no server needed for it.
LADDER_ON_DHCP: tuple[Rung, ...] = (("dhcp", fallback.dhcp_by_mode),)

# On a running machine: what is in force is kept, and no seed or DHCP is put in its place.
LADDER_OF_REFRESH: tuple[Rung, ...] = (*LADDER[:2], ("seed", fallback.seed_as_it_is), LADDER[3])

WITH_ASSIGNMENT = (Mode.ACTIVE, Mode.PASSIVE)


def ladder(machine: Machine) -> tuple[Rung, ...]:
    if machine.facts.mode not in WITH_ASSIGNMENT:
        return LADDER_ON_DHCP
    return LADDER_ON_KEPT if machine.stage is Stage.INITRD and kept.is_there(machine) else LADDER


def climb(machine: Machine, ladder: tuple[Rung, ...]) -> None:
    """Down the ladder until a rung holds; each that does not is one line with its reason."""
    report = machine.report
    for name, rung in ladder:
        try:
            recover(machine)
            rung(machine)
        except PersistError as error:
            report.blemish(error)
            log.error("%s", error)
        except HomeportError as error:
            step_down(machine, name, error)
            continue
        except Exception as bug:
            log.exception("A bug in homeport")
            step_down(machine, name, Bug(f"a bug in homeport: {type(bug).__name__}: {bug}",
                                         "its journal has the traceback; please report it"))
            continue
        report.reached(name)
        return
    report.reached("left-as-found")


def step_down(machine: Machine, rung: str, error: HomeportError) -> None:
    """One line on the console, the whole reason in the journal."""
    machine.report.fell(rung, error)
    before = machine.prepared
    if before is not None and before.rung == rung and not before.proven and not machine.dry_run:
        prepared.drop(machine)
    journal.console(f"{rung}: {error.message}")
    log.warning("%s: %s, falling back", rung, error)


def refresh(machine: Machine) -> None:
    """Ask again, and apply only a change; what is in force stays if anything is wrong with the new."""
    asking.read_facts(machine)
    asking.identify(machine)
    if machine.facts.mode in WITH_ASSIGNMENT:
        climb(machine, LADDER_OF_REFRESH)
        settle(machine)
        forgive(machine)
        remind(machine)
        inforce.report(machine)
        if machine.report.changed:
            inforce.tell_registration(machine)
    elif machine.facts.mode is Mode.RESET:
        inforce.tell_registration(machine, event="reset")


def tell(machine: Machine) -> None:
    """What came of this boot, told to a server that the boot itself had no time for."""
    asking.read_facts(machine)
    inforce.tell_registration(machine)


def apply_now(machine: Machine, reply: Reply) -> None:
    """`homeport apply`: this document, now, as if it had been assigned."""
    asking.read_facts(machine)
    asking.identify(machine)
    machine.report.source = reply.label
    this_one: Rung = ("assigned", lambda _: keep(machine, reply, asking.understand(machine, reply)))
    climb(machine, (this_one, *LADDER_OF_REFRESH[1:]))
    settle(machine)
    inforce.report(machine)


def settle(machine: Machine) -> None:
    """Profiles that were prepared in the initramfs are in force and kept by now, or have to go."""
    if machine.prepared is None or machine.dry_run:
        return
    if machine.on_prepared and machine.report.rung in inforce.PROVEN:
        if machine.report.persisted:
            prepared.hand_on(machine)
        return
    # A refresh that got nowhere leaves what was proven as it found it.
    if not (machine.prepared.proven and machine.report.rung == "left-as-found"):
        prepared.drop(machine)


def forgive(machine: Machine) -> None:
    """A source that gave nothing is no failure while what it once assigned is in force."""
    if machine.report.rung == "last-known-good" and machine.report.exit == SourceError.status:
        machine.report.exit = os.EX_OK


def remind(machine: Machine) -> None:
    """Settings that could not be read are the outcome, if nothing worse is."""
    if machine.settings_fault is not None and machine.report.exit == os.EX_OK:
        machine.report.blemish(machine.settings_fault)
