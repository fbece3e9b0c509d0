"""The `credential` source: what systemd was given for us by the firmware, the hypervisor or the image.

Knows the two places where a credential can be: the folder that systemd made for our unit
($CREDENTIALS_DIRECTORY, also decrypted ones), and that of the whole system, for when homeport is run by
hand (systemd.exec(5), "Credentials").
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from homeport.errors import NoAssignment, SourceError
from homeport.host.files import read_file
from homeport.sources.file import too_large
from homeport.sources.reply import LARGEST, Reply

NAME = "credential"
CREDENTIAL = "homeport.assignment"
OF_THE_SYSTEM = "/run/credentials/@system"


def fetch(*, root: str | os.PathLike[str] = "/", environ: Mapping[str, str] = os.environ) -> Reply:
    """The credential. Raises NoAssignment if there is none, SourceError if it cannot be read."""
    ours = environ.get("CREDENTIALS_DIRECTORY", "")
    # The unit's folder belongs to this process, wherever the root is that we work on.
    for base, folder in ((os.sep, ours), (root, OF_THE_SYSTEM)):
        if not folder:
            continue
        try:
            data = read_file(base, f"{folder}/{CREDENTIAL}", LARGEST)
        except OSError as error:
            raise _unreadable(error, folder) from error
        if data is not None:
            return Reply(data, source=NAME, url=CREDENTIAL)
    raise NoAssignment(f"No credential {CREDENTIAL} was passed to this machine")


def is_there(root: str | os.PathLike[str] = "/", environ: Mapping[str, str] = os.environ) -> bool:
    """Whether one was passed, without reading it."""
    folders = (os.path.join(os.sep, environ.get("CREDENTIALS_DIRECTORY", "")), os.path.join(root, OF_THE_SYSTEM[1:]))
    return any(folder != os.sep and os.path.exists(os.path.join(folder, CREDENTIAL)) for folder in folders)


def _unreadable(error: OSError, folder: str) -> Exception:
    return too_large(error, f"credential {CREDENTIAL}") or SourceError(
        f"Cannot read the credential {CREDENTIAL} in {folder}: {error.strerror}",
        "only root may read it" if isinstance(error, PermissionError) else "")
