"""An assignment that takes another shape: what the former one made goes, what it did not touch stays."""

from __future__ import annotations

from container import Machine, Nic
from outcome import Outcome
from seed import ADDRESS, DNS, NIC, SEED, assert_seed_keyfile, default_routes, seed_document
from world import World

BRIDGE = """\
interfaces:
- {name: br0, type: linux-bridge, state: up,
   bridge: {options: {stp: {enabled: false}}, port: [{name: enp1s0}]},
   ipv4: {enabled: true, address: [{ip: 192.168.122.151, prefix-length: 24}]}, ipv6: {enabled: false}}
- {name: enp1s0, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}
- {name: mv0, type: mac-vlan, state: up, mac-vlan: {base-iface: enp2s0, mode: bridge},
   ipv4: {enabled: true, address: [{ip: 10.9.9.9, prefix-length: 24}]}, ipv6: {enabled: false}}
- {name: enp2s0, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.168.122.1, next-hop-interface: br0}
  - {destination: 10.10.0.0/16, route-type: blackhole}
dns-resolver: {config: {server: [192.168.122.1], search: [example.com]}}
"""


def test_bridge_to_flat_and_back(world: World) -> None:
    """Bridge, macvlan and blackhole route; reboot with nobody there; then the seed document by refresh; then back."""
    world.dhcp.start()
    server = world.serve()
    url = server.put(SEED, BRIDGE)
    with Machine(world, "shapes", nics=(Nic(NIC), Nic("enp2s0"))) as machine:
        assert_bridged(machine, machine.boot(f"homeport.config={url}").status)
        machine.power_off()
        server.stop()
        boot = machine.boot(f"homeport.config={url}")
        assert_bridged(machine, boot.status)
        assert boot.status["steps"][0]["name"] == "fast path"

        server.start()
        # Asked again and unchanged: what has no device of its own (the blackhole's profile) is kept, too.
        machine.run(["homeport", "refresh"])
        assert_bridged(machine, machine.look().status)

        server.put(SEED, seed_document())
        done = machine.run(["homeport", "refresh"])
        outcome = machine.look()
        assert outcome.status["exit"] == 0, done
        # The other NIC is nobody's now: DHCP, behind the assigned route and servers.
        machine.wait("ip -4 route show default dev enp2s0 | grep -q dhcp")
        outcome = machine.look()
        assert outcome.addresses(NIC) == [ADDRESS]
        first, second = sorted(default_routes(outcome), key=lambda route: route[2])
        assert first == ("192.168.122.1", NIC, 150, "main")
        assert second[1] == "enp2s0"
        assert outcome.resolv[0] == DNS
        assert_seed_keyfile(machine, outcome)
        assert "br0" not in machine.run(["ip", "-br", "link"]).stdout
        assert "mv0" not in machine.run(["ip", "-br", "link"]).stdout

        server.put(SEED, BRIDGE)
        machine.run(["homeport", "refresh"])
        assert_bridged(machine, machine.look().status)


def assert_bridged(machine: Machine, status: dict[str, object]) -> None:
    assert (status["rung"], status["exit"]) == ("assigned", 0), status
    addresses = machine.run(["ip", "-br", "-4", "address"]).stdout.split()
    assert {"192.168.122.151/24", "10.9.9.9/24"} <= set(addresses)
    assert "blackhole 10.10.0.0/16" in machine.run(["ip", "route"]).stdout
    assert "search example.com" in machine.read("/etc/resolv.conf")
    names = machine.run(["ls", "/etc/NetworkManager/system-connections"]).stdout.split()
    assert sorted(names) == [f"homeport-{name}.nmconnection" for name in ("br0", "enp1s0", "enp2s0", "lo", "mv0")]


def test_other_nic_without_dhcp_holds_nothing_up(world: World) -> None:
    """A second NIC with a cable and no DHCP server behind it: no minute of waiting, first boot and second."""
    world.dhcp.start()
    dark = world.add_lan("dark", ())
    url = world.serve().put(SEED, seed_document())
    with Machine(world, "two-nics", nics=(Nic(NIC), Nic("enp2s0", lan=dark))) as machine:
        for _ in range(2):
            boot = machine.boot(f"homeport.config={url}", deadline=60)
            assert boot.addresses(NIC) == [ADDRESS]
            assert boot.failed_units == []
            assert machine.run(["systemctl", "is-active", "network-online.target"]).stdout == "active\n"
            machine.power_off()


def test_document_about_the_mtu_alone(world: World) -> None:
    """What a document leaves out stays as it is: the lease of the bootstrap, then in a profile of ours."""
    world.dhcp.start()
    url = world.serve().put(SEED, "interfaces:\n- {name: enp1s0, type: ethernet, state: up, mtu: 1400}\n")
    with Machine(world, "mtu-only") as machine:
        boot = machine.boot(f"homeport.config={url}")
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert boot.addresses(NIC)[0].startswith("192.168.122.1")
        assert "mtu 1400" in machine.run(["ip", "link", "show", NIC]).stdout
        keyfile = machine.read("/etc/NetworkManager/system-connections/homeport-enp1s0.nmconnection")
        assert "method=auto" in keyfile
        # Not a copy of the bootstrap profile: its high metrics are for NICs that no document names.
        assert "900" not in keyfile


def test_host_name(world: World) -> None:
    """nmstate does not write it in memory: it is kept with the rest, and the second boot has nothing to do."""
    world.dhcp.start()
    hostname = "      hostname: {running: berth-7, config: berth-7}\n"
    named = seed_document().replace("      dns-resolver:", hostname + "      dns-resolver:")
    server = world.serve()
    url = server.put(SEED, named)
    with Machine(world, "host-name") as machine:
        boot = machine.boot(f"homeport.config={url}")
        assert (boot.status["rung"], boot.status["exit"]) == ("assigned", 0), boot.status
        assert machine.run(["hostname"]).stdout == "berth-7\n"
        assert machine.read("/etc/hostname") == "berth-7\n"
        machine.run(["homeport", "refresh"])
        assert not machine.look().status["changed"]


def test_an_alternative_name_that_is_there_already(world: World) -> None:
    """From a .link file that nobody removed, or of a run that was rolled back: nmstate adds it to a card with a profile
    that is not ours as if there were none, and fails.
    """
    world.dhcp.start()
    named = seed_document().replace(
        "          state: up\n", "          state: up\n          alt-names: [{name: uplink0}]\n")
    server = world.serve()
    url = server.put(SEED, named)
    with Machine(world, "alt-name") as machine:
        machine.boot()
        machine.run(["ip", "link", "property", "add", "dev", NIC, "altname", "uplink0"])
        machine.run(["homeport", "refresh", "--config", url], check=False)
        now = machine.look()
        assert (now.status["rung"], now.status["exit"]) == ("assigned", 0), now.status["reason"]
        assert "uplink0" in machine.run(["ip", "link", "show", NIC]).stdout
        assert "uplink0" in machine.read(f"/etc/systemd/network/98-nmstate-{NIC}.link")


OWN = """\
interfaces:
- name: enp1s0
  type: ethernet
  state: up
  ipv4: {{enabled: true, address: [{{ip: 192.168.122.150, prefix-length: 24}}, {{ip: {second}, prefix-length: 24}}]}}
  ipv6: {{enabled: true, address: [{{ip: '2001:db8::150', prefix-length: 64}}]}}
"""
# As keepalived and a container network would add them.
THEIRS = ("192.168.122.99/32", "2001:db8::99/128")
THEIR_ROUTES = ("10.42.0.0/16", "2001:db8:42::/48")


def addresses(outcome: Outcome) -> set[str]:
    return {*outcome.addresses(NIC), *outcome.addresses(NIC, "inet6")}


def own(second: str) -> set[str]:
    return {"192.168.122.150/24", f"{second}/24", "2001:db8::150/64"}


def test_what_others_added_to_our_interface(world: World) -> None:
    """A change is applied around it, without a moment in which it is gone; it is never kept, nor brought back."""
    world.dhcp.start()
    server = world.serve()
    url = server.put(SEED, OWN.format(second="192.168.122.151"))
    with Machine(world, "strangers") as machine:
        boot = machine.boot(f"homeport.config={url}")
        assert addresses(boot) == own("192.168.122.151")
        for address in THEIRS:
            machine.run(["ip", "address", "add", address, "dev", NIC, *(["nodad"] if ":" in address else [])])
        machine.sh(f"ip route add {THEIR_ROUTES[0]} dev {NIC} && "
                   f"ip route add {THEIR_ROUTES[1]} via 2001:db8::1 dev {NIC}")

        mark = machine.monitor.mark()
        server.put(SEED, OWN.format(second="192.168.122.152"))
        machine.run(["homeport", "refresh"])
        after = machine.look()
        assert after.status["changed"] and after.status["exit"] == 0, after.status
        assert addresses(after) == own("192.168.122.152") | {*THEIRS}
        assert after.routes(THEIR_ROUTES[0]) and after.routes(THEIR_ROUTES[1], "inet6")
        # IPv6 is another matter: NetworkManager takes all addresses of that family away and puts them back.
        assert not [event for event in machine.monitor.events(since=mark, kind="ADDR") if THEIRS[0] in event.text]
        keyfile = machine.read("/etc/NetworkManager/system-connections/homeport-enp1s0.nmconnection")
        assert "192.168.122.152" in keyfile
        assert not [what for what in (*THEIRS, *THEIR_ROUTES) if what.partition("/")[0] in keyfile]

        # keepalived hands its address over to another host: a later change doesn't bring it back.
        machine.run(["ip", "address", "delete", THEIRS[0], "dev", NIC])
        server.put(SEED, OWN.format(second="192.168.122.153"))
        machine.run(["homeport", "refresh"])
        assert addresses(machine.look()) == own("192.168.122.153") | {THEIRS[1]}

        machine.power_off()
        again = machine.boot(f"homeport.config={url}")
        assert addresses(again) == own("192.168.122.153")
        assert not again.routes(THEIR_ROUTES[0])
