"""YAML from strangers: text to a plain tree of dicts, lists and scalars, within fixed bounds.

Works on the parser's events, so that every bound holds *while* the tree grows: nesting, aliases
(counted by what they expand to), one document, no tags but YAML's own.  Duplicate keys are refused
with both lines; PyYAML and nmstate would silently let the last one win.  Unquoted words are read as
serde_yaml reads them (`scalars.py`), keys are always text (so they are for serde), and `<<` is no
merge (serde_yaml does not merge either).

The parser is libyaml by PyYAML, the very parser that serde_yaml uses (translated to Rust); where
PyYAML was built without it, its Python twin does, some twenty times slower and as bounded.  Knows
nothing of what a document means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from homeport.core.complaint import MAX_COMPLAINTS, Complaint, Path
from homeport.core.controls import CONTROL
from homeport.core.scalars import resolve
from homeport.core.showing import printable, safe_path
from homeport.core.yamlfaults import syntax_fault

if TYPE_CHECKING:
    import yaml

MAX_DEPTH = 64
MAX_ALIAS_NODES = 10_000

_TAG = "tag:yaml.org,2002:"
_COLLECTION_TAGS = frozenset({None, _TAG + "map", _TAG + "seq"})


@dataclass(frozen=True)
class YamlTree:
    """What was read: `value` if `usable`, else only the complaints say something."""

    value: Any
    complaints: tuple[Complaint, ...]
    usable: bool


def read_yaml(text: str, *, as_text: bool = False) -> YamlTree:
    """Reads one YAML document; never raises on any `text`.

    With `as_text` every scalar stays the text that the document has: what nmstate sees in a field
    that it declares as a string.
    """
    builder = _Builder((lambda word: word) if as_text else resolve)
    try:
        builder.read(text)
    except _Stop:
        return YamlTree(None, tuple(builder.complaints), usable=False)
    if not builder.documents:
        return YamlTree(None, tuple(builder.complaints), usable=True)
    return YamlTree(builder.documents[0], tuple(builder.complaints), usable=True)


class _Stop(Exception):
    """Reading on makes no sense; the reason is among the complaints."""


class _Unset:
    """Marks a mapping between its entries: the next scalar is a key."""


class _Skip:
    """Marks an entry whose value is read and dropped (its key was refused)."""


@dataclass(slots=True)
class _Frame:
    """A container that is being filled."""

    container: dict[str, Any] | list[Any]
    anchor: str | None
    nodes_before: int
    key: str | type[_Unset] | type[_Skip] = _Unset
    lines: dict[str, int] = field(default_factory=dict)


class _Builder:
    """Events in, a tree and complaints out."""

    def __init__(self, resolve_word: Callable[[str], Any]) -> None:
        self.resolve = resolve_word
        self.complaints: list[Complaint] = []
        self.documents: list[Any] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}  # name -> value, nodes in it
        # A key that stands in every entry is one text in memory, as the first thousand of them are few.
        self.words: dict[str, str] = {}
        self.nodes = 0
        self.alias_nodes = 0

    def read(self, text: str) -> None:
        import yaml

        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self.scalar,
            yaml.MappingStartEvent: self.start_mapping,
            yaml.SequenceStartEvent: self.start_sequence,
            yaml.MappingEndEvent: self.end,
            yaml.SequenceEndEvent: self.end,
            yaml.AliasEvent: self.alias,
            yaml.DocumentStartEvent: self.start_document,
        }
        parser = None
        try:
            parser = _parser(text)
            while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
                handler = handlers.get(type(event))
                if handler is not None:
                    handler(event)
        except yaml.YAMLError as error:
            self.stop(*syntax_fault(error, text))
        finally:
            if parser is not None:
                parser.dispose()

    # The events, in the order in which a document has them.

    def start_document(self, event: yaml.DocumentStartEvent) -> None:
        if self.documents:
            self.stop(f"a second document starts at line {_line(event)}",
                      "one document; '---' may stand only at its start")

    def scalar(self, event: yaml.ScalarEvent) -> None:
        self.nodes += 1
        style, tag, text = event.style, event.tag, event.value
        if style == '"' and CONTROL.search(text):
            self.complain(f"a control character in '{printable(text)}'", "text without it")
        if tag is not None:
            value = self.tagged(tag, text, event)
        else:
            value = text if style else self.resolve(text)
        if event.anchor is not None:
            self.anchors[event.anchor] = value, 1
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _Unset and type(frame.container) is dict:
            self.key(frame, text, event)
        else:
            self.add(value)

    def start_mapping(self, event: yaml.MappingStartEvent) -> None:
        self.start(event, {})

    def start_sequence(self, event: yaml.SequenceStartEvent) -> None:
        self.start(event, [])

    def end(self, event: yaml.MappingEndEvent | yaml.SequenceEndEvent) -> None:
        frame = self.stack.pop()
        if frame.anchor is not None:
            self.anchors[frame.anchor] = frame.container, self.nodes - frame.nodes_before
        self.add(frame.container)

    def alias(self, event: yaml.AliasEvent) -> None:
        anchor = str(event.anchor)
        name = printable(anchor)
        if any(frame.anchor == anchor for frame in self.stack):
            self.stop(f"alias *{name} at line {_line(event)} stands inside what it names",
                      "an alias of something that is complete")
        if anchor not in self.anchors:
            self.stop(f"alias *{name} at line {_line(event)} has no anchor &{name} before it",
                      "an anchor that exists")
        value, nodes = self.anchors[anchor]
        self.alias_nodes += nodes
        if self.alias_nodes > MAX_ALIAS_NODES:
            self.stop(f"aliases that expand to more than {MAX_ALIAS_NODES} nodes",
                      "fewer aliases, or of smaller parts")
        self.nodes += nodes
        frame = self.stack[-1]
        if frame.key is _Unset and type(frame.container) is dict:
            if isinstance(value, str):
                self.key(frame, value, event)
            else:
                self.refuse_key(frame, f"alias *{name} as a key")
            return
        # Copied, so that whoever rewrites one place does not rewrite the other.
        self.add(self.copy(value, len(self.stack)))

    # What they share.

    def start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent,
              container: dict[str, Any] | list[Any]) -> None:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.key is _Unset and type(frame.container) is dict:
            self.refuse_key(frame, f"a key at line {_line(event)} that is no single word")
            # Read on as a value that is dropped; the mapping's real value then meets no key, and
            # telling keys from values again would be guessing.
            raise _Stop
        if event.tag not in _COLLECTION_TAGS:
            self.refuse_tag(str(event.tag), event)
        if len(self.stack) >= MAX_DEPTH:
            self.stop(f"more than {MAX_DEPTH} levels at line {_line(event)}",
                      f"at most {MAX_DEPTH} levels of lists and mappings")
        self.stack.append(_Frame(container, event.anchor, self.nodes))
        self.nodes += 1

    def key(self, frame: _Frame, text: str, event: yaml.Event) -> None:
        line = _line(event)
        if text == "<<":
            self.complain(f"a merge key '<<' at line {line}",
                          "the keys written out; nmstate does not merge")
            frame.key = _Skip
            return
        frame.key = text = self.words.setdefault(text, text) if len(self.words) < 1000 else text
        if text in frame.lines:
            self.complain(f"'{printable(text)}' stands here twice, "
                          f"in line {frame.lines[text]} and in line {line}", "each key once")
        frame.lines[text] = line

    def refuse_key(self, frame: _Frame, found: str) -> None:
        self.complain(found, "a word as key")
        frame.key = _Skip

    def add(self, value: Any) -> None:
        if not self.stack:
            self.documents.append(value)
            return
        frame = self.stack[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
        else:
            if isinstance(frame.key, str):
                frame.container[frame.key] = value
            frame.key = _Unset

    def copy(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            self.stop(f"an alias that makes more than {MAX_DEPTH} levels",
                      f"at most {MAX_DEPTH} levels of lists and mappings")
        if isinstance(value, dict):
            return {key: self.copy(part, depth + 1) for key, part in value.items()}
        if isinstance(value, list):
            return [self.copy(part, depth + 1) for part in value]
        return value

    def tagged(self, tag: str, text: str, event: yaml.ScalarEvent) -> Any:
        """A scalar with a tag of YAML's own, as serde_yaml's visit_scalar takes it."""
        kinds: dict[str, tuple[type, ...]] = {
            "int": (int,), "float": (float, int), "bool": (bool,), "null": (type(None),),
        }  # fmt: skip
        kind = tag.removeprefix(_TAG)
        if tag == _TAG + "str":
            return text
        if tag == kind or kind not in kinds:
            self.refuse_tag(tag, event)
            return text
        value = resolve(text)
        if type(value) not in kinds[kind]:
            self.complain(f"'{printable(text)}' tagged !!{kind}", "a value that fits its tag")
        return self.resolve(text)

    def refuse_tag(self, tag: str, event: yaml.Event) -> None:
        self.complain(f"the tag '{printable(tag)}' in line {_line(event)}", "a value without tag")

    # Where we are, and saying so.

    def path(self) -> Path:
        parts: list[str | int] = []
        for frame in self.stack:
            if isinstance(frame.container, list):
                parts.append(len(frame.container))
            elif isinstance(frame.key, str):
                parts.append(printable(frame.key))
        return tuple(parts)

    def complain(self, found: str, wanted: str) -> None:
        self.complaints.append(Complaint(safe_path(self.path()), found, wanted))
        if len(self.complaints) >= MAX_COMPLAINTS:
            raise _Stop

    def stop(self, found: str, wanted: str) -> None:
        self.complain(found, wanted)
        raise _Stop


def _parser(text: str) -> Any:
    """libyaml's event parser if PyYAML has it, else PyYAML's own."""
    import yaml

    if yaml.__with_libyaml__:
        from yaml._yaml import CParser

        return CParser(text)
    return yaml.SafeLoader(text)


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 0
