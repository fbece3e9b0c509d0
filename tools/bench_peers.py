#!/usr/bin/env python3
"""Wall time and peak memory of homeport, Afterburn and nm-cloud-setup at the same work, on the same machine.

    make bench-peers        prints the table and writes build/bench-peers.json

As tools/bench.py: whole processes, started alternately inside a booted machine of the container bench. They are
compared where they do the same: read a platform's attributes, and put a cloud's addresses and rules in force.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP / "vm-tests"), str(TOP / "agent")]

import peers  # noqa: E402
from container import Machine, Nic  # noqa: E402
from metadata import Served, read_case  # noqa: E402
from stopwatch import median, stopwatch  # noqa: E402
from world import World  # noqa: E402

RUNS = 11
ATTRIBUTES = ("digitalocean", "hetzner", "aws", "gcp")
RECONCILED = ("aws", "gcp", "azure", "aliyun", "oraclecloud")
FIRST, SECOND = "00:00:5e:00:53:01", "00:00:5e:00:53:02"
Row = dict[str, float]


def main() -> int:
    rows: dict[str, Row] = {}
    with World() as world:
        nics = []
        for name, mac, prefix in (("ens3", FIRST, "10.0.1"), ("ens4", SECOND, "10.0.2")):
            lan = world.add_lan(f"bench{prefix[-1]}", [f"{prefix}.1/24", f"{prefix}.253/24"])
            lan.dhcp.start(first=f"{prefix}.10", last=f"{prefix}.10", lease=3600, router=f"{prefix}.1")
            nics.append(Nic(name, mac, lan))
        with Machine(world, "bench-peers", nics=nics) as machine:
            peers.install_afterburn(machine)
            peers.install_nm_cloud_setup(machine)
            machine.boot("homeport.platform=off")
            for name in ATTRIBUTES:
                rows[f"attributes of {name}"] = attributes(machine, name)
            for name in RECONCILED:
                rows[f"in force: {name}"] = in_force(machine, name)
    show(rows)
    (TOP / "build" / "bench-peers.json").write_text(json.dumps({"load": os.getloadavg()[0], **rows}, indent=1) + "\n")
    return 0


def attributes(machine: Machine, name: str) -> Row:
    """From nothing to the file that other units read."""
    case = read_case(name)
    with Served(machine.world, case):
        return measure(machine, {
            "homeport": ("", f"homeport metadata --sources platform --platform {case.platform} --attributes /tmp/ours"),
            "peer": ("", f"{peers.FOLDER}/afterburn --provider {case.afterburn} --attributes /tmp/theirs")})


def in_force(machine: Machine, name: str) -> Row:
    """From cards on DHCP to addresses, tables and rules; homeport's part has a proof in it."""
    case = read_case(name)
    with Served(machine.world, case):
        return measure(machine, {
            "homeport": (AS_BEFORE, f"homeport boot --stage host --sources platform --platform {case.platform}"),
            "peer": (AS_BEFORE, peers.command_of_nm_cloud_setup(machine, case))})


def measure(machine: Machine, commands: Mapping[str, tuple[str, str]]) -> Row:
    runs = stopwatch(machine, RUNS, commands)
    return {f"{who}_{what}": median(runs[who], column) for who in commands
            for column, what in enumerate(("seconds", "peak_mib"))}


def show(rows: Mapping[str, Row]) -> None:
    print(f"(load {os.getloadavg()[0]:.1f})")
    print(f"{'':<28}{'homeport':>20}{'peer':>20}")
    for name, row in rows.items():
        both = [f"{row[f'{who}_seconds']:.2f} s {row[f'{who}_peak_mib']:>5.1f} MiB" for who in ("homeport", "peer")]
        print(f"{name:<28}{both[0]:>20}{both[1]:>20}")


# Nothing remembered, both cards on their profile alone.
AS_BEFORE = """
homeport reset --yes
for nic in ens3 ens4; do nmcli -w 10 device connect $nic; done
for nic in ens3 ens4; do
    for i in $(seq 100); do ip -4 addr show dev $nic | grep -q dynamic && break; sleep 0.1; done
done
! ip rule | grep -q 30350
"""

if __name__ == "__main__":
    sys.exit(main())
