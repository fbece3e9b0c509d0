"""The options as people read them: the shipped homeport.conf, homeport.conf(5), `--help`.

Knows how each form looks. What the options are stands in `settings.OPTIONS`, and nowhere else.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from homeport.settings import Option

FILE_HEAD = """\
# homeport.conf: how this machine gets its network; see homeport.conf(5).
# Every option is shown at its default. Change one in /etc/homeport/homeport.conf, in a drop-in
# /etc/homeport/homeport.conf.d/NAME.conf, or by the kernel argument homeport.NAME=, which wins.

[Homeport]
"""


def default_file_text(options: Sequence[Option]) -> str:
    """An INI file in which nothing is set."""
    text = FILE_HEAD
    for group, members in _groups(options):
        text += f"\n# --- {group} ---\n"
        for option in members:
            if option.in_files:
                text += "\n" + textwrap.fill(option.help, 98, initial_indent="# ", subsequent_indent="# ",
                                             break_on_hyphens=False, break_long_words=False)
                text += f"\n#{option.key}={option.default}\n"
    return text


def man_options(options: Sequence[Option]) -> str:
    """Man macros (man(7)): a .SS for each group, a .TP for each option."""
    text = ""
    for group, members in _groups(options):
        text += f".SS {_roff(group)}\n"
        for option in members:
            names = [f"{option.key}="] if option.in_files else []
            names.append(f"{option.kernel_argument}=")
            text += ".TP\n" + ", ".join(f"\\fB{_roff(name)}\\fR" for name in names) + "\n"
            text += _roff(option.help) + "\n"
            default = f"\\fI{_roff(option.default)}\\fR" if option.default else "empty"
            text += f"Default: {default}.\n"
            if option.many:
                text += "May be given several times.\n"
    return text


def help_options(options: Sequence[Option]) -> str:
    """Plain text, 80 columns."""
    text = ""
    for group, members in _groups(options):
        text += f"\n{group}:\n"
        for option in members:
            default = f" [{option.default}]" if option.default else ""
            text += f"  {option.name}{' …' if option.many else ''}{default}\n"
            text += textwrap.fill(option.help, 79, initial_indent=" " * 6, subsequent_indent=" " * 6,
                                  break_on_hyphens=False, break_long_words=False) + "\n"
    return text.lstrip("\n")


def _groups(options: Sequence[Option]) -> Iterator[tuple[str, list[Option]]]:
    """An option without a group belongs to that of the one before it."""
    group, members = "", list[Option]()
    for option in options:
        if option.group and members:
            yield group, members
            members = []
        group = option.group or group
        members.append(option)
    yield group, members


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\\&" + text if text.startswith((".", "'")) else text
