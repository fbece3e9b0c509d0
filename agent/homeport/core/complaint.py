"""What is wrong with a document: where, what was found, what would be right."""

from __future__ import annotations

from dataclasses import asdict, dataclass

Path = tuple[str | int, ...]


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


def render_path(path: Path) -> str:
    """`("interfaces", 1, "ipv4")` as `interfaces[1].ipv4`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
