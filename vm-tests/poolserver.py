"""homeport-server in the world: the tree's own, with a folder of manifests, on an address of the LAN.

    with PoolServer(world, pool("192.168.122.150"), registration("sys-uuid")) as server:
        server.bootstrap()          # what an operator bakes into an image: Elemental's config.yaml
        server.ask("list", "--json")
        server.stop(); server.start()

Knows the server's command line; nothing of what it does.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from namespaces import wait_until
from trees import REPOSITORY, NotPrepared, prepared
from world import SERVER, World

PROGRAM = REPOSITORY / "server"
TOKEN = "fire-nodes-t0ken"


def python() -> str:
    """The set-up's Python, which has the server's libraries."""
    folder = prepared().get("VENV", "")
    found = Path(folder) / "bin/python"
    if not PROGRAM.exists() or not folder or not found.exists():
        raise NotPrepared("the set-up's venv is not there (run: make setup)")
    return str(found)


def pool(*addresses: str) -> str:
    """The seed's pool, with these addresses."""
    listed = "".join(f"    - {address}\n" for address in addresses)
    return ("apiVersion: ipam.cluster.x-k8s.io/v1alpha2\nkind: InClusterIPPool\n"
            "metadata: {name: elemental-inventory-pool, namespace: fleet-default}\n"
            f"spec:\n  prefix: 24\n  gateway: 192.168.122.1\n  addresses:\n{listed}")


def registration(auth: str = "tpm") -> str:
    """The seed's registration, for machines that say in this way who they are."""
    tree: dict[str, Any] = {
        "apiVersion": "elemental.cattle.io/v1beta1", "kind": "MachineRegistration",
        "metadata": {"name": "fire-nodes", "namespace": "fleet-default"},
        "spec": {
            "token": TOKEN, "machineName": "test-btrfs-${System Information/UUID}",
            "config": {
                "elemental": {"registration": {"auth": auth}},
                "network": {
                    "configurator": "nmstate",
                    "ipAddresses": {"inventory-ip": {
                        "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool",
                        "name": "elemental-inventory-pool"}},
                    "config": {
                        "dns-resolver": {"config": {"server": ["192.168.122.1"], "search": []}},
                        "routes": {"config": [{
                            "destination": "0.0.0.0/0", "next-hop-interface": "enp1s0",
                            "next-hop-address": "192.168.122.1", "metric": 150, "table-id": 254}]},
                        "interfaces": [{
                            "name": "enp1s0", "type": "ethernet", "description": "Main-NIC", "state": "up",
                            "ipv4": {"enabled": True, "dhcp": False,
                                     "address": [{"ip": "{inventory-ip}", "prefix-length": 24}]},
                            "ipv6": {"enabled": False}}]}}}}}  # fmt: skip
    return json.dumps(tree)


class PoolServer:
    """See the head of this module."""

    def __init__(self, world: World, *manifests: str) -> None:
        self._world = world
        self.folder = Path(tempfile.mkdtemp(prefix="pool-", dir=world.folder))
        (self.folder / "manifests").mkdir()
        for number, text in enumerate(manifests):
            (self.folder / f"manifests/{number}.yaml").write_text(text)
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [python(), "-I", str(PROGRAM), "serve", str(self.folder / "manifests"),
                "--state", str(self.folder / "state"), "--listen", f"{SERVER}:443"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._world.namespace.argv(argv), stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log)
        wait_until(self._answers, timeout=30, what="homeport-server to answer")

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def bootstrap(self) -> str:
        """How to register, as the server tells everyone who has the registration's address."""
        return self._world.namespace.run(["curl", "-sfk", self.url], timeout=10)

    @property
    def url(self) -> str:
        return f"https://{SERVER}/elemental/registration/{TOKEN}"

    def ask(self, *arguments: str) -> str:
        """One of the server's commands; its output."""
        verb, *rest = arguments
        done = subprocess.run([python(), "-I", str(PROGRAM), verb, "--state", str(self.folder / "state"), *rest],
                              capture_output=True, text=True, timeout=30, check=False)  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"homeport-server {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def machines(self) -> list[dict[str, Any]]:
        found = json.loads(self.ask("list", "--json"))
        return found if isinstance(found, list) else list(found["machines"])

    def _answers(self) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise RuntimeError(f"homeport-server did not start:\n{self.log.read_text()}")
        return subprocess.run(self._world.namespace.argv(["curl", "-sk", "-o", "/dev/null", self.url]),
                              check=False).returncode == 0  # fmt: skip

    def __enter__(self) -> PoolServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
