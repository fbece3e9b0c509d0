"""A machine of Elemental's, from the live medium to a reset: it registers by its TPM, keeps what it is given as
Elemental keeps things, and gives its address back.

The machine has what an Elemental image has (elemental.py). The server is homeport-server, with the seed's pool and
registration.
"""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable

import pytest

from container import Machine
from elemental import LIVE_CONFIG, OEM, ask_for_reset, make_elemental, make_live, set_mode
from namespaces import wait_until
from outcome import Outcome
from poolserver import TOKEN, PoolServer, pool, registration
from seed import ADDRESS, NIC, assert_on_dhcp, assert_seed, seed_document
from swtpm import Swtpm, missing
from world import World


def heard(server: PoolServer, machine: str, text: str) -> None:
    """Wait until the server knows `text` of a machine."""
    wait_until(lambda: text in server.ask("show", machine, "--json"),
               what=f"the server to hear {text} of {machine}")  # fmt: skip


@pytest.mark.usefixtures("_server_installed")
def test_from_the_live_medium_to_a_reset(world: World, make_machine: Callable[..., Machine]) -> None:
    """One machine's life by TPM, with one address in the pool; at its end the address is another machine's."""
    if why := missing():
        pytest.skip(why)
    world.dhcp.start()
    machine, other = make_machine(), make_machine()
    # On the machines' own disks, so that the sockets are the same files inside and outside.
    with (PoolServer(world, pool("192.168.122.150"), registration()) as server,
          Swtpm(machine.on_disk("/var/tpm")) as chip, Swtpm(other.on_disk("/var/tpm")) as other_chip):
        chip.plug_into(machine)
        make_live(machine, server.bootstrap())
        boot = machine.boot()
        assert_on_dhcp(boot)
        assert boot.status["mode"] == "live"
        # What elemental-register --install does there, and a person may: the medium says how to register.
        assert machine.exists(LIVE_CONFIG)
        assert "192.168.122.150" in machine.run(["homeport", "fetch"]).stdout
        name = f"test-btrfs-{machine.firmware.uuid}"
        assert server.addresses() == {"192.168.122.150": name}

        make_elemental(machine, server.bootstrap())
        boot = again(machine)
        assert_seed(machine, boot)
        assert boot.status["source"] == "elemental https://192.168.122.2/elemental/registration"
        assert stat.S_IMODE(machine.on_disk(OEM).stat().st_mode) == 0o600
        identity = boot.status["identity"]
        assert identity["kind"] == "tpm"
        assert "ek-rsa2048-template" in machine.run(["homeport", "identify"]).stdout
        (known,) = json.loads(server.ask("show", identity["value"], "--json"))
        assert known["name"] == name
        assert TOKEN not in machine.story() + boot.text("status") + machine.console
        heard(server, name, '"rung": "assigned"')

        set_mode(machine, "recovery")
        boot = again(machine)
        assert_on_dhcp(boot)
        assert machine.exists(OEM)

        # Without anybody: no server, no DHCP, and a former image's keyfiles come from /oem.
        server.stop()
        world.dhcp.stop()
        set_mode(machine, "passive")
        boot = again(machine)
        assert_seed(machine, boot)
        assert (boot.status["exit"], boot.status["fetched"], boot.status["changed"]) == (0, False, False)
        server.start()
        world.dhcp.start()

        # Installed anew, with the same TPM: the same machine, and the pool has no other address.
        reinstall(machine)
        set_mode(machine, "active")
        assert_seed(machine, again(machine))
        assert server.addresses() == {"192.168.122.150": name}

        machine.power_off()
        ask_for_reset(machine)
        boot = again(machine)
        assert_on_dhcp(boot)
        assert boot.status["mode"] == "reset"
        assert not machine.exists(OEM)
        heard(server, name, '"event": "reset"')
        assert server.addresses() == {}

        other_chip.plug_into(other)
        make_elemental(other, server.bootstrap())
        assert_seed(other, other.boot())
        assert server.addresses() == {"192.168.122.150": f"test-btrfs-{other.firmware.uuid}"}
        # It has said all that it has to say before its TPM is taken away.
        heard(server, f"test-btrfs-{other.firmware.uuid}", '"rung": "assigned"')


def again(machine: Machine) -> Outcome:
    machine.power_off()
    return machine.boot()


def reinstall(machine: Machine) -> None:
    """All that homeport keeps is gone, as after an installation that told no server anything."""
    machine.power_off()
    machine.on_disk(OEM).unlink()
    shutil.rmtree(machine.on_disk("/var/lib/homeport"))
    for file in machine.on_disk("/etc/NetworkManager/system-connections").glob("homeport-*"):
        file.unlink()


def test_a_reset_by_command_gives_the_address_back(world: World, pool_server: PoolServer, machine: Machine) -> None:
    """With the server there: the next machine may have it."""
    world.dhcp.start()
    make_elemental(machine, pool_server.bootstrap())
    assert_seed(machine, machine.boot())
    (known,) = pool_server.machines()
    machine.run(["homeport", "reset", "--yes"])
    assert not machine.exists(OEM)
    assert pool_server.addresses() == {}
    # It is still known: whoever registers again is the same machine.
    machine.run(["homeport", "refresh"])
    assert machine.look().addresses(NIC) == [ADDRESS]
    assert [one["name"] for one in pool_server.machines()] == [known["name"]]


def test_a_site_without_dhcp(world: World, pool_server: PoolServer, machine: Machine, falling: None) -> None:
    """The image's seed gives the first address; registration follows over it, and the assignment replaces it."""
    make_elemental(machine, pool_server.bootstrap())
    machine.write("/usr/lib/homeport/seed.yaml", seed_document("192.168.122.77"))
    boot = machine.boot("homeport.deadline=3s")
    assert boot.status["rung"] == "seed"
    assert boot.addresses(NIC) == ["192.168.122.77/24"]
    machine.wait(f"ip -4 address show {NIC} | grep -q 192.168.122.150")
    machine.wait("grep -q '\"assigned\"' /run/homeport/status.json")
    machine.power_off()
    assert_seed(machine, machine.boot("homeport.deadline=3s"))
