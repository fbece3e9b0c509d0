"""homeport-server in the world: the tree's own, with a folder of manifests, on an address of the LAN.

    with PoolServer(world, pool("192.168.122.150"), registration("sys-uuid")) as server:
        server.bootstrap()          # what an operator bakes into an image: Elemental's config.yaml
        server.ask("list", "--json")
        server.edit(1, registration("sys-uuid", edit))      # in force when it comes back
        server.stop(); server.start()

For whatever machine is on that LAN. Knows the server's command line; nothing of what it does.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from namespaces import wait_until
from trees import REPOSITORY, NotPrepared, prepared
from world import SERVER, World

PROGRAM = REPOSITORY / "server"
SEED = REPOSITORY / "tests/data/server/seed.yaml"
NAME = "fire-nodes"  # of its registration
TOKEN = "a-t0ken-to-keep"
# Its log says so.
LISTENING, IN_FORCE = "listening at", "in force: "


def python() -> str:
    """The set-up's Python, which has the server's libraries."""
    folder = prepared().get("VENV", "")
    found = Path(folder) / "bin/python"
    if not PROGRAM.exists() or not folder or not found.exists():
        raise NotPrepared("the set-up's venv is not there (run: make setup)")
    return str(found)


def seed_text() -> str:
    """The seed's pool and registration to the letter, without the token that the server's own tests give it."""
    return SEED.read_text().replace("  token: fire-nodes\n", "")


def seed_manifests() -> list[dict[str, Any]]:
    """The same, read."""
    import yaml
    return list(yaml.safe_load_all(seed_text()))


def pool(*addresses: str, name: str = "") -> str:
    """The seed's pool, with these addresses; with a `name`, another one of the kind."""
    tree = seed_manifests()[0]
    tree["spec"]["addresses"] = list(addresses)
    tree["metadata"]["name"] = name or tree["metadata"]["name"]
    return json.dumps(tree)


def registration(auth: str = "tpm", edit: Callable[[dict[str, Any]], object] = lambda network: None) -> str:
    """The seed's registration, for machines that say in this way who they are; `edit` changes its `network`."""
    tree = seed_manifests()[1]
    tree["spec"]["token"] = TOKEN
    tree["spec"]["config"]["elemental"] = {"registration": {"auth": auth}}
    edit(tree["spec"]["config"]["network"])
    return json.dumps(tree)


class PoolServer:
    """See the head of this module."""

    def __init__(self, world: World, *manifests: str) -> None:
        self._world = world
        self.folder = Path(tempfile.mkdtemp(prefix="pool-", dir=world.folder))
        (self.folder / "manifests").mkdir()
        for number, text in enumerate(manifests):
            self._write(number, text)
        self._log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [python(), "-I", str(PROGRAM), "serve", str(self.folder / "manifests"),
                "--state", str(self.folder / "state"), "--listen", f"{SERVER}:443"]
        before = self.log.count(LISTENING)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._world.namespace.argv(argv), stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log)
        wait_until(lambda: self._listens(before), what="homeport-server to listen")

    def stop(self) -> None:
        """As a power cut would, for the process."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def edit(self, number: int, text: str) -> None:
        """Write manifest `number` anew; it is in force then."""
        before = self.log.count(IN_FORCE)
        self._write(number, text)
        wait_until(lambda: self.log.count(IN_FORCE) > before, what="the manifests to be in force")

    def bootstrap(self) -> str:
        """How to register, as the server tells everyone who has the registration's address."""
        return self._world.namespace.run(["curl", "-sfk", self.url])

    @property
    def url(self) -> str:
        """The registration's, with its token."""
        (shown,) = json.loads(self.ask("show", NAME, "--json"))
        return str(shown["url"])

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def ask(self, *arguments: str) -> str:
        """One of the server's commands; its output."""
        verb, *rest = arguments
        done = subprocess.run([python(), "-I", str(PROGRAM), verb, "--state", str(self.folder / "state"), *rest],
                              capture_output=True, text=True, timeout=30, check=False)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"homeport-server {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def machines(self) -> list[dict[str, Any]]:
        """All that it knows, as `list --json` has them."""
        return list(json.loads(self.ask("list", "--json"))["machines"])

    def addresses(self) -> dict[str, str]:
        """Who has which address: the machine's name by the address."""
        return {held["address"]: machine["name"] for machine in self.machines() for held in machine["addresses"]}

    def _write(self, number: int, text: str) -> None:
        (self.folder / f"manifests/{number}.yaml").write_text(text)

    def _listens(self, before: int) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise RuntimeError(f"homeport-server did not start:\n{self.log}")
        return self.log.count(LISTENING) > before

    def __enter__(self) -> PoolServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
