"""Killed, or without power, at any point of the story: the next boot ends in a network that carries traffic.

`make test` tries a few points of each story, `make test-container-full` all of them, some minutes for each story:
they are those of a run that went well, so a step that is new is tried by itself (killer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from configserver import ConfigServer
from container import Machine
from killer import HELD, POINTS
from mischief import checkpoints, no_order, no_refresh, order, stop_at_points
from outcome import Outcome
from seed import ADDRESS, DNS, NIC, SEED, assert_on_dhcp, default_routes, seed_document
from world import World

pytestmark = pytest.mark.usefixtures("falling")

FOLDER = "/etc/NetworkManager/system-connections"
STRANGERS = {
    f"{FOLDER}/by-hand.nmconnection": (
        f"[connection]\nid=by hand\nuuid=11111111-1111-4111-8111-111111111111\ntype=ethernet\ninterface-name={NIC}\n"
        "autoconnect=false\n\n[ipv4]\nmethod=manual\naddress1=10.9.8.7/24\n\n[ipv6]\nmethod=disabled\n"),
    f"{FOLDER}/homeport-lab.nmconnection": (
        "[connection]\nid=lab\nuuid=22222222-2222-4222-8222-222222222222\ntype=ethernet\ninterface-name=eth7\n\n"
        "[ipv4]\nmethod=auto\n"),
    "/etc/NetworkManager/conf.d/site.conf": "[connection]\nipv6.ip6-privacy=0\n",
    "/etc/systemd/network/10-site.link": "[Match]\nOriginalName=eth7\n[Link]\nMTUBytes=1400\n",
}

# Another address and another DNS server than the seed case: half of one and half of the other would show.
OTHER = seed_document("192.168.122.151").replace("            - 192.168.122.1\n", "            - 192.168.122.2\n")
OTHER_ADDRESS = "192.168.122.151/24"
WHOLE = {ADDRESS: DNS, OTHER_ADDRESS: "192.168.122.2"}

class Story:
    """What homeport does in it: on a machine without an assignment, it gets its first one."""

    verb = "boot"
    # nmstate's DNS on disk; in force and unproven; committed and not written down; between the writes.
    some: tuple[tuple[str, str], ...] = (
        ("kill", "call Set"),
        ("cut", "begin prove"),
        ("kill", "rename to /var/lib/homeport/assigned.yaml"),
        ("cut", "rename to /etc/NetworkManager/system-connections/homeport-enp1s0.nmconnection"),
    )

    def __init__(self, world: World, server: ConfigServer, machine: Machine) -> None:
        self.world, self.server, self.machine = world, server, machine
        # The same in all boots: another argument would keep the fast path shut.
        self.arguments = (f"homeport.config={server.put(SEED, seed_document())}", "homeport.deadline=4s")
        stop_at_points(machine)
        no_refresh(machine)
        for path, text in STRANGERS.items():
            machine.write(path, text, 0o600)
        self.strangers = self.look_at_strangers()
        self.document = seed_document()
        self.beginning: Path
        world.dhcp.start()

    def prepare(self) -> None:
        """Bring the machine to where the story begins; it is off then."""

    def begin(self) -> None:
        """The story, from power-on."""
        self.machine.start(*self.arguments)

    def next_boot(self) -> Outcome:
        """With a DHCP server, and nobody who knows this machine."""
        self.server.put(SEED, status=404)
        return self.machine.boot(*self.arguments)

    def assert_reachable(self, boot: Outcome) -> None:
        """All of it or nothing of it."""
        if boot.addresses(NIC) == [ADDRESS]:
            assert_whole(self.machine, boot, ADDRESS)
        else:
            assert_nothing_ours(boot)

    def assert_not_stuck(self) -> None:
        """Once the server is back, all is as if nothing had happened."""
        self.server.put(SEED, self.document)
        self.machine.run(["homeport", "refresh"])
        assert_whole(self.machine, self.machine.look(), ADDRESS)

    # The same for each

    def points(self) -> list[str]:
        """Every point, from a run that goes well."""
        self.server.put(SEED, self.document)
        self.begin()
        self.machine.wait(f"grep -q 'rename to /run/homeport/status.json' {POINTS}{self.verb}")
        found = self.machine.read(POINTS + self.verb).splitlines()
        self.machine.power_cut()
        return found

    def try_point(self, how: str, point: str) -> None:
        """Stopped at the point; then the next boot, and a run after it."""
        self.machine.put_disk_back(self.beginning)
        self.server.start()
        self.server.put(SEED, self.document)
        self.world.dhcp.start()
        order(self.machine, self.verb, how, point)
        self.begin()
        self.machine.wait(f"test -e {HELD}")
        if how == "kill":
            self.machine.power_off()
        else:
            self.machine.power_cut()
        no_order(self.machine)
        boot = self.next_boot()
        self.assert_reachable(boot)
        assert boot.status["exit"] in (0, 69)
        (address,) = boot.addresses(NIC)
        self.world.namespace.run(["ping", "-c", "1", "-W", "10", address.partition("/")[0]])
        assert self.look_at_strangers() == self.strangers
        self.assert_not_stuck()
        self.assert_tidy()
        self.machine.power_cut()

    def assert_tidy(self) -> None:
        assert checkpoints(self.machine) == 0
        left = self.machine.sh(f"find /var/lib {FOLDER} -name '.homeport-*' -o -name inflight.json").stdout
        assert left == ""

    def look_at_strangers(self) -> dict[str, tuple[str, int, float]]:
        files = {path: self.machine.on_disk(path) for path in STRANGERS}
        return {path: (file.read_text(), file.stat().st_mode, file.stat().st_mtime) for path, file in files.items()}


class Change(Story):
    """A machine with an assignment is given another one; on the next boot there is not even DHCP."""

    verb = "refresh"
    # The same; the document is new and its files are not; all are, and not a moment has passed.
    some: tuple[tuple[str, str], ...] = (
        ("kill", "call Set"),
        ("cut", "rename to /var/lib/homeport/manifest.json"),
        ("cut", "call LoadConnections (3)"),
    )

    def prepare(self) -> None:
        self.machine.boot(*self.arguments)
        self.machine.power_off()
        self.document = OTHER

    def begin(self) -> None:
        self.machine.start(*self.arguments)
        self.machine.wait("systemctl is-active --quiet network-online.target")
        run_in_background(self.machine, "refresh")

    def next_boot(self) -> Outcome:
        self.server.stop()
        self.world.dhcp.stop()
        return self.machine.boot(*self.arguments)

    def assert_reachable(self, boot: Outcome) -> None:
        (address,) = boot.addresses(NIC)
        assert_whole(self.machine, boot, address)

    def assert_not_stuck(self) -> None:
        self.server.start()
        self.machine.run(["homeport", "refresh"])
        assert_whole(self.machine, self.machine.look(), OTHER_ADDRESS)


class Reset(Change):
    """`homeport reset` on a machine with an assignment."""

    verb = "reset"
    some = (("cut", "remove /var/lib/homeport/assigned.yaml"),)

    def begin(self) -> None:
        self.machine.start(*self.arguments)
        self.machine.wait("systemctl is-active --quiet network-online.target")
        run_in_background(self.machine, "reset --yes")

    def next_boot(self) -> Outcome:
        return Story.next_boot(self)

    def assert_reachable(self, boot: Outcome) -> None:
        Story.assert_reachable(self, boot)

    def assert_not_stuck(self) -> None:
        self.machine.run(["homeport", "reset", "--yes"])
        assert_nothing_ours(self.machine.look())


STORIES = pytest.mark.parametrize("kind", [Story, Change, Reset], ids=["first", "change", "reset"])


@pytest.fixture
def story(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine], allow: Callable[..., None],
    kind: type[Story],
) -> Story:  # fmt: skip
    """At its beginning."""
    allow("code=killed", "An earlier run was interrupted", "A checkpoint was left pending")
    story = kind(world, server, make_machine(lossy=True))
    story.prepare()
    story.beginning = story.machine.copy_disk()
    return story


@STORIES
def test_stopped(story: Story, kind: type[Story]) -> None:
    """By kill -9, with an orderly reboot after it, or by a power cut that leaves what was synced."""
    assert_all_well(story, kind.some)


@pytest.mark.long("every point of a story takes minutes")
@pytest.mark.parametrize("how", ["kill", "cut"])
@STORIES
def test_stopped_anywhere(story: Story, kind: type[Story], how: str) -> None:
    """The same at every point that there is."""
    points = story.points()
    assert len(points) > 15, points
    assert {point for _, point in kind.some} <= set(points)
    assert_all_well(story, [(how, point) for point in points])


def assert_all_well(story: Story, points: Collection[tuple[str, str]]) -> None:
    failed = list(filter(None, (failure(story, how, point) for how, point in points)))
    assert not failed, f"{len(failed)} of {len(points)} points:\n" + "\n".join(failed)


def failure(story: Story, how: str, point: str) -> str:
    """What is wrong when it is stopped at this point; "" if nothing."""
    try:
        story.try_point(how, point)
    except Exception as error:  # the other points are of interest, too
        said = story.machine.story()
        story.machine.power_cut()
        return f"{how} at {point}: {type(error).__name__}: {error}\n{said}"
    return ""


def assert_whole(machine: Machine, boot: Outcome, address: str) -> None:
    """One assignment in force and on disk, nothing of the other one."""
    dns = WHOLE[address]
    assert boot.addresses(NIC) == [address]
    assert default_routes(boot) == [("192.168.122.1", NIC, 150, "main")]
    assert boot.resolv == [dns]
    (name,) = ours(boot)
    lines = machine.read(f"{FOLDER}/{name}").splitlines()
    assert f"address1={address}" in lines
    assert f"dns={dns};" in lines


def assert_nothing_ours(boot: Outcome) -> None:
    assert_on_dhcp(boot, keyfiles=False)
    assert ours(boot) == []


def ours(boot: Outcome) -> list[str]:
    return [name for name in boot.keyfiles if name.startswith("homeport-") and f"{FOLDER}/{name}" not in STRANGERS]


def run_in_background(machine: Machine, verb: str) -> None:
    machine.sh(f"(setsid /usr/local/lib/killer {verb} </dev/null >/run/said 2>&1 &)")
