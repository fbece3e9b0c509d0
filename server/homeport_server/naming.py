"""What a machine is called and which labels and annotations it has, from its registration and its own words.

As the operator's pkg/server does it (spec/elemental.md, 5.3 and 5.4). Pure but for the randomness handed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport_server import templates
from homeport_server.manifests.registrations import Registration
from homeport_server.templates import BadTemplate, NoValue, Randomness

MOST_MARKS = 200  # labels or annotations that a machine may send
LONGEST_MARK = 4_096
_ESCAPES = str.maketrans({"\n": "", "\r": "", "&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})


def machine_name(template: str, data: Mapping[str, Any], chance: Randomness) -> str:
    """The name of a new machine; a random one where nothing else can be said. Raises ValueError."""
    if not template:
        return _some_name(chance)
    try:
        name = templates.host_name(templates.fill(template, data, chance))
    except NoValue:
        return _some_name(chance)
    if not name:
        raise ValueError(f"'{template}' leaves nothing that can be a name")
    return name


def marks(registration: Registration | None, labels: Mapping[str, str], annotations: Mapping[str, str],
          sent_labels: Mapping[str, str], sent_annotations: Mapping[str, str], data: Mapping[str, Any],
          chance: Randomness) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations after this registration: what was there, what was sent, what the registration adds."""
    if registration is None:
        return dict(labels), dict(annotations)
    prefix = registration.label_prefix
    new_labels, new_annotations = dict(labels), dict(annotations)
    for key, value in list(sent_labels.items())[:MOST_MARKS]:
        filled = _filled(value, data, chance)
        if filled is not None:
            new_labels[prefix + _clean(key)] = templates.label(filled)
    for key, value in list(sent_annotations.items())[:MOST_MARKS]:
        new_annotations[prefix + _clean(key)] = _clean(value)
    _add(new_labels, registration.labels, data, chance, clean=True)
    _add(new_annotations, registration.annotations, data, chance, clean=False)
    return new_labels, new_annotations


def _add(marks: dict[str, str], declared: Mapping[str, str], data: Mapping[str, Any], chance: Randomness, *,
         clean: bool) -> None:
    for key, template in declared.items():
        if marks.get(key) and templates.is_random(template):
            continue  # drawn once, kept for good
        filled = _filled(template, data, chance)
        if filled is not None:
            marks[key] = templates.label(filled) if clean else filled


def _filled(template: str, data: Mapping[str, Any], chance: Randomness) -> str | None:
    try:
        return templates.fill(template, data, chance)
    except (NoValue, BadTemplate):
        return None


def _clean(text: str) -> str:
    """As the operator's sanitizeUserInput (Go's spelling of the escapes); and bounded."""
    return text[:LONGEST_MARK].translate(_ESCAPES)


def _some_name(chance: Randomness) -> str:
    return "m-" + templates.fill("${Random/UUID}", {}, chance)
