"""What each command does, in terms of the modules that do it. Prints, and gives the exit status.

Imports where it uses: `check` needs neither database nor network.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.errors import UsageError
from homeport_server.manifests.documents import Fault

if TYPE_CHECKING:
    from homeport_server.store.database import Database


def serve(arguments: argparse.Namespace) -> int:
    from homeport_server.serve import Serving, run
    from homeport_server.watch import BadManifests

    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together", "see homeport-server serve --help")
    port = 80 if arguments.no_tls else 443
    try:
        run(Serving(
            folder=arguments.folder, state=arguments.state, listen=tuple(arguments.listen or [("0.0.0.0", port)]),
            url=arguments.url or "", plain_http=arguments.no_tls, names=tuple(arguments.name),
            certificate=arguments.tls_cert, key=arguments.tls_key, ca=arguments.tls_ca,
            tpm_cas=tuple(arguments.tpm_ca), http=arguments.http, moved=arguments.moved,
            check_config=not arguments.trust_config, most_connections=max(1, arguments.connections)))
    except BadManifests as bad:
        _print_faults(bad.faults)
        return os.EX_DATAERR
    return os.EX_OK


def check(arguments: argparse.Namespace) -> int:
    from homeport_server import people

    manifests, faults = people.check(arguments.folder, not arguments.trust_config)
    if arguments.json:
        print(json.dumps([{"file": fault.file, "manifest": fault.subject, **fault.complaint.as_json()}
                          for fault in faults], indent=2))
    elif faults:
        _print_faults(faults)
    else:
        print(people.describe(manifests))
    return os.EX_DATAERR if faults else os.EX_OK


def list_machines(arguments: argparse.Namespace) -> int:
    from homeport_server import people

    tree = people.overview(_database(arguments))
    print(json.dumps(tree, indent=2) if arguments.json else people.show_list(tree))
    return os.EX_OK


def show(arguments: argparse.Namespace) -> int:
    from homeport_server import people
    from homeport_server.changes import NoSuchMachine

    found = people.details(_database(arguments), arguments.id)
    if not found:
        raise NoSuchMachine(f"Nothing is known of {arguments.id}", "homeport-server list")
    print(json.dumps(found, indent=2) if arguments.json else people.show_details(found))
    return os.EX_OK


def release(arguments: argparse.Namespace) -> int:
    from homeport_server import changes

    released = changes.release(_database(arguments), arguments.id, time.time(), forget=arguments.forget)
    print(f"released {', '.join(released) or 'nothing, it had no address'}")
    return os.EX_OK


def reserve(arguments: argparse.Namespace) -> int:
    from homeport_server import changes

    wanted = dict(arguments.addresses)
    whose = changes.reserve(_database(arguments), arguments.id, wanted, time.time())
    print(f"reserved {', '.join(f'{name}={ip}' for name, ip in wanted.items())} for {whose}")
    return os.EX_OK


def export(arguments: argparse.Namespace) -> int:
    from homeport_server import transfer

    print(transfer.export(_database(arguments), arguments.ids), end="")
    return os.EX_OK


def import_machines(arguments: argparse.Namespace) -> int:
    from homeport_server import transfer

    try:
        found = transfer.read_for_import({name: _read(name) for name in arguments.files})
        count = transfer.import_machines(_database(arguments), found, time.time())
    except transfer.Refusal as refusal:
        _print_faults(refusal.faults)
        return os.EX_DATAERR
    print(f"imported {count} machines")
    return os.EX_OK


def _database(arguments: argparse.Namespace) -> Database:
    from homeport_server.store.database import Database

    path = arguments.state / "state.sqlite"
    database = Database(path)
    _give_to_owner(path)
    return database


def _give_to_owner(path: Path) -> None:
    """A database that root has just made beside a server that runs as somebody else: that one must be able to use it.

    What SQLite adds to it later it gives to the owner of the database by itself.
    """
    owner = path.parent.stat()
    if os.geteuid() == 0 and owner.st_uid != path.stat().st_uid:
        for file in path.parent.glob(f"{path.name}*"):
            os.chown(file, owner.st_uid, owner.st_gid)


def _print_faults(faults: Sequence[Fault]) -> None:
    for fault in faults:
        print(fault, file=sys.stderr)


def _read(name: str) -> bytes:
    from homeport_server.manifests.folder import UnreadableFolder

    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UnreadableFolder(f"Cannot read {name}: {error.strerror}") from None
