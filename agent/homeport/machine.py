"""The machine that one run of homeport works on: where its root is, what was read, what it is told with.

Knows how to open the doors once and hand them round. Decides nothing; `boot.py` does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeport.core.facts import Facts, Stage
from homeport.core.identity import Identity
from homeport.errors import SettingsError
from homeport.host.store import Store
from homeport.report import Report
from homeport.settings import Settings

if TYPE_CHECKING:
    from homeport.host.ahead import Ahead
    from homeport.host.networkmanager import Manager
    from homeport.prepared import Prepared

# Seconds: what nmstatectl has in any case, when the time of all is up. NetworkManager rolls back in 1 to 3; where that
# is stopped before its end, the checkpoint's own timer does it.
LEAST_QUICK, LEAST_UNDOING = 5.0, 10.0


@dataclass
class Machine:
    """One run's workplace. Times are `time.monotonic()` seconds."""

    root: Path
    settings: Settings
    stage: Stage
    store: Store
    report: Report
    facts: Facts = field(default_factory=Facts)
    identity: Identity | None = None
    started: float = field(default_factory=time.monotonic)
    dry_run: bool = False
    current: Ahead[dict[str, Any]] | None = None
    free_interfaces: frozenset[str] = frozenset()
    in_memory: frozenset[str] | None = None  # UUIDs of the profiles in /run before the apply; None: nothing was applied
    new_side_files: frozenset[str] = frozenset()  # what nmstate may write beside profiles, and was not there before
    settings_fault: SettingsError | None = None
    ends: float | None = None  # when all of it must be over; None: each thing has its own limit
    asks_once: bool = False  # not again what the initramfs has asked in this boot
    on_prepared: bool = False  # whether what is understood is the document that the prepared profiles were made of
    _prepared: Prepared | None = None
    _protected: frozenset[str] | None = None
    _looked: bool = False
    _manager: Manager | None = None
    _nm_patience: float | None = None

    @property
    def manager(self) -> Manager:
        """NetworkManager on the system bus, opened when first needed.

        Raises ApplyError if it doesn't answer in time; the time is for the whole run, not for each rung.
        """
        if self._manager is None:
            from homeport.host.networkmanager import Manager
            if self._nm_patience is None:
                self._nm_patience = time.monotonic() + self.patience(self.settings.nm_wait)
            manager = Manager()
            manager.wait_ready(self._nm_patience)
            self._manager = manager
        return self._manager

    @property
    def prepared(self) -> Prepared | None:
        """Profiles that were made before NetworkManager ran, if any still have to show that they work."""
        if not self._looked:
            from homeport.prepared import read
            self._looked, self._prepared = True, read(self.root)
        return self._prepared

    @prepared.setter
    def prepared(self, value: Prepared | None) -> None:
        self._looked, self._prepared = True, value

    @property
    def protected(self) -> frozenset[str]:
        """The interfaces that the root file system stands on: never to be taken down."""
        if self._protected is None:
            from homeport.host.rootfs import cards_under, network_root
            # In the initramfs a root that is only promised stands on nothing yet: we are asked before it is mounted, so
            # that it is mounted over the assigned addresses.
            where = network_root(self.facts.cmdline, self.root, promised=self.stage is not Stage.INITRD)
            self._protected = cards_under(where, self.root) if where else frozenset()
        return self._protected

    def patience(self, seconds: float, *, share: float = 1, least: float = 0.5) -> float:
        """At most `seconds` to wait, and at most that share of what is left if all must be over before; never nothing.
        """
        return seconds if self.ends is None else max(least, min(seconds, (self.ends - time.monotonic()) * share))

    @property
    def quick(self) -> float:
        """Seconds for what nmstatectl does in milliseconds: for a busy machine, not to wait for anything."""
        from homeport.host.nmstatectl import QUICK_SECONDS
        return self.patience(QUICK_SECONDS, least=LEAST_QUICK)

    @property
    def undoing(self) -> float:
        """Seconds for a rollback: it must come to its end also when all should be over."""
        from homeport.host.nmstatectl import ROLLBACK_SECONDS
        return self.patience(ROLLBACK_SECONDS, least=LEAST_UNDOING)

    def close(self) -> None:
        if self._manager is not None:
            self._manager.close()
            self._manager = None
