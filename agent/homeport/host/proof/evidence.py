"""What a check of the proof found, and the error that ends a failed proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.errors import ProofError


@dataclass(frozen=True)
class Evidence:
    """One check: `target` as a person reads it, the `interface` it went through ("" if none would do).

    `detail` says what happened, `hint` what a failure usually means; `seconds` it took.
    """

    target: str
    ok: bool
    interface: str = ""
    detail: str = ""
    seconds: float = 0.0
    hint: str = ""

    def __str__(self) -> str:
        way = f" through {self.interface}" if self.interface else ""
        return f"{self.target}{way}: {self.detail} ({self.seconds:.2f} s)"


class ProofFailed(ProofError):
    """The configuration does not carry traffic where it must; `evidence` has every check, good and bad."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.evidence = tuple(evidence)
        failed = [item for item in self.evidence if not item.ok]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        super().__init__(f"Proof failed: {failed[0]}{more}", failed[0].hint)
