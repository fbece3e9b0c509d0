"""Servers that are slow, confused, overloaded or not ours: bounded in time and size, and never believed."""

from __future__ import annotations

import textwrap

import pytest

from configserver import ConfigServer
from container import Machine
from mischief import no_refresh
from namespaces import wait_until
from seed import SEED, assert_on_dhcp, assert_seed, seed_document
from world import World

pytestmark = pytest.mark.usefixtures("falling")


def test_dripping_server(world: World, server: ConfigServer, machine: Machine) -> None:
    """A byte now and then keeps nothing alive: the body has its limit, and all attempts the deadline."""
    world.dhcp.start()
    url = server.put(SEED, seed_document(), byte_delay=0.2)
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=6s", "homeport.body-timeout=2s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
    assert len(server.requests) >= 2
    fetch = sum(s["seconds"] for s in boot.status["steps"] if s["name"] == "fetch")
    assert fetch < 60  # the whole document takes minutes, and by default all attempts may


def test_slow_but_good_server(world: World, server: ConfigServer, machine: Machine) -> None:
    """Three seconds to think, then all of it: worth waiting for."""
    world.dhcp.start()
    url = server.put(SEED, seed_document(), header_delay=3)
    boot = machine.boot(f"homeport.config={url}")
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0


def test_cut_in_the_middle(world: World, server: ConfigServer, machine: Machine) -> None:
    """Half a document may be valid YAML: what is shorter than promised is asked for again."""
    world.dhcp.start()
    url = server.put(SEED, seed_document(), cut_after=len(seed_document()) - 200)
    machine.start(f"homeport.config={url}")
    wait_until(lambda: len(server.requests) >= 2, what="the machine to ask again")
    server.put(SEED, seed_document())
    assert_seed(machine, machine.wait_online())


def test_too_many_requests(world: World, server: ConfigServer, machine: Machine) -> None:
    """429 with Retry-After: later, as it says."""
    world.dhcp.start()
    url = server.put(SEED, status=429, retry_after=3)
    machine.start(f"homeport.config={url}")
    wait_until(lambda: len(server.requests) >= 1, what="the machine to ask")
    server.put(SEED, seed_document())
    assert_seed(machine, machine.wait_online())
    first, second = server.requests[:2]
    assert second.at - first.at >= 3


def test_two_mebibytes(world: World, server: ConfigServer, machine: Machine) -> None:
    """More than any document may have: refused with its limit, not swallowed."""
    world.dhcp.start()
    url = server.put(SEED, seed_document() + "# padding\n" * (2 * 1024 * 1024 // 10))
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65
    assert "512" in boot.status["reason"]


@pytest.mark.parametrize("content_type", ["text/html", "image/png"])
def test_wrong_content_type(
    world: World, server: ConfigServer, machine: Machine, content_type: str
) -> None:
    """A login page with status 200 is not an assignment, whatever it contains."""
    world.dhcp.start()
    body = {"text/html": b"<!DOCTYPE html><title>Welcome to the Wi-Fi</title>", "image/png": b"\x89PNG\0"}
    url = server.put(SEED, body[content_type], content_type=content_type)
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 65


def test_redirect_to_another_host(world: World, server: ConfigServer, machine: Machine) -> None:
    """Followed, but our password stays with the host it is for."""
    world.dhcp.start()
    world.lan.add_address("192.168.122.3/24")
    other = world.serve("192.168.122.3")
    target = other.put("/elsewhere.yaml", seed_document())
    url = server.put(SEED, redirect=target).replace("http://", "http://robot:hunter2@")
    boot = machine.boot(f"homeport.config={url}")
    assert_seed(machine, boot)
    assert "Authorization" in server.requests[0].headers
    assert all("Authorization" not in r.headers for r in other.requests)


def test_redirects_for_ever(world: World, server: ConfigServer, machine: Machine) -> None:
    world.dhcp.start()
    no_refresh(machine)
    url = server.put(SEED, redirect=SEED)
    boot = machine.boot(f"homeport.config={url}", "homeport.deadline=5s")
    assert_on_dhcp(boot)
    assert boot.status["exit"] in (65, 69)
    assert len(server.requests) < 100


def test_document_of_another_machine(world: World, server: ConfigServer, machine: Machine) -> None:
    """A document for many machines, none of which is this one: nothing for us."""
    world.dhcp.start()
    network = textwrap.indent(textwrap.dedent(seed_document().partition("  network:\n")[2]), "  ")
    match = "- match: {uuid: 11111111-2222-4333-8444-555555555555}\n"
    url = server.put(SEED, f"machines:\n{match}{network}")
    boot = machine.boot(f"homeport.config={url}")
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 69
