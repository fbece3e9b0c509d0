#!/usr/bin/python3
"""Writes the options of `settings.OPTIONS` into docs/homeport.conf.5, between its `begin` and its `end`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent"))

from homeport.settings import man_options

PAGE = Path(__file__).resolve().parents[1] / "docs" / "homeport.conf.5"
BEGIN, END = '.\\" begin\n', '.\\" end\n'


def filled(page: str) -> str:
    """The page with the options as they are declared now."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + man_options() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
