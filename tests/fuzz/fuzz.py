"""What `make fuzz` runs: every target in turn, for its share of the time; what it finds becomes a case.

    fuzz.py SECONDS [TARGET...]       seconds for all targets together

A finding is kept in corpus/TARGET/ as it was found, and fails `make test` until it is mended.  What only covers more
code is kept in build/fuzz/TARGET, for the next run.  `fuzz.py --tidy [TARGET...]` takes from there into corpus/ the
smallest inputs that together cover all that is covered.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from targets import TARGETS, load

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
CORPUS = HERE / "corpus"
WORK = TOP / "build/fuzz"
LONGEST = 4096  # bytes; what needs more is a case written by hand
LONGEST_KEPT = 1024
SLOW = 10  # seconds for one input, where the usual is a millisecond
MEMORY = 1024  # MiB, half of which is the fuzzer's own


@dataclass(frozen=True)
class Outcome:
    """How one target went: executions, blocks and edges covered (`cov`), findings kept."""

    target: str
    executions: int
    covered: int
    findings: tuple[Path, ...]
    broken: bool


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--one"]:
        return fuzz_here(arguments[1], arguments[2:])
    if arguments[:1] == ["--tidy"]:
        for name in arguments[1:] or TARGETS:
            tidy(name)
        return 0
    seconds, names = int(arguments[0]), arguments[1:] or list(TARGETS)
    if strangers := set(names) - set(TARGETS):
        print(f"no such target: {', '.join(sorted(strangers))}; there are {', '.join(TARGETS)}", file=sys.stderr)
        return os.EX_USAGE
    outcomes = []
    for name in names:
        print(f"fuzz: {name}, {max(1, seconds // len(names))} s", flush=True)
        outcomes.append(fuzz(name, max(1, seconds // len(names))))
        print(f"fuzz: {describe(outcomes[-1])}", flush=True)
    print(f"fuzz: {sum(outcome.executions for outcome in outcomes)} executions in all")
    return 1 if any(outcome.findings or outcome.broken for outcome in outcomes) else 0


def describe(outcome: Outcome) -> str:
    if outcome.findings:
        found = ", ".join(path.relative_to(TOP).as_posix() for path in outcome.findings)
    else:
        found = "ended without a word; see above" if outcome.broken else "nothing found"
    return f"{outcome.target}: {outcome.executions} executions, {outcome.covered} covered, {found}"


def fuzz(name: str, seconds: int) -> Outcome:
    """One target in a process of its own, which the first finding ends."""
    cases, work, found = CORPUS / name, WORK / name, WORK / f"{name}-found"
    for folder in (cases, work, found):
        folder.mkdir(parents=True, exist_ok=True)
    target = load(name)
    for number, seed in enumerate(target.seeds):
        (work / f"seed-{number}").write_bytes(seed)
    dictionary = WORK / f"{name}.words"
    dictionary.write_bytes(b"".join(b'"%s"\n' % _quoted(word) for word in target.words))
    log = run(name, work, cases, f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-timeout={SLOW}",
              f"-rss_limit_mb={MEMORY}", f"-dict={dictionary}", f"-artifact_prefix={found}/", "-print_final_stats=1")
    findings = tuple(path.replace(cases / path.name) for path in sorted(found.iterdir()))
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", log) or re.findall(r"^#(\d+)", log, re.M)
    covered = re.findall(r"cov: (\d+)", log)
    if findings or not executions:
        print(log[-6000:])
    return Outcome(name, int(executions[-1]) if executions else 0, int(covered[-1]) if covered else 0, findings,
                   broken=not executions)


def tidy(name: str) -> None:
    """Into the corpus what covers more than the cases that are there, the smallest first."""
    cases, work = CORPUS / name, WORK / name
    for path in work.iterdir():
        if path.stat().st_size > LONGEST_KEPT:
            path.unlink()
    run(name, "-merge=1", cases, work)
    seeds = load(name).seeds
    for path in cases.iterdir():
        if path.read_bytes() in seeds:
            path.unlink()
    print(f"fuzz: {name}: {len(list(cases.iterdir()))} cases")


def run(name: str, *arguments: str | Path) -> str:
    """libFuzzer on one target; what it printed."""
    command = [sys.executable, __file__, "--one", name, *map(str, arguments)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.stdout.decode(errors="replace")


def fuzz_here(name: str, arguments: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["homeport", "http.client", "email"]):
        target = load(name)
    # libFuzzer starts itself anew to merge, by a shell.
    atheris.Setup([shlex.join([sys.executable, __file__, "--one", name]), *arguments], target.check)
    atheris.Fuzz()
    return 0


def _quoted(word: bytes) -> bytes:
    """As libFuzzer's dictionaries have it."""
    return b"".join(b"\\x%02x" % byte if byte < 32 or byte > 126 or byte in b'"\\' else bytes([byte])
                    for byte in word)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
