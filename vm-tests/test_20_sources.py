"""Where an assignment can come from: which source wins, what is put into a URL, what is never followed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from configserver import ConfigServer
from container import Machine
from firmware import Firmware
from mischief import no_refresh
from namespaces import wait_until
from seed import ADDRESS, NIC, SEED, assert_on_dhcp, assert_seed, seed_document
from world import World


def test_credential_before_url(world: World, server: ConfigServer, machine: Machine) -> None:
    """Both have an assignment: the credential wins, and the server is not asked."""
    world.dhcp.start()
    url = server.put(SEED, seed_document("192.168.122.151"))
    boot = machine.boot(f"homeport.config={url}", credentials={"homeport.assignment": seed_document()})
    assert_seed(machine, boot)
    assert server.requests == []


def test_identity_in_the_url(world: World, server: ConfigServer, machine: Machine) -> None:
    """The override file names the machine, and its name is percent-encoded."""
    world.dhcp.start()
    machine.write("/etc/homeport/identity", "serial:AB 12/34\n")
    server.put("/machines/AB%2012%2F34.yaml", seed_document())
    boot = machine.boot(f"homeport.config={server.url}/machines/{{serial}}.yaml")
    assert_seed(machine, boot)
    assert boot.status["identity"]["kind"] == "override"
    assert boot.status["identity"]["value"] == "AB 12/34"


def test_uuid_in_the_url(world: World, server: ConfigServer, machine: Machine) -> None:
    """The usual case: SMBIOS says who the machine is."""
    world.dhcp.start()
    server.put(f"/machines/{machine.firmware.uuid}.yaml", seed_document())
    boot = machine.boot(f"homeport.config={server.url}/machines/{{uuid}}.yaml")
    assert_seed(machine, boot)
    identity = boot.status["identity"]
    assert (identity["kind"], identity["value"]) == ("smbios-uuid", machine.firmware.uuid)


def test_no_junk_in_the_url(
    world: World, server: ConfigServer, make_machine: Callable[..., Machine]
) -> None:
    """A UUID that thousands of boards have: the serial number names it, and nobody gets a neighbour's."""
    world.dhcp.start()
    junk = Firmware("03000200-0400-0500-0006-000700080009", "AB1234")
    machine = make_machine(firmware=junk)
    server.put(f"/machines/{junk.uuid}.yaml", seed_document("192.168.122.199"))
    server.put("/machines/AB1234.yaml", seed_document())
    urls = [f"homeport.config={server.url}/machines/{{{field}}}.yaml" for field in ("uuid", "serial")]
    boot = machine.boot(*urls)
    assert_seed(machine, boot)
    assert boot.status["identity"]["kind"] == "smbios-serial"
    assert server.asked(f"/machines/{junk.uuid}.yaml") == []


def test_mac_in_the_url(world: World, server: ConfigServer, machine: Machine) -> None:
    """A folder of documents named by MAC, one per machine."""
    world.dhcp.start()
    server.put("*", seed_document())
    config = f"homeport.config={server.url}/{{mac}}.yaml"
    boot = machine.boot(config, "homeport.identity=mac:52-54-00-AB-CD-EF")
    assert_seed(machine, boot)
    (asked,) = {r.path.replace("%3A", ":").replace("%3a", ":") for r in server.requests}
    assert asked == "/52:54:00:ab:cd:ef.yaml"


def test_https_with_our_own_authority(world: World, machine: Machine) -> None:
    """A private authority, named in the settings."""
    world.dhcp.start()
    server = world.serve(port=443, tls=True)
    assert server.tls
    machine.write("/etc/homeport/ca.pem", server.tls.ca.read_text())
    machine.write("/etc/homeport/homeport.conf", "Ca=/etc/homeport/ca.pem\n")
    url = server.put(SEED, seed_document())
    assert url.startswith("https://")
    assert_seed(machine, machine.boot(f"homeport.config={url}"))


def test_https_with_a_stranger(
    world: World, machine: Machine, falling: None
) -> None:
    """An authority that nobody trusts: not a byte is believed, and the reason says certificate."""
    world.dhcp.start()
    server = world.serve(port=443, tls=True)
    url = server.put(SEED, seed_document())
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=4s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert "certificate" in boot.status["reason"].lower()


def test_redirect_is_followed(world: World, server: ConfigServer, machine: Machine) -> None:
    """To another place on the same server."""
    world.dhcp.start()
    server.put("/real.yaml", seed_document())
    url = server.put(SEED, redirect="/real.yaml")
    assert_seed(machine, machine.boot(f"homeport.config={url}"))


def test_secrets_of_the_url_stay_secret(world: World, server: ConfigServer, machine: Machine) -> None:
    """The query and the password reach the server, and no log, console or status."""
    world.dhcp.start()
    url = server.put(SEED, seed_document()).replace("http://", "http://robot:hunter2@") + "?token=s3cret"
    boot = machine.boot(f"homeport.config={url}")
    assert_seed(machine, boot)
    assert server.requests[0].path.endswith("?token=s3cret")
    said = machine.story() + boot.text("status") + boot.text("status-table")
    assert "hunter2" not in said
    assert "s3cret" not in said


@pytest.mark.parametrize(("how", "status"), [("accepted", 202), ("open placeholder", 200)])
def test_pending(
    world: World, server: ConfigServer, machine: Machine, falling: None, how: str, status: int
) -> None:
    """202, or a document whose address is not there yet: asked again until it is."""
    world.dhcp.start()
    no_address = seed_document().replace("inventory-ip: 192.168.122.150", "other-ip: 192.168.122.9")
    url = server.put(SEED, no_address if how == "open placeholder" else "", status=status)
    machine.start(f"homeport.config={url}")
    wait_until(lambda: len(server.requests) >= 2, what="the machine to ask again")
    server.put(SEED, seed_document())
    assert_seed(machine, machine.wait_online(60))


@pytest.mark.parametrize("status", [401, 403, 410])
def test_refused(
    world: World, server: ConfigServer, machine: Machine, falling: None, status: int
) -> None:
    """The server wants nothing to do with this machine: asked once, exit 77."""
    world.dhcp.start()
    no_refresh(machine)  # which asks again
    url = server.put(SEED, status=status)
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 77
    assert len(server.requests) == 1


def test_changed_without_rebooting(world: World, server: ConfigServer, machine: Machine) -> None:
    """`homeport fetch` shows what the server has; nothing on the machine changes by it."""
    world.dhcp.start()
    url = server.put(SEED, seed_document())
    machine.boot(f"homeport.config={url}")
    server.put(SEED, seed_document("192.168.122.151"))
    shown = machine.run(["homeport", "fetch"]).stdout
    assert "192.168.122.151" in shown
    assert machine.look().addresses(NIC) == [ADDRESS]
