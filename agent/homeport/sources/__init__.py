"""Where a configuration can come from.

`SOURCES` is the list, in the order in which they are asked unless the settings say otherwise: what was
put into this machine before what needs a network. The first that has something decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from homeport.core.facts import Facts
from homeport.errors import NoAssignment, SourceError, Unconfigured
from homeport.sources.patience import SYSTEM_CLOCK, Clock
from homeport.sources.reply import LARGEST, Reply, finality

if TYPE_CHECKING:
    from homeport.core.identity import Identity
    from homeport.settings import Settings

__all__ = ["LARGEST", "SOURCES", "Clock", "Reply", "fetch", "is_at_hand", "may_register", "needs_network", "read_seed"]

SOURCES = ("credential", "fw-cfg", "file", "drive", "url", "elemental", "platform")
OVER_NETWORK = ("url", "elemental")
# What is here, or is not: being there is their configuration.
AT_HAND = ("credential", "fw-cfg", "file", "drive")
NOTHING_KNOWN = Facts()


def fetch(settings: Settings, identity: Identity, *, deadline: float, root: str | os.PathLike[str] = "/",
          etag: str = "", etag_url: str = "", floor: float = 0.0, clock: Clock = SYSTEM_CLOCK,
          progress: Callable[[str], None] = lambda line: None, facts: Facts = NOTHING_KNOWN) -> Reply:
    """The document of the first source that has one, by the order in `settings.sources`.

    `deadline` is a time of `clock.monotonic` that bounds all of it.  `etag` and `etag_url` are those of
    the Reply that is on disk, if any; the answer may then be `not_modified`.  `floor` is an instant that
    has surely passed (seconds since 1970), for judging certificates by a wrong clock.  `progress` gets a
    line for each failed attempt.  `facts` are for the platform source: where we are is not who we are.

    Raises DocumentError for a document that is too large or ambiguous, and if no source has one the
    SourceError that leaves most open: "none for this machine" only if every configured source says so.
    Its notes (PEP 678) say for each source why it had nothing.
    """
    passed_over: list[str] = []
    failures: list[SourceError] = []
    for name in settings.sources:
        if not _is_configured(name, settings, root):
            passed_over.append(f"{name}: not configured")
            continue
        try:
            reply = _ask(name, settings, identity, deadline=deadline, root=root, etag=etag,
                         etag_url=etag_url, floor=floor, clock=clock, progress=progress, facts=facts)
        except SourceError as error:
            passed_over.append(f"{name}: {error.message}")
            # Nothing where nobody said that there is something: as good as not configured.
            if not (isinstance(error, Unconfigured) or (
                    name in ("credential", "fw-cfg") and isinstance(error, NoAssignment))):
                failures.append(error)
            continue
        return replace(reply, passed_over=tuple(passed_over))
    raise _verdict(failures, passed_over)


def needs_network(settings: Settings, root: str | os.PathLike[str] = "/") -> bool:
    """Whether a source may be asked that is beyond a network: if not, nothing has to wait for one."""
    return any(name in settings.sources and _is_configured(name, settings, root) for name in OVER_NETWORK)


def may_register(settings: Settings, root: str | os.PathLike[str] = "/") -> bool:
    """Whether this machine has a registration server, by the settings or by Elemental's configuration."""
    if "elemental" not in settings.sources:
        return False
    from homeport.host.elemental import read_registration
    return bool(settings.registration or read_registration(root).url)


def read_seed(settings: Settings, *, root: str | os.PathLike[str] = "/") -> Reply:
    """The document for when there is no other. Raises NoAssignment if there is none."""
    from homeport.sources import seeds
    return seeds.read(settings, root=root)


def is_at_hand(settings: Settings, root: str | os.PathLike[str] = "/") -> bool:
    """Whether a source that needs no network may have something: nothing is read, so it costs nothing."""
    from homeport.sources import credential
    return any((name != "credential" and _is_configured(name, settings, root))
               or (name == "credential" and credential.is_there(root))
               for name in AT_HAND if name in settings.sources)


def _is_configured(name: str, settings: Settings, root: str | os.PathLike[str]) -> bool:
    from homeport.sources.address import is_url
    if name == "elemental":
        return may_register(settings, root)
    if name == "credential":
        return True  # being there is its configuration
    if name == "platform":
        return _may_ask_platform(settings, root)
    if name == "fw-cfg":
        from homeport.sources import fwcfg
        return fwcfg.is_there(root)
    if name == "drive":
        from homeport.sources import drive
        return drive.is_there(root)
    return any(is_url(location) == (name == "url") for location in settings.config)


def _may_ask_platform(settings: Settings, root: str | os.PathLike[str]) -> bool:
    """By itself only where nothing else is configured: a server that is away for an hour must not make its
    machines take what the cloud says instead.
    """
    others = (name for name in settings.sources if name not in ("platform", "credential"))
    return settings.platform != "off" and (
        settings.platform != "auto" or not any(_is_configured(name, settings, root) for name in others))


def _ask(name: str, settings: Settings, identity: Identity, *, root: str | os.PathLike[str],
         deadline: float, etag: str, etag_url: str, floor: float, clock: Clock,
         progress: Callable[[str], None], facts: Facts) -> Reply:
    """Each source is imported only when it is asked: `url` brings the most expensive imports of all."""
    if name == "credential":
        from homeport.sources import credential
        return credential.fetch(root=root)
    if name == "fw-cfg":
        from homeport.sources import fwcfg
        return fwcfg.fetch(root=root)
    if name == "file":
        from homeport.sources import file
        return file.fetch(settings, identity, root=root)
    if name == "drive":
        from homeport.sources import drive
        return drive.fetch(identity, root=root)
    if name == "elemental":
        from homeport.sources import elemental
        return elemental.fetch(settings, identity, root=root, deadline=deadline, floor=floor, clock=clock,
                               progress=progress)
    if name == "platform":
        from homeport.sources import platform
        return platform.fetch(settings, facts, root=root, deadline=deadline, floor=floor, clock=clock,
                              progress=progress)
    from homeport.sources import url
    return url.fetch(settings, identity, root=root, etag=etag, etag_url=etag_url, deadline=deadline,
                     floor=floor, clock=clock, progress=progress)


def _verdict(failures: list[SourceError], passed_over: list[str]) -> SourceError:
    if not failures:
        return Unconfigured("No source of an assignment is configured, and no credential was passed",
                            "set Config= in /etc/homeport/homeport.conf or homeport.config= on the kernel "
                            "command line")
    verdict = min(failures, key=finality)
    for reason in passed_over:
        verdict.add_note(reason)
    return verdict
