"""A machine asks by an id in a URL: which one is meant, and may it have an answer?

An id is no proof. So whoever asks by one needs the token of the registration that the machine is of; a machine that
has shown a TPM is not served this way at all (unless the server is told to); and an id that fits two machines fits
none. Where there is no registration, only inventories, they are served as files would be: there is no token to ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from homeport_server.admission import Request
from homeport_server.caller import Facts, as_mac, facts_of_id, plain_caller, plain_fault
from homeport_server.manifests.inventories import Inventory
from homeport_server.manifests.registrations import Registration
from homeport_server.manifests.sets import Manifests
from homeport_server.outcome import Outcome
from homeport_server.registrar import Registrar
from homeport_server.store.machines import Machine


@dataclass(frozen=True)
class Denied:
    """No answer, and why: `unknown` id, no or a wrong `token`, `proof` by TPM wanted."""

    kind: Literal["unknown", "token", "proof"]
    reason: str


def find_machine(registrar: Registrar, text: str, registration: Registration | None,
                 allow_proven: bool) -> Machine | Denied | None:
    """The known machine that `text` means and this token may ask for; None if there is none."""
    found = registrar.look_up(text)
    if len(found) > 1:
        return Denied("unknown", f"the id fits {len(found)} machines: {', '.join(map(str, found[:5]))}")
    if not found:
        return None
    machine, manifests = found[0], registrar.manifests
    if registration is None and manifests.registrations:
        return Denied("token", f"for {machine.name} a token is needed, and none was given")
    if registration and machine.registration != registration.key and manifests.registration(machine.registration):
        return Denied("token", f"{machine.name} is of {machine.registration}, whose token was not given")
    if machine.proven and not allow_proven:
        return Denied("proof", f"{machine.name} has shown a TPM: it is served by registration only")
    return machine


def assignment_of(registrar: Registrar, text: str, registration: Registration | None, allow_proven: bool,
                  said: Facts) -> Outcome | Denied:
    """What the machine `text` is assigned; one that is new, and has a token, is admitted.

    `said` is what it says of itself beside its id.
    """
    facts = said.over(facts_of_id(text))
    machine = find_machine(registrar, text, registration, allow_proven)
    if isinstance(machine, Denied):
        return machine
    manifests = registrar.manifests
    if machine is not None:
        its_own = manifests.registration(machine.registration) or registration
        return registrar.ask(Request(None, its_own, known=(machine.namespace, machine.name), facts=facts))
    if registration is None and manifests.registrations:
        return Denied("token", "no token was given")
    inventory = _inventory(manifests, text)
    if inventory is not None:
        return registrar.ask(Request(None, registration, known=(inventory.namespace, inventory.name)))
    if registration is None:
        return Denied("unknown", "no inventory has this id")
    if registration.auth == "tpm":
        return Denied("proof", f"{registration.key} admits machines by TPM only (auth: tpm)")
    fault = plain_fault(text)
    if fault:
        return Denied("unknown", f"this id cannot name one machine: {fault}")
    # One spelling for each MAC and UUID, which elemental-register takes from sysfs.
    caller = plain_caller(as_mac(text) or (text.lower() if "-" in text else text))
    return registrar.ask(Request(caller, registration, facts=facts, data=_as_data(facts.uuid, facts.serial)))


def _inventory(manifests: Manifests, text: str) -> Inventory | None:
    """The inventory that an id means: by its hash, by the hash of the id, or by its name."""
    digest = plain_caller(text).digest
    found = [one for one in manifests.inventories
             if text.lower() in (one.tpm_hash, one.machine_hash) or digest == one.machine_hash
             or text in (one.name, one.key)]
    return found[0] if len(found) == 1 else None


def _as_data(uuid: str, serial: str) -> dict[str, dict[str, str]]:
    """What templates can use of an id."""
    known = {"UUID": uuid, "Serial Number": serial}
    return {"System Information": {key: value for key, value in known.items() if value}}
