"""The bytes of a reply as text, or why they cannot be a document at all.

Size and encoding, and the answers that servers give in place of a document: nothing, a login page,
an archive.  What stands in the text is no matter here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from homeport.core.complaint import Complaint
from homeport.core.showing import printable

MAX_BYTES = 512 * 1024

# C0 without tab and line ends, DEL, C1 without NEL, and what YAML calls not printable.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_HTML = re.compile(r"\s*<(?:!|\?|/?[a-zA-Z])")
_MAGIC = (
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"BZh", "bzip2 data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"-----BEGIN ", "PEM data (a key or certificate)"),
    (b"#!", "a script"),
)


@dataclass(frozen=True)
class Body:
    """A reply as text; without `text` there is nothing to go on with."""

    text: str | None
    complaints: tuple[Complaint, ...] = ()


def read_body(data: bytes, content_type: str = "") -> Body:
    """Decodes `data` (at most 512 KiB, UTF-8, no control characters) and names what it is if not
    that.

    `content_type` is the server's word for it; it only makes the complaint clearer, for servers
    are often wrong about it.
    """
    size = len(data)
    if size > MAX_BYTES:
        return _refused(f"{size} bytes", f"at most {MAX_BYTES} bytes (512 KiB)")
    for magic, what in _MAGIC:
        if data.startswith(magic):
            return _refused(what, "a document in YAML or JSON, as UTF-8 text")
    complaints: list[Complaint] = []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        complaints.append(Complaint("", f"byte 0x{byte:02x} in line {line}, which is not UTF-8",
                                    "the document saved as UTF-8"))
        text = data.decode("utf-8-sig", errors="replace")
    if not text.strip() or _is_only_comments(text):
        return _refused(*_empty(data))
    if _HTML.match(text):
        return _refused("a web page (HTML or XML)", _WEB_PAGE)
    if complaint := _control_complaint(text):
        complaints.append(complaint)
        # The parser would stop at the first; without them it finds what else is wrong.
        text = _CONTROL.sub("\ufffd", text)
    # As nmstatectl does (its state.rs): people paste documents from web pages.
    return Body(text.replace("\u00a0", " "), tuple(complaints))


_WEB_PAGE = ("a document in YAML or JSON; a page usually means a login portal, a proxy's error or "
             "a wrong URL")


def not_a_document(value: object, content_type: str = "") -> Complaint:
    """The complaint about a body that is YAML but no mapping, such as a server's plain words."""
    wanted = "a mapping: an assignment, a MachineInventory, or nmstate's own keys"
    if value is None:
        return Complaint("", "nothing but null", wanted)
    if isinstance(value, str):
        kind = content_type.partition(";")[0].strip().lower()
        of_kind = f" ({printable(kind)})" if kind else ""
        return Complaint("", f"plain text{of_kind}: '{printable(value)}'", wanted)
    if isinstance(value, list):
        return Complaint("", f"a list of {len(value)}",
                         wanted + "; a list of machines belongs below 'machines:'")
    return Complaint("", printable(repr(value)), wanted)


def _refused(found: str, wanted: str) -> Body:
    return Body(None, (Complaint("", found, wanted),))


def _empty(data: bytes) -> tuple[str, str]:
    if not data:
        return "nothing at all (0 bytes)", "a document; the server answered with an empty body"
    return f"only blank lines and comments ({len(data)} bytes)", "a document"


def _is_only_comments(text: str) -> bool:
    words = (line.strip() for line in text.split("\n"))
    return all(not word or word.startswith("#") or word in ("---", "...") for word in words)


def _control_complaint(text: str) -> Complaint | None:
    found = _CONTROL.findall(text)
    if not found:
        return None
    first = _CONTROL.search(text)
    assert first is not None
    line = text.count("\n", 0, first.start()) + 1
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return Complaint("", f"a control character (U+{ord(first.group()):04X}) in line {line}{more}",
                     "text without control characters")
