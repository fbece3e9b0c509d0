"""The test bench itself: each nuisance that the other tests rely on does what it says, seen from a machine.

A guest without the product, so that a failure here is the bench's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from container import BootFailed, Machine, Nic
from namespaces import wait_until
from seed import NIC, assert_on_dhcp
from world import World


@pytest.fixture(scope="module")
def plain(_the_world: World) -> Iterator[Machine]:
    """One guest on DHCP, shared: nothing here changes it."""
    _the_world.calm_down()
    _the_world.dhcp.start()
    with Machine(_the_world, "plain", installed=False) as machine:
        machine.boot()
        yield machine


def curl(machine: Machine, url: str, *options: str, within: int = 20) -> tuple[int, str]:
    """(exit status, what it printed) of curl in the machine, for at most `within` seconds."""
    done = machine.run(["curl", "-sS", "--max-time", str(within), *options, url], check=False)
    return done.status, done.stdout


def test_boot_on_dhcp(plain: Machine) -> None:
    """A real boot: NetworkManager, a lease, its route, its DNS; no unit failed."""
    outcome = plain.look()
    assert_on_dhcp(outcome)
    assert outcome.failed_units == []
    assert 0 < outcome.seconds < 300
    assert "network-online.target" in plain.console
    assert plain.run(["nmstatectl", "version"]).stdout


def test_server_answers_and_remembers(world: World, plain: Machine) -> None:
    server = world.serve()
    url = server.put("/a.yaml", "a: 1\n")
    assert curl(plain, url) == (0, "a: 1\n")
    tag = f"If-None-Match: {server.answer('/a.yaml').tag}"
    assert curl(plain, url, "-H", tag, "-w", "%{http_code}") == (0, "304")
    assert [r.status for r in server.requests] == [200, 304]
    assert server.requests[0].client == plain.look().addresses(NIC)[0].partition("/")[0]
    assert curl(plain, server.url + "/other", "-w", "%{http_code}", "-o", "/dev/null") == (0, "404")


def test_server_misbehaves(world: World, plain: Machine) -> None:
    server = world.serve()
    assert curl(plain, server.put("/half", half_open=True), within=1) == (28, "")
    assert curl(plain, server.put("/late", "x", header_delay=60), within=1) == (28, "")
    status, text = curl(plain, server.put("/drip", "x" * 100, byte_delay=0.5), within=4)
    assert status == 28
    assert 0 < len(text) < 20
    assert curl(plain, server.put("/cut", "x" * 100, cut_after=10)) == (18, "x" * 10)
    head = curl(plain, server.put("/busy", status=503, retry_after=7), "-D", "-")[1]
    assert "503" in head
    assert "Retry-After: 7" in head
    assert curl(plain, server.put("/moved", redirect="/cut"), "-w", "%{redirect_url}")[1].endswith("/cut")


def test_server_is_absent_and_back(world: World, plain: Machine) -> None:
    server = world.serve()
    url = server.put("/a", "a")
    server.stop()
    assert curl(plain, url)[0] == 7
    server.start()
    assert curl(plain, url) == (0, "a")


def test_tls(world: World, plain: Machine) -> None:
    server = world.serve(port=443, tls=True)
    assert server.tls
    url = server.put("/a", "a")
    assert curl(plain, url)[0] == 60
    plain.write("/etc/bench-ca.pem", server.tls.ca.read_text())
    assert curl(plain, url, "--cacert", "/etc/bench-ca.pem") == (0, "a")
    server.tls.renew()
    assert curl(plain, url, "--cacert", "/etc/bench-ca.pem")[0] == 60


def test_gateway_falls_silent(world: World, plain: Machine) -> None:
    server = world.serve()
    url = server.put("/a", "a")
    ping = ["ping", "-c", "1", "-W", "3", "192.168.122.1"]
    plain.wait(" ".join(ping))
    world.silence_gateway()
    plain.sh(f"ip neigh flush dev {NIC}")
    assert plain.run(ping, check=False).status != 0
    assert curl(plain, url) == (0, "a")  # The others are still there.
    world.wake_gateway()
    plain.wait(" ".join(ping))  # Its neighbour entry has failed; the next try asks anew.


def test_cut_off(world: World, plain: Machine) -> None:
    """TCP no longer comes back to one address; ping does."""
    server = world.serve()
    url = server.put("/a", "a")
    world.cut_off(plain.look().addresses(NIC)[0].partition("/")[0])
    assert curl(plain, url, within=2)[0] == 28
    plain.run(["ping", "-c", "1", "-W", "10", "192.168.122.2"])
    world.calm_down()


def test_another_host(world: World, plain: Machine) -> None:
    host = world.host("192.168.122.150", mac="52:54:00:aa:bb:cc")
    plain.run(["ping", "-c", "1", "-W", "10", "192.168.122.150"])
    assert "52:54:00:aa:bb:cc" in plain.run(["ip", "neigh", "show", "192.168.122.150"]).stdout
    host.leave()


def test_cable_and_late_nic(world: World, plain: Machine) -> None:
    """A cable is pulled, a NIC comes late; the monitor sees both."""
    mark = plain.monitor.mark()
    cable = plain.add_nic(Nic("late0", plugged=False))
    plain.wait("test -e /sys/class/net/late0")
    assert "NO-CARRIER" in plain.run(["ip", "link", "set", "late0", "up"]).stdout or (
        plain.run(["cat", "/sys/class/net/late0/carrier"]).stdout.strip() == "0"
    )
    cable.plug()
    plain.wait("test $(cat /sys/class/net/late0/carrier) = 1")
    cable.remove()
    plain.wait("! test -e /sys/class/net/late0")
    del plain.cables["late0"]
    wait_until(
        lambda: any(e.deleted for e in plain.monitor.events(since=mark, kind="LINK", nic="late0")),
        what="the monitor to see the NIC go",
    )  # fmt: skip


def test_a_slow_monitor_misses_nothing_and_dates_nothing_late(plain: Machine) -> None:
    """What is before the mark stays before it, and what has happened is there, however late `ip monitor` gets to it."""
    namespace = plain.namespace
    assert namespace
    address = "192.0.2.77/32"
    for since_is_after in (True, False):
        mark = plain.monitor.mark()
        with plain.monitor.standing_still(0.3):
            namespace.ip("address", "add", address, "dev", "lo")
            namespace.ip("address", "delete", address, "dev", "lo")
            if since_is_after:
                mark = plain.monitor.mark()
            events = plain.monitor.events(since=mark, kind="ADDR", nic="lo")
        assert [event.deleted for event in events] == ([] if since_is_after else [False, True])


def test_failed_boot_ends_at_once(world: World) -> None:
    """Emergency mode is a failed boot as soon as it is reached, not at the deadline."""
    with Machine(world, "broken", installed=False) as machine:
        started = time.monotonic()
        with pytest.raises(BootFailed, match="emergency mode"):
            machine.boot("systemd.unit=emergency.target", deadline=600)
        assert time.monotonic() - started < 300
        machine.keep = False


def test_power_cut_drops_what_was_not_synced(world: World) -> None:
    """The disk of a `lossy` machine is as strict as a real one."""
    with Machine(world, "lossy", installed=False, lossy=True) as machine:
        machine.start()
        machine.wait("systemctl is-active --quiet sysinit.target")
        machine.sh("echo kept >/root/kept; sync; echo gone >/root/gone")
        machine.power_cut()
        assert machine.read("/root/kept") == "kept\n"
        assert not machine.exists("/root/gone")
        machine.start()
        machine.wait("systemctl is-active --quiet sysinit.target")
        assert machine.read("/root/kept") == "kept\n"


def test_reboot_and_power_cut_keep_the_disk(world: World) -> None:
    world.dhcp.start()
    with Machine(world, "disk", installed=False) as machine:
        machine.boot("one=1")
        assert "one=1" in machine.read("/proc/1/cmdline")
        machine.sh("echo kept >/root/kept; echo gone >/run/gone; sync")
        machine.power_off()
        machine.boot()
        assert machine.read("/root/kept") == "kept\n"
        assert not machine.exists("/run/gone")
        machine.power_cut()
        assert machine.read("/root/kept") == "kept\n"
        machine.boot(credentials={"bench.test": "a: 'b'\n\\x\n"})
        assert machine.read("/run/host/credentials/bench.test") == "a: 'b'\n\\x\n"
        assert len({e["_BOOT_ID"] for e in machine.journal(all_boots=True)}) == 3
