#!/usr/bin/env python3
"""The figures of the README's table, measured in one run on one machine: medians, and ratios of medians.

    make bench        prints the table and writes build/bench.json

Every figure is of whole processes, started alternately with what they are compared with, inside a booted
machine of the container bench (vm-tests/container.py). Absolute times say what this machine is; ratios are
what we hold (design.md, section 6).
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "vm-tests"))

import growth  # noqa: E402
from container import Machine  # noqa: E402
from seed import SEED, seed_document  # noqa: E402
from stopwatch import median, stopwatch  # noqa: E402
from world import World  # noqa: E402

FAST_RUNS = 21
BOOT_RUNS = 9

def main() -> int:
    with World() as world, Machine(world, "bench") as machine:
        world.dhcp.start(lease=3600)
        server = world.serve()
        url = server.put(SEED, seed_document())
        server.put(PLAIN, plain_document())
        machine.boot(f"homeport.config={url}")
        figures = measure_fast_path(machine) | measure_boot(machine, url) | measure_size()
    figures["initramfs_growth_mib"], by_group = growth.measure()
    show(figures)
    growth.show(figures["initramfs_growth_mib"], by_group)
    (TOP / "build" / "bench.json").write_text(json.dumps(figures | {"initramfs_by_group": by_group}, indent=1) + "\n")
    return 0


def measure_fast_path(machine: Machine) -> dict[str, float]:
    """The boot on which nothing has changed, against the least that Python can do."""
    runs = stopwatch(machine, FAST_RUNS, {
        "python": ("", "/usr/bin/python3 -I -c pass"),
        "fast path": ("", "/usr/bin/homeport boot --stage host"),
    })
    return {
        "python_pass_seconds": median(runs["python"], 0),
        "fast_path_seconds": median(runs["fast path"], 0),
        "fast_path_ratio": median(runs["fast path"], 0) / median(runs["python"], 0),
        "fast_path_peak_mib": median(runs["fast path"], 1),
    }


def measure_boot(machine: Machine, url: str) -> dict[str, float]:
    """Fetch, apply, proof and persist, against what people use instead; each from the bootstrap's DHCP lease."""
    runs = stopwatch(machine, BOOT_RUNS, {
        "boot": (TO_DHCP, f"/usr/bin/homeport boot --stage host --config {url}"),
        "peer": (TO_DHCP, f"set -o pipefail; curl -sSf {url.replace(SEED, PLAIN)} | nmstatectl apply -"),
    })
    return {
        "boot_seconds": median(runs["boot"], 0),
        "peer_seconds": median(runs["peer"], 0),
        "boot_ratio": median(runs["boot"], 0) / median(runs["peer"], 0),
        "boot_peak_mib": max(peak for _, peak in runs["boot"]),
    }


def measure_size() -> dict[str, float]:
    return {"zipapp_kib": (TOP / "build" / "homeport.pyz").stat().st_size / 1024}


def show(figures: Mapping[str, float]) -> None:
    limits = {"fast_path_ratio": 2.5, "boot_ratio": 0.75, "boot_peak_mib": 40.0, "initramfs_growth_mib": 8.0}
    for name, value in figures.items():
        limit = f"   (to hold: at most {limits[name]:g})" if name in limits else ""
        print(f"{name:<22} {value:>10.3f}{limit}")


# The peer's document: the same desired state, without what nmstatectl does not read.
PLAIN = "/assign/plain.yaml"


def plain_document() -> str:
    """The nmstate document inside the seed inventory, its placeholder filled."""
    _, _, config = seed_document().partition("    config:\n")
    return textwrap.dedent(config).replace("'{inventory-ip}'", "192.168.122.150")


# Back to the same start for both: nothing remembered, DHCP in force, its address usable.
TO_DHCP = """
homeport reset --yes
nmcli -g UUID,FILENAME connection | grep -v /usr/lib/ | cut -d: -f1 | xargs -r -n1 nmcli -w 5 connection delete
for i in $(seq 100); do ip -4 addr show dev enp1s0 | grep -q dynamic && break; sleep 0.1; done
ip -4 addr show dev enp1s0 | grep -q dynamic
"""

if __name__ == "__main__":
    sys.exit(main())
