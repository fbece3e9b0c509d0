"""What homeport remembers: the last-known-good document, what it owns, and what it was in the middle of.

Knows the files of /var/lib/homeport and /run/homeport and the order in which they may be written. Knows
nothing of networks. The order is the crash safety: whatever is true on disk after a power cut leads the
next boot to a configuration that was proven, and every keyfile of ours is named in the manifest *before*
it exists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from homeport.host.files import make_dir, read_file, remove, write_atomic

STATE_DIR = "var/lib/homeport"
RUN_DIR = "run/homeport"
ASSIGNED = f"{STATE_DIR}/assigned.yaml"
PREVIOUS = f"{STATE_DIR}/previous.yaml"
MANIFEST = f"{STATE_DIR}/manifest.json"
INFLIGHT = f"{STATE_DIR}/inflight.json"
STAMP = f"{STATE_DIR}/fastpath"
STATUS = f"{RUN_DIR}/status.json"
# What became of the initramfs's part of this boot.
INITRD_STATUS = f"{RUN_DIR}/initrd-status.json"
# Left by `homeport prepare` in the initramfs: for homeport-initrd.service, and for homeport-handover.service.
INITRD = f"{RUN_DIR}/initrd"
HANDOVER = f"{RUN_DIR}/handover"
# Profiles made before NetworkManager ran, and the document they were made of (prepared.py).
PREPARED = f"{RUN_DIR}/prepared.json"
PREPARED_DOCUMENT = f"{RUN_DIR}/prepared.document"
# There while a configuration that was proven is in force: NetworkManager-wait-online has nothing to wait for then.
IN_FORCE = f"{RUN_DIR}/in-force"
# Which instance a platform that wants to hear of a boot only once has heard of (sources/platforms/checkin.py).
CHECKED_IN = f"{STATE_DIR}/checked-in"
# What a registration server last said of its authorities (sources/elemental.py).
REGISTRATION_CA = f"{STATE_DIR}/registration-ca.pem"
# The key of a machine without a TPM that is to have one (softwaretpm.py).
SOFTWARE_EK = f"{STATE_DIR}/software-ek.pem"

# The same as ASSIGNED and MANIFEST, of an assignment that runs and is not kept. While they are there they count.
RUNNING = f"{RUN_DIR}/assigned.yaml"
RUNNING_MANIFEST = f"{RUN_DIR}/manifest.json"

# Left for NetworkManager's dispatcher script, which asks for a refresh: this platform's NICs and addresses come and go.
RECONCILES = f"{RUN_DIR}/reconciles"
# Left by that script: something has come that the last refresh did not see.
ASKED = f"{RUN_DIR}/asked"

# A manifest names a few dozen keyfiles; a document is at most 512 KiB (design.md, section 6).
LIMIT = 4 << 20


@dataclass(frozen=True)
class OwnedFile:
    """One keyfile of ours: `path` below the root, what it was when we wrote it, whose profile it is."""

    path: str
    sha256: str = ""
    uuid: str = ""
    interface: str = ""


@dataclass(frozen=True)
class Manifest:
    """What is persisted and where it came from. `stale` are files of ours that are about to go.

    `volatile` is set for what is not persisted, `beside` has the interfaces whose profiles, not ours, were added to.

    `fallback` marks a configuration that is kept on disk although it is not an assignment. `hostname` is the host name
    that the document wants configured ("" for none, None if it says nothing), `side_files` what nmstate wrote for it
    beside the profiles.
    """

    revision: str = ""
    source: str = ""
    etag: str = ""
    url: str = ""
    content_type: str = ""
    identity: str = ""
    proven_at: float = 0.0
    keyfiles: tuple[OwnedFile, ...] = ()
    stale: tuple[OwnedFile, ...] = ()
    other_files: tuple[str, ...] = ()
    complete: bool = False
    volatile: bool = False
    reconciles: bool = False
    beside: tuple[str, ...] = ()
    hostname: str | None = None
    side_files: tuple[str, ...] = ()

    @property
    def owned(self) -> tuple[OwnedFile, ...]:
        """Every file that is ours, at whatever instant the power was cut."""
        return self.keyfiles + self.stale

    @property
    def uuids(self) -> frozenset[str]:
        return frozenset(file.uuid for file in self.owned if file.uuid)


@dataclass(frozen=True)
class Inflight:
    """What a rollback of NetworkManager's would not undo, remembered before anything is changed.

    `interfaces` are those that the plan touches, `profiles` the UUIDs of what was in memory (/run) for
    them before, `files` the paths of what nmstate may write on the side and was not there before.
    """

    boot_id: str
    global_dns: Any = None
    hostname: str = ""
    interfaces: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Store:
    """Reads and writes homeport's own files below `root`."""

    root: Path = Path("/")

    def prepare(self) -> None:
        make_dir(self.root, STATE_DIR, 0o700)

    def read_assigned(self) -> bytes | None:
        """The last-known-good document as it was fetched, or None."""
        running = read_file(self.root, RUNNING, LIMIT)
        return read_file(self.root, ASSIGNED, LIMIT) if running is None else running

    def read_previous(self) -> bytes | None:
        """The one that was kept before that, or None."""
        return read_file(self.root, PREVIOUS, LIMIT)

    def read_manifest(self) -> Manifest:
        """The manifest; an unreadable one counts as none, since keyfiles also carry our tag."""
        data = self._read_json(RUNNING_MANIFEST) or self._read_json(MANIFEST)
        if data is None:
            return Manifest()
        try:
            files = {key: tuple(OwnedFile(**item) for item in data.get(key, ())) for key in ("keyfiles", "stale")}
            lists = {key: tuple(data.get(key, ())) for key in ("other_files", "beside", "side_files")}
            fields: dict[str, Any] = {**data, **files, **lists}
            return Manifest(**fields)
        except (TypeError, ValueError):
            return Manifest()

    def write_manifest(self, manifest: Manifest) -> None:
        self._write_json(MANIFEST, asdict(manifest))

    def remember(self, document: bytes, manifest: Manifest) -> None:
        """What is in force until the machine is switched off; nothing of it is on disk."""
        make_dir(self.root, RUN_DIR, 0o755)
        write_atomic(self.root, RUNNING, document)
        write_atomic(self.root, RUNNING_MANIFEST, json.dumps(asdict(manifest), indent=1).encode() + b"\n")

    def mark_reconciling(self, here: bool) -> None:
        """Say whether this machine's assignment may be another one whenever a card comes."""
        if here:
            make_dir(self.root, RUN_DIR, 0o755)
            write_atomic(self.root, RECONCILES, b"", 0o644)
        else:
            remove(self.root, RECONCILES)

    @property
    def is_asked_for(self) -> bool:
        """Whether somebody wants the source to be asked since a run last took notice of it."""
        return (self.root / ASKED).exists()

    def take_request(self) -> bool:
        """The same, taking notice of it."""
        return remove(self.root, ASKED)

    def forget_running(self) -> None:
        for path in (RUNNING, RUNNING_MANIFEST):
            remove(self.root, path)

    def keep_document(self, document: bytes) -> None:
        """Make `document` the last-known-good one; the former becomes `previous.yaml`."""
        former = self.read_assigned()
        if former == document:
            return
        self.prepare()
        if former is not None:
            write_atomic(self.root, PREVIOUS, former)
        write_atomic(self.root, ASSIGNED, document)

    def announce(self, manifest: Manifest, files: tuple[OwnedFile, ...]) -> Manifest:
        """Say on disk which files are about to be ours, before the first of them is written."""
        former = self.read_manifest()
        names = {file.path for file in files}
        stale = tuple(file for file in former.owned if file.path not in names)
        announced = replace(manifest, keyfiles=files, stale=stale, complete=False)
        self.write_manifest(announced)
        return announced

    def read_inflight(self) -> Inflight | None:
        data = self._read_json(INFLIGHT)
        if data is None:
            return None
        try:
            fields: dict[str, Any] = {
                key: tuple(item) if isinstance(item, list) else item for key, item in data.items()}
            return Inflight(**fields)
        except TypeError:
            return None

    def begin(self, inflight: Inflight) -> None:
        """Remember what must be put back if we do not come back; undone by `finish`."""
        self.prepare()
        self._write_json(INFLIGHT, asdict(inflight))

    def finish(self) -> None:
        remove(self.root, INFLIGHT)

    def forget(self) -> None:
        """Forget the assignment. Keyfiles are gone by now; the manifest goes last."""
        for path in (STAMP, RECONCILES, RUNNING, ASSIGNED, PREVIOUS, INFLIGHT, REGISTRATION_CA, RUNNING_MANIFEST,
                     MANIFEST):
            remove(self.root, path)

    def write_status(self, status: Mapping[str, Any], *, in_force: bool = False, in_initrd: bool = False) -> None:
        """Publish the outcome, and whether a proven configuration is in force.

        That of the initramfs stays beside that of the real root.
        """
        make_dir(self.root, RUN_DIR, 0o755)
        if in_force:
            write_atomic(self.root, IN_FORCE, b"", 0o644)
        else:
            self.not_in_force()
        path = INITRD_STATUS if in_initrd else STATUS
        write_atomic(self.root, path, json.dumps(status, indent=1).encode() + b"\n", 0o644)

    def not_in_force(self) -> None:
        """Nobody says any more that a proven configuration is in force. Raises OSError."""
        remove(self.root, IN_FORCE)

    def read_status(self) -> dict[str, Any] | None:
        return self._read_json(STATUS)

    def read_initrd_status(self) -> dict[str, Any] | None:
        return self._read_json(INITRD_STATUS)

    def _read_json(self, path: str) -> dict[str, Any] | None:
        data = read_file(self.root, path, LIMIT)
        try:
            value = json.loads(data) if data else None
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _write_json(self, path: str, value: Any) -> None:
        self.prepare()
        write_atomic(self.root, path, json.dumps(value, indent=1).encode() + b"\n")
