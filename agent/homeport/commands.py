"""The verbs of the command line: each prepares a machine, lets the story act on it, and tells the outcome.

Nothing here decides what a configuration means or what happens when it fails.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeport.core.complaint import Complaint
from homeport.errors import NotAllowed, SettingsError, Unconfigured, UsageError

if TYPE_CHECKING:
    from homeport.machine import Machine

log = logging.getLogger(__name__)

# These bring a machine its network: a slip in a settings file must not cost it that. It is told, with status 78.
GOES_ON = ("boot", "refresh", "prepare", "handover")

# These change the network: one at a time. The patience, in seconds, is for a refresh in the background.
ALONE = ("boot", "refresh", "apply", "reset")
PATIENCE = 60.0

# Seconds for the handover from the initramfs, in which a document may have to be rendered.
HANDOVER = 15.0

# A refresh that comes so soon after this boot's own fetch would only ask the same again, in seconds.
FRESH = 300
MOST_REFRESHES = 3


def boot(arguments: argparse.Namespace) -> int:
    from homeport import boot as story
    with a_machine(arguments) as machine:
        machine.dry_run = arguments.dry_run
        story.boot(machine)
        if arguments.dry_run:
            print("\n".join(machine.report.plan) or machine.report.line())
        return machine.report.exit


def prepare(arguments: argparse.Namespace) -> int:
    from homeport import prepare as before
    with a_machine(arguments) as machine:
        before.prepare(machine)
        return os.EX_OK


def handover(arguments: argparse.Namespace) -> int:
    from homeport import prepare as before
    with a_machine(arguments) as machine:
        # The root file system may have let us wait for any time.
        machine.started = time.monotonic()
        machine.ends = machine.started + HANDOVER
        if arguments.clean:
            # Said in the initramfs and for it. On the real root homeport says it anew, or, where it is masked or
            # fails, nobody does: what was proven here may be down there.
            machine.store.not_in_force()
        if arguments.clean and not before.is_tidy(arguments.root):
            from homeport.tidy import tidy
            tidy(machine)
        if not arguments.clean and before.has_something(machine):
            from homeport.handover import handover
            handover(machine)
        return os.EX_OK


def identify(arguments: argparse.Namespace) -> int:
    from homeport import asking
    from homeport.core.nicmatch import describe
    from homeport.report import show_table
    with a_machine(arguments, root_needed=False) as machine:
        asking.read_facts(machine)
        asking.identify(machine)
        who, facts = machine.identity, machine.facts
        assert who is not None
        if arguments.json:
            print_json({
                "kind": who.kind, "value": who.value, "provenance": who.provenance, "rejected": list(who.rejected),
                "fields": dict(who.fields), "mode": facts.mode, "mode_reason": facts.mode_reason,
                "nics": [vars(nic) for nic in facts.nics]})
            return os.EX_OK if who.value else os.EX_UNAVAILABLE
        rows = [("identity:", f"{who.kind} {who.value}".strip()), ("known from:", who.provenance or "-")]
        rows += [("not used:", reason) for reason in who.rejected]
        rows += [(f"{name}:", value) for name, value in sorted(who.fields.items())]
        rows += [("mode:", f"{facts.mode} ({facts.mode_reason})")]
        rows += [("NIC:", describe(nic)) for nic in facts.nics if not nic.virtual]
        print(show_table(rows))
        return os.EX_OK if who.value else os.EX_UNAVAILABLE


def fetch(arguments: argparse.Namespace) -> int:
    from homeport import asking
    from homeport.core.secrets import mask_document
    with a_machine(arguments) as machine:
        asking.read_facts(machine)
        asking.identify(machine)
        reply = asking.fetch(machine)
        sys.stdout.buffer.write(reply.data if arguments.raw else mask_document(reply.data).encode())
        return os.EX_OK


def check(arguments: argparse.Namespace) -> int:
    """Every file, every complaint; the status of the worst."""
    results = [(name, *check_document(read_input(name), arguments.allow_dispatch)) for name in arguments.files]
    if arguments.json:
        print_json([{"file": name, "valid": not complaints, "pending": pending,
                     "complaints": [item.as_json() for item in complaints]} for name, complaints, pending in results])
    else:
        for name, complaints, pending in results:
            if complaints:
                print(f"{name}: {len(complaints)} complaint{'s' * (len(complaints) != 1)}")
                print_complaints(complaints)
            else:
                print(f"{name}: " + (f"pending: {pending}" if pending else "good"))
    if any(complaints for _, complaints, _ in results):
        return os.EX_DATAERR
    return os.EX_UNAVAILABLE if any(pending for _, _, pending in results) else os.EX_OK


def check_document(data: bytes, allow_dispatch: bool) -> tuple[Sequence[Complaint], str]:
    """The complaints about a document, and what it still waits for."""
    from homeport.core import document
    from homeport.core.placeholders import describe_open
    findings = document.check_document(data, allow_dispatch=allow_dispatch)
    if not findings.open or findings.complaints:
        return findings.complaints, ""
    return (), describe_open(findings.open, {})[0]


def render(arguments: argparse.Namespace) -> int:
    from homeport import rendering
    macs = dict(pair("--nic", text, "NAME=MAC") for text in arguments.nic)
    if arguments.platform is not None:
        files, notes = rendering.render_platform(
            arguments.platform, Path(arguments.file), root=arguments.root,
            nics=[rendering.nic(name, mac) for name, mac in macs.items()])
        for note in notes:
            print(f"homeport: {note}", file=sys.stderr)
    else:
        addresses = dict(pair("--ip", text, "NAME=ADDRESS") for text in arguments.ip)
        files = rendering.render(read_input(arguments.file), root=arguments.root, addresses=addresses, macs=macs)
    if arguments.output is None:
        print("\n".join(f"# {name}\n{text}" for name, text in files.items()), end="")
        return os.EX_OK
    for name, text in files.items():
        path = arguments.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
        print(path)
    return os.EX_OK


def apply(arguments: argparse.Namespace) -> int:
    from homeport import boot as story
    from homeport.sources import Reply
    data = read_input(arguments.file)
    with a_machine(arguments) as machine:
        name = "standard input" if arguments.file == "-" else os.path.abspath(arguments.file)
        story.apply_now(machine, Reply(data=data, source="file", url=name))
        print(f"homeport: {machine.report.line()}")
        print_complaints(machine.report.complaints)
        return machine.report.exit


def refresh(arguments: argparse.Namespace) -> int:
    """Once, and once more for a card that comes while we are at it; never for ever."""
    from homeport.host.store import Store
    for _ in range(MOST_REFRESHES):
        status = refresh_once(arguments)
        if not Store(arguments.root).is_asked_for:
            break
    return status


def refresh_once(arguments: argparse.Namespace) -> int:
    from homeport import boot as story
    from homeport.report import RESET
    with a_machine(arguments) as machine:
        before, wanted = machine.store.read_status() or {}, machine.store.take_request()
        if arguments.if_due and before.get("reason") == RESET:
            print("homeport: this machine was reset; `homeport refresh` or the next boot asks its source again")
            return os.EX_OK
        asked = any(map(just_asked, (before, machine.store.read_initrd_status() or {})))
        if arguments.if_due and asked and not wanted:
            print("homeport: this boot has just asked its source; nothing to do")
            if before.get("changed") and str(before.get("source")).startswith("elemental "):
                story.tell(machine)
            return os.EX_OK
        story.refresh(machine)
        return machine.report.exit


def just_asked(status: Mapping[str, Any]) -> bool:
    """Whether a run with this outcome asked a source a moment ago, and what it was told is in force."""
    return bool(status.get("fetched")) and time.time() - status.get("finished", 0) < FRESH


def metadata(arguments: argparse.Namespace) -> int:
    """What files are asked for are written, or all is printed. A machine on no platform is no failure."""
    from homeport import asking, instance
    wants_name = arguments.hostname is not None
    with a_machine(arguments) as machine:
        asking.read_facts(machine)
        if wants_name and (name := instance.name_that_stands(machine.root, arguments.hostname)):
            print(f"homeport: the host name stays {name}: somebody has set it")
            wants_name = False
        if arguments.attributes or wants_name or not (arguments.check_in or arguments.hostname):
            _metadata(machine, arguments, wants_name)
        if arguments.check_in:
            for line in instance.check_in(machine):
                print(f"homeport: {line}")
        return os.EX_OK


def _metadata(machine: Machine, arguments: argparse.Namespace, wants_name: bool) -> None:
    from homeport import instance
    try:
        found = instance.read(machine)
    except Unconfigured as nowhere:
        print(f"homeport: {nowhere.message}", file=sys.stderr)
        found = instance.Instance(instance.NOTHING if arguments.attributes else "", "")
    if arguments.attributes is not None:
        instance.write_attributes(machine.root, arguments.attributes, found)
    if wants_name:
        ours = machine.root == Path("/") and arguments.hostname == instance.HOSTNAME
        print("homeport: " + instance.write_hostname(machine.root, arguments.hostname, found,
                                                     instance.set_running_name(machine) if ours else None))
    if not (arguments.attributes or arguments.hostname):
        print(found.environment, end="")


def status(arguments: argparse.Namespace) -> int:
    from homeport.host.store import Store
    from homeport.report import show_status
    found, early = Store(arguments.root).read_status(), Store(arguments.root).read_initrd_status()
    if found is not None and early is not None:
        found["initrd"] = early
    if found is None:
        if arguments.json:
            print_json({"rung": "", "reason": "homeport has not run in this boot", "exit": os.EX_UNAVAILABLE})
        else:
            print("homeport has not run in this boot")
            print("what to do:  systemctl status homeport; journalctl -b -u homeport")
        return os.EX_UNAVAILABLE
    if arguments.json:
        print_json(found)
    else:
        print(show_status(found))
    return int(found.get("exit", os.EX_SOFTWARE))


def reset(arguments: argparse.Namespace) -> int:
    from homeport import fallback
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError("reset forgets the assignment of this machine", "say --yes where nobody can be asked")
        print("This machine forgets its assignment and goes back to DHCP, now and at the next boot.")
        if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return os.EX_OK
    with a_machine(arguments) as machine:
        fallback.reset_now(machine)
        print(f"homeport: {machine.report.line()}")
        return machine.report.exit


def version(arguments: argparse.Namespace) -> int:
    from homeport.version import COMMIT, VERSION
    print(f"homeport {VERSION} ({COMMIT})")
    return os.EX_OK


@contextmanager
def a_machine(arguments: argparse.Namespace, root_needed: bool = True) -> Iterator[Machine]:
    """The machine that the command line speaks of, with its settings read and its journal open."""
    from homeport.core.facts import Stage
    from homeport.host import journal, notify
    from homeport.host.facts import read_boot_id, read_cmdline
    from homeport.host.lock import only_one
    from homeport.host.store import Store
    from homeport.machine import Machine
    from homeport.report import Report
    from homeport.settings import read_settings
    from homeport.version import VERSION

    if root_needed and os.geteuid() != 0:
        raise NotAllowed(f"homeport {arguments.verb} needs root", "run it with sudo")
    root = arguments.root
    flags = {name.removeprefix("setting:"): value for name, value in vars(arguments).items()
             if name.startswith("setting:") and value is not None}
    fault = None
    try:
        settings = read_settings(root, read_cmdline(root), flags)
    except SettingsError as error:
        if arguments.verb not in GOES_ON:
            raise
        fault, settings = error, read_settings(root, read_cmdline(root), flags, lenient=True)
    journal.set_up(level="debug" if arguments.debug else settings.log_level)
    for warning in settings.warnings:
        log.warning("%s", warning)
    stage = Stage(getattr(arguments, "stage", "host"))
    report = Report(stage=stage, boot_id=read_boot_id(root), version=VERSION, status_line=notify.status)
    machine = Machine(root=root, settings=settings, stage=stage, store=Store(root), report=report,
                      settings_fault=fault)
    if stage is Stage.INITRD:
        from homeport.prepare import note
        # All of it together, from the first unit on, but for the handover: clocks of one boot are one clock.
        machine.started = note(root).get("started", machine.started)
        machine.ends = machine.started + settings.initrd_deadline
    with ExitStack() as stack:
        stack.callback(machine.close)
        if arguments.verb in ALONE:
            stack.enter_context(only_one(root, PATIENCE))
        yield machine


def read_input(name: str) -> bytes:
    """The bytes of a file or of standard input, a little more than a document may have."""
    from homeport.core.document import LIMIT
    try:
        if name == "-":
            return sys.stdin.buffer.read(LIMIT + 1)
        with open(name, "rb") as file:
            return file.read(LIMIT + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error


def pair(flag: str, text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{flag} {text}: not of the form {form}")
    return name, value


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, default=str))


def print_complaints(complaints: Sequence[Complaint]) -> None:
    """As a table on a terminal, one a line elsewhere."""
    from homeport.core.render_complaints import as_lines, as_table
    if complaints:
        print(as_table(complaints) if sys.stdout.isatty() else "\n".join(as_lines(complaints)))
