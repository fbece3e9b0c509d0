"""How long programs take in a machine, and how much memory at their peak: whole processes, started alternately."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping

from container import Machine

# Runs inside the machine: starts what it is told alternately, and says for each run its seconds and peak MiB.
STOPWATCH = r"""
import json, os, subprocess, sys, time
plan = json.load(sys.stdin)
found = {name: [] for name in plan["commands"]}
for run in range(plan["runs"] + 1):
    for name, (before, command) in plan["commands"].items():
        if before:
            subprocess.run(["/bin/sh", "-c", before], check=True, stdout=subprocess.DEVNULL)
        started = time.perf_counter()
        # A shell that runs one command becomes it.
        child = subprocess.Popen(["/bin/bash", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        complaint = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            sys.exit(f"{name}: status {status}: {complaint.decode()[-2000:]}")
        if run:  # the first is to warm up
            found[name].append((seconds, usage.ru_maxrss / 1024))
json.dump(found, sys.stdout)
"""


def stopwatch(machine: Machine, runs: int, commands: Mapping[str, tuple[str, str]]) -> dict[str, list[list[float]]]:
    plan = json.dumps({"runs": runs, "commands": commands})
    done = machine.run(["/usr/bin/python3", "-c", STOPWATCH], input=plan, timeout=60 * runs)
    return dict(done.json())


def median(runs: list[list[float]], column: int) -> float:
    return statistics.median(run[column] for run in runs)
