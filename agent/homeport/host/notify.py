"""What systemd is told while we run (sd_notify(3)): that we are ready, what we are at, that it takes longer.

A no-op wherever nobody listens ($NOTIFY_SOCKET is not set: by hand, in tests) or python3-systemd is not
there: a machine must get its network without either.
"""

from __future__ import annotations

import logging
import os

log = logging.getLogger(__name__)


def ready() -> None:
    """The work that others wait for is done."""
    _send("READY=1")


def status(text: str) -> None:
    """What we are at, in one line, for `systemctl status`."""
    _send(f"STATUS={' '.join(text.split())}")


def extend_timeout(seconds: float) -> None:
    """From now on we need up to `seconds` more, whatever TimeoutStartSec= says."""
    _send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")


def _send(message: str) -> None:
    if not os.environ.get("NOTIFY_SOCKET"):
        return
    try:
        from systemd.daemon import notify
        notify(message)
    except (ImportError, OSError) as error:
        log.debug("Cannot tell systemd %s: %s, proceeding anyway", message, error)
