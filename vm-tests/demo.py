"""Watch a machine find its home port: `make demo`.

Boots one machine three times and says in plain words what happens: with its assignment on a server, with
the server gone, and in recovery mode. Each step is checked by the same rules as in the tests; the exit
status is 0 only if every one of them held.
"""

from __future__ import annotations

import re
import sys
import textwrap
import time

from configserver import ConfigServer
from container import Machine
from firmware import Firmware
from outcome import Outcome
from seed import NIC, assert_on_dhcp, assert_seed, seed_document
from world import DHCP_DNS, World

WIDTH = 96
UUID = "d47ca4cf-e95e-4e43-939b-e5bce460fbfc"
BOLD, DIM, GREEN, RED, PLAIN = (
    ("\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[0m") if sys.stdout.isatty() else ("",) * 5
)


def main() -> int:
    started = time.monotonic()
    try:
        with World() as world, Machine(world, "demo", firmware=Firmware(UUID)) as machine:
            show(world, machine)
    except AssertionError as error:
        print(f"\n{RED}This is not as it should be:{PLAIN} {error}", file=sys.stderr)
        return 1
    say(f"Every step was as it should be; it took {time.monotonic() - started:.0f} s.")
    return 0


def show(world: World, machine: Machine) -> None:
    """The three boots, one after the other."""
    world.dhcp.start()
    server = world.serve()
    server.put(f"/machines/{UUID}.yaml", seed_document())
    url = f"{server.url}/machines/{{uuid}}.yaml"
    show_assignment()
    first_boot(machine, server, url)
    second_boot(world, machine, server, url)
    recovery(world, machine, url)


def show_assignment() -> None:
    headline("A server knows which network this machine is to have")
    say(f"""In a moment a machine is switched on: systemd, NetworkManager and nmstatectl, and homeport. It has
        one network card, {NIC}. The network it is plugged into has a DHCP server with short leases, and a
        web server with a document for each machine. This is the one of the machine whose firmware says
        that its UUID is {UUID}:""")
    quote(seed_document().partition("spec:\n")[2])


def first_boot(machine: Machine, server: ConfigServer, url: str) -> None:
    headline("First boot: from a DHCP lease to the assigned network")
    say(f"The machine is told one thing, on its kernel command line: homeport.config={url}")
    boot = switch_on(machine, f"homeport.config={url}")
    assert_seed(machine, boot)
    assert boot.status["rung"] == "assigned"
    asked = server.requests[0].client
    say(f"""It got the address {asked} from DHCP, asked the server from there, and put the assigned network
        in force in NetworkManager under a checkpoint. Only when the server had answered to the new address
        too was it kept. The network was said to be online after that. `homeport status` in the machine:""")
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)
    (keyfile,) = (name for name in boot.keyfiles if name.startswith("homeport-"))
    path = f"/etc/NetworkManager/system-connections/{keyfile}"
    say(f"And on disk, for root only ({boot.keyfiles[keyfile]}), {path}:")
    quote(machine.read(path))


def second_boot(world: World, machine: Machine, server: ConfigServer, url: str) -> None:
    headline("Second boot: nobody there")
    say("The machine is switched off. The web server is stopped, and the DHCP server too. Then on again.")
    machine.power_off()
    server.stop()
    world.dhcp.stop()
    boot = switch_on(machine, f"homeport.config={url}")
    assert_seed(machine, boot)
    assert boot.status["exit"] == 0
    assert boot.status["changed"] is False
    say("It needed neither: what was proven once is on its disk. Nothing was applied or waited for.")
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)


def recovery(world: World, machine: Machine, url: str) -> None:
    headline("Third boot: recovery mode")
    say("""Somebody wants this machine on plain DHCP, whatever it was assigned: homeport.mode=recovery. The
        DHCP server is there again, the web server is not.""")
    machine.power_off()
    world.dhcp.start()
    boot = switch_on(machine, f"homeport.config={url}", "homeport.mode=recovery")
    assert_on_dhcp(boot, keyfiles=False)
    assert boot.status["exit"] == 0
    assert boot.status["rung"] == "dhcp"
    quote(machine.run(["homeport", "status"]).stdout)
    show_network(machine, boot)
    say(f"""A lease, its route, and its DNS server ({DHCP_DNS}), not the assigned one. The assignment is not
        forgotten: the next normal boot has it again; `homeport reset` would forget it.""")


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
