"""The proof: the configuration that is in force carries traffic where it must.

NetworkManager and nmstate only compare settings; a wrong gateway, a dead VLAN, an address that another
host holds all pass there. Here every packet goes over the new configuration and no other: sockets are tied
to its interfaces and addresses, names are asked of its servers, gateways must answer frames of ours.

Knows how to reach things; refuses to know nmstate, NetworkManager and what follows from a failure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from homeport.core.proof import Target
from homeport.host.proof.duplicates import check_addresses, probe
from homeport.host.proof.evidence import Evidence, ProofFailed
from homeport.host.proof.reach import (
    Scene,
    list_gateways,
    prove_carrier,
    prove_gateway,
    prove_http,
    prove_name,
    prove_source,
    prove_tcp,
    shown_url,
)
from homeport.host.proof.wanted import read_wanted

__all__ = ["Evidence", "ProofFailed", "probe_addresses", "prove", "prove_addresses"]

Check = tuple[str, Callable[[], Evidence]]  # what is looked at, and how

# Seconds beyond the deadline for a check to say itself what it has not reached.
_LAST_WORDS = 1.0


def prove(targets: Sequence[Target], *, desired: Mapping[str, Any], deadline: float, source_url: str = "",
          ca_files: Sequence[str] = (), addresses_proven: bool = False) -> list[Evidence]:
    """Evidence for every target; raises ProofFailed, with all of it, if one is not reached.

    `desired` is the state for this machine, kernel names in it; `deadline` a time.monotonic() value that no
    check outlives. `source_url` is what the document was fetched from over the network, or the proxy it came
    through. First every address must be in force and nobody else's, unless `addresses_proven`. Without
    targets: the source, else each default gateway, else carrier (design.md, section 5).
    """
    scene = Scene(read_wanted(desired), deadline, tuple(ca_files))
    evidence = [] if addresses_proven else prove_addresses(desired, deadline=deadline)
    evidence += _all(_checks(targets or (_default(scene, source_url),), scene, source_url), deadline)
    return _good(evidence)


def probe_addresses(desired: Mapping[str, Any]) -> frozenset[str]:
    """The interfaces whose static IPv4 addresses are free, for `prove_addresses`; 0.2 s, may be asked ahead."""
    return probe(read_wanted(desired))


def prove_addresses(desired: Mapping[str, Any], *, deadline: float, free: Collection[str] = ()) -> list[Evidence]:
    """Every static address is in force and nobody else's; an interface on DHCP or autoconf has one.

    `free` are the interfaces that `probe_addresses` has just found so.

    Raises ProofFailed: for a conflict after 0.2 s, whether or not NetworkManager has put the address on the
    interface; for an address that does not come, at `deadline`.
    """
    return _good(check_addresses(read_wanted(desired), deadline, free))


def _default(scene: Scene, source_url: str) -> Target:
    if source_url:
        return Target("source")
    return Target("gateway") if list_gateways(scene) else Target("carrier")


def _checks(targets: Sequence[Target], scene: Scene, source_url: str) -> list[Check]:
    return [check for target in targets
            for check in _target_checks(target, scene.until(target.timeout), source_url)]


def _target_checks(target: Target, scene: Scene, source_url: str) -> list[Check]:
    """One check for a target; for `gateway` one for each."""
    match target.kind:
        case "gateway":
            gateways = list_gateways(scene)
            if not gateways:
                return [_nothing("gateway", "the document has no default route", "give it one, or another `proof:`")]
            return [_check(f"gateway {gateway.ip}", prove_gateway, gateway, scene) for gateway in gateways]
        case "source":
            if not source_url:
                return [_nothing("source", "the document did not come over the network",
                                 "leave `source` out of its `proof:`")]
            return [_check(f"source {shown_url(source_url)}", prove_source, source_url, scene)]
        case "tcp":
            host, _, port = target.value.rpartition(":")
            return [_check(f"tcp {target.value}", prove_tcp, host.strip("[]"), int(port), scene)]
        case "http":
            return [_check(f"http {shown_url(target.value)}", prove_http, target.value, scene)]
        case "dns":
            return [_check(f"dns {target.value}", prove_name, target.value, scene)]
        case "carrier":
            return [_check("carrier", prove_carrier, scene)] if scene.wanted.interfaces else []
    return []  # none


def _check(target: str, function: Callable[..., Evidence], *arguments: Any) -> Check:
    return target, lambda: function(*arguments)


def _nothing(target: str, detail: str, hint: str) -> Check:
    return target, lambda: Evidence(target, False, "", detail, 0.0, hint)


def _all(checks: Sequence[Check], deadline: float) -> list[Evidence]:
    """Every check at once, on threads: the proof takes as long as the slowest.

    One that has not come back shortly after `deadline` is left behind: a server that sends a byte now and
    then never is silent long enough for the time limit of a socket.
    """
    started = time.monotonic()
    results: list[Evidence | BaseException | None] = [None] * len(checks)

    def work(number: int) -> None:
        try:
            results[number] = checks[number][1]()
        except BaseException as error:  # raised again below, on the caller's thread
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(checks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline + _LAST_WORDS - time.monotonic()))
    evidence = []
    for (target, _), result in zip(checks, tuple(results), strict=True):
        if isinstance(result, BaseException):
            raise result
        evidence.append(result or Evidence(
            target, False, "", "its answer was not complete in time", time.monotonic() - started,
            "it sends too slowly to be of use; is it what it should be?"))
    return evidence


def _good(evidence: list[Evidence]) -> list[Evidence]:
    if not all(item.ok for item in evidence):
        raise ProofFailed(evidence)
    return evidence
