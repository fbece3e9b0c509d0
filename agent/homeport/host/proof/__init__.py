"""The proof: the configuration that is in force carries traffic where it must.

NetworkManager and nmstate only compare settings; a wrong gateway, a dead VLAN, an address that another
host holds all pass there. Here every packet goes over the new configuration and no other: sockets are tied
to its interfaces and addresses, names are asked of its servers, gateways must answer frames of ours.

Knows how to reach things; refuses to know nmstate, NetworkManager and what follows from a failure.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeport.core.proof import Target
from homeport.host.proof.duplicates import check_addresses
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
)
from homeport.host.proof.wanted import read_wanted

__all__ = ["Evidence", "ProofFailed", "prove", "prove_addresses"]

Check = Callable[[], Evidence]


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
    evidence += _all(_checks(targets or (_default(scene, source_url),), scene, source_url))
    return _good(evidence)


def prove_addresses(desired: Mapping[str, Any], *, deadline: float) -> list[Evidence]:
    """Every static address is in force and nobody else's; an interface on DHCP or autoconf has one.

    Raises ProofFailed: for a conflict after 0.2 s, whether or not NetworkManager has put the address on the
    interface; for an address that does not come, at `deadline`.
    """
    return _good(check_addresses(read_wanted(desired), deadline))


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
            return [_check(prove_gateway, gateway, scene) for gateway in gateways] or [_nothing(
                "gateway", "the document has no default route", "give it one, or another `proof:`")]
        case "source":
            return [_check(prove_source, source_url, scene)] if source_url else [_nothing(
                "source", "the document did not come over the network", "leave `source` out of its `proof:`")]
        case "tcp":
            host, _, port = target.value.rpartition(":")
            return [_check(prove_tcp, host.strip("[]"), int(port), scene)]
        case "http":
            return [_check(prove_http, target.value, scene)]
        case "dns":
            return [_check(prove_name, target.value, scene)]
        case "carrier":
            return [_check(prove_carrier, scene)] if scene.wanted.interfaces else []
    return []  # none


def _check(function: Callable[..., Evidence], *arguments: Any) -> Check:
    return lambda: function(*arguments)


def _nothing(target: str, detail: str, hint: str) -> Check:
    return lambda: Evidence(target, False, "", detail, 0.0, hint)


def _all(checks: Sequence[Check]) -> list[Evidence]:
    """Every check at once, on threads: the proof takes as long as the slowest."""
    results: list[Evidence | BaseException | None] = [None] * len(checks)

    def work(number: int) -> None:
        try:
            results[number] = checks[number]()
        except BaseException as error:  # raised again below, on the caller's thread
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(checks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Evidence)]


def _good(evidence: list[Evidence]) -> list[Evidence]:
    if not all(item.ok for item in evidence):
        raise ProofFailed(evidence)
    return evidence
