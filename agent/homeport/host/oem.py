"""Elemental's memory of a machine's network: /oem/elemental-network.yaml, which replays our keyfiles.

There /etc is empty at each boot, and yip writes into it what the files in /oem say, before the real root starts
(spec/elemental.md, 4.4, 4.5). Ours says: exactly our keyfiles, and only in active and passive mode, for a machine
in recovery must be on DHCP. The name is Elemental's own, so that its reset removes the file as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from homeport.errors import PersistError
from homeport.host.files import is_dir, read_file, remove, write_atomic

log = logging.getLogger(__name__)

FOLDER = "oem"
PATH = "oem/elemental-network.yaml"
MARK = "# Written by homeport: "
LIMIT = 4 << 20
# The marker files of a mode exist from the initramfs on (spec/elemental.md, 6).
MODES = ("active", "passive")
GUARD = " || ".join(f"[ -f {folder}/{mode}_mode ]" for folder in ("/run/elemental", "/run/cos") for mode in MODES)


def is_elemental(root: Path) -> bool:
    """Whether this machine has a partition of Elemental's where its configuration is kept."""
    return is_dir(root, FOLDER)


def render(keyfiles: Mapping[str, str]) -> bytes:
    """The yip file for these keyfiles: path below the root -> text."""
    from homeport.core.yamlwrite import render_yaml
    files = [{"path": f"/{path}", "permissions": 0o600, "owner": 0, "group": 0, "content": _quote(text)}
             for path, text in sorted(keyfiles.items())]
    stage = {"if": GUARD, "files": files}
    tree = {"name": "Network of this machine", "stages": {"initramfs": [stage]}}
    return f"{MARK}replays its keyfiles at each boot; `homeport reset` removes it\n{render_yaml(tree)}".encode()


def is_written(root: Path, keyfiles: Mapping[str, str]) -> bool:
    """Whether nothing needs to be written: the file is as it must be, or this is no machine of Elemental's."""
    return not is_elemental(root) or _read(root) == render(keyfiles)


def write(root: Path, keyfiles: Mapping[str, str]) -> tuple[str, ...]:
    """Make the next boot replay these keyfiles; the path that was written, none if there is no /oem.

    Raises PersistError.
    """
    if not is_elemental(root):
        return ()
    if not owns(root) and _read(root) is not None:
        log.warning("/%s is elemental-register's, replacing it: from now on it replays homeport's keyfiles", PATH)
    if not is_written(root, keyfiles):
        try:
            write_atomic(root, PATH, render(keyfiles))
        except OSError as error:
            raise PersistError(f"cannot be kept: {error.strerror} (/{PATH})",
                               "after a reboot this machine has its former network; make /oem writable") from error
    return (PATH,)


def forget(root: Path) -> bool:
    """Remove the file if it is ours; whether it was. Needs no manifest. Raises PersistError."""
    try:
        return owns(root) and remove(root, PATH)
    except OSError as error:
        raise PersistError(f"cannot remove /{PATH}: {error.strerror}",
                           "the next boot would bring the keyfiles back; make /oem writable") from error


def owns(root: Path) -> bool:
    return (_read(root) or b"").startswith(MARK.encode())


def _quote(text: str) -> str:
    """`text` such that yip, which takes it for a Go template, writes it as it is (rancher/yip, plugins/file.go)."""
    return text.replace("{{", '{{"{{"}}')


def _read(root: Path) -> bytes | None:
    try:
        return read_file(root, PATH, LIMIT)
    except OSError as error:
        log.debug("cannot read /%s: %s", PATH, error.strerror)
        return b""
