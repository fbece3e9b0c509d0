"""Files of attributes: whatever metadata say, each line is ours, and systemd reads what was meant."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.core.platforms import PLATFORMS
from homeport.core.platforms.attributes import ATTRIBUTES, HOSTNAMES, attributes, wants
from homeport.core.platforms.environment import LARGEST, environment_file
from homeport.core.platforms.shape import Platform

EVIL = "4=x\nLD_PRELOAD=/tmp/evil.so\nY"


def read_by_systemd(text: str) -> Iterator[tuple[str, str]]:
    """By the rules of systemd.exec(5) and env-file.c, written down from there: states, a character at a time."""
    name = value = pending = ""
    state = "line"
    for sign in text + "\n":
        if state == "line":
            state, name = ("comment", "") if sign in "#;" else ("line", "") if sign.isspace() else ("name", sign)
        elif state == "comment":
            state = "line" if sign in "\r\n" else "comment"
        elif state == "name":
            state = "line" if sign in "\r\n" else "before" if sign == "=" else "name"
            name, value, pending = name + sign * (state == "name"), "", ""
        elif state in ("before", "plain") and sign in "\r\n":
            yield name.strip(), value
            state = "line"
        elif state in ("before", "plain") and sign == "\\":
            state = "escaped"
        elif state == "before" and sign in "'\"":
            state = sign
        elif state in ("before", "plain"):
            # Space at the end of a value does not belong to it.
            space = sign in " \t"
            value, pending = (value, pending + sign) if space else (value + pending + sign, "")
            state = "before" if space and state == "before" else "plain"
            pending = "" if state == "before" else pending
        elif state == "escaped":
            value, state = value + ("" if sign in "\r\n" else sign), "plain"
        elif state == "'":
            state, value = ("before", value) if sign == "'" else ("'", value + sign)
        elif state == '"':
            state = {'"': "before", "\\": 'in "'}.get(sign, '"')
            value += sign if state == '"' else ""
        else:
            value += sign if sign in '"\\`$' else "" if sign in "\r\n" else f"\\{sign}"
            state = '"'
    if state not in ("line", "comment", "name"):  # quotes that do not end
        yield name.strip(), value


def library() -> ctypes.CDLL | None:
    """systemd's own code, where its programs share it."""
    found = [path for folder in ("/usr/lib", "/usr/lib64") for path in Path(folder).glob("**/libsystemd-shared-*.so")]
    return ctypes.CDLL(str(found[0])) if found else None


def read_by_its_library(systemd: ctypes.CDLL, text: str) -> dict[str, str]:
    """load_env_file(FILE *, const char *, char ***), as src/core/execute.c calls it."""
    libc = ctypes.CDLL(None)
    libc.fdopen.restype, libc.fdopen.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_char_p]
    libc.fclose.argtypes = [ctypes.c_void_p]
    systemd.load_env_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    file = os.memfd_create("environment")
    os.write(file, text.encode())
    os.lseek(file, 0, os.SEEK_SET)
    stream, found = libc.fdopen(file, b"r"), ctypes.POINTER(ctypes.c_char_p)()
    try:
        assert systemd.load_env_file(stream, b"environment", ctypes.byref(found)) == 0
    finally:
        libc.fclose(stream)
    lines: list[str] = []
    while found and found[len(lines)] is not None:
        lines.append((found[len(lines)] or b"").decode())
    return dict(line.split("=", 1) for line in lines)


SYSTEMD = library()
VALUES = st.one_of(st.text(), st.text(alphabet="\"'\\$`\n\r\t #;=a ~"),
                   st.sampled_from(["", " ", " a ", EVIL, "\u2028"]))


@given(st.dictionaries(st.one_of(st.from_regex(r"[A-Z_]{1,9}", fullmatch=True), st.text(), st.just(EVIL)), VALUES))
def test_every_line_is_ours_and_is_read_as_it_was_meant(values: dict[str, str]) -> None:
    text, left_out = environment_file(values)
    kept = {name: value for name, value in values.items() if name not in left_out}
    assert text.count("\n") == len(kept) == len(values) - len(left_out)
    assert list(read_by_systemd(text)) == sorted(kept.items())
    if SYSTEMD is not None:
        assert read_by_its_library(SYSTEMD, text) == kept


def test_only_what_has_to_be_is_left_out() -> None:
    values = {"A": "plain-1.2:3/4", "B": 'a "quote" and a \\', "C": "$HOME `id`", "D": "ü b", "E": "", "F_0": "'"}
    assert environment_file(values)[1] == []
    bad = {"a": "lower", "A B": "space", "": "none", "0": "digit", "A\n": "newline", EVIL: "x", "G": "a\nb", "H": "\0"}
    assert environment_file({**values, **bad})[1] == sorted(bad)
    many = {f"A{number:03}": "x" * 4000 for number in range(40)}
    text, left_out = environment_file({**many, "B": "short"})
    assert LARGEST - 5000 < len(text) <= LARGEST and left_out == sorted(many)[-len(left_out):] and "B=short\n" in text


def test_a_shell_reads_the_same(tmp_path: Path) -> None:
    """Scripts source the file."""
    values = {"A": "plain-1.2:3/4", "B": 'a "quote" and a \\', "C": "$HOME `id`", "D": "ü b", "E": "", "F": "~/x"}
    (tmp_path / "env").write_text(environment_file(values)[0])
    script = f'. {tmp_path}/env; printf "%s\\n" "$A" "$B" "$C" "$D" "$E" "$F"'
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split("\n")[:6] == list(values.values())


# Metadata

ODD = st.one_of(VALUES, st.integers(), st.none(), st.booleans(), st.lists(VALUES, max_size=2),
                st.dictionaries(VALUES, VALUES, max_size=2))


def at(keys: list[str]) -> st.SearchStrategy[object]:
    """A tree with something odd where an attribute is looked up."""
    if not keys:
        return ODD
    inner = at(keys[1:])
    if keys[0] in ("*", "+", "0"):
        return st.lists(inner, max_size=3)
    return st.fixed_dictionaries({}, optional={keys[0]: inner})


def document(places: list[str]) -> st.SearchStrategy[bytes]:
    trees = [at(place.partition("#")[2].split(".")) for place in places if "#" in place]
    if not trees:
        return VALUES.map(lambda text: text.encode("utf-8", "replace"))
    whole = st.tuples(*trees).map(lambda found: {key: value for tree in found if isinstance(tree, dict)
                                                 for key, value in tree.items()} or next(iter(found)))
    return whole.map(lambda tree: json.dumps(tree).encode())


PACKET = st.lists(st.fixed_dictionaries({}, optional={
    "address_family": st.one_of(ODD, st.sampled_from([4, 6])), "public": st.one_of(ODD, st.booleans()),
    "address": ODD, "gateway": ODD})).map(
        lambda addresses: json.dumps({"network": {"addresses": addresses}, "hostname": EVIL}).encode())


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda each: each.name)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_a_platform_says(platform: Platform, data: st.DataObject) -> None:
    """Nothing of it is a name, a line or a comment of its own."""
    places = [place for each in (*ATTRIBUTES[platform.name].values(), HOSTNAMES.get(platform.name, ""))
              for place in each.split(" | ") if place]
    files = {want.path: data.draw(document([place for place in places if place.partition("#")[0] == want.path]))
             for want in wants(platform)}
    if platform.name == "packet" and data.draw(st.booleans()):
        files["metadata"] = data.draw(PACKET)
    found = attributes(platform, files)
    text, left_out = environment_file(found)
    assert left_out == []
    own = platform.name.upper().replace("-", "_")
    assert all(line.startswith((f"AFTERBURN_{own}_", "AFTERBURN_CUSTOM_")) for line in text.splitlines())
    assert dict(read_by_systemd(text)) == found
    if SYSTEMD is not None:
        assert read_by_its_library(SYSTEMD, text) == found
