"""What it means for this machine that a registration went no further, and whether asking again can help.

Elemental's server says little: most failures are a connection that ends without a word (spec/elemental.md, 1.2,
1.7, 1.8). The phase it ended in, and the seconds it took, tell most of them apart.
"""

from __future__ import annotations

from homeport.core.elemental.conversation import Phase
from homeport.core.elemental.messages import Reason
from homeport.core.showing import printable
from homeport.errors import NoAssignment, Pending, RefusedBySource, SourceError, Unreachable

# The server's absolute limit for one exchange, in seconds; some of it passes before our clock starts.
WINDOW = 10.0
ITS_LIMIT = 9.0
OPERATOR = "the log of the server (elemental-operator, homeport-server) says why"


def on_close(phase: Phase, seconds: float, url: str, how: str) -> SourceError:
    """The connection ended without a word, `seconds` after the upgrade. `how` is how this machine named itself."""
    if phase is Phase.CONFIGURATION and seconds >= ITS_LIMIT:
        return Pending(f"{url} has no network configuration for this machine yet: it was silent for "
                       f"{seconds:.0f} s and closed the connection",
                       "the controller that claims its addresses is slow, or does not run")
    if phase is Phase.AUTHENTICATION:
        return Unreachable(f"{url} closed the connection while it authenticated this machine ({how})",
                           f"the server does not believe it, or has two machines with this identity; {OPERATOR}")
    if phase is Phase.CONFIGURATION:
        return Unreachable(f"{url} closed the connection instead of sending the configuration", OPERATOR)
    return Unreachable(f"{url} closed the connection {phase}", OPERATOR)


def on_words(reason: Reason, phase: Phase, url: str) -> SourceError:
    """The server's own reason, in an ERROR message."""
    words = reason.words
    said = f"{url} says: {words}" if words else f"{url} reports an error, without words, {phase}"
    if reason.pending:
        return Pending(said, "the server gives it as soon as it can", reason.retry_after)
    folded = words.lower()
    if "inventory not found" in folded:
        return NoAssignment(f"{url} does not know this machine any more ({words})",
                            "it must be registered anew: elemental-register --install, or a reset")
    if "operation cannot be fulfilled" in folded or "please apply your changes" in folded:
        return Unreachable(said, "two programs changed this machine's inventory at once; it is asked again", 0.0)
    if "already present" in folded or "already exists" in folded:
        return RefusedBySource(said, "two machines have one identity or one name; see machineName in the "
                                     "MachineRegistration, and the SMBIOS data of both")
    if "config not ready" in folded:
        return Pending(said, "the controller that claims its addresses is slow, or does not run")
    return Unreachable(said, OPERATOR)


def on_status(status: int, body: str, url: str, token: str) -> SourceError:
    """An HTTP answer in place of the upgrade. `token` is a secret that the body may repeat."""
    words = printable(" ".join(body.replace(token, "<token>").split()) if token else "", 200)
    if status == 404 and "not ready" in words:
        return Unreachable(f"{url}: the registration is not ready ({words})", "it becomes so, or see its conditions")
    if status == 404:
        return NoAssignment(f"{url} has no such registration (404)",
                            "check the registration URL: its last part is the registration's token")
    if status in (401, 403):
        return RefusedBySource(f"{url} refuses this machine ({status})", OPERATOR)
    if status in (408, 425, 429) or status >= 500:
        return Unreachable(f"{url} answers {status} instead of speaking", OPERATOR)
    return SourceError(f"{url} answers {status} instead of speaking: this is no registration URL",
                       "it looks like https://rancher.example/elemental/registration/TOKEN")
