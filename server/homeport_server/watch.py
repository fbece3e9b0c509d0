"""The manifests in force: the first set, and each new one when the folder has changed.

A set with faults is told about, fault by fault, and the last good one stays in force, over restarts of the server,
too. Machines notice nothing of a reload but what they are assigned next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from homeport_server.manifests import folder
from homeport_server.manifests.documents import Fault
from homeport_server.manifests.folder import Signature, UnreadableFolder
from homeport_server.manifests.sets import Manifests, read_manifests
from homeport_server.registrar import Registrar
from homeport_server.store.tokens import token_map
from homeport_server.web.site import Site, Tokens

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
MOST_FAULTS_SHOWN = 50


class BadManifests(Exception):
    """There is no good set to start with."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = tuple(faults)


class Watch:
    """Keeps `site` at what the manifests in `path` say; `kept` is where the last good set is kept."""

    def __init__(self, path: Path, kept: Path, site: Site, *, check_config: bool = True) -> None:
        self.path = path
        self.kept = kept
        self.site = site
        self.check_config = check_config
        self.signature: Signature = ()
        self.asked = asyncio.Event()
        self.trouble = ""

    async def start(self) -> None:
        """Put the first set in force: the folder's, or the last good one if that is bad. Raises BadManifests."""
        self.signature = await asyncio.to_thread(folder.signature, self.path)
        faults = await self.load()
        if not faults:
            return
        kept = folder.last_good(self.kept)
        if kept is None:
            raise BadManifests(faults)
        manifests, old_faults = read_manifests(kept, check_config=self.check_config)
        if old_faults:
            raise BadManifests(faults)
        _tell(faults)
        await self.put_in_force(manifests)
        log.warning("Starting with the last manifests that were good (%s); mend those in %s", manifests, self.path)

    def look_now(self) -> None:
        """As if the folder had changed (SIGHUP)."""
        self.signature = ()
        self.asked.set()

    async def keep_watching(self) -> None:
        """Load whenever the folder has changed, and has come to rest."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.asked.wait()
            except TimeoutError:
                pass
            self.asked.clear()
            try:
                await self.look()
                self.trouble = ""
            except Exception as error:
                # Whatever it is: the set in force stays, and a later look may succeed. Said once, not every second.
                self.signature = ()
                if str(error) != self.trouble:
                    self.trouble = str(error)
                    log.error("Cannot reload the manifests: %s; the last good ones stay in force", error)

    async def look(self) -> None:
        """Load, if there is something new."""
        seen = await asyncio.to_thread(folder.signature, self.path)
        if seen == self.signature:
            return
        await asyncio.sleep(LOOK_SECONDS / 4)
        if seen != await asyncio.to_thread(folder.signature, self.path):
            return  # somebody is writing still
        self.signature = seen
        faults = await self.load()
        if faults:
            _tell(faults)
            log.error("%d faults in the manifests: the last good ones stay in force", len(faults))

    async def load(self) -> list[Fault]:
        """Read the folder, and put it in force if it is good. Gives the faults. Raises UnreadableFolder."""
        files = await asyncio.to_thread(folder.read_files, self.path)
        manifests, faults = await asyncio.to_thread(read_manifests, files, check_config=self.check_config)
        if faults:
            return faults
        await self.put_in_force(manifests)
        try:
            await asyncio.to_thread(folder.keep_good, self.kept, files)
        except OSError as error:
            log.warning("Cannot keep the manifests for a later start: %s; going on", error)
        return []

    async def put_in_force(self, manifests: Manifests) -> None:
        def change(registrar: Registrar) -> tuple[list[str], Tokens]:
            warnings = registrar.put_in_force(manifests)
            tokens = registrar.database.change(
                lambda connection: token_map(connection, manifests.registrations, registrar.chance))
            return warnings, Tokens(tokens)

        warnings, self.site.tokens = await self.site.clerk.do(change, patient=True)
        for warning in warnings:
            log.warning("%s", warning)
        log.info("in force: %s", manifests)


def _tell(faults: Sequence[Fault]) -> None:
    for fault in faults[:MOST_FAULTS_SHOWN]:
        log.error("%s", fault)
    if len(faults) > MOST_FAULTS_SHOWN:
        log.error("and %d more: homeport-server check shows them all", len(faults) - MOST_FAULTS_SHOWN)


__all__ = ["BadManifests", "UnreadableFolder", "Watch"]
