"""What a source delivers, and which of several failures counts."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.errors import NoAssignment, Pending, RefusedBySource, SourceError, Unreachable

LARGEST = 512 << 10  # bytes of a document (design.md, section 6)


@dataclass(frozen=True)
class Reply:
    """A document as it came, or that it is still the one we have (`not_modified`, then `data` is empty).

    `source` is the source's name; `url` says where in it, for people: no user name, password or query.
    `etag` is the validator to ask with next time, opaque to everyone but the source.  `passed_over` says
    why each source before this one had nothing.
    `volatile`: not to be kept on disk.  `reconciles`: asked for again while the machine runs, and added to the
    profiles that are there.  `partial`: of some cards it says nothing because their part could not be read.
    """

    data: bytes
    source: str = ""
    url: str = ""
    etag: str = ""
    content_type: str = ""
    over_network: bool = False
    not_modified: bool = False
    passed_over: tuple[str, ...] = ()
    volatile: bool = False
    reconciles: bool = False
    partial: bool = False

    @property
    def label(self) -> str:
        """Where it came from, in a few words."""
        return f"{self.source} {self.url}".strip()

    @property
    def target(self) -> str:
        """What must be reachable if the network is right: the source, if the network was needed."""
        return self.url if self.over_network else ""


def finality(error: SourceError) -> int:
    """How little doubt an error leaves. Of several, the least final is all that is known: "none for this
    machine" from one source says nothing while another one has not answered.
    """
    for place, kind in enumerate((Unreachable, Pending, RefusedBySource, NoAssignment)):
        if isinstance(error, kind):
            return 2 * place
    return 1  # an address or a file that is wrong: somebody meant it to work
