"""homeport-server.service on a Debian: installed, started by systemd in its sandbox, and asked by a machine."""

from __future__ import annotations

import json
from collections.abc import Callable

from container import Machine, Nic
from elemental import make_elemental
from namespaces import wait_until
from poolserver import NAME, pool, registration
from seed import assert_seed
from trees import install_product
from world import World

HOST = "192.168.122.9"
MANIFESTS = "/etc/homeport-server"
# The host has its network by itself, with no homeport.
NETWORK = f"""\
[connection]
id=lan
type=ethernet
interface-name=enp1s0
[ipv4]
method=manual
address1={HOST}/24
[ipv6]
method=disabled
"""


def test_a_host_serves_a_machine(
    world: World, make_machine: Callable[..., Machine], allow: Callable[..., None]
) -> None:
    """From `make install-server` and a folder of manifests to a machine with its address; then over a crash."""
    allow("wrong.yaml", "the last good ones stay in force", "exited, code=killed", "Failed with result 'signal'",
          "Killing process .* with signal SIGKILL")  # fmt: skip
    world.dhcp.start()
    host = make_machine("pool host", installed=False)
    install_product(host.root, "install-server")
    host.write("/etc/NetworkManager/system-connections/lan.nmconnection", NETWORK, 0o600)
    host.write(f"{MANIFESTS}/pool.yaml", pool("192.168.122.150"), 0o640)
    host.write(f"{MANIFESTS}/registration.yaml", registration("sys-uuid"), 0o640)
    host.write("/etc/default/homeport-server", f"OPTIONS=--url https://{HOST}\n")
    host.boot()
    host.run(["chgrp", "-R", "homeport-server", MANIFESTS])
    host.run(["systemctl", "enable", "--now", "homeport-server"])

    assert (state_of(host, "ActiveState"), state_of(host, "NRestarts")) == ("active", "0")
    process = state_of(host, "MainPID")
    assert host.run(["stat", "-c", "%U", f"/proc/{process}"]).stdout.strip() == "homeport-server"
    assert host.run(["stat", "-c", "%a %U", "/var/lib/homeport-server"]).stdout.strip() == "700 homeport-server"
    # Nothing of the host can be written from in there, and no other capability is left.
    capabilities = host.sh(f"grep CapEff /proc/{process}/status").stdout.split()[1]
    assert int(capabilities, 16) == 1 << 10  # CAP_NET_BIND_SERVICE

    machine = make_machine("machine", nics=(Nic("enp1s0"),))
    (shown,) = json.loads(host.run(["homeport-server", "show", NAME, "--json"]).stdout)
    config = world.namespace.run(["curl", "-sfk", shown["url"]])
    make_elemental(machine, config)
    assert_seed(machine, machine.boot())
    host.wait(f"homeport-server show test-btrfs-{machine.firmware.uuid} --json | grep -q '\"rung\": \"assigned\"'")

    # What root does beside it, it goes on with; killed, it is there again with what it knew.
    host.run(["homeport-server", "reserve", "52:54:00:00:00:07", "inventory-ip=192.168.122.207"])
    owners = host.sh("stat -c %U /var/lib/homeport-server/*").stdout.split()
    assert set(owners) == {"homeport-server"}
    host.run(["systemctl", "kill", "--signal=KILL", "homeport-server"])
    wait_until(lambda: (state_of(host, "ActiveState"), state_of(host, "NRestarts")) == ("active", "1"),
               what="systemd to start it again")  # fmt: skip
    listed = json.loads(host.run(["homeport-server", "list", "--json"]).stdout)
    assert [one["address"] for one in listed["machines"][0]["addresses"]] == ["192.168.122.150"]
    assert [one["address"] for one in listed["reserved"]] == ["192.168.122.207"]

    # Wrong manifests wait for a person, and say so; the last good ones serve meanwhile.
    host.run(["sh", "-c", f"echo 'kind: Wrong' > {MANIFESTS}/wrong.yaml; systemctl reload homeport-server"])
    host.wait("journalctl -u homeport-server | grep -q 'the last good ones stay in force'")
    assert state_of(host, "ActiveState") == "active"
    host.run(["systemctl", "stop", "homeport-server"])
    assert state_of(host, "Result") == "success"


def state_of(host: Machine, name: str) -> str:
    """A property of the unit."""
    return host.run(["systemctl", "show", "homeport-server", "--property", name, "--value"]).stdout.strip()
