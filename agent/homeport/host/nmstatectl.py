"""`nmstatectl` as a child that can be stopped: apply under a checkpoint, commit, roll back, show, gc.

Knows the command line and the quirks of the released version (2.2.62; measured, spec/nmstate-and-peers.md 0);
refuses to know what a desired state means.  Documents go in as JSON on standard input: nmstate reads YAML,
and JSON is YAML.  Never `-v`: it prints secrets.  What nmstate says is logged at debug, secrets masked.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from homeport.errors import ApplyError
from homeport.host.nmstate_texts import (
    CheckpointPending,
    NmstateUnavailable,
    NoCheckpoint,
    NotCaptured,
    explain,
    mask,
    secrets_of,
)
from homeport.host.process import Completed, MissingProgram, TimedOut, run

__all__ = ["CheckpointPending", "NmstateUnavailable", "NoCheckpoint", "NotCaptured", "apply", "commit", "gc",
           "replacing_routes", "resolve_policy", "rollback", "show", "version"]

logger = logging.getLogger(__name__)

State = Mapping[str, Any]

CHILD_SECONDS = 150.0     # an unknown VLAN base stalls nmstate for 127 s; then it says what was wrong
QUICK_SECONDS = 30.0      # commit, show, gc, policy, version: milliseconds
ROLLBACK_SECONDS = 90.0   # nmstate itself waits at most 60 s
_READY_SECONDS = 10.0     # for a NetworkManager that has just been started


def version() -> str:
    """Like "2.2.62"."""
    words = _run(["version"], timeout=QUICK_SECONDS).stdout.decode(errors="replace").split()
    return words[-1] if words else ""


def apply(state: State, *, timeout: float = CHILD_SECONDS, checkpoint_seconds: int = 60,
          memory_only: bool = True, commit: bool = False, verify: bool = False,
          override: bool = False) -> None:
    """Put `state` in force under a checkpoint that rolls back by itself after `checkpoint_seconds`.

    The routes of each NIC in it are replaced, not added to (`replacing_routes` says why).
    `override` makes a new profile instead of editing the active one: for NICs with a stranger's profile,
    whose file NetworkManager 1.52 would rewrite at a rollback.
    The child is stopped after `timeout` seconds, with SIGINT, upon which it rolls back.
    Raises CheckpointPending, NmstateUnavailable, NotAllowed, or ApplyError with what a person can do.
    """
    argv = ["apply"]
    argv += ["--memory-only"] if memory_only else []
    argv += ["--override-iface"] if override else []
    argv += [] if verify else ["--no-verify"]
    argv += [] if commit else ["--no-commit", "--timeout", str(checkpoint_seconds)]
    _run([*argv, "-"], document=replacing_routes(state), timeout=timeout)


def commit(timeout: float = QUICK_SECONDS) -> None:
    """Keep what was applied. Raises NoCheckpoint if there is nothing to keep any more."""
    _run(["commit"], timeout=timeout)


def rollback(timeout: float = ROLLBACK_SECONDS) -> bool:
    """Undo what was applied and not committed, by whomever; False if there was nothing to undo."""
    try:
        _run(["rollback"], timeout=timeout)
    except NoCheckpoint:
        return False
    return True


def show(timeout: float = QUICK_SECONDS) -> dict[str, Any]:
    """The current state, without secrets; by the libnmstate binding where there is one."""
    return _show_in_process() or _mapping(_run(["show", "--json"], timeout=timeout))


def _show_in_process() -> dict[str, Any] | None:
    """None if there is no binding (Debian has none), or it fails: then nmstatectl tells why.

    PyPI's `nmstate` 2.0.0 has the same module name; its `show` needs libnm, and fails.
    """
    if "NMSTATECTL" in os.environ:
        return None
    try:
        import libnmstate

        return dict(libnmstate.show())
    except ImportError:
        return None
    except Exception as error:  # the binding's errors share no base class with anything else
        logger.debug("libnmstate cannot show the current state: %s, asking nmstatectl", error)
        return None


def resolve_policy(policy: State, timeout: float = QUICK_SECONDS) -> dict[str, Any]:
    """The state that a policy (`capture`, `desired`) comes to on this machine as it is now.

    Raises NotCaptured for what is not there yet, ApplyError for what is wrong with the policy.
    """
    return _mapping(_run(["policy", "--json", "/dev/stdin"], document=policy, timeout=timeout))


def gc(state: State, timeout: float = QUICK_SECONDS) -> list[tuple[str, str]]:
    """(file name, text) of each keyfile, offline.

    Untrusted: nmstate lets `../` through in names, and line ends in values.
    """
    import yaml  # gc has no --json

    done = _run(["gc", "-"], document=state, timeout=timeout)
    answer = yaml.load(done.stdout, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    pairs = answer.get("NetworkManager") if isinstance(answer, dict) else None
    return [(str(name), str(text)) for name, text in pairs or ()]


def replacing_routes(state: State) -> State:
    """`state` with an absent-route, ahead of its own routes, for each interface that it gives IP or routes.

    Without, nmstate keeps every route that the state no longer has, and the *old* metric of one that
    differs in nothing else: it compares routes without their metric (2.2.62, route.rs: is_match, sort_key).
    Where nothing changes, these absent-routes cause no event (measured).  Policies pass as they are.
    """
    interfaces = state.get("interfaces")
    if not isinstance(interfaces, Sequence) or "capture" in state or "desired" in state:
        return state
    section = state.get("routes") or {}
    desired = list(section.get("config") or ())
    led_through = {route.get("next-hop-interface") for route in desired}
    names = [row.get("name") for row in interfaces if row.get("state", "up") == "up"
             and ("ipv4" in row or "ipv6" in row or row.get("name") in led_through)]
    fresh = [{"state": "absent", "next-hop-interface": name} for name in names]
    return {**state, "routes": {**section, "config": [*fresh, *desired]}} if fresh else state


# -- the child --

def _run(arguments: Sequence[str], *, timeout: float, document: State | None = None) -> Completed:
    """Run until it succeeds, fails for a reason, or NetworkManager stays away for _READY_SECONDS, or `timeout`."""
    data, secrets = None, frozenset[str]()
    if document is not None:
        import json

        data, secrets = json.dumps(document, ensure_ascii=False).encode(), secrets_of(document)
    patience = time.monotonic() + min(_READY_SECONDS, timeout)
    while True:
        done = _start(arguments, data, timeout)
        said = mask(done.stderr.decode(errors="replace"), secrets)
        logger.debug("nmstatectl %s: status %d, %.3f s: %s", arguments[0], done.status, done.seconds, said)
        if done.status == 0:
            return done
        error = explain(arguments[0], done.status, said)
        if not isinstance(error, NmstateUnavailable) or time.monotonic() > patience:
            raise error
        time.sleep(0.1)


def _start(arguments: Sequence[str], data: bytes | None, timeout: float) -> Completed:
    program = os.environ.get("NMSTATECTL") or shutil.which("nmstatectl") or "nmstatectl"
    try:
        return run([program, *arguments], input=data, timeout=timeout)
    except MissingProgram as error:
        raise NmstateUnavailable(f"Cannot configure the network: no program {program}",
                                 "install nmstate (its nmstatectl), or put nmstatectl on PATH") from error
    except TimedOut as error:
        raise ApplyError(f"nmstatectl {arguments[0]} did not end in {timeout:g} s and was stopped",
                         "often a VLAN on a base that does not exist, or no kernel module for its type"
                         ) from error


def _mapping(done: Completed) -> dict[str, Any]:
    import json

    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise ApplyError(f"nmstatectl wrote {len(done.stdout)} bytes that are no JSON",
                         "`nmstatectl show --json` shows them") from error
    if not isinstance(answer, dict):
        raise ApplyError(f"nmstatectl wrote a {type(answer).__name__} instead of a mapping")
    return answer
