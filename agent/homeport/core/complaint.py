"""What is wrong with a document: where, what was found, what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice

Path = tuple[str | int, ...]

# A document that is wrong everywhere is not judged to its end: nobody mends a thousand faults, and two bytes
# of a document (`1,`) can be a fault of half a kilobyte.
MAX_COMPLAINTS = 1_000


@dataclass(frozen=True, order=True)
class Complaint:
    """One fault in a document.

    `path` reads as a person would point at it (`interfaces[1].ipv4.address[0].ip`), "" for the whole
    document; `found` is what stands there; `wanted` is what would be right.
    """

    path: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.found) if part) + (
            f"; {self.wanted}" if self.wanted else "")

    def as_json(self) -> dict[str, str]:
        return asdict(self)


class Complaints(list[Complaint]):
    """A list that takes one more than anyone reads, and then no more.

    Once it is `full`, looking further is a waste: what is added lazily is not even looked for.
    """

    @property
    def full(self) -> bool:
        return len(self) > MAX_COMPLAINTS

    def append(self, complaint: Complaint) -> None:
        if not self.full:
            super().append(complaint)

    def extend(self, complaints: Iterable[Complaint]) -> None:
        super().extend(islice(complaints, MAX_COMPLAINTS + 1 - len(self)))

    def __iadd__(self, complaints: Iterable[Complaint]) -> Complaints:  # type: ignore[override, misc]
        self.extend(complaints)
        return self


def render_path(path: Path) -> str:
    """`("interfaces", 1, "ipv4")` as `interfaces[1].ipv4`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
