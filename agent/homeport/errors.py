"""What can go wrong, and whose fault it is.

Edges and core raise these; `boot.py` alone decides what happens instead, and `cli.main` alone turns one
into an exit status (design.md, section 4).  A message says intent, object and cause; the hint says what
to do next.  Anything that is not a `HomeportError` is a bug of ours, and the only thing with a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

TYPE_CHECKING = False  # typing's own would bring `re` along
if TYPE_CHECKING:
    from homeport.core.complaint import Complaint


class HomeportError(Exception):
    """Something we expected could happen; `status` is the exit status if nothing better is in force."""

    status = os.EX_SOFTWARE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Bug(HomeportError):
    """Ours. What remains of the ladder must still be tried, so a bug becomes one of these there."""


class UsageError(HomeportError):
    """The command line is wrong."""

    status = os.EX_USAGE


class SettingsError(HomeportError):
    """A settings file or kernel argument is wrong."""

    status = os.EX_CONFIG


class DocumentError(HomeportError):
    """A document arrived but is not acceptable; every complaint is here, not only the first."""

    status = os.EX_DATAERR

    def __init__(self, complaints: Sequence[Complaint], hint: str = "") -> None:
        self.complaints = tuple(complaints)
        first = str(self.complaints[0]) if self.complaints else "not acceptable"
        more = len(self.complaints) - 1
        super().__init__(f"{first} (and {more} more)" if more > 0 else first, hint)


class SourceError(HomeportError):
    """A source gave us no document; the subclass says whether asking again can help."""

    status = os.EX_UNAVAILABLE


class Unreachable(SourceError):
    """No usable answer: timeouts, refused connections, 5xx, 429. Asking again can help."""

    def __init__(self, message: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class Pending(SourceError):
    """The server knows us but our assignment is not ready yet: an answer, and worth asking again."""

    def __init__(self, message: str, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class NoAssignment(SourceError):
    """The source answered: there is nothing for this machine (404). Final for this boot."""


class Unconfigured(NoAssignment):
    """Nobody told this machine where to ask: a fresh image, not a failure."""

    status = os.EX_OK


class RefusedBySource(SourceError):
    """The server refused to talk to this identity (401, 403, 410). Final for this boot."""

    status = os.EX_NOPERM


class ApplyError(HomeportError):
    """nmstate, NetworkManager or our own comparison refused the configuration; it was rolled back."""

    status = os.EX_TEMPFAIL


class ProofError(ApplyError):
    """The configuration was in force but did not carry traffic where it must; it was rolled back."""


class RootOnNetwork(HomeportError):
    """What was asked for would take down what the root file system stands on. To refuse that is no failure."""

    status = os.EX_OK


class PersistError(HomeportError):
    """The configuration is in force and proven, but could not be written to disk."""

    status = os.EX_CANTCREAT


class NotAllowed(HomeportError):
    """We may not do this: not root."""

    status = os.EX_NOPERM
