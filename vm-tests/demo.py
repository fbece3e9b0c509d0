"""Watch a machine find its home port: `make demo`.

A machine of Elemental's is switched on five times, and what happens is said in plain words: it registers by its TPM
with a homeport-server that has the seed's pool, boots with nobody there, in recovery, and in a reset that gives its
address back. Each step is checked by the same rules as in the tests; the exit status is 0 only if every one of them
held.
"""

from __future__ import annotations

import re
import sys
import textwrap
import time

from container import Machine
from elemental import OEM, ask_for_reset, make_elemental, make_live, set_mode
from firmware import Firmware
from namespaces import wait_until
from outcome import Outcome
from poolserver import NAME, PoolServer, seed_text
from seed import NIC, assert_on_dhcp, assert_seed
from swtpm import Swtpm
from world import DHCP_DNS, World

WIDTH = 96
UUID = "d47ca4cf-e95e-4e43-939b-e5bce460fbfc"
ADDRESS = "192.168.122.150"
BOLD, DIM, RED, PLAIN = ("\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m") if sys.stdout.isatty() else ("",) * 4


def main() -> int:
    started = time.monotonic()
    try:
        with (World() as world, Machine(world, "demo", firmware=Firmware(UUID)) as machine,
              PoolServer(world, seed_text()) as server, Swtpm(machine.on_disk("/var/tpm")) as chip):
            chip.plug_into(machine)
            show(world, machine, server)
    except AssertionError as error:
        print(f"\n{RED}This is not as it should be:{PLAIN} {error}", file=sys.stderr)
        return 1
    say(f"Every step was as it should be; it took {time.monotonic() - started:.0f} s.")
    return 0


def show(world: World, machine: Machine, server: PoolServer) -> None:
    """The five boots, one after the other."""
    world.dhcp.start()
    show_manifests(server)
    live(machine, server)
    first_boot(machine, server)
    without_server(world, machine, server)
    recovery(world, machine)
    reset(machine, server)


def show_manifests(server: PoolServer) -> None:
    headline("An operator has a pool of addresses, and a registration for machines")
    say("In a file for `homeport-server serve`, and the same for Rancher Elemental's operator on Kubernetes:")
    quote("\n".join(line for line in seed_text().splitlines() if not line.startswith("#")))
    say(f"""The server has made itself a certificate authority and a token, and tells the operator with which URL
        machines register: `homeport-server show {NAME}` (the token is a secret, and shortened here):""")
    shown = re.sub(r"(ration/|token=|token:\s+)(\w{6})\w{20,}", r"\1\2…", server.ask("show", NAME))
    quote("\n".join(line for line in shown.splitlines() if re.match(r"(registration|token|url):", line)))


def live(machine: Machine, server: PoolServer) -> None:
    headline("The live medium: on DHCP")
    say(f"""A machine is switched on: systemd, NetworkManager and nmstatectl, homeport, one network card ({NIC}),
        and a TPM 2.0 (swtpm). It has booted from an installation medium, which has the registration's URL in its
        config.yaml. Nothing is assigned to a medium, so it stays on DHCP.""")
    make_live(machine, server.bootstrap())
    boot = switch_on(machine)
    assert_on_dhcp(boot)
    assert boot.status["mode"] == "live"
    show_network(machine, boot)
    say("Who it is, it knows already. Its TPM can prove it, so that comes before all else (`homeport identify`):")
    quote(machine.run(["homeport", "identify"], timeout=60).stdout)


def first_boot(machine: Machine, server: PoolServer) -> None:
    headline("Installed: it registers, and is given an address")
    say("The installation has put config.yaml into /oem. Nothing else says which network this machine is to have.")
    machine.power_off()
    make_elemental(machine, server.bootstrap())
    boot = switch_on(machine)
    assert_seed(machine, boot)
    assert boot.status["rung"] == "assigned"
    assert boot.status["identity"]["kind"] == "tpm"
    assert list(server.addresses()) == [ADDRESS]
    say("""It got a lease from DHCP, registered from there, opened the server's challenge with its TPM, and was sent
        the registration's network with an address of the pool in it. That was put in force under a checkpoint. Only
        when the server had answered to the new address too was it kept. `homeport status` in the machine:""")
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)
    (keyfile,) = (name for name in boot.keyfiles if name.startswith("homeport-"))
    path = f"/etc/NetworkManager/system-connections/{keyfile}"
    say(f"On disk, for root only ({boot.keyfiles[keyfile]}), {path}:")
    quote(machine.read(path))
    say(f"Elemental's /etc is empty at each boot; {OEM} brings that file back:")
    quote("\n".join(machine.read(OEM).splitlines()[:8]) + "\n…")
    name = f"test-btrfs-{UUID}"
    wait_until(lambda: '"rung": "assigned"' in server.ask("show", name, "--json"),
               what="the server to hear what came of it")  # fmt: skip
    say("The machine has told what came of it. The operator asks, `homeport-server list`:")
    quote(server.ask("list"))


def without_server(world: World, machine: Machine, server: PoolServer) -> None:
    headline("Nobody there")
    say("The machine is switched off. The server is stopped, and the DHCP server too. Then on again.")
    machine.power_off()
    server.stop()
    world.dhcp.stop()
    boot = switch_on(machine)
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert boot.status["changed"] is False
    say("It needed neither: what was proven once is on its disk. Nothing was applied or waited for.")
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)


def recovery(world: World, machine: Machine) -> None:
    headline("Recovery")
    say("""Somebody boots the recovery system: whatever this machine was assigned, it is to be on plain DHCP. The DHCP
        server is there again, homeport-server is not.""")
    machine.power_off()
    world.dhcp.start()
    set_mode(machine, "recovery")
    boot = switch_on(machine)
    assert_on_dhcp(boot)
    assert boot.status["exit"] == 0
    assert boot.status["rung"] == "dhcp"
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)
    say(f"""A lease, its route, and its DNS server ({DHCP_DNS}), not the assigned one. The assignment is not
        forgotten: the next normal boot has it again.""")


def reset(machine: Machine, server: PoolServer) -> None:
    headline("Reset: the address goes back to the pool")
    say("""The operator has this machine reset: Elemental puts its plan into /oem and boots recovery. homeport forgets
        what was assigned, which takes no server. This time it is there again, and is told afterwards.""")
    machine.power_off()
    server.start()
    ask_for_reset(machine)
    boot = switch_on(machine)
    assert_on_dhcp(boot)
    assert boot.status["mode"] == "reset"
    assert not machine.exists(OEM)
    wait_until(lambda: not server.addresses(), what="the server to hear of the reset")
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)
    say(f"""`homeport-server list`: the machine is known, and {ADDRESS} is free again. Should it come back, its TPM says
        that it is the same.""")
    quote(server.ask("list"))


def switch_on(machine: Machine, *arguments: str) -> Outcome:
    """Boot, and show what a person at the console would have seen of us."""
    boot = machine.boot(*arguments, deadline=90)
    interesting = ("homeport", "Network Manager", "Network is Online")
    lines = [line for line in machine.console.splitlines() if any(word in line for word in interesting)]
    say(f"Online after {boot.seconds:.1f} s. From its console:")
    quote("\n".join(lines))
    return boot


def show_network(machine: Machine, boot: Outcome) -> None:
    say("Its network now, as the kernel has it, and the DNS server in use:")
    # "@if4" behind the name is how the kernel shows the bench's end of a veth.
    addresses = re.sub(r"@\S+", "", machine.run(["ip", "-brief", "address", "show", NIC]).stdout)
    routes = machine.run(["ip", "route", "show", "default"]).stdout
    quote(f"{addresses.strip()}\n{routes.strip()}\nnameserver {' '.join(boot.resolv)}")


def headline(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}\n{'-' * len(text)}", flush=True)


def say(text: str) -> None:
    print(f"\n{textwrap.fill(' '.join(text.split()), WIDTH, break_on_hyphens=False)}", flush=True)


def quote(text: str) -> None:
    print("\n" + textwrap.indent(text.rstrip(), f"{DIM}  | {PLAIN}", lambda line: True), flush=True)


if __name__ == "__main__":
    sys.exit(main())
