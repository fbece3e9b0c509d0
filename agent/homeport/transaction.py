"""Apply, prove, and commit or roll back: the part of a boot during which the network is not yet ours.

Knows what NetworkManager's checkpoint puts back and what it does not, and remembers the latter on disk
before anything changes, so that a killed run can be undone by the next one. What is unproven lives in
memory only (/run): a power cut at any point leaves the former configuration.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from homeport import prepared
from homeport.core.compare import differences
from homeport.core.plan import Plan
from homeport.core.strangers import handed_along, without_ports
from homeport.errors import ApplyError, HomeportError
from homeport.host import nmstatectl, sidefiles
from homeport.host.files import remove
from homeport.host.networkmanager import Manager, Profile
from homeport.host.profiles import RUN_FOLDER
from homeport.host.store import Inflight, OwnedFile
from homeport.machine import Machine

log = logging.getLogger(__name__)

# NetworkManager rolls back by itself this long after the apply, whatever became of us; the proof's own
# limit is added. One period for a slow apply, one for the commit.
WINDOW = 60
# How often the current state is compared while addresses settle (duplicate address detection), in seconds.
SETTLE_PAUSE = 0.03


class Transaction:
    """`with Transaction(machine, plan): …` commits at the end, and undoes everything on any exception."""

    doing = "applying"

    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine = machine
        self.plan = plan
        self.before = Inflight(boot_id=machine.report.boot_id)
        self._put_back: Callable[[], None] | None = None

    def __enter__(self) -> Transaction:
        manager = self.machine.manager
        clear_stale_checkpoints(self.machine)
        self.before = Inflight(
            boot_id=self.machine.report.boot_id,
            global_dns=manager.global_dns(),
            hostname=socket.gethostname(),
            interfaces=self.plan.interfaces,
            profiles=tuple(profile.uuid for profile in in_memory(manager, self.plan.interfaces)),
            files=tuple(path for path in sidefiles.paths(self.plan.interfaces) if not _exists(self.machine, path)),
        )
        self.machine.new_side_files |= {*self.before.files}
        self.machine.in_memory = frozenset(
            profile.uuid for profile in manager.profiles() if profile.filename.startswith(RUN_FOLDER))
        try:
            self.machine.store.begin(self.before)
        except OSError as error:
            log.warning("Cannot write down what to put back (%s: %s), going on: a rollback still can",
                        error.filename, error.strerror)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if error is None:
            self.commit()
            return
        self.roll_back()

    def apply(self) -> None:
        """Put the desired state in force, in memory, under a checkpoint with a timer.

        NetworkManager's global DNS is put back to what it was at once: nmstate fills it, on disk, even for
        an unproven configuration, and the servers are in the profile anyway.
        """
        settings = self.machine.settings
        if self.plan.card is not None:
            from homeport.host.reapply import put_beside
            self._put_back = put_beside(
                self.machine.manager, self.plan, checkpoint_seconds=int(WINDOW + settings.proof_timeout))
            return
        if self.plan.keyfiles:
            from homeport.host.activation import bring_up
            bring_up(self.machine.manager, self.plan.keyfiles, self.plan.names,
                     timeout=self.machine.patience(settings.apply_timeout),
                     checkpoint_seconds=int(settings.apply_timeout + WINDOW + settings.proof_timeout))
            return
        if self.plan.override:
            from homeport.host.altnames import make_way
            make_way(self.plan.desired)
        nmstatectl.apply(
            handed_along(self.plan.desired, self.plan.strangers),
            timeout=self.machine.patience(settings.apply_timeout),
            override=self.plan.override, checkpoint_seconds=int(WINDOW + settings.proof_timeout))
        from homeport.host.activation import take_back
        take_back(self.machine.manager, self.plan.up)
        self.machine.manager.set_global_dns({} if self.plan.has_dns else _variants(self.before.global_dns))

    def settle(self) -> Mapping[str, Any]:
        """Wait until what is in force is what was desired; the current state.

        Raises ApplyError with the differences that are left when the time is up.
        """
        end = time.monotonic() + self.machine.patience(self.machine.settings.proof_timeout)
        while True:
            current = nmstatectl.show(self.machine.quick)
            left = differences(self.plan.in_memory, without_ports(current, self.plan.strangers))
            if not left:
                self.share_rules()
                return current
            if time.monotonic() > end:
                raise ApplyError(
                    "NetworkManager did not put in force what was desired: " + "; ".join(map(str, left[:3])),
                    "rolled back; `homeport check` finds most causes, the journal of NetworkManager the others")
            time.sleep(SETTLE_PAUSE)

    def share_rules(self) -> None:
        """What runs must be what the keyfiles will have, and each of those has every rule that is tied to none."""
        if self.plan.card is None and (self.plan.desired.get("route-rules") or {}).get("config"):
            from homeport.host.reapply import share_rules
            share_rules(self.machine.manager, self.plan.interfaces)

    def commit(self) -> None:
        """Keep what is in force; there is nothing to put back any more.

        Raises ApplyError if the checkpoint is gone: a NetworkManager that was restarted in the window
        forgets it without rolling back, and what it holds now is not what was proven.
        """
        try:
            nmstatectl.commit(self.machine.quick)
        except HomeportError:
            self.roll_back()
            raise
        finish(self.machine)

    def roll_back(self) -> None:
        """Put everything back: the checkpoint, then what it does not cover. Never raises."""
        restarted = False
        try:
            if self._put_back is not None:
                self._put_back()
            restarted = not nmstatectl.rollback(self.machine.undoing)
        except HomeportError as error:
            log.warning("Cannot roll back by checkpoint: %s; removing the new profiles instead", error)
            restarted = True
        undo(self.machine, self.before, drop_unproven=restarted)


class Confirmation(Transaction):
    """The same for profiles that NetworkManager has started with: they are in force, and only have to be proven."""

    doing = "in force already, proving"

    def __enter__(self) -> Confirmation:
        return self

    def apply(self) -> None:
        """Nothing: it is all there."""

    def commit(self) -> None:
        if self.machine.prepared is not None:
            prepared.confirm(self.machine, self.machine.prepared)

    def roll_back(self) -> None:
        prepared.drop(self.machine)


def recover(machine: Machine) -> None:
    """Undo what an earlier run began and did not finish (killed, or the power went)."""
    inflight = machine.store.read_inflight()
    if inflight is None:
        return
    log.warning("An earlier run was interrupted while applying; undoing what it left")
    clear_stale_checkpoints(machine)
    undo(machine, inflight, drop_unproven=inflight.boot_id == machine.report.boot_id)


def undo(machine: Machine, before: Inflight, *, drop_unproven: bool) -> None:
    """Put back what no checkpoint covers; with `drop_unproven` also profiles that outlived theirs."""
    for path in before.files:
        if remove(machine.root, path):
            log.debug("removed %s, which nmstate left", path)
    try:
        manager = machine.manager
        if before.global_dns is not None and manager.global_dns() != _variants(before.global_dns):
            manager.set_global_dns(_variants(before.global_dns))
        uncover(manager, machine.store.read_manifest().owned)
        if drop_unproven:
            drop_unproven_profiles(manager, before)
    except HomeportError as error:
        log.warning("Cannot undo everything: %s; the next boot starts without it", error)
    if before.hostname and socket.gethostname() != before.hostname:
        socket.sethostname(before.hostname)
    finish(machine)


def finish(machine: Machine) -> None:
    """Forget what would have to be put back. What cannot be removed is undone again by the next run."""
    try:
        machine.store.finish()
    except OSError as error:
        log.warning("Cannot remove %s: %s; the next run undoes once more", error.filename, error.strerror)


def uncover(manager: Manager, owned: Iterable[OwnedFile]) -> None:
    """Let our files in /etc count again where a rollback left a copy in /run before them (NetworkManager 1.42)."""
    paths = {file.uuid: f"/{file.path}" for file in owned}
    for profile in manager.profiles():
        path = paths.get(profile.uuid)
        if path and profile.filename.startswith("/run/") and os.path.exists(path) and manager.load([path])[0]:
            os.unlink(profile.filename)
            manager.load([profile.filename])


def drop_unproven_profiles(manager: Manager, before: Inflight) -> None:
    """Take down the profiles that came into memory since `before`; nothing of theirs was proven.

    The file in /etc that one may shadow comes to light again.
    """
    for profile in in_memory(manager, before.interfaces):
        if profile.uuid not in before.profiles:
            os.unlink(profile.filename)
            manager.load([profile.filename])
            if manager.profile(profile.uuid) is not None:
                # Ours in /etc came to light; it is not what is in force until it is activated again.
                manager.activate(profile.uuid, profile.interface_name or None)


def in_memory(manager: Manager, interfaces: Iterable[str]) -> list[Profile]:
    """The profiles of these interfaces that exist in /run only, where nmstate's `--memory-only` puts them."""
    names = set(interfaces)
    return [profile for profile in manager.profiles()
            if profile.interface_name in names and profile.filename.startswith(RUN_FOLDER)]


def clear_stale_checkpoints(machine: Machine) -> None:
    """Roll back checkpoints that somebody left: with one pending nmstate refuses every apply."""
    for path in machine.manager.checkpoints():
        log.warning("A checkpoint was left pending by another program; rolling it back")
        machine.manager.rollback_checkpoint(path)


def _exists(machine: Machine, path: str) -> bool:
    return (machine.root / path).exists()


def _variants(value: Any) -> Any:
    """JSON made lists of D-Bus variants (signature, value); jeepney wants them as tuples again."""
    if isinstance(value, dict):
        return {key: _variants(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_variants(item) for item in value]
        is_variant = len(items) == 2 and isinstance(items[0], str) and not isinstance(items[1], str)
        return tuple(items) if is_variant else items
    return value
