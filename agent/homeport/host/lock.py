"""One homeport at a time: two that apply would roll back each other's checkpoint.

Knows a lock file and how long to wait for whoever holds it. The kernel lets go of the lock when its holder
ends, however it ends (flock(2)): there is no stale one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeport.errors import HomeportError
from homeport.host.files import make_dir
from homeport.host.store import RUN_DIR

log = logging.getLogger(__name__)

LOCK = f"{RUN_DIR}/lock"
PAUSE = 0.1


class Busy(HomeportError):
    """Another run is at work, and did not end in the time that we had for it."""

    status = os.EX_TEMPFAIL


@contextmanager
def only_one(root: Path, patience: float) -> Iterator[None]:
    """Hold the lock; wait `patience` seconds for it at most. Raises Busy.

    Where no lock file can be made the work goes on without: that must not cost a machine its network.
    """
    try:
        make_dir(root, RUN_DIR, 0o755)
        lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        log.debug("No lock (%s), going on without", error)
        yield
        return
    try:
        _wait(lock, time.monotonic() + patience)
        yield
    finally:
        os.close(lock)


def _wait(lock: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise Busy("Another homeport is at work on this machine's network",
                           "`homeport status` says what came of it; then try again") from None
            time.sleep(PAUSE)
        else:
            return
