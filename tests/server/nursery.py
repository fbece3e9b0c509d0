"""Starts `homeport-server` often and fast: a process that has imported everything forks one for each command.

    {"start": [ARGUMENT...], "output": PATH}  ->  PID        standard output and error go to PATH
    {"wait": PID}                             ->  exit status, -9 for one that was killed
    {"poll": PID}                             ->  the same, null while it runs

A line of JSON in, a line out. Each command is a process of its own still, to be killed and measured like another.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import homeport_server.serve
import homeport_server.transfer
from homeport_server.cli import main

assert homeport_server.serve and homeport_server.transfer  # imported once, for all that are forked


def start(arguments: list[str], output: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = os.EX_SOFTWARE
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (file, 1), (file, 2)):
            os.dup2(source, target)
        status = main(arguments)
    except SystemExit as asked:  # --help
        status = int(asked.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(pid: int, options: int = 0) -> int | None:
    found, status = os.waitpid(pid, options)
    return os.waitstatus_to_exitcode(status) if found else None


def serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            reply = start(request["start"], request["output"])
        else:
            reply = wait(request["wait"]) if "wait" in request else wait(request["poll"], os.WNOHANG)  # type: ignore[assignment]
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
