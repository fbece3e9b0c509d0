"""The profiles of a document, for this machine, without NetworkManager: it will start straight into them.

Knows which documents that works for. What comes out is unproven, and `prepared.py` keeps track of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from homeport import planning
from homeport.core.document import Assignment
from homeport.core.keyfile import Keyfile, add_dns, own_profiles, stable_uuid
from homeport.core.keyfile.meaning import interface_names
from homeport.core.plan import Plan
from homeport.core.schema import is_policy
from homeport.errors import ApplyError
from homeport.machine import Machine

log = logging.getLogger(__name__)


def make(machine: Machine, assignment: Assignment, known: Mapping[str, str]) -> dict[str, Keyfile]:
    """Interface -> keyfile of ours, for cards that are there within `NicWait=`.

    `known` are the UUIDs that the real root's profiles have, by interface: the new text then takes their place.
    Raises ApplyError for a document that needs a running NetworkManager, DocumentError for cards that are not there
    or for text that must not be written.
    """
    if is_policy(assignment.config):
        raise ApplyError("a policy is about the network that is in force, and there is none yet",
                         "it is put in force on the real root")
    resolved = planning.find_nics(machine, planning.stated(assignment))
    plan = Plan(assignment=assignment, desired=resolved.config, names=resolved.names, nics=resolved.nics)
    if assignment.configurator == planning.KEYFILES:
        texts = {resolved.names.get(interface, interface): assignment.config[name]
                 for name, interface in interface_names(assignment.config).items()}
    else:
        from homeport.rendering import checked_texts
        texts = checked_texts(resolved.config, machine.quick) if resolved.config else {}
    uuids = {name: known.get(name) or stable_uuid(_seed(machine), name) for name in texts}
    made = own_profiles(texts, uuids=uuids, nics=machine.facts.nics, tags={"revision": assignment.revision},
                        waits=plan.waits)
    made, homeless = add_dns(made, **plan.dns)
    if homeless:
        log.warning("No interface can keep the DNS servers %s, going on without them", ", ".join(homeless))
    return made


def _seed(machine: Machine) -> str:
    """What the UUIDs are made of: the machine's own id, or who it is; a golden image has no id yet at its first boot,
    and an initramfs has that of its image, which many machines share.
    """
    who = machine.identity
    return machine.facts.machine_id or (who.value if who else "") or machine.report.boot_id
