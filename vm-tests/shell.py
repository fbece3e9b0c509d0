"""Boot the seed machine and log into it: `python3 vm-tests/shell.py [KERNEL-ARGUMENT...]`.

    python3 vm-tests/shell.py                            the seed case, assigned by URL
    python3 vm-tests/shell.py homeport.mode=recovery     the same machine on DHCP
    python3 vm-tests/shell.py --plain                    the guest without the product
    python3 vm-tests/shell.py --no-server                nobody answers
    python3 vm-tests/shell.py --document FILE            another document
    python3 vm-tests/shell.py -c 'homeport status'       run this in it instead of a shell

In the shell, `exit` switches the machine off.  At its end you are asked whether to boot it again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from container import BootFailed, Machine
from seed import SEED, seed_document
from world import World


def main() -> int:
    options = _parse()
    with World() as world, Machine(world, options.name, installed=not options.plain) as machine:
        world.dhcp.start()
        server = world.serve()
        if options.document:
            url = server.put("/" + options.document.name, options.document.read_bytes())
        else:
            url = server.put(SEED, seed_document())
        if options.no_server:
            server.stop()
        arguments = [] if options.plain else [f"homeport.config={url}"]
        while True:
            try:
                boot = machine.boot(*arguments, *options.arguments, deadline=options.deadline)
                print(f"online after {boot.seconds:.2f} s; journal: journalctl -D {machine.journal_folder}")
            except BootFailed as error:
                print(error)
                if not machine.running:
                    return 1
            if options.command:
                return subprocess.run(machine.argv(["sh", "-c", options.command]), check=False).returncode
            print(f"You are root in {machine.name}.  Requests to {url} so far: {len(server.requests)}")
            subprocess.run(machine.argv(["/bin/bash", "-l"]), check=False)
            machine.power_off()
            if input("Boot it again from its disk? [y/N] ").strip().lower() != "y":
                return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("arguments", nargs="*", help="kernel arguments of the machine")
    parser.add_argument("--name", default="seed", help="the machine's name")
    parser.add_argument("--plain", action="store_true", help="without the product")
    parser.add_argument("--no-server", action="store_true", help="the server refuses connections")
    parser.add_argument("--document", type=Path, help="serve this file instead of the seed case")
    parser.add_argument("--deadline", type=float, default=180, help="seconds for the boot")
    parser.add_argument("-c", dest="command", help="run this in the machine instead of a shell")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
