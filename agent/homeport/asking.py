"""The first steps of the story: what this machine is, and what it is assigned.

A step knows the machine and the pure core, does its one thing, and is one line in the journal and one row of
`homeport status`; what happens when it fails is for the ladder in `boot.py` to decide.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from homeport import prepared, sources
from homeport.core import document, identity
from homeport.core.document import Assignment
from homeport.core.facts import Stage
from homeport.core.identity import Identity, TpmFact
from homeport.errors import NoAssignment, Pending
from homeport.host import facts, nmstatectl
from homeport.host.ahead import Ahead
from homeport.host.store import Manifest
from homeport.host.tpmdevice import WAIT, await_tpm
from homeport.machine import Machine
from homeport.sources import Reply
from homeport.sources.patience import SYSTEM_CLOCK, delays
from homeport.version import COMMIT_TIME

log = logging.getLogger(__name__)


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
