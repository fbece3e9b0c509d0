"""The kernel command line as words: which arguments there are, and which of them are ours.

Knows the kernel's own quoting (lib/cmdline.c, next_arg()): words are separated by white space, double
quotes protect it, and a pair of quotes around a whole word or a whole value is dropped.  Refuses to know
what an argument means.  It is on the fast path, so it imports nothing.
"""

from __future__ import annotations

PREFIX = "homeport."


def parse(text: str) -> list[tuple[str, str | None]]:
    """Every argument in order as (name, value); the value is None where there is no "="."""
    return [_split(word) for word in _words(text) if word]


def quote(word: str) -> str:
    """`word` as one argument: `parse` gives it back whole even if there is white space in it."""
    return f'"{word}"' if any(character.isspace() for character in word) else word


def fold_name(name: str) -> str:
    """The one spelling of an option's name: "Nic_Wait", "nic-wait" and "NICWAIT" are the same."""
    return name.lower().replace("-", "").replace("_", "")


def our_arguments(text: str) -> list[tuple[str, str | None]]:
    """The `homeport.NAME[=VALUE]` arguments in order, without the prefix, as they were written."""
    return [(name[len(PREFIX):], value) for name, value in parse(text)
            if name.lower().startswith(PREFIX)]


def homeport_arguments(text: str) -> dict[str, str]:
    """The same by name (lower case, with dashes); the last of several counts, no value is ""."""
    return {name.lower().replace("_", "-"): value or "" for name, value in our_arguments(text)}


def _words(text: str) -> list[str]:
    words, word, quoted = [], "", False
    for character in text.replace("\0", " "):
        if character.isspace() and not quoted:
            words.append(word)
            word = ""
            continue
        quoted ^= character == '"'
        word += character
    return [*words, word]


def _split(word: str) -> tuple[str, str | None]:
    whole = word.startswith('"')
    if whole:
        word = word[1:-1] if len(word) > 1 and word.endswith('"') else word[1:]
    name, equals, value = word.partition("=")
    if not equals:
        return name, None
    if value.startswith('"'):
        value = value[1:-1] if len(value) > 1 and value.endswith('"') else value[1:]
    return name, value
