#!/usr/bin/env python3
"""The power comes back on a whole site: what `homeport-server` does when thousands of agents ask at the same time.

    make bench-server                          prints the table and writes build/bench-server.json
    bench_server.py [--agents N] [--spread S] [--only first,refresh,...] [--slow FACTOR]

The server is the tree's own with its defaults: TLS by its own authority, SQLite on disk. The agents are simulated, but
for the server they are agents: each has a connection and a TLS handshake of its own, says what an agent says, gives up
a connection after the agent's limits, asks again with the agent's own delays (homeport.sources.patience), comes back
when it is told to (Retry-After, `retry-after` of a "not ready"), and stops after the agent's deadline of 120 s. They
start within `--spread` seconds, by chance. All of it is on the loopback of a network namespace, and on the same
processors: agents and server compete for them, so that the times are upper bounds; the server's own processor time is
told apart. Where other work takes most of the processors, `--slow 5` gives the agents, but not the server, five times
their time for everything: what they then see is what a server with so much more of its processor would show them.

    first       machines that nobody knows register (PLAIN): each gets an address, on disk before it is told
    again       the same machines register again, as Elemental machines do at each boot
    refresh     the same machines ask by the url source, with the ETag of what they have: 304
    restart     as refresh, and the server is killed and started in the middle
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
for part in ("agent", "vm-tests"):
    sys.path.insert(0, str(TOP / part))

from homeport.sources.patience import delays  # noqa: E402

PORT = 443
TOKEN = "storm"
CONNECT, ANSWER, DEADLINE = 5.0, 10.0, 120.0  # seconds; the agent's own
slow = 1.0  # by which all times of the agents are longer (--slow)
PHASES = ("first", "again", "refresh", "restart")
MANIFESTS = {
    "apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "ipam.cluster.x-k8s.io/v1alpha2", "kind": "InClusterIPPool", "metadata": {"name": "storm"},
         "spec": {"addresses": ["10.0.0.0/16"], "prefix": 16, "gateway": "10.0.0.1"}},
        {"apiVersion": "elemental.cattle.io/v1beta1", "kind": "MachineRegistration", "metadata": {"name": "storm"},
         "spec": {"token": TOKEN, "machineName": "m-${System Information/UUID}", "config": {"network": {
             "configurator": "nmstate", "ipAddresses": {"lan": {"kind": "InClusterIPPool", "name": "storm"}},
             "config": {"interfaces": [{
                 "name": "enp1s0", "type": "ethernet", "state": "up", "ipv6": {"enabled": False},
                 "ipv4": {"enabled": True, "address": [{"ip": "{lan}", "prefix-length": "{lan.prefix}"}]}}]}}}}},
    ]}  # fmt: skip


class ComeBack(Exception):
    """Not now; `after` seconds are the server's wish."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


@dataclass
class Agent:
    """One machine, and what came of its questions."""

    number: int
    started: float = 0.0
    answered: float = 0.0
    etag: str = ""
    address: str = ""
    wire: Wire | None = None  # one that has greeted in vain
    tries: Counter[str] = field(default_factory=Counter)

    @property
    def uuid(self) -> str:
        return f"4c4c4544-0042-3010-8051-{self.number:012x}"


# One agent's conversation

class Wire:
    """TLS over a connection, by hand: an agent whom nobody answered greets the next time with the same words.

    Each of ten thousand real agents makes its greeting on its own processor. Here they share one with the server, and
    what they do in vain must cost next to nothing.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.answered = False
        self.buffer = b""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.greeting = self.outgoing.read()

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        self.socket = socket.socket()
        self.socket.setblocking(False)
        await loop.sock_connect(self.socket, ("127.0.0.1", PORT))
        await loop.sock_sendall(self.socket, self.greeting)
        while True:
            await self._fill()
            self.answered = True
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
        await self._flush()

    async def _fill(self) -> None:
        data = await asyncio.get_running_loop().sock_recv(self.socket, 1 << 16)
        if not data:
            raise ConnectionResetError("closed")
        self.incoming.write(data)

    async def _flush(self) -> None:
        if self.outgoing.pending:
            await asyncio.get_running_loop().sock_sendall(self.socket, self.outgoing.read())

    async def write(self, data: bytes) -> None:
        self.tls.write(data)
        await self._flush()

    async def more(self) -> bool:
        """Read on; False at the end."""
        while True:
            try:
                data = self.tls.read(1 << 16)
                self.buffer += data
                return bool(data)
            except ssl.SSLWantReadError:
                try:
                    await self._fill()
                except ConnectionResetError:
                    return False
            except ssl.SSLError:
                return False

    async def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not await self.more():
                raise ComeBack("closed")
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    async def take_until(self, end: bytes) -> bytes:
        while end not in self.buffer:
            if not await self.more():
                raise ComeBack("closed")
        return await self.take(self.buffer.index(end) + len(end))

    def close(self) -> None:
        self.socket.close()


async def connect(agent: Agent, tls: ssl.SSLContext) -> Wire:
    wire = agent.wire or Wire(tls)
    try:
        await asyncio.wait_for(wire.connect(), CONNECT * slow)
    except BaseException:
        wire.close()
        agent.wire = None if wire.answered else wire
        raise
    agent.wire = None
    return wire


async def ask_by_url(agent: Agent, tls: ssl.SSLContext) -> str:
    """A conditional GET; gives the status."""
    wire = await connect(agent, tls)
    try:
        return await asyncio.wait_for(_ask_by_url(agent, wire), ANSWER * slow)
    finally:
        wire.close()


async def _ask_by_url(agent: Agent, wire: Wire) -> str:
    head = f"GET /assignments/{agent.uuid}?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    known = f"If-None-Match: {agent.etag}\r\n" if agent.etag else ""
    await wire.write(f"{head}{known}\r\n".encode())
    lines = (await wire.take_until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    while await wire.more():
        pass
    status = lines[0].split(" ")[1]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    if status in ("429", "503", "202"):
        raise ComeBack(status, float(headers.get("retry-after", "0")))
    if status not in ("200", "304"):
        raise ComeBack(f"status {status}")
    agent.etag = headers.get("etag", agent.etag)
    return status


def frame(payload: bytes) -> bytes:
    """A masked binary frame; the mask is zero, which costs nothing."""
    length = len(payload)
    size = bytes((0x80 | length,)) if length < 126 else b"\xfe" + length.to_bytes(2, "big")
    return b"\x82" + size + bytes(4) + payload


async def read_message(wire: Wire) -> bytes:
    data = b""
    while True:
        first, second = await wire.take(2)
        length = second & 127
        if length > 125:
            length = int.from_bytes(await wire.take(2 if length == 126 else 8), "big")
        data += await wire.take(length)
        if first & 0x80:
            return data


async def register(agent: Agent, tls: ssl.SSLContext) -> str:
    """A registration by what anyone may say; gives the last message's type."""
    wire = await connect(agent, tls)
    try:
        return await asyncio.wait_for(_register(agent, wire), ANSWER * slow)
    finally:
        wire.close()


async def _register(agent: Agent, wire: Wire) -> str:
    await wire.write((
        f"GET /elemental/registration/{TOKEN} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        f"Authorization: Bearer PLAIN{agent.uuid}\r\n\r\n").encode())
    if b" 101 " not in (await wire.take_until(b"\r\n\r\n")).split(b"\r\n")[0]:
        raise ComeBack("no upgrade")
    await read_message(wire)
    smbios = {"System Information": {"UUID": agent.uuid, "Serial Number": f"SN-{agent.number:06}"}}
    mac = f"52:54:00:{agent.number >> 16:02x}:{agent.number >> 8 & 255:02x}:{agent.number & 255:02x}"
    system = {"Network": {"NICs": {"0": {"Name": "enp1s0", "MacAddress": mac, "IsVirtual": "false"}}},
              # As much as a real machine says of itself.
              "Filling": {str(one): "x" * 60 for one in range(50)}}
    for kind, payload in ((5, b"\x0c"), (2, json.dumps(smbios).encode()), (11, json.dumps(system).encode()),
                          (9, json.dumps({"auth": "sys-uuid", "os.name": "storm"}).encode())):
        await wire.write(frame(bytes((kind,)) + payload))
        if (await read_message(wire))[0] == 8:
            raise ComeBack("pending", 1.0)
    await wire.write(frame(b"\x04"))
    last = await read_message(wire)
    text = last[1:].decode()
    if last[0] == 8:
        wish = text.partition("retry-after:")[2].split()
        raise ComeBack("pending", float(wish[0]) if wish else 1.0)
    agent.address = text.partition("lan: ")[2].split("\n")[0].strip("\"'")
    return "assigned"


async def live(agent: Agent, ask: Any, tls: ssl.SSLContext, spread: float, deadline: float) -> None:
    """From power-on to an answer, or to the deadline."""
    await asyncio.sleep(random.random() * spread * slow)
    agent.started, agent.answered = time.monotonic(), 0.0
    agent.tries.clear()
    end = agent.started + deadline * slow
    for delay in delays(random.random):
        try:
            agent.tries[await ask(agent, tls)] += 1
            agent.answered = time.monotonic()
            return
        except ComeBack as wish:
            agent.tries[str(wish)] += 1
            pause = max(wish.after, delay)
        except (OSError, TimeoutError) as error:
            agent.tries["timeout" if isinstance(error, TimeoutError) else "refused or reset"] += 1
            pause = delay
        if time.monotonic() + pause * slow >= end - 1:
            return
        await asyncio.sleep(pause * slow)


# All of them, in a process of their own

def run_agents(arguments: argparse.Namespace) -> None:
    """For each line on standard input (a phase), all agents live once; a line of JSON for each on standard output."""
    global slow
    slow = arguments.slow
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    tls = ssl.create_default_context(cafile=arguments.ca)
    agents = [Agent(number) for number in range(arguments.agents)]
    for line in sys.stdin:
        ask = register if line.strip() in ("first", "again") else ask_by_url
        before = {agent.number: agent.address for agent in agents}

        async def everybody(ask: Any = ask) -> None:
            await asyncio.gather(*(live(one, ask, tls, arguments.spread, DEADLINE) for one in agents))

        began, cpu = time.monotonic(), time.process_time()
        asyncio.run(everybody())
        waited = sorted(one.answered - one.started for one in agents if one.answered)
        tries = sum((one.tries for one in agents), Counter[str]())
        moved = sum(1 for one in agents if before[one.number] and one.address != before[one.number])
        print(json.dumps({
            "answered": len(waited), "unanswered": len(agents) - len(waited),
            "seconds": round(max((one.answered for one in agents), default=began) - began, 1),
            "wait_median": round(statistics.median(waited), 2) if waited else None,
            "wait_95": round(waited[int(len(waited) * 0.95)], 2) if waited else None,
            "wait_max": round(waited[-1], 2) if waited else None,
            "tries": dict(tries.most_common()), "addresses": len({one.address for one in agents if one.address}),
            "another_address": moved, "agents_cpu_seconds": round(time.process_time() - cpu, 1),
        }), flush=True)  # fmt: skip


# The server, and the story

class Server:
    def __init__(self, namespace: Any, folder: Path) -> None:
        self.namespace, self.folder = namespace, folder
        (folder / "manifests").mkdir()
        (folder / "manifests/storm.json").write_text(json.dumps(MANIFESTS))
        self.cpu = 0.0
        self.start()

    def start(self) -> None:
        seen = self.log.count("listening at")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.namespace.argv([
                sys.executable, "-I", str(TOP / "server"), "serve", str(self.folder / "manifests"), "--state",
                str(self.folder / "state"), "--name", "127.0.0.1"]), stdout=log, stderr=log)
        while self.log.count("listening at") == seen:
            if self.process.poll() is not None:
                sys.exit(f"homeport-server did not start:\n{self.log}")
            time.sleep(0.05)

    def kill(self) -> None:
        self.cpu += self._own_cpu()
        self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def cpu_seconds(self) -> float:
        return self.cpu + self._own_cpu()

    def _own_cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    arguments = parse(sys.argv[1:])
    if arguments.as_agents:
        run_agents(arguments)
        return 0
    from namespaces import NetworkNamespace
    with tempfile.TemporaryDirectory(prefix="homeport-storm-") as name, NetworkNamespace() as namespace:

        server = Server(namespace, Path(name))
        agents = subprocess.Popen(namespace.argv([
            sys.executable, __file__, "--as-agents", "--agents", str(arguments.agents), "--spread",
            str(arguments.spread), "--slow", str(arguments.slow), "--ca", f"{name}/state/ca.pem"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            figures = {phase: measure(phase, server, agents) for phase in arguments.only.split(",")}
        finally:
            assert agents.stdin is not None
            agents.stdin.close()
            agents.wait(30)
            server.kill()
    show(arguments, figures)
    if not arguments.quiet:
        setting = {"agents": arguments.agents, "spread": arguments.spread, "slow": arguments.slow}
        (TOP / "build/bench-server.json").write_text(json.dumps({**setting, **figures}, indent=2) + "\n")
    return 0 if all(one["unanswered"] == one["another_address"] == 0 for one in figures.values()) else 1


def measure(phase: str, server: Server, agents: subprocess.Popen[str]) -> dict[str, Any]:
    assert agents.stdin is not None
    assert agents.stdout is not None
    before = server.cpu_seconds()
    agents.stdin.write(phase + "\n")
    agents.stdin.flush()
    if phase == "restart":
        time.sleep(3)
        server.kill()
        time.sleep(2)
        server.start()
    found: dict[str, Any] = json.loads(agents.stdout.readline())
    cpu = server.cpu_seconds() - before
    return {**found, "server_cpu_seconds": round(cpu, 1), "server_peak_mib": round(server.peak_mib()),
            "answers_per_cpu_second": round(found["answered"] / cpu) if cpu else None}


def show(arguments: argparse.Namespace, figures: dict[str, dict[str, Any]]) -> None:
    slower = f"; all times of agents x {arguments.slow:g}" if arguments.slow != 1 else ""
    print(f"{arguments.agents} agents within {arguments.spread:g} s; load {os.getloadavg()[0]:.1f} on "
          f"{os.cpu_count()} processors{slower}")
    for phase, one in figures.items():
        print(f"{phase:8}  {one['answered']} answered, {one['unanswered']} not, in {one['seconds']:.0f} s; waited "
              f"{one['wait_median']} s (median), {one['wait_95']} s (95 %), {one['wait_max']} s at most\n"
              f"          server {one['server_cpu_seconds']} s of processor, {one['server_peak_mib']} MiB at most; "
              f"agents {one['agents_cpu_seconds']} s of processor\n"
              f"          {', '.join(f'{count} {what}' for what, count in one['tries'].items())}")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A storm of agents at homeport-server; see the head of this file.")
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--spread", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--slow", type=float, default=1.0, metavar="FACTOR")
    parser.add_argument("--only", default=",".join(PHASES), metavar="PHASE,...")
    parser.add_argument("--quiet", action="store_true", help="write no build/bench-server.json")
    parser.add_argument("--as-agents", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ca", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
