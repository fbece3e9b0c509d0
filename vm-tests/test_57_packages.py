"""The packages on machines that run: whatever is installed, upgraded or removed, the network stays as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from configserver import ConfigServer
from container import Machine
from outcome import Outcome
from seed import ADDRESS, NIC, SEED, assert_on_dhcp, assert_seed, seed_document
from trees import REPOSITORY, Overlay, prepared, prepared_path
from world import World

# In the order in which they were released.
VERSIONS = ("0.1.0~1", "0.1.0~2")
PROGRAM = "/usr/lib/homeport/homeport.pyz"
Debs = dict[str, Path]
SUITES = [
    "trixie",
    pytest.param("bookworm", marks=pytest.mark.skipif(
        "GUEST_bookworm" not in prepared(), reason="no Debian 12 to boot (run: tools/setup guest-bookworm)")),
]  # fmt: skip
STATES = "systemctl is-enabled homeport.service homeport-refresh.service homeport-refresh.timer"


@pytest.fixture(scope="session")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Debs:
    """By their names on a machine's disk."""
    return {f"{name}_{version}.deb": path for version in VERSIONS
            for name, path in packages("deb", version, tmp_path_factory.mktemp("deb")).items()}  # fmt: skip


@pytest.fixture
def plain(make_machine: Callable[..., Machine], debs: Debs) -> Machine:
    """A machine without homeport, and the packages on its disk."""
    machine = make_machine(installed=False)
    bring(machine, debs)
    return machine


@pytest.fixture
def assigned(world: World, server: ConfigServer, plain: Machine) -> Machine:
    """Installed as in an image that is being made, and booted: its assignment is in force."""
    dpkg_offline(plain, VERSIONS[0])
    world.dhcp.start()
    assert_seed(plain, plain.boot(f"homeport.config={server.put(SEED, seed_document())}"))
    return plain


@pytest.mark.parametrize("suite", SUITES)
def test_installed_on_a_running_machine(
    suite: str, world: World, server: ConfigServer, make_machine: Callable[..., Machine], debs: Debs
) -> None:
    """Nothing changes by it; the next boot is homeport's."""
    world.dhcp.start()
    machine = make_machine(tree=suite, installed=False)
    bring(machine, debs)
    machine.boot()
    before, mark = at_rest(machine)

    machine.run(["dpkg", "--install", deb(VERSIONS[0])])
    machine.run(["nmcli", "connection", "reload"])

    assert_untouched(machine, before, mark)
    # The guest is made without manuals.
    differs = machine.run(["dpkg", "--verify", "homeport"]).stdout.splitlines()
    assert [line for line in differs if "/usr/share/doc" not in line and "/usr/share/man" not in line] == []
    assert machine.sh(STATES, check=False).stdout.split() == ["enabled", "enabled", "disabled"]
    assert machine.sh("systemctl is-active homeport.service", check=False).stdout == "inactive\n"
    assert has_bytecode(machine)
    # Another Python comes.
    machine.sh(f"dpkg-deb --fsys-tarfile {deb(VERSIONS[0])} | tar -xOf - .{PROGRAM} >{PROGRAM}")
    assert not has_bytecode(machine)
    machine.sh("dpkg-trigger --by-package=python3-minimal /usr/bin/python3 && dpkg --triggers-only --pending")
    assert has_bytecode(machine)
    machine.power_off()
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert_seed(machine, boot)
    assert boot.failed_units == []


def test_upgrade(world: World, server: ConfigServer, assigned: Machine) -> None:
    """Not one event of the kernel, no unit starts again, and what was switched on or off stays so."""
    assigned.sh("systemctl --quiet disable homeport-refresh.service; systemctl --quiet enable homeport-refresh.timer")
    started = assigned.sh("systemctl show -P ActiveEnterTimestampMonotonic homeport NetworkManager").stdout
    before, mark = at_rest(assigned)

    assigned.run(["dpkg", "--install", deb(VERSIONS[1])])

    assert VERSIONS[1] in assigned.run(["dpkg-query", "--show", "homeport"]).stdout
    assert_untouched(assigned, before, mark)
    assert assigned.sh("systemctl show -P ActiveEnterTimestampMonotonic homeport NetworkManager").stdout == started
    assert assigned.sh(STATES, check=False).stdout.split() == ["enabled", "disabled", "enabled"]
    assigned.power_off()
    boot = assigned.boot(f"homeport.config={server.url}{SEED}")
    assert_seed(assigned, boot)
    assert boot.status["exit"] == 0


def test_upgrade_waits_for_a_run(assigned: Machine) -> None:
    """Python reads modules from the zipapp while it runs: it is not replaced under a run that holds the lock."""
    assigned.sh("(flock 9; touch /run/at-work; sleep 2; dpkg-query --show homeport >/run/seen) 9>/run/homeport/lock "
                ">/dev/null 2>&1 &")  # fmt: skip
    assigned.wait("test -e /run/at-work")
    assigned.run(["dpkg", "--install", deb(VERSIONS[1])])
    assert VERSIONS[0] in assigned.read("/run/seen")


def test_removal_leaves_the_assigned_network(world: World, server: ConfigServer, assigned: Machine) -> None:
    """Now, when NetworkManager reads its profiles again, and at the next boot, with nobody there to help."""
    before, mark = at_rest(assigned)
    assigned.run(["dpkg", "--remove", "homeport"])
    assigned.run(["nmcli", "connection", "reload"])
    assert_untouched(assigned, before, mark)

    assigned.run(["dpkg", "--purge", "homeport"])
    assigned.run(["nmcli", "connection", "reload"])
    assert_untouched(assigned, before, mark)
    assert not assigned.exists("/var/lib/homeport")
    assert assigned.sh("find /usr /etc /var -name '*homeport*' ! -name 'homeport*.deb'").stdout.split() == [
        f"/etc/NetworkManager/system-connections/{name}" for name in before.keyfiles]

    assigned.power_off()
    server.stop()
    world.dhcp.stop()
    boot = assigned.boot()
    assert boot.addresses(NIC) == [ADDRESS]
    assert boot.routes() == before.routes


def test_removal_leaves_a_machine_on_dhcp(world: World, plain: Machine, falling: None) -> None:
    """The bootstrap profile becomes the machine's own; and homeport's again with the package."""
    own = "/etc/NetworkManager/system-connections/homeport-bootstrap.nmconnection"
    dpkg_offline(plain, VERSIONS[0])
    world.dhcp.start()
    assert_on_dhcp(plain.boot())
    before, mark = at_rest(plain)

    plain.run(["dpkg", "--purge", "homeport"])
    plain.run(["nmcli", "connection", "reload"])

    assert_untouched(plain, before, mark)
    assert plain.sh(f"stat -c %a {own}").stdout == "600\n"
    plain.power_off()
    boot = plain.boot()
    assert boot.addresses(NIC) == before.addresses  # the same lease

    _, mark = at_rest(plain)
    plain.run(["dpkg", "--install", deb(VERSIONS[0])])
    plain.run(["nmcli", "connection", "reload"])
    assert not plain.exists(own)
    assert_untouched(plain, before, mark)


def test_rpm(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], tmp_path: Path
) -> None:
    """Put into an image, upgraded, removed, by what its scriptlets do; the machine below is a Debian."""
    if not shutil.which("rpmbuild"):
        pytest.skip("rpm is not installed (run: make setup)")
    first, second = (packages("rpm", version, tmp_path / version)["homeport"] for version in VERSIONS)
    world.dhcp.start()
    machine = make_machine(installed=False)
    rpm(machine, "--install", str(first))
    boot = machine.boot(f"homeport.config={server.put(SEED, seed_document())}")
    assert_seed(machine, boot)
    assert boot.failed_units == []
    machine.sh("systemctl --quiet disable homeport-refresh.service")
    machine.power_off()

    rpm(machine, "--upgrade", str(second))
    boot = machine.boot(f"homeport.config={server.url}{SEED}")
    assert_seed(machine, boot)
    assert machine.sh(STATES, check=False).stdout.split() == ["enabled", "disabled", "disabled"]
    machine.power_off()

    rpm(machine, "--erase", "homeport")
    assert not list(machine.root.glob("etc/systemd/system/*/homeport*"))
    server.stop()
    world.dhcp.stop()
    assert machine.boot().addresses(NIC) == [ADDRESS]


def test_server(world: World, plain: Machine) -> None:
    """Started by nobody but the administrator; with a new program after an upgrade; what it knows outlives it."""
    world.dhcp.start()
    plain.boot()
    plain.run(["dpkg", "--install", deb(VERSIONS[0], "homeport-server")])
    states = "systemctl is-enabled homeport-server; systemctl is-active homeport-server"
    assert plain.sh(states, check=False).stdout.split() == ["disabled", "inactive"]
    plain.write("/etc/homeport-server/pool.yaml", POOL)
    plain.run(["systemctl", "enable", "--now", "homeport-server"])
    first = plain.run(["systemctl", "show", "-P", "MainPID", "homeport-server"]).stdout

    plain.run(["dpkg", "--install", deb(VERSIONS[1], "homeport-server")])
    assert plain.sh(states, check=False).stdout.split() == ["enabled", "active"]
    assert plain.run(["systemctl", "show", "-P", "MainPID", "homeport-server"]).stdout != first

    plain.run(["dpkg", "--purge", "homeport-server"])
    assert plain.sh("systemctl is-active homeport-server", check=False).stdout == "inactive\n"
    assert plain.sh("stat -c '%a %U' /var/lib/homeport-server").stdout == "700 homeport-server\n"
    assert plain.exists("/var/lib/homeport-server/ca-key.pem")
    assert plain.read("/etc/homeport-server/pool.yaml") == POOL


@pytest.mark.skipif("VM_trixie" not in prepared(), reason="no Debian with dracut (run: tools/setup vm-trixie)")
def test_dracut_is_asked_only_where_the_machine_says_so(debs: Debs, tmp_path: Path) -> None:
    """An initramfs is made anew by the trigger update-initramfs, which dracut waits for. And there is no nmstatectl."""
    overlay = Overlay([prepared_path("VM_trixie")], *(tmp_path / name for name in ("upper", "work", "root")))
    try:
        root = overlay.path
        names = [f"{name}_{VERSIONS[0]}.deb" for name in ("homeport", "homeport-dracut")]
        for name in names:
            shutil.copy(debs[name], root / "root" / name)
        install = ["dpkg", "--no-triggers", "--install", *(f"/root/{name}" for name in names)]
        state = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}", "dracut"]
        for asked, status in ((False, "installed"), (True, "triggers-pending")):
            if asked:
                shutil.copy(root / "usr/lib/dracut/dracut.conf.d/homeport/homeport.conf", root / "etc/dracut.conf.d")
            assert "there is no nmstatectl" in in_chroot(root, install)
            assert in_chroot(root, state) == status
    finally:
        overlay.unmount()


POOL = """\
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: pool}
spec: {addresses: [192.168.122.200-192.168.122.210], prefix: 24, gateway: 192.168.122.1}
"""


def packages(kind: str, version: str, folder: Path) -> Debs:
    """By name, as `make deb` and `make rpm` make them."""
    subprocess.run([REPOSITORY / "packages/build.py", kind, folder, "--version", version], check=True,
                   capture_output=True)  # fmt: skip
    return {re.split("[-_][0-9]", path.name)[0]: path for path in folder.glob(f"*.{kind}")}


def deb(version: str, name: str = "homeport") -> str:
    """Where it is on a machine's disk."""
    return f"/root/{name}_{version}.deb"


def bring(machine: Machine, debs: Debs) -> None:
    for name, path in debs.items():
        shutil.copy(path, machine.on_disk(f"/root/{name}"))


def dpkg_offline(machine: Machine, version: str) -> None:
    """As whoever makes an image does it: no systemd, no NetworkManager is running."""
    in_chroot(machine.root, ["dpkg", "--install", deb(version)])


def in_chroot(root: Path, command: list[str]) -> str:
    """What it prints."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    return subprocess.run(["chroot", root, *command], check=True, text=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout  # fmt: skip


def has_bytecode(machine: Machine) -> bool:
    return ".pyc" in machine.run(["python3", "-m", "zipfile", "--list", PROGRAM]).stdout


def rpm(machine: Machine, *arguments: str) -> None:
    """Without dependencies: this root's are Debian's."""
    subprocess.run(["rpm", "--root", machine.root, "--nodeps", "--nosignature", *arguments], check=True,
                   capture_output=True)  # fmt: skip


@dataclass(frozen=True)
class Network:
    addresses: list[str]
    routes: list[dict[str, Any]]
    resolv: list[str]
    keyfiles: list[str]


def network_of(outcome: Outcome) -> Network:
    return Network(outcome.addresses(NIC), outcome.routes(), outcome.resolv,
                   sorted(name for name in outcome.keyfiles if name.startswith("homeport-")))  # fmt: skip


def at_rest(machine: Machine) -> tuple[Network, int]:
    """What the machine stands on, and from where on nothing is expected to happen by itself."""
    # Of its own IPv6 address the kernel says twice that it is there.
    machine.wait("test -z \"$(ip -6 address show tentative)\"")
    machine.wait(f"ip address show dev {NIC} scope global | grep -q inet")
    return network_of(machine.look()), machine.monitor.mark()


def assert_untouched(machine: Machine, before: Network, mark: int) -> None:
    """Links, addresses, routes and DNS are what they were, and were so all the time."""
    assert [*map(str, machine.monitor.events(since=mark))] == []
    assert replace(network_of(machine.look()), keyfiles=[]) == replace(before, keyfiles=[])
