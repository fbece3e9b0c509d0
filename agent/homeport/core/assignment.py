"""An assignment understood: one network part of a document, its placeholders filled.

Knows the keys of an assignment; what a configuration may hold is for `schema` and `checks`
(nmstate) and `keyfile` (nmconnections) to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.core.addresses import Address, read_addresses
from homeport.core.complaint import Complaint, Complaints, Path
from homeport.core.nmc import as_nmstate_says
from homeport.core.placeholders import Open, fill, fill_keyfiles, unquoted
from homeport.core.proof import Target, parse_targets
from homeport.core.rawextension import decode_raws
from homeport.core.schema import is_policy
from homeport.core.shapes import Network, unknown_keys
from homeport.core.showing import meant, safe_path, show
from homeport.core.texts import Texts, as_nmstate_reads

CONFIGURATORS = ("nmstate", "nmc", "nmconnections", "none")
_LONGEST_REVISION = 200
# YAML 1.2 leaves these as text; people mean them, and nmstate takes them so too.
_WORDS = {"yes": True, "on": True, "no": False, "off": False}


@dataclass(frozen=True)
class Assignment:
    """What one machine is to have.

    `config` has its placeholders filled, is shared with nothing else, and is nmstate's document
    (`nmstate`, `nmc`), names with keyfile text (`nmconnections`) or empty (`none`).
    `config_path` is where it stands in the document ("spec.network.config", "" for bare nmstate).
    `proof` is empty where nothing is declared.  `shape`: assignment, inventory, elemental,
    machines, nmstate, policy.
    """

    configurator: str
    addresses: Mapping[str, Address]
    config: dict[str, Any]
    revision: str
    proof: tuple[Target, ...] = ()
    force: bool = False
    shape: str = "assignment"
    config_path: str = ""


@dataclass(frozen=True)
class Draft:
    """An assignment with what is still to be said about it."""

    assignment: Assignment
    complaints: tuple[Complaint, ...] = ()
    open: tuple[Open, ...] = field(default=())


def read_assignment(network: Network, texts: Texts, revision: str,
                    given: Mapping[str, Address]) -> Draft:
    """The assignment in `network`, with every complaint about its own keys.

    `revision` is used where the document declares none; the addresses in `given` count before its
    own.  Never raises: what cannot be used is complained about and left out.
    """
    tree, path = network.tree, network.path
    bare = network.shape in ("nmstate", "policy")
    config_path: Path = () if bare else (*path, "config")
    complaints = Complaints()
    complaints += unknown_keys(network)
    configurator = _configurator(network, complaints)
    addresses, found = read_addresses(tree.get("ipAddresses"), (*path, "ipAddresses"))
    complaints += found
    addresses |= given
    config = _config(tree.get("config"), configurator, config_path, complaints)
    if configurator in ("nmstate", "nmc") and not is_policy(config):
        config = as_nmstate_reads(config, texts, config_path)
    if configurator == "nmc":
        config = as_nmstate_says(config)
    open_ones: tuple[Open, ...] = ()
    proof = tree.get("proof")
    if not bare:
        complaints += unquoted(config, addresses, config_path)
        filler = fill_keyfiles if configurator == "nmconnections" else fill
        config, open_ones = filler(config, addresses, config_path)
        proof, open_in_proof = fill(proof, addresses, (*path, "proof"))
        open_ones += open_in_proof
    targets, found = parse_targets(proof, (*path, "proof"), {one.path for one in open_ones})
    complaints += found
    return Draft(
        Assignment(
            configurator=configurator,
            addresses=addresses,
            config=config,
            revision=_revision(network, texts, complaints) or revision,
            proof=targets,
            force=_force(network, complaints),
            shape=network.shape,
            config_path=safe_path(config_path),
        ),
        tuple(complaints),
        open_ones,
    )


def _configurator(network: Network, complaints: list[Complaint]) -> str:
    given = network.tree.get("configurator")
    if given is None or given == "":
        return "nmstate"
    if isinstance(given, str) and given in CONFIGURATORS:
        return given
    complaints.append(Complaint(safe_path((*network.path, "configurator")), show(given),
                                meant(given, CONFIGURATORS)))
    return "nmstate"  # so that the configuration is looked at as well


def _config(given: Any, configurator: str, path: Path,
            complaints: list[Complaint]) -> dict[str, Any]:
    if configurator == "none":
        return {}
    where = safe_path(path)
    if given is None or given == {}:
        complaints.append(Complaint(where, show(given), "a configuration, or 'configurator: none'"))
        return {}
    if not isinstance(given, dict):
        complaints.append(Complaint(where, show(given), "a mapping, such as nmstate's own keys"
                                    if configurator != "nmconnections"
                                    else "a mapping of names to keyfile text"))
        return {}
    config, found = decode_raws(given, path)
    complaints += found
    if configurator == "nmconnections":
        return _keyfiles(config, path, complaints)
    return config


def _keyfiles(config: dict[str, Any], path: Path, complaints: list[Complaint]) -> dict[str, str]:
    keyfiles: dict[str, str] = {}
    for stem, text in config.items():
        where = safe_path((*path, stem))
        if not stem or "/" in stem or stem.startswith(".") or len(stem.encode()) > 200:
            complaints.append(Complaint(where, f"{show(stem)} as the name of a file",
                                        "a name without '/' that does not start with a dot"))
        elif not isinstance(text, str) or not text.strip():
            complaints.append(Complaint(where, show(text), "the text of a keyfile"))
        else:
            keyfiles[stem] = text
    return keyfiles


def _revision(network: Network, texts: Texts, complaints: list[Complaint]) -> str:
    given = network.tree.get("revision")
    if given is None:
        return ""
    where = (*network.path, "revision")
    text = texts.at(where, given) if isinstance(given, str | int | float) else ""
    if not text or not text.isprintable() or len(text) > _LONGEST_REVISION:
        complaints.append(Complaint(safe_path(where), show(given),
                                    f"a word or number, at most {_LONGEST_REVISION} characters"))
    return text


def _force(network: Network, complaints: list[Complaint]) -> bool:
    given = network.tree.get("force", False)
    if isinstance(given, str) and given.lower() in _WORDS:
        given = _WORDS[given.lower()]
    if not isinstance(given, bool):
        complaints.append(Complaint(safe_path((*network.path, "force")), show(given),
                                    "true or false"))
    return given is True
