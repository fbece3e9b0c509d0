"""What a platform is, as values: how it is recognised, where its metadata is, what is made of them.

A platform's module holds one `Platform`, and nothing else knows that platform.  Whoever fetches
(`sources/platforms/`) or reads saved metadata (`rendering.py`) only sees these values: no module here asks
anybody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.core.facts import Smbios
    from homeport.core.platforms.network import Network

# Metadata by name: the path below the service or on the drive. What is known not to be there is None.
Files = Mapping[str, bytes | None]

MOST_PIECES = 2000  # the largest instances of EC2 have 64 NICs with six each
MOST_BYTES = 4 << 20


class Unreadable(bytes):
    """A piece that its service doesn't give although it gives others: in words, why."""


@dataclass(frozen=True)
class Want:
    """A piece of metadata to ask for: `path` names it, `query` is only for the service.

    The platform has none for this machine if one that is not `optional` isn't there.
    """

    path: str
    query: str = ""
    optional: bool = False


Walk = Callable[[Files], Iterable[Want]]


@dataclass(frozen=True)
class Token:
    """A session that a service wants first: PUT `path` with `ask`; the answer goes into header `header`."""

    path: str
    ask: Mapping[str, str]
    header: str


@dataclass(frozen=True)
class Service:
    """Metadata behind an address.

    `wants` is asked again with what has come until it wants nothing more: some services have to be walked
    like a tree.  `by_piece`: an optional piece that cannot be had is one card's, and does not stop the others.
    `link_local`: where there is no DHCP, it is reached from a link-local address.
    """

    base: str
    wants: Walk
    headers: Mapping[str, str] | None = None
    token: Token | None = None
    by_piece: bool = False
    link_local: bool = False


@dataclass(frozen=True)
class Drive:
    """Metadata on a file system with one of these labels."""

    labels: tuple[str, ...]
    wants: Walk
    kinds: tuple[str, ...] = ("iso9660", "vfat")


@dataclass(frozen=True)
class Guestinfo:
    """Metadata that VMware's hypervisor holds, by the program of its tools."""

    wants: Walk


Way = Service | Drive | Guestinfo


@dataclass(frozen=True)
class Sign:
    """What SMBIOS says on a platform: `field` of Smbios is, or with `begins` begins with, one of `values`."""

    field: str
    values: tuple[str, ...]
    begins: bool = False

    def fits(self, smbios: Smbios) -> bool:
        found = str(getattr(smbios, self.field))
        return bool(found) and (found.startswith(self.values) if self.begins else found in self.values)


@dataclass(frozen=True)
class Message:
    """What a platform is told: `place` is a path below its service, or a URL of its own."""

    method: str
    place: str
    body: bytes = b""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class CheckIn:
    """How a platform wants to be told that a machine has booted.

    What the first of `services` that answers says makes the `message` (raises `reading.Fault`; None: nobody is
    to be told).  `once`: in the life of an instance, not at every boot.  `lease_option` is the DHCP option, by
    NetworkManager's name for it, that has the address of the service.
    """

    services: tuple[Service, ...]
    message: Callable[[Files], Message | None]
    once: bool = False
    lease_option: str = ""


@dataclass(frozen=True)
class Platform:
    """One cloud or bare-metal provider.

    `name` is Ignition's (`ignition.platform.id=`).  `ways` are tried in order; `build` puts what their
    metadata says into a Network and raises `reading.Fault`.  `elsewhere` has only attributes.  Each of `signs`
    is enough to recognise it; `recognise` is for what signs cannot say, `also_known_by` what that is in words.
    `reads`, `configures` and `leaves` are for the documentation as well.
    """

    name: str
    title: str
    ways: tuple[Way, ...]
    build: Callable[[Files, Network], None]
    signs: tuple[Sign, ...] = ()
    recognise: Callable[[Smbios], bool] = lambda smbios: False
    also_known_by: str = ""
    elsewhere: tuple[Way, ...] = ()
    reconciles: bool = False
    check_in: CheckIn | None = None
    reads: str = ""
    configures: str = ""
    leaves: str = ""

    def is_here(self, smbios: Smbios) -> bool:
        """Whether SMBIOS says that this machine is on the platform."""
        return any(sign.fits(smbios) for sign in self.signs) or self.recognise(smbios)


def fixed(*wants: Want | str) -> Walk:
    """A walk that wants the same whatever has come."""
    each = tuple(Want(want) if isinstance(want, str) else want for want in wants)
    return lambda files: each


class NotThere(Exception):
    """A way has no metadata of the platform: something that it always has is missing, or all of it."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        super().__init__(path)


def gather(wants: Walk, ask: Callable[[Want], bytes | None], limit: int = MOST_PIECES) -> Files:
    """Everything that a walk wants; `ask` gives None for what is not there.

    Hostile metadata can't make us ask for more than `limit` pieces, nor keep more than `MOST_BYTES`: what is left out
    is Unreadable.  Raises NotThere, `reading.Fault` also from the walk itself, and what `ask` raises.
    """
    files: dict[str, bytes | None] = {}
    size = 0
    while open_ones := [want for want in wants(files) if want.path not in files]:
        for want in open_ones:
            if len(files) >= limit:
                left_out = Unreadable(f"not asked for: it is one of more than {limit} pieces".encode())
                return files | {each.path: left_out for each in open_ones if each.path not in files}
            data = files[want.path] = ask(want)
            if data is None and not want.optional:
                raise NotThere(want.path)
            size += len(data or b"")
            if size > MOST_BYTES:
                raise _too_much()
    if files and not any(data is not None for data in files.values()):
        raise NotThere
    return files


def _too_much() -> Exception:
    from homeport.core.platforms.reading import Fault

    return Fault("", f"metadata of more than {MOST_BYTES >> 20} MiB", "a few KiB; are they this platform's own?")
