"""`machines:`, one document for many machines: which of its entries is this machine's.

An entry's `match` holds facts that must all fit; a list of values means any of them; `match: {}`
is for every machine that no other entry fits.  Two entries that fit are a complaint: guessing
between them could give one machine another's addresses.  So is a `match` that cannot be read,
whoever it was meant for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.showing import GUESSES, listing, meant, safe_path, show
from homeport.core.texts import Texts

FACTS = ("uuid", "serial", "mac", "hostname", "tpmHash")
Machine = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Entry:
    """An item of `machines:` with its `match` understood: fact -> the values that fit."""

    index: int
    network: dict[str, Any]
    facts: Mapping[str, frozenset[str]]


def read_entries(tree: Any, texts: Texts) -> tuple[list[Entry], list[Complaint]]:
    """The entries of `tree`, the value of `machines`."""
    if not isinstance(tree, list) or not tree:
        return [], [Complaint("machines", show(tree),
                              "a list of entries with 'match' and 'config'")]
    entries: list[Entry] = []
    complaints = Complaints()
    for index, item in enumerate(tree):
        if complaints.full:
            break
        where: Path = ("machines", index)
        if not isinstance(item, dict):
            complaints.append(Complaint(safe_path(where), show(item), "an entry with 'match'"))
        elif "match" not in item or not isinstance(item["match"], dict):
            complaints.append(Complaint(
                safe_path((*where, "match")), show(item.get("match")),
                f"facts of the machine ({listing(FACTS)}), or {{}} for all"))
        else:
            before = len(complaints)
            facts = _read_match(item["match"], (*where, "match"), texts, complaints)
            if len(complaints) == before:
                network = {key: value for key, value in item.items() if key != "match"}
                entries.append(Entry(index, network, facts))
    complaints += _same_matches(entries)
    return entries, complaints


def choose(entries: Iterable[Entry], machine: Machine) -> tuple[Entry | None, list[Complaint]]:
    """The entry that fits `machine` (fact -> its values), if exactly one does."""
    known = {_canonical(fact): frozenset(_value(_canonical(fact), value) for value in values)
             for fact, values in machine.items()}
    default: Entry | None = None
    fitting: list[Entry] = []
    for entry in entries:
        if not entry.facts:
            default = default or entry
        elif all(values & known.get(fact, frozenset()) for fact, values in entry.facts.items()):
            fitting.append(entry)
    if len(fitting) > 1:
        first, second = fitting[:2]
        return None, [Complaint(f"machines[{second.index}].match",
                                f"fits this machine, as machines[{first.index}].match does",
                                "entries of which one fits")]
    return (fitting[0] if fitting else default), []


def fitting_names(names: Iterable[str], machine: Machine) -> list[str]:
    """Those of `names` (file names in a folder of documents) that are a fact of `machine`."""
    known = {(fact, _value(fact, value)) for given, values in machine.items()
             for value in values for fact in (_canonical(given),)}
    found = []
    for name in names:
        stem = name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".json")
        if any((fact, _value(fact, stem)) in known for fact in FACTS):
            found.append(name)
    return found


def _read_match(match: dict[str, Any], path: Path, texts: Texts,
                complaints: list[Complaint]) -> dict[str, frozenset[str]]:
    facts: dict[str, frozenset[str]] = {}
    for key, given in match.items():
        where = (*path, key)
        fact = _canonical(key)
        if fact not in FACTS:
            complaints.append(Complaint(safe_path(where), f"unknown fact {show(key)}",
                                        meant(key, FACTS, len(complaints) < GUESSES)))
            continue
        values = [((*where, index), value) for index, value in enumerate(given)] if isinstance(
            given, list) else [(where, given)]
        if not values:
            complaints.append(Complaint(safe_path(where), show(given), f"a {fact}, or several"))
        facts[fact] = frozenset(_read_value(fact, value, at, texts, complaints)
                                for at, value in values)
    return facts


def _read_value(fact: str, value: Any, where: Path, texts: Texts,
                complaints: list[Complaint]) -> str:
    text = texts.at(where, value).strip() if isinstance(value, str | int | float) else ""
    if not text:
        complaints.append(Complaint(safe_path(where), show(value), f"a {fact} as text"))
    elif fact == "mac" and not _is_mac(text):
        complaints.append(Complaint(safe_path(where), f"{show(value)} is no MAC address",
                                    "six bytes, such as 52:54:00:12:34:56"))
    return _value(fact, text)


def _same_matches(entries: list[Entry]) -> Iterator[Complaint]:
    """Entries that can never be told apart, whichever machine it is."""
    seen: dict[tuple[tuple[str, frozenset[str]], ...], int] = {}
    for entry in entries:
        key = tuple(sorted(entry.facts.items(), key=lambda item: item[0]))
        if key in seen:
            what = "the same facts" if entry.facts else "a second default"
            yield Complaint(f"machines[{entry.index}].match",
                            f"{what}, as in machines[{seen[key]}].match",
                            "entries of which one fits")
        seen.setdefault(key, entry.index)


def _canonical(fact: str) -> str:
    return next((known for known in FACTS if known.casefold() == fact.casefold()), fact)


def _value(fact: str, text: str) -> str:
    """A value in the one spelling in which two of them are compared."""
    text = text.strip().casefold()
    if fact == "uuid":
        return text.replace("-", "")
    if fact == "mac":
        from homeport.core.mac import normalise_mac

        try:
            return normalise_mac(text)
        except ValueError:
            return text
    return text


def _is_mac(text: str) -> bool:
    from homeport.core.mac import normalise_mac

    try:
        normalise_mac(text)
    except ValueError:
        return False
    return True
