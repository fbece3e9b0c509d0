"""The seed case: what the machine is assigned, and what it must look like then.

The document is the one of the case the product is judged on first; `assert_seed` is its README, line by
line, so that every test that says "the seed case is in force" means the same.
"""

from __future__ import annotations

from typing import Any, Protocol

from configserver import ConfigServer
from container import ONLINE, Machine
from namespaces import wait_until
from outcome import Outcome

SEED = "/assign/seed.yaml"
NIC = "enp1s0"
ADDRESS = "192.168.122.150/24"
DNS = "192.168.122.1"

_DOCUMENT = """\
apiVersion: elemental.cattle.io/v1beta1
kind: MachineInventory
metadata:
  name: test-btrfs-d47ca4cf-e95e-4e43-939b-e5bce460fbfc
  namespace: fleet-default
spec:
  tpmHash: 759d02b8cdfad743082ac528214a5b00cb3d6079aaa2b6bb35d87209e36f1fdb
  ipAddressPools:
    inventory-ip:
      apiGroup: ipam.cluster.x-k8s.io
      kind: InClusterIPPool
      name: elemental-inventory-pool
  network:
    configurator: nmstate
    ipAddresses:
      inventory-ip: 192.168.122.150
    config:
      dns-resolver:
        config:
          search: []
          server:
            - 192.168.122.1
      interfaces:
        - description: Main-NIC
          ipv4:
            address:
              - ip: '{inventory-ip}'
                prefix-length: 24
            dhcp: false
            enabled: true
          ipv6:
            enabled: false
          name: enp1s0
          state: up
          type: ethernet
      routes:
        config:
          - destination: 0.0.0.0/0
            metric: 150
            next-hop-address: 192.168.122.1
            next-hop-interface: enp1s0
            table-id: 254
"""


def seed_document(address: str = "192.168.122.150", *, extra: str = "") -> str:
    """The seed inventory, for another address if wanted; `extra` lines go under `network:` (indented)."""
    text = _DOCUMENT.replace("192.168.122.150", address)
    return text.replace("    configurator: nmstate\n", "    configurator: nmstate\n" + extra)


class Seeded:
    """A machine with the seed case in force, its server, and how to boot it again."""

    def __init__(self, machine: Machine, server: ConfigServer, url: str) -> None:
        self.machine = machine
        self.server = server
        self.url = url
        self.first = machine.boot(f"homeport.config={url}")
        assert_seed(machine, self.first)

    def reboot(self, *arguments: str, deadline: float = ONLINE) -> Outcome:
        """Off, and on again with the same kernel arguments and these."""
        self.machine.power_off()
        return self.machine.boot(f"homeport.config={self.url}", *arguments, deadline=deadline)

    def assign(self, document: str) -> None:
        """From now on the server says this."""
        self.server.put(SEED, document)


def default_routes(outcome: Outcome) -> list[tuple[Any, ...]]:
    """The IPv4 default routes as (gateway, NIC, metric, table)."""
    return [(r.get("gateway"), r.get("dev"), r.get("metric"), r["table"]) for r in outcome.routes()]


class Readable(Protocol):
    """A machine, container or VM."""

    def read(self, path: str) -> str: ...


def assert_seed(machine: Readable, outcome: Outcome, address: str = ADDRESS) -> None:
    """The seed case is in force and on disk, to the letter."""
    assert outcome.addresses(NIC) == [address]
    assert default_routes(outcome) == [("192.168.122.1", NIC, 150, "main")]
    assert outcome.resolv == [DNS]
    assert outcome.ipv6(NIC) == []
    assert_seed_keyfile(machine, outcome, address)


def wait_for_seed(machine: Machine, address: str = ADDRESS) -> Outcome:
    """Wait until address, route and DNS of the seed case are there, which come one after the other."""
    def there() -> Outcome | None:
        now = machine.look()
        wanted = ([address], [("192.168.122.1", NIC, 150, "main")], [DNS])
        return now if (now.addresses(NIC), default_routes(now), now.resolv) == wanted else None

    outcome = wait_until(there, what="the seed case to be in force", every=0.3)
    assert outcome
    return outcome


def assert_seed_keyfile(machine: Readable, outcome: Outcome, address: str = ADDRESS) -> None:
    """One keyfile of ours, for root only, with the lines that the seed case names."""
    ours = {n: mode for n, mode in outcome.keyfiles.items() if n.startswith("homeport-")}
    assert ours == {f"homeport-{NIC}.nmconnection": "-rw-------"}
    text = machine.read(f"/etc/NetworkManager/system-connections/{next(iter(ours))}")
    lines = set(text.splitlines())
    assert "method=manual" in lines
    assert any(line.startswith("address") and line.endswith(f"={address}") for line in lines), text
    # NetworkManager numbers routes from 1 and may put the table beside the metric or on a line of its own.
    assert "route1=0.0.0.0/0,192.168.122.1,150" in lines, text
    assert "route1_options=table=254" in lines or "table=254" in text, text
    assert any(line.startswith("dns=192.168.122.1") for line in lines), text


def assert_early(outcome: Outcome, rung: str = "assigned", *, fetched: bool = True, status: int = 0) -> None:
    """It was done in the initramfs, by its own word there: what the real root's homeport does is no sign of it.

    What was assigned is put in force and proven there, and the real root's finds it so: nothing is applied twice.
    """
    early = outcome.early
    assert early, "homeport did not run in the initramfs, or did not come to its end there"
    assert (early["stage"], early["rung"], early["fetched"], early["exit"]) == ("initrd", rung, fetched, status), early
    steps = [step["name"] for step in early["steps"]]
    if rung in ("assigned", "seed"):
        assert "prove" in steps, steps
    if rung == "assigned":
        assert (early["changed"], early["persisted"], outcome.status["changed"]) == (True, True, False), outcome.status
    if rung == "last-known-good":
        assert "kept" in steps, steps


def assert_on_dhcp(outcome: Outcome, *, dns: str = "192.168.122.53", keyfiles: bool = True) -> None:
    """On a lease, with its route and its DNS; with `keyfiles`, no assignment on disk either."""
    (address,) = outcome.addresses(NIC)
    assert 100 <= int(address.split("/")[0].rsplit(".", 1)[1]) <= 120, address
    assert [r["protocol"] for r in outcome.routes()] == ["dhcp"], outcome.routes()
    assert outcome.resolv == [dns]
    ours = [n for n in outcome.keyfiles if n.startswith("homeport-")]
    assert not keyfiles or ours == []
