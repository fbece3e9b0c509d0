"""A manifest file as its documents: YAML with `---` between them, or `kind: List`.

The text is read by homeport's own YAML reader, which knows one document and its bounds; here a file is cut into
documents first. What a document means is for the other modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from homeport.core.body import read_body
from homeport.core.complaint import Complaint
from homeport.core.showing import show
from homeport.core.yamlsafe import read_yaml

# YAML 1.2, 9.1.2: at the start of a line and before a blank this is a marker, even within block text.
_MARKER = re.compile(r"^---(?=[ \t\n]|\Z)", re.MULTILINE)
MOST_DOCUMENTS = 2_000


@dataclass(frozen=True, order=True)
class Fault:
    """A complaint about a file: which one, and whose document in it (`kind/name`, "" for the file itself)."""

    file: str
    subject: str
    complaint: Complaint

    def __str__(self) -> str:
        where = f"{self.file}: {self.subject}" if self.subject else self.file
        return f"{where}: {self.complaint}"


@dataclass(frozen=True)
class Document:
    """One manifest: where it stands, and what it says. `kind`, `group`, `name`, `namespace` are always text."""

    file: str
    kind: str
    group: str
    name: str
    namespace: str
    tree: dict[str, Any]

    @property
    def subject(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind


def read_documents(file: str, data: bytes) -> tuple[list[Document], list[Fault]]:
    """The manifests in a file. Never raises, whatever the bytes."""
    documents: list[Document] = []
    faults: list[Fault] = []

    def complain(complaint: Complaint, subject: str = "") -> None:
        faults.append(Fault(file, subject, complaint))

    body = read_body(data)
    for complaint in body.complaints:
        complain(complaint)
    if body.text is None or faults:
        return [], faults
    for text in _cut(body.text.replace("\r\n", "\n"), complain):
        tree = read_yaml(text)
        for complaint in tree.complaints:
            complain(complaint)
        if tree.usable and not tree.complaints and tree.value is not None:
            documents += _manifests(file, tree.value, complain)
    return documents, faults


def _cut(text: str, complain: Callable[[Complaint], None]) -> Iterator[str]:
    """The documents of a file, each behind as many empty lines as it has above it, so that line numbers hold."""
    starts = [0, *(match.start() for match in _MARKER.finditer(text))]
    if len(starts) > MOST_DOCUMENTS:
        complain(Complaint("", f"{len(starts)} documents", f"at most {MOST_DOCUMENTS} in one file"))
        return
    above = 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        if part.strip():
            yield "\n" * above + part
        above += part.count("\n")


def _manifests(file: str, tree: Any, complain: Callable[..., None], depth: int = 0) -> Iterator[Document]:
    """The manifest that a tree is, or those of a List, which is what `kubectl get -o yaml` writes."""
    if not isinstance(tree, dict):
        complain(Complaint("", show(tree), "a manifest: a mapping with apiVersion, kind and spec"))
        return
    kind, version = tree.get("kind"), tree.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        complain(Complaint("", show(tree), "a manifest with apiVersion and kind"))
        return
    if kind.endswith("List") and isinstance(tree.get("items"), list) and depth == 0:
        for item in tree["items"]:
            yield from _manifests(file, item, complain, depth + 1)
        return
    metadata = tree.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    yield Document(
        file, kind, version.partition("/")[0], name if isinstance(name, str) else "",
        namespace if isinstance(namespace, str) and namespace else "default", tree)
