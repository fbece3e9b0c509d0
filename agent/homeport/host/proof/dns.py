"""Names asked of the servers of the new configuration (RFC 1035), over its interfaces; and /etc/hosts.

Our own query instead of getaddrinfo(), which asks whatever is configured: a cache that still knows the
former network, for one.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable, Iterable

from homeport.host.proof.ways import Way, bind, endpoint

A, AAAA = 1, 28
_ATTEMPT = 2.0  # seconds for one server's answer, before the next is asked
_PAUSE = 0.5
_RCODES = {1: "says it cannot read the question", 2: "says that it failed (SERVFAIL)",
           3: "does not know the name (NXDOMAIN)", 4: "does not support the question",
           5: "refuses us (REFUSED)"}
FindWay = Callable[[str], "Way | None"]


class NoSuchName(Exception):
    """The servers answer, and the name does not exist; the text says which server."""


class NoAnswer(Exception):
    """No server gave an answer; the text says why, server by server."""


def resolve(name: str, servers: Iterable[str], find_way: FindWay, deadline: float,
            types: tuple[int, ...] = (A, AAAA)) -> tuple[list[str], str]:
    """The addresses of `name` and the server that gave them, asking again until `deadline`.

    Raises NoSuchName, or NoAnswer.
    """
    servers = [server.partition("#")[0] for server in servers]
    if not servers:
        raise NoAnswer("no DNS server is configured")
    faults: dict[str, str] = {}
    while True:
        for server in servers:
            try:
                found = addresses(name, types, server, find_way(server), deadline)
            except TimeoutError:
                faults.setdefault(server, ": no answer")  # what it answered before says more
                continue
            except OSError as error:
                faults[server] = f": {error.strerror or error}"
                continue
            except ValueError as error:
                faults[server] = f" {error}"
                continue
            if found:
                return found, server
            raise NoSuchName(f"{server} knows no address of it")
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("; ".join(f"{server}{fault}" for server, fault in faults.items()))
        time.sleep(min(_PAUSE, left))


def addresses(name: str, types: Iterable[int], server: str, way: Way | None, deadline: float) -> list[str]:
    """The addresses of all types. Many servers fail for AAAA alone; then what they have must do.

    Raises what `query` does, if there is nothing else to say.
    """
    found: list[str] = []
    failure: OSError | ValueError | NoSuchName | None = None
    for kind in types:
        try:
            found += query(name, kind, server, way, deadline)
        except (OSError, ValueError, NoSuchName) as error:
            failure = failure or error
            if isinstance(error, TimeoutError):
                break  # who does not answer is not asked again at once
    if failure is not None and not found:
        raise failure
    return found


def query(name: str, kind: int, server: str, way: Way | None, deadline: float) -> list[str]:
    """One question to one server. Raises OSError without an answer, ValueError for a bad one, NoSuchName."""
    if way is None:
        raise OSError("no route to it")
    question = make_query(name, kind, int.from_bytes(os.urandom(2), "big"))
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    until = min(deadline, time.monotonic() + _ATTEMPT)
    with socket.socket(family, socket.SOCK_DGRAM) as file:
        bind(file, way)
        file.connect(endpoint(server, 53, way))
        file.send(question)
        answer = _receive(file, question, until)
    if answer[2] & 0x02:  # truncated: RFC 7766
        answer = _over_tcp(question, server, way, until)
    return parse_answer(answer, kind, server)


def _receive(file: socket.socket, question: bytes, until: float) -> bytes:
    while (left := until - time.monotonic()) > 0:
        file.settimeout(left)
        answer = file.recv(4096)
        if len(answer) >= 12 and answer[:2] == question[:2] and answer[2] & 0x80:
            return answer
    raise TimeoutError


def _over_tcp(question: bytes, server: str, way: Way, until: float) -> bytes:
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_STREAM) as file:
        file.settimeout(max(0.1, until - time.monotonic()))
        bind(file, way)
        file.connect(endpoint(server, 53, way))
        file.sendall(struct.pack("!H", len(question)) + question)
        with file.makefile("rb") as stream:
            return stream.read(int.from_bytes(stream.read(2), "big"))


def make_query(name: str, kind: int, number: int) -> bytes:
    """Raises ValueError for what cannot be a host name."""
    labels = (name if name.isascii() else name.encode("idna").decode()).rstrip(".").encode().split(b".")
    if not all(0 < len(label) < 64 for label in labels):
        raise ValueError(f"cannot be asked for {name!r}")
    packed = b"".join(bytes([len(label)]) + label for label in labels)
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + packed + b"\0" + struct.pack("!HH", kind, 1)


def parse_answer(answer: bytes, kind: int, server: str = "the server") -> list[str]:
    """The addresses in an answer, however many aliases lead there. Raises NoSuchName, ValueError."""
    if len(answer) < 12:
        raise ValueError("answers with less than a header")
    flags, questions, answers = struct.unpack_from("!2xHHH", answer)
    code = flags & 0xF
    if code == 3:
        raise NoSuchName(f"{server} {_RCODES[3]}")
    if code:
        raise ValueError(_RCODES.get(code, f"answers with error {code}"))
    found = []
    try:
        offset = 12
        for _ in range(questions):
            offset = _skip_name(answer, offset) + 4
        for _ in range(answers):
            offset = _skip_name(answer, offset)
            got, length = struct.unpack_from("!H6xH", answer, offset)
            data = answer[offset + 10:offset + 10 + length]
            offset += 10 + length
            if got == kind and len(data) == {A: 4, AAAA: 16}[kind]:
                found.append(socket.inet_ntop(socket.AF_INET if kind == A else socket.AF_INET6, data))
    except (struct.error, IndexError) as error:
        raise ValueError("answers with a broken message") from error
    return found


def _skip_name(data: bytes, offset: int) -> int:
    while True:
        length = data[offset]
        if length >= 0xC0:  # a pointer ends the name
            return offset + 2
        offset += 1 + length
        if not length:
            return offset


def in_hosts(name: str, text: str) -> list[str]:
    """The addresses that /etc/hosts (its `text`) has for `name`."""
    rows = (line.partition("#")[0].split() for line in text.splitlines())
    return [row[0] for row in rows if name.lower() in (word.lower() for word in row[1:])]


def servers_in(text: str) -> list[str]:
    """The nameservers of a resolv.conf."""
    rows = (line.split() for line in text.splitlines())
    return [row[1] for row in rows if len(row) > 1 and row[0] == "nameserver"]
