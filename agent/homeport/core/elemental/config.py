"""Elemental's own files on a machine, as values: how to register, whether it has, what it says of itself.

Knows config.yaml (the image's, or the installed one), state.yaml, labels.yaml and os-release (spec/elemental.md,
3). Never raises: what cannot be used is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from homeport.core.showing import printable
from homeport.core.yamlsafe import read_yaml

AUTHS = ("tpm", "mac", "sys-uuid", "emulated-tpm")
DEFAULT_AUTH = "tpm"
MOST_LABELS, LONGEST_LABEL = 64, 256
# os-release(5) -> annotation, as elemental-register names them
OS_RELEASE = {"NAME": "os.name", "VERSION": "os.version", "VERSION_ID": "os.version-id", "ID": "os.id",
              "PRETTY_NAME": "os.pretty-name", "IMAGE": "os.image", "CPE_NAME": "os.cpe-name"}


@dataclass(frozen=True)
class Registration:
    """How to register. `url` is a secret (its last part is the token); `ca` is PEM or the path of a PEM file.

    `auth` is one of AUTHS; "emulated-tpm" is Elemental's `emulate-tpm: true`.
    """

    url: str = ""
    ca: str = ""
    auth: str = DEFAULT_AUTH
    no_smbios: bool = False
    unmanaged: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return urlsplit(self.url).path.rstrip("/").rpartition("/")[2]


def parse_config(text: str) -> Registration:
    """Elemental's config.yaml: `elemental: {registration: {...}}`."""
    notes: list[str] = []
    section = _section(_section(_read(text, notes), "elemental", notes), "registration", notes)
    auth = _text(section, "auth", notes) or DEFAULT_AUTH
    if auth not in AUTHS[:3]:
        notes.append(f"auth: {printable(auth)} is not one of {', '.join(AUTHS[:3])}")
        auth = DEFAULT_AUTH
    if auth == "tpm" and _yes(section, "emulate-tpm", notes):
        auth = "emulated-tpm"
    labels = section.get("labels")
    return Registration(
        url=_text(section, "url", notes), ca=_text(section, "ca-cert", notes), auth=auth,
        no_smbios=_yes(section, "no-smbios", notes), unmanaged=_yes(section, "no-toolkit", notes),
        # The Go client reads them through a library that folds the case of keys.
        labels={name.lower(): value for name, value in _labels(labels, "labels", notes).items()},
        notes=tuple(notes))


def parse_labels(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Elemental's labels.yaml, a mapping of text to text, and what was wrong with it."""
    notes: list[str] = []
    return _labels(_read(text, notes), "", notes), tuple(notes)


def is_registered(text: str) -> bool:
    """Whether state.yaml says that this machine registered before: it has the time of the first time."""
    tree = _read(text, [])
    return isinstance(tree, dict) and bool(tree.get("initialRegistration"))


def parse_os_release(text: str) -> dict[str, str]:
    """The annotations that os-release(5) gives, as elemental-register makes them."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name in OS_RELEASE:
            found[OS_RELEASE[name]] = _one_line(value.strip().strip('"'))
    return found


def annotations_message(registration: Registration, os_release: Mapping[str, str], *, version: str, address: str,
                        outcome: Mapping[str, str]) -> dict[str, str]:
    """What is told of this machine as it is now (5.3); `outcome` is what became of the last assignment.

    `address` is the one that we speak from, IPv6 in brackets.
    """
    told = {"reg-version": f"homeport-{version}", "auth": registration.auth, **os_release, "registration-ip": address}
    if registration.unmanaged:
        told["os.unmanaged"] = "true"
    return told | {f"homeport.{name}": _one_line(value) for name, value in outcome.items() if value}


def _read(text: str, notes: list[str]) -> Any:
    tree = read_yaml(text)
    notes += (str(complaint) for complaint in tree.complaints[:3])
    return tree.value if tree.usable else None


def _section(tree: Any, name: str, notes: list[str]) -> dict[str, Any]:
    value = tree.get(name) if isinstance(tree, dict) else None
    if value is not None and not isinstance(value, dict):
        notes.append(f"{name}: is not a mapping")
    return value if isinstance(value, dict) else {}


def _text(section: Mapping[str, Any], name: str, notes: list[str]) -> str:
    value = section.get(name)
    if value is None or isinstance(value, str):
        return (value or "").strip()
    notes.append(f"{name}: is not text")
    return ""


def _yes(section: Mapping[str, Any], name: str, notes: list[str]) -> bool:
    value = section.get(name)
    if value not in (None, True, False):
        notes.append(f"{name}: is neither true nor false")
    return value is True


def _labels(tree: Any, path: str, notes: list[str]) -> dict[str, str]:
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        notes.append(f"{path or 'the labels'}: no mapping")
        return {}
    labels = {}
    for name, value in _first(tree.items(), MOST_LABELS, notes):
        if isinstance(value, str | int | float) and len(name) <= LONGEST_LABEL:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            labels[name] = text[:LONGEST_LABEL]
        else:
            notes.append(f"the label {printable(name)}: is not text")
    return labels


def _first(items: Iterable[tuple[str, Any]], most: int, notes: list[str]) -> list[tuple[str, Any]]:
    every = list(items)
    if len(every) > most:
        notes.append(f"{len(every)} labels: only the first {most} are told")
    return every[:most]


def _one_line(value: str) -> str:
    return printable(" ".join(value.split()), LONGEST_LABEL)
