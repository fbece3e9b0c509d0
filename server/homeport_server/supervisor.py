"""What systemd is told of a server that runs (sd_notify(3)): that it is ready, that it still turns.

Spoken here and not through python3-systemd, whose absence would look to systemd like a server that never starts. A
no-op wherever nobody listens.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

log = logging.getLogger(__name__)


def tell(message: str, environ: Mapping[str, str] = os.environ) -> None:
    """Send `message` to whoever supervises this process. Never raises."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            # "@" is how an abstract socket is written down.
            sender.sendto(message.encode(), "\0" + address[1:] if address[0] == "@" else address)
    except OSError as error:
        log.warning("Cannot tell systemd %s: %s; going on", message, error.strerror)


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float:
    """How often it wants to hear from us, at the latest; 0 for never (WatchdogSec=)."""
    number, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    meant = not process or process == str(os.getpid())
    return int(number) / 1e6 if meant and number.isascii() and number.isdigit() else 0.0


async def keep_telling(seconds: float) -> None:
    """That the event loop turns, three times in `seconds`; for ever, or not at all if it is 0."""
    while seconds:
        tell("WATCHDOG=1")
        await asyncio.sleep(seconds / 3)
