"""Complaints as people and programs see them."""

from __future__ import annotations

import json

import pytest

from homeport.core.complaint import Complaint
from homeport.core.render_complaints import as_json, as_lines, as_table

COMPLAINTS = [
    Complaint("", "a web page (HTML or XML)", "a document"),
    Complaint("interfaces[1].ipv4.address[0].ip", "'10.0.0.300' is no address", "an IPv4 address"),
]

TABLE = """\
where                             what stands there           what would be right
--------------------------------  --------------------------  -------------------
(the whole document)              a web page (HTML or XML)    a document
interfaces[1].ipv4.address[0].ip  '10.0.0.300' is no address  an IPv4 address"""

NARROW = """\
where                         what stands     what would be
                              there           right
----------------------------  --------------  --------------
(the whole document)          a web page      a document
                              (HTML or XML)
interfaces[1].ipv4.address[0  '10.0.0.300'    an IPv4
].ip                          is no address   address"""


def test_table() -> None:
    assert as_table(COMPLAINTS) == TABLE


def test_a_narrow_terminal() -> None:
    assert as_table(COMPLAINTS, 60) == NARROW


@pytest.mark.parametrize("width", [1, 40, 79, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    complaints = [*COMPLAINTS, Complaint("a" * 300, "b " * 200, "c" * 300)]
    narrowest = 12 + 2 + 12 + 2 + 12
    assert max(map(len, as_table(complaints, width).split("\n"))) <= max(width, narrowest)


def test_every_word_is_in_the_table() -> None:
    """Fifty faults show all fifty."""
    complaints = [Complaint(f"p{n}", f"found{n}", f"wanted{n}") for n in range(50)]
    table = as_table(complaints, 40).split()
    assert all(word in table for n in range(50) for word in (f"p{n}", f"found{n}", f"wanted{n}"))


def test_lines() -> None:
    assert as_lines(COMPLAINTS) == [
        "a web page (HTML or XML); a document",
        "interfaces[1].ipv4.address[0].ip: '10.0.0.300' is no address; an IPv4 address",
    ]


def test_json() -> None:
    assert json.loads(as_json(COMPLAINTS)) == [
        {"path": "", "found": "a web page (HTML or XML)", "wanted": "a document"},
        {"path": "interfaces[1].ipv4.address[0].ip", "found": "'10.0.0.300' is no address",
         "wanted": "an IPv4 address"},
    ]


def test_nothing_that_a_terminal_obeys_comes_out() -> None:
    evil = [Complaint("a\nb", "\x1b[31mred\x07", "x\u202ey")]
    for text in (as_table(evil), as_lines(evil)[0]):
        assert all(line.isprintable() for line in text.split("\n"))
    assert len(as_lines(evil)) == 1
