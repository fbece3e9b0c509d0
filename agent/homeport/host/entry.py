"""One structured entry for the journal. Light enough for the fast path: nothing is imported but `os`.

Knows the message id of our result and systemd's C function for sending. What is worth an entry is
`journal.py`'s to know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# The result of a run, as MESSAGE_ID= (systemd.journal-fields(7)): `journalctl MESSAGE_ID=…` finds it, and
# so does monitoring. A random UUID, made once; it never changes.
RESULT_MESSAGE_ID = "03f3b1df682a4a9e859a5004a3a01bb5"

NOTICE, WARNING = 5, 4  # priorities, sd-daemon(3)


def send_result(message: str, *, priority: int = NOTICE, fields: Mapping[str, str]) -> str:
    """Send the entry that says how a run ended; returns why that was not possible, "" if it was.

    Only below systemd ($JOURNAL_STREAM): who runs homeport by hand has the line on the terminal, and
    monitoring asks about boots.
    """
    if not os.environ.get("JOURNAL_STREAM"):
        return "not started by systemd"
    try:
        # Not `systemd.journal`: the same function behind 34 ms of imports that reading would need.
        from systemd._journal import sendv
        sendv(f"MESSAGE={message}", f"MESSAGE_ID={RESULT_MESSAGE_ID}", f"PRIORITY={priority}",
              "SYSLOG_IDENTIFIER=homeport", *(f"{name}={value}" for name, value in fields.items() if value))
    except (ImportError, OSError) as error:
        return str(error)
    return ""
