"""From the bytes that a source delivered to the assignment of this machine.

The order is the story: bytes, text, tree, shape, assignment, and (in `check_assignment`) what
nmstate and our own checks say of it.  Every fault on the way is collected, with the path that a
person finds it under.  A placeholder without an address means *pending*, but only if nothing is
wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from homeport.core.addresses import Address
from homeport.core.assignment import Assignment, Draft, read_assignment
from homeport.core.body import MAX_BYTES, not_a_document, read_body
from homeport.core.complaint import MAX_COMPLAINTS, Complaint, Complaints
from homeport.core.machines import Machine, choose, fitting_names, read_entries
from homeport.core.placeholders import Open, describe_open
from homeport.core.shapes import Network, find_shape
from homeport.core.showing import printable
from homeport.core.texts import Texts
from homeport.core.yamlsafe import read_yaml
from homeport.errors import DocumentError, NoAssignment, Pending

__all__ = ["LIMIT", "Address", "Assignment", "Findings", "check_assignment", "check_document",
           "fitting_names", "parse_document", "understand_document"]

LIMIT = MAX_BYTES

# Values that no complaint may quote: they would end up on a console and in the journal.
_LONGEST_PATH = 400
_SECRET = re.compile(r"(?:password|psk|secret|cak)(?:\[\d+\])*\Z")


@dataclass(frozen=True)
class Findings:
    """All that can be said of a document: every assignment in it, every complaint, what is open."""

    assignments: tuple[Assignment, ...]
    complaints: tuple[Complaint, ...]
    open: tuple[Open, ...]


def parse_document(data: bytes, *, machine: Machine | None = None, content_type: str = "",
                   addresses: Mapping[str, Address] | None = None) -> Assignment:
    """The assignment in `data` for the machine with these facts (fact -> its values; see
    `machines.py`).

    Whether its configuration is acceptable is another question: `understand_document` asks both.
    Raises DocumentError with all complaints; Pending if that leaves only placeholders without an
    address; NoAssignment if a sound document has nothing for this machine.
    """
    reading = _read(data, machine or {}, content_type, addresses or {})
    return _decide(reading, reading.complaints)


def understand_document(data: bytes, *, machine: Machine | None = None, content_type: str = "",
                        addresses: Mapping[str, Address] | None = None,
                        allow_dispatch: bool = False) -> Assignment:
    """`parse_document`, and every check of the configuration with it; raises the same."""
    reading = _read(data, machine or {}, content_type, addresses or {})
    return _decide(reading, (*reading.complaints, *_check_all(reading.drafts, allow_dispatch)))


def check_document(data: bytes, *, machine: Machine | None = None, content_type: str = "",
                   allow_dispatch: bool = False) -> Findings:
    """Everything that is wrong with a document; without `machine`, for all machines in it.

    Raises nothing, whatever the bytes.
    """
    reading = _read(data, machine, content_type, {})
    return Findings(
        tuple(draft.assignment for draft in reading.drafts),
        _unique((*reading.complaints, *_check_all(reading.drafts, allow_dispatch))),
        tuple(one for draft in reading.drafts for one in draft.open),
    )


def check_assignment(assignment: Assignment, *, allow_dispatch: bool = False,
                     open_placeholders: Iterable[Open] = ()) -> list[Complaint]:
    """What nmstate's schema and our checks say of the configuration; paths as in the document.

    While placeholders are open only the schema is asked, and not about them: whether a gateway can
    be reached is no question before there is an address.
    """
    if assignment.configurator == "none":
        return []
    if assignment.configurator == "nmconnections":
        keyfiles = Complaints()
        keyfiles += _check_keyfiles(assignment)
        return keyfiles
    from homeport.core.checks import check_meaning
    from homeport.core.nics import resolve
    from homeport.core.schema import check_schema

    waiting = frozenset(one.path for one in open_placeholders)
    # What names a card in ways that nmstate doesn't know (`match:`, long names) is in its terms afterwards.
    early = resolve(assignment.config, (), offline=True)
    found = Complaints()
    found += (_in_document(assignment, complaint)
              for complaint in (*early.complaints, *check_schema(early.config)))
    if waiting:
        return [complaint for complaint in found if complaint.path not in waiting]
    if not found.full:
        found += (_in_document(assignment, complaint) for complaint in check_meaning(
            early.config, allow_dispatch=allow_dispatch, force=assignment.force))
    return found


@dataclass(frozen=True)
class _Reading:
    """A document read as far as it goes; `nothing` says why a sound one has no assignment for
    us."""

    drafts: tuple[Draft, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    nothing: str = ""


def _read(data: bytes, machine: Machine | None, content_type: str,
          addresses: Mapping[str, Address]) -> _Reading:
    """Bytes to drafts: one, or with `machines:` and no `machine` one for each entry."""
    body = read_body(data, content_type)
    if body.text is None:
        return _Reading(complaints=body.complaints)
    tree = read_yaml(body.text)
    complaints = (*body.complaints, *tree.complaints)
    if not tree.usable:
        return _Reading(complaints=complaints)
    if not isinstance(tree.value, dict):
        return _Reading(complaints=(*complaints, not_a_document(tree.value, content_type)))
    texts = Texts(body.text)
    shape = find_shape(tree.value)
    complaints = (*complaints, *shape.complaints)
    if shape.network is not None:
        draft = read_assignment(shape.network, texts, _revision(shape.network, data), addresses)
        return _Reading((draft,), (*complaints, *draft.complaints))
    if "machines" not in tree.value:
        return _Reading(complaints=complaints, nothing=shape.nothing)
    return _read_machines(shape.machines, texts, machine, complaints, addresses)


def _read_machines(tree: Any, texts: Texts, machine: Machine | None,
                   complaints: tuple[Complaint, ...],
                   addresses: Mapping[str, Address]) -> _Reading:
    entries, found = read_entries(tree, texts)
    if machine is not None:
        chosen, more = choose(entries, machine)
        found += more
        entries = [chosen] if chosen is not None else []
    faults = Complaints()
    faults += (*complaints, *found)
    drafts: list[Draft] = []
    for entry in entries:
        if faults.full:
            break
        network = Network("machines", entry.network, ("machines", entry.index))
        drafts.append(read_assignment(network, texts, _revision(network, b""), addresses))
        faults += drafts[-1].complaints
    return _Reading(tuple(drafts), tuple(faults),
                    "" if drafts else "none of the machines in the document is this one")


def _revision(network: Network, data: bytes) -> str:
    """A name for what is assigned, where the document gives none.

    Of the bytes, where the document is the assignment and nothing else.  Where it is a part, of
    that part: the rest has other machines, tokens and resource versions, whose changes are not
    ours.
    """
    if network.shape in ("inventory", "elemental", "machines"):
        import json

        data = json.dumps(network.tree, sort_keys=True).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()[:16]


def _decide(reading: _Reading, complaints: tuple[Complaint, ...]) -> Assignment:
    if complaints:
        raise DocumentError(_unique(complaints))
    if not reading.drafts:
        raise NoAssignment(f"The document assigns this machine nothing: {reading.nothing}")
    draft = reading.drafts[0]
    if draft.open:
        message, hint = describe_open(draft.open, draft.assignment.addresses)
        raise Pending(f"The assignment is not ready: {message}", hint)
    return draft.assignment


def _check_all(drafts: Iterable[Draft], allow_dispatch: bool) -> list[Complaint]:
    found = Complaints()
    found += (complaint for draft in drafts if draft.assignment.config
              for complaint in check_assignment(draft.assignment, allow_dispatch=allow_dispatch,
                                                open_placeholders=draft.open))
    return found


def _check_keyfiles(assignment: Assignment) -> Iterator[Complaint]:
    from homeport.core.keyfile import check_untrusted

    for stem, text in assignment.config.items():
        for complaint in check_untrusted(text):
            where = ".".join(part for part in (stem, complaint.path) if part)
            yield _in_document(assignment, replace(complaint, path=where))


def _in_document(assignment: Assignment, complaint: Complaint) -> Complaint:
    """A complaint about the configuration, with the path in the whole document and no secret in
    it."""
    path = assignment.config_path
    if complaint.path:
        dot = "." if path and not complaint.path.startswith("[") else ""
        path += dot + complaint.path
    secret = _SECRET.search(path) is not None
    return Complaint(printable(path, _LONGEST_PATH),
                     "a secret value (not shown)" if secret else printable(complaint.found, 200),
                     printable(complaint.wanted, 400))


def _unique(complaints: Iterable[Complaint]) -> tuple[Complaint, ...]:
    """Each complaint once, and no more of them than anyone reads."""
    unique = list(dict.fromkeys(complaints))
    if len(unique) > MAX_COMPLAINTS:
        unique[MAX_COMPLAINTS:] = [Complaint("", "more faults than these", "these mended first")]
    return tuple(unique)
